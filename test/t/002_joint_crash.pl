# Joint transactions (a row and a message): kill everything, with the WAL writer stopped, at every step from the
# reservation to the acknowledged COMMIT and before the log is flushed. Rows and messages agree every time.

use strict;
use warnings;

use IPC::Run ();
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.log_flush_interval = '10s'", "qlog.checkpoint_timeout = '1h'", 'max_connections = 30' ]);
my $number = 0;

$node->sql("select queue_create('q'); create table t(n int primary key)");

sub rows { return $node->sql('select coalesce(string_agg(n::text, \',\' order by n), \'\') from t') }

sub messages
{
	return $node->sql(
		q{select coalesce(string_agg(payload->>'n', ',' order by (payload->>'n')::int), '')
		from queue_peek('q', batch => 1000000)});
}

sub joint_sql
{
	$number++;
	return "begin; insert into t values ($number); select queue_push('q', '{\"n\": $number}'); commit";
}

foreach my $mode ('carried', 'referenced')
{
	$node->sql('alter system set qlog.wal_payload_limit = ' . ($mode eq 'carried' ? '8192' : '0'));
	$node->sql('select pg_reload_conf()');
	foreach my $point (
		qw(after-reserve after-fill before-wal-insert after-wal-insert commit-event-before-settle))
	{
		$node->freeze('walwriter');
		my $handle = $node->stop_at($point, joint_sql());
		my $stopped = $number;

		$node->kill9_everything;
		eval { $handle->finish };
		$node->start;
		is(messages(), rows(), "$mode, $point: rows and messages agree");
		my $there = $node->sql("select count(*) from t where n = $stopped");
		is($there, $point eq 'commit-event-before-settle' ? 1 : 0,
			"$mode, $point: the transaction is there only when it had committed");

		# Work goes on, and the same holds for what comes after.
		$node->sql(joint_sql());
		$node->kill9_everything;
		$node->start;
		is(messages(), rows(), "$mode, $point: after one more transaction and a kill");
	}
}

# Acknowledged, and the own log was not flushed yet: restored from the WAL.
$node->sql('alter system set qlog.wal_payload_limit = 8192');
$node->sql('select pg_reload_conf()');
for (1 .. 5)
{
	$node->sql(joint_sql()) for 1 .. 3;
	my $acknowledged = rows();
	$node->freeze('walwriter');
	$node->kill9_everything;
	$node->start;
	is(messages(), rows(), "acknowledged transactions are restored from the WAL ($_)");
	is(rows(), $acknowledged, "and none is missing ($_)");
}

# A crash during recovery, in each of its phases, and then a start that ends well.
foreach my $phase (qw(recovery-replay recovery-restore recovery-decide recovery-sync))
{
	# Committed, and in the WAL alone: a guard that is stopped keeps its flag, and nobody else flushes our log.
	$node->sql(joint_sql());
	$node->poll_sql(q{select count(*) > 0 from qlog_stat_workers where state = 'on guard'});
	$node->freeze($_) foreach 'qlog guard', 'qlog checkpointer', 'walwriter';
	$node->sql(joint_sql()) for 1 .. 2;
	my $rows = rows();
	$node->kill9_everything;
	$node->append_conf('postgresql.conf', "qlog.debug_stop = '$phase'\n");
	my $mark = -s $node->logfile;
	$node->start;
	$node->wait_until(sub { $node->log_contains("stopped at \"$phase\"", $mark) }, "recovery to reach $phase");
	$node->kill9_everything;
	$node->append_conf('postgresql.conf', "qlog.debug_stop = ''\n");
	$node->start;
	is(messages(), rows(), "after a crash in $phase rows and messages agree");
	is(rows(), $rows, "$phase: and all that was acknowledged is there");
}

# A queue-only entry that was lost below a restored joint one leaves a void entry, not a stop.
{
	# A guard is on duty, so that the joint commit need not flush our log, and with it the entry below, itself.
	$node->sql(joint_sql());
	$node->poll_sql(q{select count(*) > 0 from qlog_stat_workers where state = 'on guard'});

	# Nobody else flushes our log meanwhile. A guard that is stopped keeps its flag.
	$node->freeze($_) foreach 'qlog guard', 'qlog checkpointer', 'walwriter';
	my $handle = $node->stop_at('after-fill', q{select queue_push('q', '{"n": 0}')});

	$node->sql(joint_sql());
	$node->kill9_everything;
	eval { $handle->finish };
	$node->start;
	is($node->sql(q{select count(*) from queue_peek('q', batch => 1000000) where payload->>'n' = '0'}), '0',
		'the entry that was never flushed is gone');
	is(messages(), rows(), 'the joint entry above it is restored');
	$node->sql(joint_sql());
	is(messages(), rows(), 'work goes on above the void entry');
	$node->kill9_everything;
	$node->start;
	is(messages(), rows(), 'and over one more crash');
}

# The first joint commit after idle and the last one before a fast shutdown.
$node->sql('select pg_sleep(0.5)');
$node->sql(joint_sql());
$node->stop('fast');
$node->start;
is(messages(), rows(), 'last joint commit before a fast shutdown');
$node->sql(joint_sql());
$node->stop('immediate');
$node->start;
is(messages(), rows(), 'last joint commit before an immediate shutdown');

# synchronous_commit = off loses both or neither.
for (1 .. 3)
{
	$node->freeze('walwriter');
	$node->sql('set synchronous_commit = off; ' . joint_sql()) for 1 .. 3;
	$node->kill9_everything;
	$node->start;
	is(messages(), rows(), "synchronous_commit = off loses both or neither ($_)");
}

# Neither can part what changes groups and definitions, whose decisions are logged at once.
$node->freeze('walwriter');
$node->sql(q{set synchronous_commit = off; begin; create table parted(n int); select queue_subscribe('q', 'g'); select queue_set('q', 'lease', '7 s'); commit});
$node->kill9_everything;
$node->start;
is($node->sql(q{select (to_regclass('parted') is not null)::int || ' ' || (select count(*) from qlog_stat_consumer_groups where consumer_group = 'g')
	|| ' ' || (select count(*) from qlog_queues where options::text like '%7 s%')}), '1 1 1', 'synchronous_commit = off: a table, a group and an option agree');
$node->stop;

done_testing();
