# Damage on disk: a torn tail is cut and the cut bytes kept; damage elsewhere puts that queue, and only that queue, out
# of service with file and position, or refuses the start; nothing is served damaged or cut silently.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

# No checkpoint by time: what follows lies above the mark unless a test asks for one by a restart.
my $node = QlogNode->started('main',
	conf => [ "qlog.checkpoint_timeout = '1h'", "qlog.segment_size = '1MB'", "qlog.recovery_wait = '10s'" ]);
my $dir = $node->qlog_dir;

sub log_file { return "$dir/qlog/q$_[0]/r" . sprintf('%08d', $_[1] || 1) . '.qlog' }

# Position behind the last byte of the file that is not zero.
sub written_end
{
	my ($file) = @_;
	my $bytes = slurp_file($file);

	$bytes =~ s/\0+\z//;
	return length $bytes;
}

sub flip
{
	my ($file, $position) = @_;
	my $byte = substr slurp_file($file), $position, 1;

	QlogNode::patch($file, $position, chr(ord($byte) ^ 0x40));
}

sub values_of
{
	my ($queue) = @_;

	return $node->sql(qq{select coalesce(string_agg(payload #>> '{}', ',' order by "position"), '')
		from queue_peek('$queue', batch => 100000)});
}

$node->sql("select queue_create('a'); select queue_create('b')");
my %log = split /[|\n]/, $node->sql('select queue, log_id from qlog_queues');

# A torn tail: half a record behind the last one.
$node->sql("select queue_push('a', '1'); select queue_push('b', '1'); select queue_push('a', '2')");
$node->kill9_everything;
my $file = log_file($log{a});
my $end = written_end($file);
QlogNode::patch($file, $end + 1, "\x60\0\0\0garbage that is no record");
$node->start;
is(values_of('a'), '1,2', 'torn tail: what was acknowledged is there');
ok(glob("$file.cut.*") || glob(log_file($log{a}) . '.cut.*'), 'torn tail: the cut bytes are kept beside');
$node->sql("select queue_push('a', '3')");
is(values_of('a'), '1,2,3', 'torn tail: work goes on');

# The last entry of all, over ten queues and an acknowledgement: any one part damaged, above everything known durable,
# and recovery cuts it everywhere.
$node->sql("select queue_create('t' || i) from generate_series(1, 10) i");
%log = split /[|\n]/, $node->sql('select queue, log_id from qlog_queues');
foreach my $part (1, 4, 10)
{
	$node->sql("select queue_push('t1', '\"leased\"')");

	# The guards' entries would tell that the last entry is durable.
	$node->poll_sql("select count(*) = 0 from qlog_stat_workers where state = 'on guard'");
	$node->sql(
		q{begin; select queue_push('t' || i, to_json(n)::text) from generate_series(1, 10) i, generate_series(1, 2) n;
		select queue_ack((select max(lease_id) from queue_pop('t1', 1))); commit});
	my ($rc, $out, $err) = $node->qlog_dump('--verify');
	is($rc, 0, "part $part: the directory is clean before");
	my ($entries) = $node->qlog_dump('--type=entry');
	$node->kill9_everything;
	($rc, $out, $err) = $node->qlog_dump('--type=stub');
	cmp_ok(scalar(() = $out =~ /stub/g), '>=', 9, "part $part: one whole entry and nine stubs");
	$file = log_file($log{"t$part"});
	flip($file, written_end($file) - 2);
	$node->start;
	my $left = join ' ', map { values_of("t$_") } 2 .. 10;
	like($left, qr/^ *$/, "part $part: the entry is cut everywhere");
	is(values_of('t1'), join(',', ('leased') x 1), "part $part: and its acknowledgement too");
	$node->sql("select queue_ack(lease_id) from (select distinct lease_id from queue_pop('t1', 10)) x");
}

# Damage in the middle, above the mark and below what is known durable: that queue only.
$node->sql("select queue_push('a', to_json(i)::text) from generate_series(4, 20) i");
$file = log_file($log{a});
my $inside = written_end($file) - 20;
$node->sql("select queue_push('a', '21')");
$node->sql("select queue_push('b', '2')");
$node->kill9_everything;
flip($file, $inside);
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nselect * from queue_peek('a', batch => 100)");
isnt($rc, 0, 'damage in the middle: the queue cannot be read');
like($err, qr/XX001/, 'damage in the middle: XX001');
like($err, qr/q$log{a}\/r00000001\.qlog/, 'damage in the middle: the file is named');
is(values_of('b'), '1,2', 'damage in the middle: other queues go on');
is($node->sqlstate("select queue_push('a', '99')"), 'XX001', 'damage in the middle: nothing is added to it');
($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 2, 'qlog_dump --verify finds it');
flip($file, $inside);
$node->stop;
$node->start;

# A message record below the mark, damaged: found when it is read.
$node->sql("select queue_create('c'); select queue_push('c', '\"first message\"'); select queue_push('c', '\"second message\"')");
%log = split /[|\n]/, $node->sql('select queue, log_id from qlog_queues');
$node->stop;
$file = log_file($log{c});
flip($file, index(slurp_file($file), 'first message'));
$node->start;
is($node->sqlstate("select * from queue_pop('c')"), 'XX001', 'damaged message: XX001 when it is read');
is(values_of('b'), '1,2', 'damaged message: other queues go on');
flip($file, index(slurp_file($file), 'girst message') >= 0 ? index(slurp_file($file), 'girst message') : index(slurp_file($file), 'irst message') - 1);
is($node->sql("select payload #>> '{}' from queue_peek('c', batch => 1)"), 'first message', 'mended, it is served again');

# A file shorter than the checkpoint says is refused, not taken for a torn tail.
$node->stop;
$file = log_file($log{c});
my $whole = slurp_file($file);
truncate $file, 40 or die $!;
$node->start;
isnt($node->psql('postgres', "select queue_push('b', '3')"), 0, 'short file: refused');
$node->stop;
QlogNode::patch($file, 0, $whole);
$node->start;
is($node->sql("select count(*) from queue_peek('c')"), '2', 'short file restored: nothing is lost');

# Newest file of a log empty, or with a torn header, after a crash at the roll.
$node->sql("select queue_push('b', to_json(repeat(md5(i::text), 60))::text) from generate_series(1, 700) i");
my $count = $node->sql("select count(*) from queue_peek('b', batch => 100000)");
$node->kill9_everything;
my @files = sort glob(log_file($log{b}) =~ s/r00000001.*//r . 'r*.qlog');
my ($last) = $files[-1] =~ /r(\d+)\.qlog$/;
foreach my $content ('', "QNQLOG1\0\1\2\3")
{
	$last++;
	open(my $fh, '>', log_file($log{b}, $last)) or die $!;
	print $fh $content;
	close $fh;
	$node->start;
	is($node->sql("select count(*) from queue_peek('b', batch => 100000)"), $count,
		length($content) . ' bytes in the newest file: nothing is lost');
	$node->sql("select queue_push('b', to_json(repeat(md5(i::text), 60))::text) from generate_series(1, 700) i");
	$count += 700;
	$node->kill9_everything;
}
$node->start;
is($node->sql("select count(*) from queue_peek('b', batch => 100000)"), $count, 'and work went on over further rolls');
$node->stop;

done_testing();
