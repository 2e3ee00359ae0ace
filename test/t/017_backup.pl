# Base backups of a server whose queues come and go: what was acknowledged before the backup began is in the copy, the
# checkpoint stays as it is while files are copied, and what cannot be rebuilt is refused.  What a transaction did with its
# tables counts in the restored queue as well, also for messages that came to their place after the copy.

use strict;
use warnings;

use File::Copy qw(copy);
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	init => { allows_streaming => 1 },
	conf => [ "qlog.checkpoint_timeout = '50ms'", "qlog.segment_size = '1MB'" ]);

# A backup of the server as a server of its own.
sub copy_of
{
	my ($backup) = @_;
	my $copy = QlogNode->new("copy_$backup");

	$copy->init_from_backup($node, $backup);

	# The test module's copy does not keep the mode of directories, as backup tools do.
	chmod 0700, $copy->qlog_dir or die $!;
	return $copy;
}

sub values_of
{
	my ($server, $queue) = @_;

	return $server->sql(qq{select coalesce(string_agg(payload #>> '{}', ',' order by "position"), '')
		from queue_peek('$queue', batch => 100000)});
}

# A queue that is dropped, with entries that stand in its log only, and one that is made when that has gone.
my $dropped = 0;

sub drop_one
{
	$dropped++;
	$node->sql(qq{select queue_push('dropped $dropped', i::text) from generate_series(1, 3) i});
	my $log = $node->sql(qq{select log_id from qlog_queues where queue = 'dropped $dropped'});
	$node->sql(qq{select queue_drop('dropped $dropped')});
	return $node->log_dir($log);
}

sub gone
{
	my ($directory) = @_;

	$node->wait_until(sub { $node->sql(q{select queue_push('other', '1')}); !-d $directory }, "$directory to go");
	return;
}

# ------------------------------------------------------------------------------------------------
# Nothing was ever dropped: the state can be rebuilt from the logs
# ------------------------------------------------------------------------------------------------

$node->sql(q{select queue_create('kept'); select queue_create('other'); create table t(n int primary key)});
$node->sql(q{select queue_push('kept', i::text) from generate_series(1, 5) i});
$node->backup('first');
{
	my $copy = copy_of('first');

	truncate $copy->qlog_dir . '/store/data.mdb', 5000 or die $!;
	$copy->start;
	is(values_of($copy, 'kept'), '1,2,3,4,5', 'torn checkpoint, nothing dropped: rebuilt from the logs');
	ok($copy->log_contains('the checkpoint of qlog is damaged'), 'and the log says so');
	$copy->stop;
}

# ------------------------------------------------------------------------------------------------
# Queues were dropped before
# ------------------------------------------------------------------------------------------------

gone(drop_one()) for 1 .. 3;
$node->sql(qq{select queue_push('kept', i::text) from generate_series(6, 10) i});
$node->sql("begin; insert into t values ($_); select queue_push('kept', '$_'); commit") foreach 11, 12;
$node->backup('second');
{
	my $copy = copy_of('second');

	$copy->start;
	is(values_of($copy, 'kept'), join(',', 1 .. 12), 'queues dropped before: everything else is in the copy');
	is($copy->sql(q{select string_agg(queue, ',' order by queue) from qlog_queues}), 'kept,other', 'and nothing of them');
	ok(!glob($copy->qlog_dir . '/store.*'), 'the copied checkpoint is used');
	$copy->sql("begin; insert into t values (13); select queue_push('kept', '13'); commit");
	$copy->kill9_everything;
	$copy->start;
	is(values_of($copy, 'kept'), join(',', 1 .. 13), 'work goes on in the copy, over a crash');
	$copy->stop;
}
{
	my $copy = QlogNode->new('copy_torn_with_snapshot');

	$copy->init_from_backup($node, 'second');
	chmod 0700, $copy->qlog_dir or die $!;
	truncate $copy->qlog_dir . '/store/data.mdb', 5000 or die $!;
	$copy->start;
	is(values_of($copy, 'kept'), join(',', 1 .. 12), 'torn checkpoint, queues dropped: a snapshot in the copy is used');
	ok($copy->log_contains('begins with the snapshot'), 'and the log says so');
	$copy->stop;
}
{
	my $copy = QlogNode->new('copy_torn');

	$copy->init_from_backup($node, 'second');
	chmod 0700, $copy->qlog_dir or die $!;
	truncate $copy->qlog_dir . '/store/data.mdb', 5000 or die $!;
	unlink glob $copy->qlog_dir . '/snapshots/*.qsnap';
	$copy->start;
	my ($rc, $out, $err) = $copy->psql('postgres', q{\set VERBOSITY verbose
		select * from queue_peek('kept')});
	like($err, qr/XX001.*have been removed/s, 'torn checkpoint, queues dropped, no snapshot: refused, and not cut');
	is($copy->sql('select count(*) from t'), '2', 'the server itself runs');
	$copy->stop;
}

# ------------------------------------------------------------------------------------------------
# While a backup runs
# ------------------------------------------------------------------------------------------------

# Load, of a limited rate, since the copy recovers as many logs as queues come meanwhile: rows with messages, larger than what usually travels in the WAL, messages alone, queues that come and go.
my $script = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
open(my $fh, '>', $script) or die $!;
print $fh q{
begin;
insert into t select 1000000 * (1 + :client_id) + nextval('numbers') returning n \gset
select queue_push('joint', json_build_object('n', :n, 'pad', repeat('x', 20000))::text);
commit;
select queue_push('alone', '1');
select queue_push('brief ' || :client_id, '1');
select queue_drop('brief ' || :client_id);
};
close $fh;
$node->sql(q{create sequence numbers; select queue_create('joint'); select queue_create('alone')});
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 3, '-T', 600, '--rate', 50, '-f', $script, $node->connstr('postgres') ],
	'<', \undef, '>', \my $load_out, '2>', \my $load_err);
$node->poll_sql(q{select acked + ready > 20 from qlog_stat_queues where queue = 'alone'});

# Slow, so that it is under way for a while.
my $before = $node->sql(q{select (select pushed from qlog_stat_queues where queue = 'alone') || ' ' || (select count(*) from t)});
my $path = $node->backup_dir . '/third';
my $backup = IPC::Run::start(
	[ 'pg_basebackup', '-D', $path, '-h', $node->host, '-p', $node->port, '--checkpoint', 'fast', '--no-sync', '--max-rate', '15M' ],
	'<', \undef, '>', \my $out, '2>', \my $err);
$node->poll_sql(q{select count(*) = 1 from pg_stat_replication where state = 'backup'});
my $directory = drop_one();
$node->poll_sql(q{select state = 'waiting for a base backup' from qlog_stat_workers where role = 'checkpointer'});
pass('while a backup runs the checkpointer waits for it');
my $mark = $node->sql('select checkpoint_seq from qlog_stat_log');
$node->sql(q{select queue_push('other', '1'), pg_sleep(0.3)});
SKIP:
{
	my $moved = $node->sql(q{select checkpoint_seq from qlog_stat_log}) != $mark || !-d $directory;

	# It has ended meanwhile: nothing can be said.
	skip 'the backup was too fast', 1
	  if $node->sql(q{select count(*) from pg_stat_replication where state = 'backup'}) == 0;
	ok(!$moved, 'the checkpoint and the logs of dropped queues stay as they are');
}
ok($backup->finish, 'the backup ends') or diag $err;
gone($directory);
pass('and what was dropped goes');
$load->signal('INT');
eval { $load->finish };

{
	my $copy = copy_of('third');
	my ($alone, $rows) = split / /, $before;

	$copy->append_conf('postgresql.conf', "qlog.recovery_wait = '120s'\n");
	$copy->start;
	cmp_ok($copy->sql(q{select pushed from qlog_stat_queues where queue = 'alone'}), '>=', $alone,
		'a copy taken under load: what was pushed before it is there');
	cmp_ok($copy->sql('select count(*) from t'), '>=', $rows, 'and the rows');
	is( $copy->sql(q{select count(*), sum((payload->>'n')::bigint) from queue_peek('joint', batch => 1000000)}),
		$copy->sql(q{select count(*), sum(n) from t where n > 1000}),
		'rows and messages agree');
	is(values_of($copy, 'kept'), join(',', 1 .. 12), 'what was there for long is there');
	ok(!glob($copy->qlog_dir . '/store.*'), 'the copied checkpoint is used');
	$copy->sql("begin; insert into t values (13); select queue_push('kept', '13'); commit");
	$copy->kill9_everything;
	$copy->start;
	is(values_of($copy, 'kept'), join(',', 1 .. 13), 'work goes on in the copy, over a crash');
	$copy->stop;
}

# ------------------------------------------------------------------------------------------------
# Delivered late or again, and consumed with a row, in the WAL that is replayed over the copy
# ------------------------------------------------------------------------------------------------

$node->sql(q{create table done(id uuid primary key); select queue_create('late'); select queue_create('again')});
$node->sql(q{select queue_push('again', i::text) from generate_series(1, 3) i});
$node->sql(q{select queue_reject(lease_id) from queue_pop('again', 3)});

# Nothing becomes due before the copy is there.
my $timer = $node->sql(q{select pid from qlog_stat_workers where role = 'timer'});
kill('STOP', $timer) or die $!;
$node->sql(q{begin;
	insert into t values (14);
	select queue_push('late', i::text, deliver_at => clock_timestamp() + interval '1 ms') from generate_series(1, 3) i;
	commit});
$node->backup('fourth');
kill('CONT', $timer) or die $!;
$node->poll_sql(q{select ready = 3 from qlog_stat_queues where queue = 'late'});
is($node->sql(q{select queue_redrive('again')}), 3, 'letters are redriven');
foreach my $queue (qw(late again))
{
	is( $node->sql(qq{with taken as materialized (select * from queue_pop('$queue', 2)),
		noted as (insert into done select message_id from taken)
		select queue_ack(lease_id) from taken group by lease_id}),
		2, "$queue: two are consumed with a row");
}
is($node->sql('select pg_switch_wal() is not null'), 't', 'a file of WAL ends');

# The backup with the WAL of now behind it.
sub copy_with_wal
{
	my ($name) = @_;
	my $copy = QlogNode->new($name);

	$copy->init_from_backup($node, 'fourth');
	chmod 0700, $copy->qlog_dir or die $!;
	copy($_, $copy->data_dir . '/pg_wal') or die $! foreach grep { m{/[0-9A-F]{24}$} } glob $node->data_dir . '/pg_wal/*';
	$copy->start;
	return $copy;
}
{
	my $copy = copy_with_wal('copy_on');

	is($copy->sql('select count(*) from done'), 4, 'the WAL behind the backup is replayed');
	$copy->poll_sql(qq{select ready = 1 and leased + delayed + dead = 0 from qlog_stat_queues where queue = '$_'})
	  foreach qw(late again);
	is( $copy->sql(q{select string_agg(payload::text || (message_id in (select id from done)), ' ')
		from (select * from queue_pop('late', 9) union all select * from queue_pop('again', 9)) taken}),
		'3false 3false', 'what has a row is not delivered again, the others are');
	$copy->stop;
}

# One that the WAL only refers to: the reason is told, and not what became of the older checkpoints.
$node->sql(q{begin; insert into t values (15); select queue_push('late', to_json(repeat('x', 20000))::text); commit});
{
	my $copy = copy_with_wal('copy_beyond');
	my ($rc, $out, $err) = $copy->psql('postgres', q{\set VERBOSITY verbose
		select * from queue_peek('kept')});

	like($err, qr/XX001.*too large for the WAL to carry/s, 'beyond a large one: refused');
	$copy->stop;
}
$node->stop;

done_testing();
