# A checkpoint of many rows, which are dumped ahead of the consistent copy while everybody goes on.

use strict;
use warnings;

use QlogNode;
use Test::More;

my $node = QlogNode->started('main',
	conf => [ "qlog.checkpoint_timeout = '100ms'", "qlog.state_memory = '64MB'" ]);
my $partitions = 3000;

$node->sql(qq{
	select queue_create('q', '{"lease": "1 hour"}');
	select count(queue_push('q', '1', 'p' || i)) from generate_series(1, $partitions) i;
	select count(queue_push('q', '1')) from generate_series(1, 100)});

sub counts
{
	return $node->sql("select pushed || ' pushed, ' || ready || ' ready' from qlog_stat_queues where queue = 'q'")
	  . ', ' . $node->sql('select count(*) from qlog_leases') . ' leases';
}

# Killed between a pass and the copy: what was dumped ahead is nowhere, the checkpoint before it counts.
my $mark = -s $node->logfile;
$node->sql("alter system set qlog.debug_stop = 'checkpoint-after-pass'");
$node->sql('select pg_reload_conf()');
$node->sql("select count(queue_push('q', '2', 'p' || i)) from generate_series(1, $partitions) i");
$node->wait_until(sub { $node->log_contains('stopped at "checkpoint-after-pass"', $mark) }, 'the checkpointer to stop');
is($node->sql("select count(*) from queue_pop('q', 40, partition => '')"), 40, 'pops go on in the middle of a checkpoint');
$node->sql("select count(queue_push('q', '3', 'p' || i)) from generate_series(1, $partitions / 2) i");
my $before = counts();
$node->kill9_everything;
$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''\n");
$node->start;
is(counts(), $before, 'killed in the middle of a checkpoint: nothing is lost');

# Checkpoints under load, one after the other; then what the last one stored is what is there.
foreach my $i (1 .. 10)
{
	$node->sql("select count(*) from queue_pop('q', 1, partition => 'p' || $i)");
	$node->sql("select count(queue_push('q', '$i', 'p' || i)) from generate_series(1, $partitions) i");
}
$before = counts();
$node->restart;
is(counts(), $before, 'after checkpoints under load: all is there');
is($node->sql("select count(*) from queue_peek('q', partition => 'p$partitions', batch => 100)"), 12, 'messages can be read');
$node->stop;

done_testing();
