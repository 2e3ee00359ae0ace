# qlog.segment_size lowered while messages wait that are larger than half of such a file: they are delivered; what would have to
# write them again, into their partition or to the dead letters, leaves them where they are and holds up no others, and nothing of
# them is lost: when the setting has been raised they go on.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '8MB'", 'qlog.compression_level = 0' ]);
my $large = 3000000;

# Sets the size, kills the server and starts it.
sub segment_size
{
	my ($size) = @_;

	$node->append_conf('postgresql.conf', "qlog.segment_size = '$size'");
	$node->kill9_everything;
	$node->start;
	return;
}

$node->sql("select queue_create('later'), queue_create('dying', '{\"retry_limit\": 0}')");
$node->sql(
	"select queue_push('dying', convert_to(repeat('y', case when i % 3 = 1 then $large else 10 end), 'UTF8'))
		from generate_series(1, 6) i");

# Nothing is moved before the server has smaller files.
$node->freeze('qlog timer');
$node->sql(
	"select queue_push('later', convert_to(repeat('z', case when i = 1 then $large else 10 end), 'UTF8'),
		deliver_at => clock_timestamp() + interval '5 seconds') from generate_series(1, 3) i");
segment_size('1MB');

ok($node->poll_sql("select ready = 2 and delayed = 1 from qlog_stat_queues where queue = 'later'"),
	'small messages enter their partition beside one that does not fit');
ok( $node->poll_sql("select last_error ~ 'qlog.segment_size' from qlog_stat_workers where role = 'timer'"),
	'the worker tells which setting it is');
is( $node->sql("select string_agg(length(payload_bytes)::text, ' ' order by position) from queue_peek('dying')"),
	"$large 10 10 $large 10 10",
	'large messages can be read');

# Expired leases.
$node->sql("select count(*) from queue_pop('dying', 6, lease => '1 millisecond')");
ok($node->poll_sql("select dead = 4 and delayed = 2 from qlog_stat_queues where queue = 'dying'"),
	'small messages become dead letters beside two that do not fit');
is( $node->sql("select string_agg(length(payload_bytes)::text, ' ' order by position) from qlog_dead_letters"),
	'10 10 10 10',
	'none of the letters lacks its payload');

# Answers.
$node->sql("select queue_create('answered', '{\"retry_limit\": 0}')");
segment_size('8MB');
ok($node->poll_sql("select dead = 6 from qlog_stat_queues where queue = 'dying'"),
	'with larger files all are dead letters');
ok($node->poll_sql("select ready = 3 and delayed = 0 from qlog_stat_queues where queue = 'later'"),
	'and the delayed message is in its partition');
is( $node->sql(
		"select string_agg(length(payload_bytes) || ' ' || reason, ', ' order by position) from qlog_dead_letters
			where length(payload_bytes) > 10"),
	"$large lease expired more often than retry_limit allows, $large lease expired more often than retry_limit allows",
	'the large letters have their payload');
$node->sql("select queue_push('answered', convert_to(repeat('a', $large), 'UTF8'))");
segment_size('1MB');
is($node->sqlstate("select queue_reject(lease_id) from queue_pop('answered')"), '54000', 'reject says that it does not fit');
ok($node->poll_sql("select delayed = 1 and dead = 0 from qlog_stat_queues where queue = 'answered'"),
	'the message stays');
is($node->sqlstate("select queue_redrive('dying')"), '54000', 'redrive says so too');
is($node->sql("select count(*) from qlog_dead_letters where payload_bytes is null"), '0', 'all letters are whole');
segment_size('8MB');
ok($node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'answered'"), 'then it becomes a letter');
is($node->sql("select queue_redrive('dying')"), '6', 'and letters are moved back');
is( $node->sql("select sum(length(payload_bytes)) from queue_pop('dying', 10)"), 2 * $large + 40, 'whole');

$node->stop;
done_testing();
