# Many partitions with names of 20 bytes and one group: pushed to, popped from, restarted, dropped. Times are notes; the
# memory of an idle partition is checked.
#
# QLOG_PARTITIONS (20000) makes it larger.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(time);

my $partitions = $ENV{QLOG_PARTITIONS} || 20_000;

my $mb = 64 + int($partitions * 400 / 1024 / 1024);
my $node = QlogNode->started('partitions',
	conf => [ "qlog.state_memory = '${mb}MB'", "qlog.recovery_wait = '300s'", "qlog.index_memory = '8MB'" ]);
my $used = 'select state_memory_used from qlog_stat_log';
my $batch = 2000;
my $turns = int(($partitions + $batch - 1) / $batch);

$partitions = $turns * $batch;
$node->sql("select queue_create('q')");
my $before = $node->sql($used);
$node->timed("partitions: a push to each of $partitions new ones, $batch in a transaction",
	"do \$\$ begin for t in 0 .. $turns - 1 loop
		perform count(*) from queue_push_batch('q', array_fill('1'::text, array[$batch]),
			(select array_agg('partition-' || lpad((t * $batch + i)::text, 10, '0')) from generate_series(1, $batch) i));
		commit; end loop; end \$\$");
is($node->timed('partitions: pop and acknowledge all, 1000 at a time',
	"create table popped(k bigint); do \$\$ declare k bigint; l bigint; begin loop
		select count(*), max(lease_id) into k, l from queue_pop('q', 1000, max_partitions => 1000);
		exit when k = 0;
		perform queue_ack(l); insert into popped values (k); commit; end loop; end \$\$;
	select sum(k) from popped"), $partitions, 'partitions: each gives its message');
my $each = ($node->sql($used) - $before) / $partitions;
note sprintf('partitions: %.0f bytes of state memory for each idle one', $each);
cmp_ok($each, '<=', 350, 'memory of an idle partition with one group and a name of 20 bytes');
foreach my $how ('stop', 'kill')
{
	$node->timed_restart($how);
	is($node->sql("select partitions from qlog_queues where queue = 'q'"), $partitions + 1, "partitions: all there after $how");
}
my $after = ($node->sql($used) - $before) / $partitions;
cmp_ok($after, '<=', 350, sprintf('... after a restart, too (%.0f)', $after));
$node->timed('partitions: a second push to 1000 of them',
	q{select count(*) from queue_push_batch('q', array_fill('2'::text, array[1000]),
		(select array_agg('partition-' || lpad((i * 7)::text, 10, '0')) from generate_series(1, 1000) i))});
is($node->sql('select count(*) from queue_pop(\'q\', 2000, max_partitions => 1000)'), '1000', 'partitions: found among all others');
$node->timed('partitions: drop', "select queue_drop('q')");
$node->poll_sql("select state_memory_used <= $before + 65536 * 8 from qlog_stat_log") if $partitions <= 20_000;
$node->timed_restart('kill');
is($node->sql('select count(*) from qlog_queues'), '0', 'partitions: gone');
$node->stop;

done_testing();
