# qlog.wal_carry = all: queue work without tables is restored from the WAL too, exactly up to the point of the restore, and a
# crash with nothing of qlog's own log on the disk loses nothing of it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', init => { has_archiving => 1, allows_streaming => 1 },
	conf => [ "qlog.wal_carry = 'all'", "qlog.wal_payload_limit = '1kB'" ]);

# Larger than qlog.wal_payload_limit, which does not count here, and not to be compressed below it.
my $body = q{string_agg(md5(random()::text), '')};

# Pushes messages of these numbers, each in a transaction of its own.
sub push_some
{
	my ($from, $to) = @_;

	$node->sql(join '', map {
		"select queue_push('q', json_build_object('n', $_, 'body', (select $body from generate_series(1, 100)))::text, 'p' || $_ % 3);\n"
	} $from .. $to);
	return;
}

# Pops and acknowledges so many messages; the numbers of those that are left are returned.
sub ack_some
{
	my ($count) = @_;

	$node->sql("select queue_ack(lease_id) from queue_pop('q', 1);\n" x $count);
	return left($node);
}

# What a new group, and the default one, would get of a server.
sub left
{
	my ($server) = @_;

	return $server->sql(q{begin; select string_agg(payload->>'n', ',' order by (payload->>'n')::int)
		from queue_pop('q', 1000, max_partitions => 1000, lease => '1 h'); rollback});
}

$node->sql("select queue_create('q', '{\"retry_limit\": -1}')");
push_some(1, 6);
$node->backup('base');
push_some(7, 20);
my $before = ack_some(8);
$node->sql("select pg_create_restore_point('before')");
push_some(21, 30);
my $after = ack_some(9);
$node->sql("select pg_create_restore_point('after')");
push_some(31, 33);
my $newest = ack_some(2);
isnt($before, $after, "something happened between the points");
is(scalar(split /,/, $before), 12, 'before: 20 pushed, 8 acknowledged');
is(scalar(split /,/, $after), 13, 'after: 30 pushed, 17 acknowledged');

# Killed at once: what qlog's own log has not got yet comes out of the WAL.
$node->sql("select queue_push('q', '{\"n\": 34}', 'p1')");
$node->kill9_everything;
$node->start;
is(left($node), "$newest,34", 'a crash loses nothing');

my $last = $node->sql('select pg_walfile_name(pg_switch_wal())');
$node->poll_sql("select last_archived_wal >= '$last' from pg_stat_archiver");

foreach my $target ([ 'before', $before ], [ 'after', $after ])
{
	my ($name, $expected) = @$target;
	my $copy = QlogNode->new("restored_$name");

	$copy->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
	chmod 0700, $copy->qlog_dir or die $!;
	$copy->append_conf('postgresql.conf',
		"recovery_target_name = '$name'\nrecovery_target_action = 'promote'\nrecovery_target_timeline = 'current'\narchive_mode = off\nqlog.recovery_wait = '60s'\n");
	$copy->start;
	$copy->poll_sql('select not pg_is_in_recovery()');
	is(left($copy), $expected, "restored to $name: exactly what was not acknowledged then");
	is($copy->sql("select sum(next_position) from qlog_stat_partitions where queue = 'q' and partition <> ''"),
		$name eq 'before' ? '20' : '30', "restored to $name: exactly what was pushed until then");
	$copy->sql("select queue_push('q', '{\"n\": 99}', 'p0')");
	$copy->kill9_everything;
	$copy->start;
	is(left($copy), "$expected,99", "restored to $name: work goes on, over a crash too");
	$copy->stop;
}
$node->stop;

done_testing();
