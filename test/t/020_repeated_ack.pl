# An acknowledgement whose answer got lost in a crash can be repeated after it: its entry is found by replay, or the
# checkpoint has kept it.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main');
$node->sql("select queue_create('q'); create table work (i int)");
$node->sql("select queue_push_batch('q', array['1', '2', '3', '4', '5', '6'])");

sub pop_two
{
	return $node->sql("select lease_id from queue_pop('q', 2) group by 1");
}

# Behind the mark: the kill comes before the next checkpoint, or just after it; both must do.
my $first = pop_two();
is($node->sql("select queue_ack($first)"), 2, 'acknowledged');
$node->kill9_everything;
$node->start;
is($node->sql("select queue_ack($first)"), 2, 'and again after a crash');

# Before the mark: a clean shutdown checkpoints.
my $second = pop_two();
is($node->sql("begin; insert into work values (1); select queue_ack($second); commit"), 2, 'acknowledged with a row');
$node->restart;
is($node->sql("select queue_ack($second)"), 2, 'and again after a restart');
is($node->sql("select queue_ack($first)"), 2, 'the older one as well');
is($node->sqlstate("begin; insert into work values (2); select queue_ack($second); commit"),
	'40001', 'but not with other work');
is($node->sql('select count(*) from work'), 1, 'which did not happen');

# What did not commit is not remembered.
my $third = pop_two();
$node->sql("begin; insert into work values (3); select queue_ack($third); rollback");

# The commit of the pop itself is not waited for; the next flush takes it along, or the crash would release the lease.
$node->sql("select queue_push('other', '1')");
$node->kill9_everything;
$node->start;
is($node->sql("select queue_ack($third)"), 2, 'acknowledged after a rollback and a crash');
is($node->sql('select leased || \' \' || acked from qlog_stat_queues where queue = \'q\''), '0 6',
	'each message once');

$node->stop;
done_testing();
