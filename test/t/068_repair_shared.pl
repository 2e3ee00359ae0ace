# Damage in a log that several queues share, and in lanes: it concerns the queue whose message is lost and no other, and a
# repair gives up dead letters and delayed messages too.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The layout is this test's subject.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.shards = 1", "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '50ms'", "qlog.index_memory = '256kB'", "qlog.scrub_interval = 0",
		"qlog.scrub_rate = '1GB'", "qlog.snapshot_interval = '1h'", 'qlog.compression_level = 0' ]);
my $dir = $node->qlog_dir;

# Overwrite a byte of the message that holds this text, wherever it was written last.
sub spoil
{
	my ($text) = @_;

	foreach my $file (reverse sort glob "$dir/qlog/q1/r*.qlog")
	{
		my $at = rindex(slurp_file($file), $text);

		next if $at < 0;
		open(my $fh, '+<:raw', $file) or die "$file: $!";
		seek $fh, $at - 20, 0;
		print $fh '#';
		close $fh;
		return $file;
	}
	die "no $text";
}

sub shown { return $node->sql("select string_agg(payload->>'n', ',' order by \"position\") from queue_peek('$_[0]', 'lane', batch => 10000)") }
sub all_but { my ($n, %not) = @_; return join ',', grep { !$not{$_} } 1 .. $n }

$node->sql(q{select queue_create('a'); select queue_create('b'); select queue_create('c', '{"retry_limit": 0}')});
is($node->sql(q{select string_agg(distinct log_id::text, ',') from qlog_queues}), '1', 'one log');
$node->sql(q{do $$ begin for i in 1 .. 120 loop
	perform queue_push('a', json_build_object('n', i, 'pad', repeat('a ' || i || ' ', 1000))::text, 'lane'); commit;
	perform queue_push('b', json_build_object('n', i, 'pad', repeat('b ' || i || ' ', 1000))::text, 'lane'); commit; end loop; end $$});

# Dead letters and delayed messages, large ones, and small messages behind them so that their file is closed.
# Each in a record of its own.
foreach my $i (1 .. 3)
{
	$node->sql(qq{select queue_push('c', json_build_object('n', $i, 'pad', repeat('dead $i ', 1000))::text)});
	$node->sql(q{select queue_reject(lease_id) from (select distinct lease_id from queue_pop('c', 10)) x});
	$node->sql(qq{select queue_push('c', json_build_object('n', $i, 'pad', repeat('later $i ', 1000))::text, deliver_at => now() + '1 h')});
}
$node->sql(q{select queue_push('b', json_build_object('n', 120 + i, 'pad', repeat('b ' || i || ' ', 1000))::text, 'lane') from generate_series(1, 300) i});
$node->wait_until(sub { (() = glob "$dir/qlog/q1/r*.qidx") >= 2 }, 'indexes');
is($node->sql('select count(*) from qlog_verify(deep => true)'), '0', 'sound');
is($node->sql(q{select dead, delayed from qlog_stat_queues where queue = 'c'}), '3|3', 'dead letters and delayed messages');

# A message of a.
my $file = spoil('a 30 a 30');
like($file, qr/r00000001/, 'in a closed file');
$node->scrub;
sub missing { return $node->sql('select queue, finding from qlog_damage where file is null order by 1, 2') }
is(missing(), 'a|1 messages from position 29 on are in no file', 'the queue whose message it was is named');
ok($node->log_contains('messages of queue "a" cannot be read') && !$node->log_contains('messages of queue "b" cannot be read'),
	'the other ones of the log are not');
is($node->sqlstate("select queue_push('$_', '1', 'other')"), undef, "neither is out of service: $_") foreach qw(a b c);
is($node->sql("select partition, first_position, messages from qlog_repair('b') where messages is not null"), '', 'nothing of b is lost');
is($node->sql("select partition, first_position, messages from qlog_repair('a', false) where messages is not null"), 'lane|29|1', 'one of a is');
is(shown('a'), all_but(120, 30 => 1), 'a: the others are there');
is(shown('b'), all_but(420), 'b: all are there');
is($node->sql('select count(*) from qlog_damage'), '0', 'nothing is damaged any more');

# A dead letter and a delayed message of c.
spoil('dead 2 dead 2');
spoil('later 3 later 3');
$node->scrub;
is(missing(), join("\n", map { "c|1 messages from position $_ on are in no file" } 1, 2), 'lanes: the queue is named');
is($node->sqlstate("select queue_push('c', '1', 'other')"), undef, 'lanes: it goes on');
is($node->sql("select partition, messages from qlog_repair('c', false) where messages is not null order by 1"),
	"(dead letters)|1\n(delayed messages)|1", 'lanes: what is lost is said');
is($node->sql(q{select dead, delayed from qlog_stat_queues where queue = 'c'}), '2|2', 'lanes: the others are there');
is($node->sql(q{select queue_redrive('c')}), '2', 'lanes: letters are moved back');
$node->sql(q{select queue_push('c', json_build_object('n', 9)::text)});
is($node->sql('select count(*) from qlog_verify(deep => true)'), '0', 'sound again');
foreach my $how ('kill9_everything', 'stop')
{
	$node->$how;
	$node->start;
	is(shown('a') . shown('b'), all_but(120, 30 => 1) . all_but(420), "$how: the same after a restart");
	is($node->sql(q{select dead, delayed from qlog_stat_queues where queue = 'c'}), '0|2', "$how: and the lanes");
}
$node->sql('select qlog_checkpoint()');
$node->stop;
unlink "$dir/store/data.mdb" or die $!;
$node->start;
is(shown('a') . shown('b'), all_but(120, 30 => 1) . all_but(420), 'the same from a snapshot');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--queue=a');
is(scalar(() = $out =~ /^record /mg) > 100 && $out !~ /partition=\d+ first=0 count=1.*\n.*\bb 1\b/, 1, 'qlog_dump shows one queue of the log');
done_testing();
