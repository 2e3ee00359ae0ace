# Delayed messages over crashes and restarts: none is lost, none comes twice, whether due meanwhile or being moved.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '1MB'" ]);
$node->sql("select queue_create('q'); create table t (i int)");

# In the log only, in the checkpoint, with a table, rolled back, cancelled.
sub delayed { return $node->sql("select delayed from qlog_stat_queues where queue = 'q'") }

$node->sql("select queue_push('q', '1', deliver_at => now() + interval '1 h')");
my $cancelled = $node->sql("select queue_push('q', '2', deliver_at => now() + interval '1 h', dedup_id => 'c')");
$node->sql("begin; insert into t values (1); select queue_push('q', '3', 'p', deliver_at => clock_timestamp() + interval '2 s', dedup_id => 'd'); commit");
$node->sql("begin; insert into t values (1); select queue_push('q', '4', deliver_at => clock_timestamp() + interval '1 s'); rollback");
is($node->sql("select queue_cancel('q', '$cancelled')"), 't', 'cancelled');
foreach my $how (1 .. 3)
{
	if ($how < 3) { $node->kill9_everything; $node->start; }
	else { $node->restart; }
	is($node->sql("select queue_push('q', '5', 'p', dedup_id => 'd') in (select queue_push('q', '6', 'p', dedup_id => 'd'))"),
		't', "start $how: its dedup id is known");
}
$node->poll_sql("select count(*) = 1 from queue_peek('q', 'p')");
is($node->sql("select payload::text || dedup_id from queue_peek('q', 'p')"), '3d', 'delivered once, after three starts');
is(delayed(), 1, 'one waits');
is($node->sql("select queue_push('q', '7', dedup_id => 'c') is not null and count(*) = 0 from queue_peek('q', '')"), 't', 'the cancelled one is forgotten');

# kill -9 at each step of the move.
foreach my $point (qw(delay-after-read delay-after-log))
{
	my $mark = -s $node->logfile;
	$node->sql("alter system set qlog.debug_stop = '$point'");
	$node->sql('select pg_reload_conf()');
	$node->sql("select count(*) from queue_push_batch('q', (select array_agg(i::text) from generate_series(1, 300) i), (select array_agg('$point'::text) from generate_series(1, 300)), deliver_at => clock_timestamp() + interval '500 ms')");
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, $point);
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	$node->poll_sql("select count(*) >= 300 from queue_peek('q', '$point', batch => 1000)");
	is($node->sql("select count(*) || ' ' || count(distinct message_id) || ' ' || bool_and(payload::text::bigint = \"position\" + 1) from queue_peek('q', '$point', batch => 1000)"),
		'300 300 true', "$point: each once, in order");
	is(delayed(), 1, "$point: one waits");
	$node->sql("alter system reset qlog.debug_stop");
}

# The worker is killed: the server restarts everything, and nothing is lost.
$node->sql("select queue_push('q', '8', 'w', deliver_at => clock_timestamp() + interval '1 s')");
kill 'KILL', $node->sql("select pid from qlog_stat_workers where role = 'timer'");
$node->poll_sql("select count(*) = 1 from queue_peek('q', 'w')");
pass('delivered after the worker was killed');

# A waiting pop is woken.
my ($out, $err) = ('', '');
my $pop = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "set qlog.max_pop_wait = '60s'; select payload from queue_pop('q', 1, partition => 'wake', wait => '60 s')" ],
	'<', \undef, '>', \$out, '2>', \$err);
$node->sql("select queue_push('q', '9', 'wake', deliver_at => clock_timestamp() + interval '1 s')");
$pop->finish;
is($out . $err, "9\n", 'a waiting pop gets it');

# Many: they cost memory and time in proportion, and nothing while they wait.
$node->sql("select queue_create('many')");
$node->sql("select count(*) from queue_push_batch('many', (select array_agg(i::text) from generate_series(1, 100000) i), deliver_at => now() + interval '1 h')") foreach 1 .. 2;
is($node->sql("select delayed from qlog_stat_queues where queue = 'many'"), 200000, 'two hundred thousand wait');
$node->restart;
is($node->sql("select delayed from qlog_stat_queues where queue = 'many'"), 200000, 'also after a restart');
$node->stop;
done_testing();
