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

# Bytes that the files of a directory take on the disk, those of directories in it included.
sub disk
{
	my ($directory) = @_;
	my $sum = 0;

	foreach my $path (glob("$directory/*"))
	{
		$sum += -d $path ? disk($path) : ((stat($path))[12] // 0) * 512;
	}
	return $sum;
}

# Messages that stay to the end, in a partition of their own, among those that come and go.
$node->sql("select queue_create('churn', '{\"retry_limit\": -1}')");
my @logs = map { $node->log_dir($_) } 0, $node->sql("select log_id from qlog_queues where queue = 'churn'");
my $live = 0;
my $reserve = 1024 * 1024;
my ($pushed, $kept, $turns, $peak, $peak_logs) = (0, 0, 0, 0, 0);

# What is not needed has gone.
sub is_small
{
	return !grep { disk($_) > $live + 2 * $segment } @logs;
}

sub look
{
	my ($all, $of_logs) = (disk($node->qlog_dir), 0);

	$of_logs += disk($_) foreach @logs;
	$peak = $all if $all > $peak;
	$peak_logs = $of_logs if $of_logs > $peak_logs;
	return;
}

# After each 500th turn, and at the end, work stops until the disk is as small as it has to be.
while ($pushed < $total)
{
	my $sql = "select count(queue_push('churn', jsonb_build_object('x', left(repeat(md5(random()::text || i), 63), $message - 20)), 'p' || i % 7))"
	  . " from generate_series(1, $batch) i;";

	$pushed += $batch * $message;
	if ($kept < 50)
	{
		$sql .= "select queue_push('churn', jsonb_build_object('n', $kept), 'kept');";
		$kept++;
		$live += 200;
	}
	$sql .= "select count(*) from generate_series(0, 6) i, lateral queue_pop('churn', batch => 1000, partition => 'p' || i, auto_ack => true);";
	$node->sql($sql);
	look();
	next if ++$turns % 500 != 0 && $pushed < $total;
	$node->wait_until(\&is_small,
		"the logs to shrink to live data and two segments each, after $pushed bytes; they have " . join(', ', map { disk($_) } @logs));
	note "$pushed bytes went through; at most were on the disk: logs $peak_logs, everything $peak";
}
pass('now and then, and at the end, there are two segments of each log at most, and what is live');
cmp_ok($peak, '<', $pushed > 192 * $segment ? 64 * $segment : $pushed / 3, 'the disk never held more than a part of what went through')
  if $pushed >= 60 * 1024 * 1024;
my $store = disk($node->qlog_dir . '/store');
cmp_ok(disk($node->qlog_dir), '<=', @logs * ($live + 2 * $segment) + $reserve + $store + $segment, 'and the whole directory is as small');

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
