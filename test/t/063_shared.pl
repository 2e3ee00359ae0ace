# Queues that share a log: drops and names made again, damage and whom it concerns, disk that comes back.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [
		'qlog.shards = 1', "qlog.segment_size = '1MB'", 'qlog.compression_level = 0', "qlog.checkpoint_timeout = '1h'",
		"qlog.recovery_wait = '10s'" ]);
my $file = $node->qlog_dir . '/qlog/q1/r00000001.qlog';

sub values_of
{
	my ($queue) = @_;

	return $node->sql(qq{select coalesce(string_agg(payload->>'n', ' ' order by "position"), '') from queue_peek('$queue', batch => 100000)});
}

sub states
{
	return $node->sql(q{select string_agg(queue || case when damage is null then '' else '!' end, ' ' order by queue) from qlog_queues});
}

# Flip a byte of this message where it stands in the log, and say how to undo it.
sub flip
{
	my ($marker) = @_;
	my $bytes = slurp_file($file);
	my $at = index $bytes, $marker;

	die "no $marker" if $at < 0 || index($bytes, $marker, $at + 1) >= 0;
	my $mend = sub {
		my ($byte) = @_;

		open(my $fh, '+<', $file) or die $!;
		binmode $fh;
		seek $fh, $at, 0;
		print $fh $byte;
		close $fh;
	};

	$mend->(chr(ord(substr $bytes, $at, 1) ^ 1));
	return sub { $mend->(substr $bytes, $at, 1) };
}

sub push_one
{
	my ($queue, $n) = @_;

	return "select queue_push('$queue', '{\"n\": \"$n\", \"mark\": \"$queue-$n-mark\"}');";
}

# Three queues in one log, pushes alone and in transactions over all of them; kills.
$node->sql(join ' ', map { "select queue_create('$_');" } qw(a b c));
foreach my $n (1 .. 3)
{
	$node->sql(join "\n", map { push_one($_, $n) } qw(a b c));
	$node->sql('begin; ' . join(' ', map { push_one($_, "t$n") } qw(a b c)) . ' commit');
}
$node->kill9_everything;
$node->start;
is(values_of($_), '1 t1 2 t2 3 t3', "queue $_ among others in its log") foreach qw(a b c);

# One is dropped, and its name used again: its records stay where they are and are nobody's.
$node->sql("select queue_drop('a')");
$node->kill9_everything;
$node->start;
is(states(), 'b c', 'dropped');
$node->sql("select queue_create('a'); " . push_one('a', 'new'));
is(values_of('a'), 'new', 'a queue of the same name has its own messages only');
is(values_of('b'), '1 t1 2 t2 3 t3', 'others have theirs');
is($node->sql('select count(distinct log_id) from qlog_queues'), '1', 'all in one log');

# Damage above the checkpoint. A part of a transaction: the transaction tells whose it was.
$node->sql('begin; ' . join(' ', map { push_one($_, 'x') } qw(a b c)) . ' commit');
$node->sql(push_one('a', 'after'));
$node->sql("select count(queue_push('c', '{\"n\": \"c$_\"}'))") foreach 1 .. 2;
$node->kill9_everything;
my $mend = flip('b-x-mark');
$node->start;
is(states(), 'a b! c', 'a damaged message of a transaction: its queue is out of service, those beside it are not');
is($node->sqlstate("select * from queue_peek('b')"), 'XX001', 'and raises XX001');
is(values_of('a'), 'new x after', 'one beside it');
is(values_of('c'), '1 t1 2 t2 3 t3 x c1 c2', 'and the other');
$node->kill9_everything;
$mend->();

# A push that was a transaction by itself: it may have been anybody's.
$mend = flip('a-after-mark');
$node->start;
is(states(), 'a! b! c!', 'a damaged message that was a transaction by itself: all queues of the log are out of service');
$node->kill9_everything;
$mend->();
$node->start;
is(states(), 'a b c', 'mended: all are back');
is(values_of('b'), '1 t1 2 t2 3 t3 x', 'with everything');

# Below the checkpoint: whoever is read.
$node->append_conf('postgresql.conf', "qlog.checkpoint_timeout = '50ms'\nqlog.reclaim_naptime = '50ms'\nautovacuum = off\n");
$node->restart;
$node->poll_sql('select checkpoint_seq = durable_seq from qlog_stat_log');
$node->stop;
$mend = flip('c-2-mark');
$node->start;
is(values_of('b'), '1 t1 2 t2 3 t3 x', 'damage below the checkpoint: others are read');
is($node->sqlstate("select * from queue_peek('c', partition => '', from_position => 2)"), 'XX001', 'the one concerned raises XX001 where it is');
$node->stop;
$mend->();
$node->start;
$node->sql("select count(*) from qlog_repair('c', false)");
is(states(), 'a b c', 'mended: no queue is out of service');
is(values_of('c'), '1 t1 2 t2 3 t3 x c1 c2', 'mended: everything is there');

# Dedup ids are read from the logs at a start: who never had one is not concerned by a message that cannot be read.
$node->sql(q{select queue_push('b', '{"n": "id"}', dedup_id => 'id')});
$node->poll_sql('select checkpoint_seq = durable_seq from qlog_stat_log');
$node->stop;
$mend = flip('c-2-mark');
$node->start;
is(states(), 'a b c', 'a damaged message below the checkpoint, in a log with dedup ids of another queue: all are in service');
is($node->sql(q{select queue_push('b', '{"n": "again"}', dedup_id => 'id') is not null}), 't', 'the dedup id is known');
is(values_of('b'), '1 t1 2 t2 3 t3 x id', 'and counts');
$node->stop;
$mend->();
$node->start;

# The disk: what is dropped or done goes when half of a file is; what is beside it stays.
sub disk
{
	my $sum = 0;

	$sum += ((stat $_)[12] // 0) * 512 foreach glob $node->qlog_dir . '/qlog/q1/r*';
	return $sum;
}

sub fill
{
	my ($queue, $from, $to) = @_;

	return "select count(queue_push('$queue', json_build_object('n', i, 'pad', repeat('x', 4000))::text)) from generate_series($from, $to) i;";
}

foreach my $turn (0 .. 19)
{
	$node->sql(join ' ', map { fill($_, 1 + 50 * $turn, 50 + 50 * $turn) } 'big', 'bigger', 'small');
}
my $full = disk();
cmp_ok($full, '>', 11_000_000, 'three queues of four megabytes');
$node->sql("select queue_drop('big')");
$node->sql("select queue_purge('bigger')");
$node->wait_until(sub { disk() < $full / 2 }, 'the disk to come back');
is(values_of('small'), join(' ', 1 .. 1000), 'what is beside it in the files is there');
is(values_of('bigger'), '', 'what is gone is gone');
$node->kill9_everything;
$node->start;
is(values_of('small'), join(' ', 1 .. 1000), 'after a crash, too');
is($node->sql("select sum(k) from (select count(*) as k from queue_pop('small', 1000)) x"), '1000', 'and can be popped');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'qlog_dump finds nothing wrong') or diag "$out$err";

done_testing();
