# Base backups of tools that copy the data directory themselves, between pg_backup_start() and pg_backup_stop(): while one runs
# the checkpoint and the logs stay as they are, however its session ends; the copy, taken under load, has everything.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use QlogWire;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	init => { allows_streaming => 1 },
	conf => [ "qlog.checkpoint_timeout = '50ms'", "qlog.segment_size = '1MB'", "qlog.reclaim_naptime = '50ms'", "qlog.snapshot_interval = '1s'" ]);

$node->sql(q{select queue_create('joint'); select queue_create('alone'); select queue_create('kept'); create table t(n bigint primary key);
	create sequence numbers});
$node->sql(q{select queue_push('kept', i::text) from generate_series(1, 10) i});

my $dropped = 0;

# A queue that is dropped; its log's directory.
sub drop_one
{
	my $queue = 'dropped ' . ++$dropped;

	$node->sql("select queue_push('$queue', '1')");
	my $log = $node->sql("select log_id from qlog_queues where queue = '$queue'");
	$node->sql("select queue_drop('$queue')");
	return $node->log_dir($log);
}

sub await_waiting
{
	my ($name) = @_;

	$node->poll_sql(q{select state = 'waiting for a base backup' from qlog_stat_workers where role = 'checkpointer'});
	return pass("$name: the checkpointer waits");
}

sub await_gone
{
	my ($directory, $name) = @_;

	$node->wait_until(sub { $node->sql(q{select queue_push('kept', '0')}); !-d $directory }, "$directory to go");
	return pass("$name: what was dropped goes");
}

# ------------------------------------------------------------------------------------------------
# However it ends
# ------------------------------------------------------------------------------------------------

my %end = (
	'pg_backup_stop' => sub { $_[0]->value('select 1 from pg_backup_stop()'); },
	'rolled back, then stopped' => sub {
		$_[0]->query('begin');
		$_[0]->query('select 1 from pg_backup_stop()');
		$_[0]->query('rollback');
	},
	'disconnected' => sub { $_[0]->close; },
	'terminated' => sub { $node->sql('select pg_terminate_backend(' . $_[0]->pid . ')'); },);

foreach my $name (sort keys %end)
{
	my $session = QlogWire->to($node);
	my $result = $session->query(q{select pg_backup_start('tool', true)});

	ok(!$result->{error}, "$name: begun");
	is($session->query(q{select pg_backup_start('again', true)})->{error}, '55000', "$name: a second one is refused");
	my $directory = drop_one();
	await_waiting($name);
	ok(-d $directory, "$name: the log of a dropped queue is there");
	$end{$name}->($session);
	await_gone($directory, $name);
	$session->close unless $name =~ /^(?:disc|term)/;
}

# One that cannot begin holds up nothing.
$node->sql(q{create role plain login; grant execute on function pg_backup_start(text, boolean) to plain});
my ($rc, $out, $err) = $node->psql('postgres', q{select pg_backup_start(repeat('x', 2000), true)});
like($err, qr/backup label too long/, 'a label that is refused');
await_gone(drop_one(), 'refused');

# Two at once, and one of them ends.
{
	my @sessions = map { QlogWire->to($node) } 1 .. 2;

	$_->query(q{select pg_backup_start('tool', true)}) foreach @sessions;
	my $directory = drop_one();
	$sessions[0]->query('select 1 from pg_backup_stop()');
	await_waiting('one of two has ended');
	ok(-d $directory, 'one of two has ended: everything stays');
	$sessions[1]->query('select 1 from pg_backup_stop()');
	await_gone($directory, 'both have ended');
	$_->close foreach @sessions;
}

# ------------------------------------------------------------------------------------------------
# A copy taken under load
# ------------------------------------------------------------------------------------------------

my $script = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
open(my $fh, '>', $script) or die $!;
print $fh q{
begin;
insert into t select nextval('numbers') returning n \gset
select queue_push('joint', json_build_object('n', :n, 'pad', repeat('x', 20000))::text);
commit;
select queue_push('alone', json_build_object('pad', repeat('y', 3000))::text);
select count(queue_ack(lease_id)) from queue_pop('alone');
select queue_push('brief ' || :client_id, '1');
select queue_drop('brief ' || :client_id);
};
close $fh;
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 3, '-T', 600, '--rate', 60, '-f', $script, $node->connstr('postgres') ],
	'<', \undef, '>', \my $load_out, '2>', \my $load_err);
$node->poll_sql(q{select acked > 50 from qlog_stat_queues where queue = 'alone'});

my $session = QlogWire->to($node);
$session->query(q{select pg_backup_start('tool', true)});
my ($rows, $pushed) = split / /, $node->sql(q{select (select count(*) from t) || ' ' || (select pushed from qlog_stat_queues where queue = 'alone')});
my $path = $node->backup_dir . '/files';
mkdir $node->backup_dir;

# In two parts, so that what is copied first is older, as from a slow tool; one that copies what could be left out, too.
system('cp', '-a', $node->data_dir, $path) == 0 or die;
$node->poll_sql(q{select pushed > } . ($pushed + 50) . q{ from qlog_stat_queues where queue = 'alone'});
foreach my $log (glob $node->qlog_dir . '/q*')
{
	system('cp', '-a', $log, "$path/qlog/") == 0 or die;
}
$load->signal('INT');
eval { $load->finish };
unlink "$path/postmaster.pid", "$path/postmaster.opts";
ok(-e "$path/qlog/pgsql_tmp.qlog_node", 'the copy has the marker of the original');
my $result = $session->query('select labelfile from pg_backup_stop(false)');
$session->close;
PostgreSQL::Test::Utils::append_to_file("$path/backup_label", $result->{rows}[0][0]);
system('cp', '-a', $_, "$path/pg_wal/") == 0 or die foreach grep { m{/[0-9A-F]{24}$} } glob $node->data_dir . '/pg_wal/*';
$node->stop;

my $copy = QlogNode->new('copy');
$copy->init_from_backup($node, 'files');
chmod 0700, $copy->qlog_dir or die $!;
$copy->start;
ok(!glob($copy->qlog_dir . '/store.*'), 'the copied checkpoint is used');
is($copy->sql(q{select ready >= 10 from qlog_stat_queues where queue = 'kept'}), 't', 'what was there for long is there');
isnt(slurp_file($copy->qlog_dir . '/pgsql_tmp.qlog_node'), slurp_file($node->qlog_dir . '/pgsql_tmp.qlog_node'), 'the copy is a node of its own');
cmp_ok($copy->sql('select count(*) from t'), '>=', $rows, 'rows from before the backup are there');
cmp_ok($copy->sql(q{select pushed from qlog_stat_queues where queue = 'alone'}), '>=', $pushed, 'so is what was pushed before it');
is( $copy->sql(q{select count(*), sum((payload->>'n')::bigint) from queue_peek('joint', batch => 1000000)}),
	$copy->sql('select count(*), sum(n) from t'),
	'rows and messages agree');
$copy->sql(q{begin; insert into t values (-1); select queue_push('joint', '{"n": -1}'); commit});
$copy->kill9_everything;
$copy->start;
is( $copy->sql(q{select count(*), sum((payload->>'n')::bigint) from queue_peek('joint', batch => 1000000)}),
	$copy->sql('select count(*), sum(n) from t'),
	'work goes on in the copy, over a crash');
$copy->stop;
done_testing();
