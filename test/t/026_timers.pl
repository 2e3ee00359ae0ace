# A million delayed messages: they wait without being looked at, hold up nobody, and are all there after a crash.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use QlogWire;
use Test::More;
use Time::HiRes qw(sleep);

my $million = 1000000;
my $node = QlogNode->started('main', conf => [ "qlog.max_pop_wait = '1h'" ]);

# CPU time of the timer worker in clock ticks.
sub ticks
{
	my $pid = $node->sql("select pid from qlog_stat_workers where role = 'timer'");
	my @stat = split ' ', slurp_file("/proc/$pid/stat") =~ s/.*\) //sr;

	return $stat[11] + $stat[12];
}

# Over some seconds, in which the worker looks at the clock as well, no timer is touched.
sub idle_ticks
{
	my $before = ticks();

	sleep 6;
	return ticks() - $before;
}

$node->sql("select queue_create('far'), queue_create('near')");
my $empty = $node->sql('select state_memory_used from qlog_stat_log');
$node->sql(qq{do \$\$ begin
	for i in 1 .. 100 loop
		perform count(*) from queue_push_batch('far', (select array_agg((i * 10000 + n)::text) from generate_series(1, $million / 100) n),
			deliver_at => now() + interval '1 h' + i % 7 * interval '1 day');
		commit;
	end loop;
end \$\$});
my $id = $node->sql("select queue_push('far', '0', deliver_at => now() + interval '2 h')");
is($node->sql("select ready || ' ' || delayed from qlog_stat_queues where queue = 'far'"), '0 ' . ($million + 1), 'a million messages wait');
my $each = ($node->sql('select state_memory_used from qlog_stat_log') - $empty) / $million;
note "$each bytes of state memory each";
cmp_ok($each, '<', 128, 'about a hundred bytes of memory each');
cmp_ok(idle_ticks(), '<=', 5, 'they cost no CPU while they wait');

# Others are due before them, and wake who waits.
foreach my $round (1 .. 20)
{
	my $c = QlogWire->to($node);

	$c->send_query("select payload from queue_pop('near', wait => '1 h', auto_ack => true)");
	$node->poll_sql("select waiting = 1 from qlog_stat_queues where queue = 'near'") if $round == 1;
	$node->sql("select queue_push('near', '$round', deliver_at => clock_timestamp() + interval '50 ms')");
	is($c->result->{rows}[0][0], $round, "one that is due soon, round $round");
	$c->close;
}
is($node->sql("select count(*) from queue_pop('far', 10)"), '0', 'none of the million has come');
is($node->sql("select queue_cancel('far', '$id')"), 't', 'one of them is cancelled');

foreach my $how ('a crash', 'a restart')
{
	if ($how eq 'a crash')
	{
		$node->kill9_everything;
		$node->start;
	}
	else
	{
		$node->restart;
	}
	is($node->sql("select ready || ' ' || delayed from qlog_stat_queues where queue = 'far'"), "0 $million", "after $how all are there");
	cmp_ok(idle_ticks(), '<=', 5, "after $how they cost no CPU");
	$node->sql("select queue_push('near', '\"$how\"', deliver_at => clock_timestamp() + interval '50 ms')");
	is($node->sql("select payload from queue_pop('near', wait => '1 h', auto_ack => true)"), "\"$how\"", "after $how others are delivered");
}

# Their memory is free again when they go.
$node->sql("select queue_drop('far')");
$node->poll_sql("select state_memory_used < $empty + 1000000 from qlog_stat_log");
pass('dropped, they leave their memory');
$node->stop;
done_testing();
