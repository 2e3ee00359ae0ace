# The guards, which keep PostgreSQL's checkpoints from passing joint entries that our log does not hold yet: stopped at each
# of their steps, frozen, terminated, killed. Rows and messages agree every time, and checkpoints wait as long as they must.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(usleep);

my $node = QlogNode->started('main',
	conf => [ "qlog.log_flush_interval = '50ms'", "qlog.checkpoint_timeout = '200ms'", 'max_connections = 40' ]);
my $number = 0;

$node->sql("select queue_create('q'); create table t(n int primary key); select queue_create('probe'); create table probe(n int)");

sub rows { return $node->sql('select coalesce(string_agg(n::text, \',\' order by n), \'\') from t') }

sub messages
{
	return $node->sql(
		q{select coalesce(string_agg(payload->>'n', ',' order by (payload->>'n')::int), '')
		from queue_peek('q', batch => 1000000)});
}

# A row and its message. The session itself stops nowhere.
sub joint
{
	$number++;
	$node->sql("set qlog.debug_stop = ''; begin; insert into t values ($number); select queue_push('q', '{\"n\": $number}'); commit");
	return;
}

# Where the server's processes stop from now on ('' = nowhere).
sub stop_at
{
	my ($point) = @_;

	$node->sql($point eq '' ? 'alter system reset qlog.debug_stop' : "alter system set qlog.debug_stop = '$point'");
	$node->sql('select pg_reload_conf()');
	$node->poll_sql('show qlog.debug_stop', $point);
	return;
}

# Freezes processes where they hold no lock and lead no sync of the log: a row and a message for another queue still get
# through, and so does a message alone, whose commit is a sync.
sub freeze_without_locks
{
	my (@names) = @_;
	my $probe = '';

	until ($probe =~ /through/)
	{
		$node->freeze($_) foreach @names;
		my $run = IPC::Run::start(
			[
				'psql', '-XAtq', '-d', $node->connstr('postgres'),
				'-c', q{begin; insert into probe values (1); select queue_push('probe', '1'); commit},
				'-c', q{select queue_push('probe', '2')}, '-c', q{select 'through'}
			],
			'<', \undef, '>', \$probe, '2>', \my $err);
		for (1 .. 50)
		{
			$run->pump_nb;
			last if $probe =~ /through/;
			usleep(100_000);
		}
		$node->thaw if $probe !~ /through/;
		$run->finish;
	}
	return;
}

# A CHECKPOINT in a session of its own.
sub checkpoint_start
{
	return IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-c', 'checkpoint' ],
		'<', \undef, '>', \my $out, '2>', \my $err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
}

sub after_a_kill
{
	my ($what) = @_;

	$node->freeze('walwriter');
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	is(messages(), rows(), "$what, then all killed: rows and messages agree");
	joint();
	is(messages(), rows(), "$what: and work goes on");
	return;
}

# ------------------------------------------------------------------------------------------------
# Stopped at each step, with the flag set: no checkpoint completes
# ------------------------------------------------------------------------------------------------
foreach my $limit (8192, 0)
{
	$node->sql("alter system set qlog.wal_payload_limit = $limit");
	foreach my $point (qw(guard-before-barrier guard-after-barrier guard-after-confirm))
	{
		my $what = ($limit ? 'carried' : 'referenced') . ", $point";
		my $mark = -s $node->logfile;

		stop_at($point);
		joint();
		$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, "a guard to reach $point");
		my $redo = $node->sql('select redo_lsn from pg_control_checkpoint()');
		my $checkpoint = checkpoint_start();

		# The other guard is called, and stops as well; then commits guard themselves.
		joint() for 1 .. 3;
		usleep(300_000);
		joint();
		$checkpoint->pump_nb;
		ok($checkpoint->pumpable, "$what: a checkpoint waits");
		is($node->sql('select redo_lsn from pg_control_checkpoint()'), $redo, "$what: none completes");
		is(messages(), rows(), "$what: rows and messages agree");
		after_a_kill($what);
		eval { $checkpoint->finish };
	}
}
$node->sql('alter system reset qlog.wal_payload_limit');
$node->sql('select pg_reload_conf()');

# A confirm says that the WAL is durable up to its barrier: it is flushed by the guard, when nobody else does.
{
	my $mark = -s $node->logfile;

	freeze_without_locks('walwriter', 'qlog checkpointer');
	stop_at('guard-after-barrier');
	$number++;
	$node->sql("set qlog.debug_stop = ''; set synchronous_commit = off; begin; insert into t values ($number); select queue_push('q', '{\"n\": $number}'); commit");
	$node->wait_until(sub { $node->log_contains('stopped at "guard-after-barrier"', $mark) }, 'a guard to flush the WAL');
	cmp_ok($node->sql('select pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()'), '<', 200, 'the WAL is flushed through the barrier');
	after_a_kill('barrier');
}

# Without a guard on duty a commit confirms itself, and with that all entries before its own: it waits until their WAL
# records are inserted.
{
	$node->poll_sql(q{select count(*) = 0 from qlog_stat_workers where state = 'on guard'});
	$number++;
	my $stopped = $node->stop_at('before-wal-insert', "begin; insert into t values ($number); select queue_push('q', '{\"n\": $number}'); commit");
	$number++;
	my $waits = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', "begin; insert into t values ($number); select queue_push('q', '{\"n\": $number}'); commit"
		],
		'<', \undef, '>', \my $out, '2>', \my $err);
	for (1 .. 10)
	{
		$waits->pump_nb;
		usleep(100_000);
	}
	ok($waits->pumpable, 'a commit does not confirm what is not in the WAL');
	after_a_kill('a commit that waits for the WAL record of another one');
	eval { $_->finish } foreach $stopped, $waits;
}

# ------------------------------------------------------------------------------------------------
# Frozen
# ------------------------------------------------------------------------------------------------
{
	# One of them, in office or not; both.
	foreach my $which ('guard 1', 'guard 2', 'guard')
	{
		joint();
		freeze_without_locks("qlog $which");
		joint() for 1 .. 5;
		is(messages(), rows(), "qlog $which frozen: rows and messages agree");
		my $checkpoint = checkpoint_start();
		joint() for 1 .. 3;
		$node->thaw;
		ok($checkpoint->finish, "qlog $which frozen: a checkpoint completes when it goes on");
		joint();
		freeze_without_locks("qlog $which");
		joint() for 1 .. 3;
		after_a_kill("qlog $which frozen");
	}
}

# ------------------------------------------------------------------------------------------------
# Terminated and killed, under load
# ------------------------------------------------------------------------------------------------

my $script = "$PostgreSQL::Test::Utils::tmp_check/joint.sql";
open(my $fh, '>', $script) or die $!;
print $fh q{
begin;
insert into t select 1000000 * (1 + :client_id) + nextval('numbers') returning n \gset
select queue_push('q', json_build_object('n', :n)::text);
commit;
};
close $fh;
$node->sql('create sequence numbers');

sub load_start
{
	my ($seconds) = @_;

	return IPC::Run::start([ 'pgbench', '-n', '-c', 3, '-T', $seconds, '-f', $script, $node->connstr('postgres') ],
		'<', \undef, '>', \my $out, '2>', \my $err);
}

{
	my $mark = -s $node->logfile;
	my $load = load_start(5);
	my $end = time + 4;
	my $terminated = 0;

	while (time < $end)
	{
		my @guards = $node->pids_named(qr/postgres:.*qlog guard/);
		my $guard = @guards ? $guards[ rand @guards ] : next;

		$terminated += kill 'TERM', $guard;
		$node->sql('checkpoint') if rand() < 0.3;
		usleep(150_000);
	}
	ok($load->finish, "guards terminated $terminated times: no commit fails");
	ok(!$node->log_contains('PANIC|all server processes terminated', $mark), 'guards terminated: the server goes on');
	is(messages(), rows(), 'guards terminated: rows and messages agree');
	$node->poll_sql(q{select count(*) = 2 from qlog_stat_workers where role like 'guard%' and pid is not null});
	pass('guards terminated: they are back');
	after_a_kill('guards terminated');
}

for my $round (1 .. 3)
{
	my $mark = -s $node->logfile;
	my $load = load_start(30);

	usleep(700_000 + 100_000 * $round);
	my @guards = $node->pids_named(qr/postgres:.*qlog guard/);
	kill 'KILL', $guards[ $round % 2 ];
	$node->wait_until(sub { $node->log_contains('qlog: ready', $mark) }, 'the server to start anew');
	eval { $load->finish };
	is(messages(), rows(), "a guard killed ($round): rows and messages agree");
	joint();
}

# The last joint commit before a shutdown, while the guards stand at one of their steps for a moment.
foreach my $mode ('fast', 'immediate', 'fast')
{
	my $load = load_start(30);

	sleep 1;
	$node->stop($mode);
	eval { $load->finish };
	$node->start;
	is(messages(), rows(), "$mode shutdown under load: rows and messages agree");
}
$node->stop;

done_testing();
