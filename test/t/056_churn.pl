# A queue through which much more goes than it ever holds keeps its disk: retention and reclaim alone give it back, while work goes on.
# QLOG_CHURN_MB sets how much goes through (60 MB of messages); with a large number this is the long run.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $total = ($ENV{QLOG_CHURN_MB} || 60) * 1024 * 1024;
my $segment = 1024 * 1024;
my $message = 2000;
my $batch = 500;

my $node = QlogNode->started('main',
	conf => [
		"qlog.segment_size = '1MB'", "qlog.reclaim_naptime = '50ms'", "qlog.retention_naptime = '50ms'",
		"qlog.checkpoint_timeout = '50ms'", 'qlog.snapshot_interval = 0', "qlog.seal_age = '200ms'",
		'qlog.compression_level = 0', 'autovacuum = off'
	]);

sub disk
{
	my ($log) = @_;
	my $sum = 0;

	$sum += ((stat($_))[12] // 0) * 512 foreach glob($node->log_dir($log) . '/*');
	return $sum;
}

# Messages that stay to the end, in a partition of their own, among those that come and go.
$node->sql("select queue_create('churn', '{\"retry_limit\": -1}')");
my $log = $node->sql("select log_id from qlog_queues where queue = 'churn'");
my ($pushed, $kept, $peak) = (0, 0, 0);
while ($pushed < $total)
{
	$node->sql("select count(queue_push('churn', jsonb_build_object('x', left(repeat(md5(random()::text || i), 63), $message - 20)), 'p' || i % 7))"
		  . " from generate_series(1, $batch) i");
	$pushed += $batch * $message;
	if ($kept < 50)
	{
		$node->sql("select queue_push('churn', jsonb_build_object('n', $kept), 'kept')");
		$kept++;
	}
	$node->sql("select count(*) from generate_series(0, 6) i, lateral queue_pop('churn', batch => 1000, partition => 'p' || i, auto_ack => true)");
	my $disk = disk($log) + disk(0);
	$peak = $disk if $disk > $peak;
}
note("$pushed bytes went through, $peak bytes at most were on the disk");
cmp_ok($peak, '<', $pushed / 3, 'the disk never held more than a part of what went through')
  if $pushed >= 60 * 1024 * 1024;
$node->wait_until(sub { disk($log) <= 2 * $segment && disk(0) <= 2 * $segment },
	'the logs to shrink to two segments, not ' . disk($log) . ' and ' . disk(0));
pass('what is left is two segments of each log at most');

sub kept_numbers
{
	return $node->sql("select string_agg(payload ->> 'n', ' ' order by \"position\")"
		  . " from queue_peek('churn', partition => 'kept', from_position => 0, batch => 1000)");
}

my $expected = join(' ', 0 .. $kept - 1);
is(kept_numbers(), $expected, 'what nobody consumed is there');
$node->kill9_everything;
$node->start;
is(kept_numbers(), $expected, 'after a crash, too');
is($node->sql("select count(*) from queue_pop('churn', batch => 1000, max_partitions => 10, auto_ack => true)"),
	$kept, 'and nothing else is delivered');
$node->stop;
done_testing();
