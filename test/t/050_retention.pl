# Retention over crashes: killed at each of its steps it has removed what it logged or nothing, and goes on; what a consumer
# holds, what is not decided and what is dead is there after every start.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '1MB'", "qlog.retention_naptime = '20 ms'", 'autovacuum = off' ]);

sub first_of
{
	my ($queue, $partition) = @_;

	return $node->sql("select first_position from qlog_stat_partitions where queue = '$queue' and partition = '$partition'");
}

sub wait_first
{
	my ($queue, $partition, $position) = @_;

	$node->poll_sql("select first_position = $position from qlog_stat_partitions where queue = '$queue' and partition = '$partition'");
	return first_of($queue, $partition);
}

sub crash
{
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	return;
}

$node->sql("select queue_create('q', '{\"retry_limit\": 0}'); create table t (i int)");

# Kills at each step.
my $n = 0;
foreach my $point (qw(retention-after-look retention-after-log))
{
	my $mark = -s $node->logfile;
	my $p = "p$n";

	# Messages 0 .. 9: 0 .. 3 done, 4 leased, 5 dead, 6 done, the rest waits.
	$node->sql("alter system set qlog.debug_stop = '$point'");
	$node->sql('select pg_reload_conf()');
	$node->sql(
		"begin; select count(*) from queue_push_batch('q', (select array_agg(i::text) from generate_series(0, 9) i));
		 commit;
		 select queue_ack(lease_id, array_agg(message_id)) from queue_pop('q', 4) group by lease_id;
		 select payload from queue_pop('q', 1, lease => '1 hour');
		 select queue_reject(lease_id) from queue_pop('q', 1);
		 select queue_ack(lease_id) from queue_pop('q', 1)");
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, $point);
	crash();
	is(wait_first('q', '', $n * 10 + 4), $n * 10 + 4, "$point: what is done has gone, what is leased has not");
	is($node->sql("select string_agg(payload::text, ' ' order by \"position\") from queue_peek('q', '', $n * 10)"),
		'4 5 6 7 8 9', "$point: what is behind a leased message can be read") if $n == 0;
	is($node->sql("select payload from qlog_dead_letters where queue = 'q' order by died_at desc limit 1"), '5', "$point: the dead letter too");
	is($node->sql("select queue_ack(lease_id) from qlog_leases where queue = 'q'"), '1', "$point: the lease goes on");
	is($node->sql("select string_agg(payload::text, ' ' order by \"position\") from queue_pop('q', 10)"), '7 8 9', "$point: the others come");
	is($node->sql("select queue_ack(lease_id) from qlog_leases where queue = 'q'"), '3', "$point: and end");
	$n++;
	is(wait_first('q', '', $n * 10), $n * 10, "$point: nothing is left");
	$node->sql("alter system reset qlog.debug_stop");
	$node->sql('select pg_reload_conf()');
}

# From the log alone, from the checkpoint, and after an orderly restart: the same.
foreach my $how ('crash', 'checkpoint', 'restart')
{
	$node->poll_sql('select checkpoint_seq = durable_seq from qlog_stat_log') if $how eq 'checkpoint';

	# Nobody waits for the entries that remove messages: a commit behind them makes them durable.
	$node->sql("select queue_push('other', '1')") if $how eq 'crash';
	if ($how eq 'restart') { $node->restart; }
	else { crash(); }
	is(first_of('q', ''), '20', "after a $how: nothing has come back");
	is($node->sql("select count(*) from queue_peek('q', '', 0)"), '0', "after a $how: nothing to read");
}

# A transaction that has not committed: its messages, and those behind them, stay whatever their age.
$node->sql("select queue_create('open', '{\"retention\": \"10 ms\"}')");
my ($in, $out, $err) = ('', '', '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err);

# It stops between its log entry and its commit record.
$in .= "set qlog.debug_stop = 'after-wal-insert'; begin; insert into t values (1); select queue_push('open', '1') is not null; commit;\n";
my $mark = -s $node->logfile;
$session->pump until $out =~ /^t$/m;
$node->wait_until(sub { $node->log_contains('stopped at "after-wal-insert"', $mark) }, 'the commit to stand still');
$node->sql("select queue_push('open', '2')");
my $passes = $node->sql("select passes from qlog_stat_workers where role = 'retention'");
$node->poll_sql("select passes > $passes + 5 from qlog_stat_workers where role = 'retention'");
is($node->sql("select first_position || ' ' || next_position from qlog_stat_partitions where queue = 'open' and partition = ''"),
	'0 2', 'what is not decided stays, and what is behind it');
crash();
$session->finish;
is(wait_first('open', '', 2), '2', 'decided by the crash, both go');

# The worker is killed and ended: it is started again and goes on.
$node->sql("select queue_push('q', '1'); select queue_ack(lease_id) from queue_pop('q')");
kill 'KILL', $node->sql("select pid from qlog_stat_workers where role = 'retention'");
is(wait_first('q', '', 21), '21', 'it goes on after the worker was killed');
$node->sql("select pg_terminate_backend(pid) from qlog_stat_workers where role = 'retention'");
$node->sql("select queue_push('q', '1'); select queue_ack(lease_id) from queue_pop('q')");
is(wait_first('q', '', 22), '22', 'and after it was ended');
is($node->sql("select count(*) from qlog_stat_workers where last_error is not null"), '0', 'no worker has complained');
$node->stop;
done_testing();
