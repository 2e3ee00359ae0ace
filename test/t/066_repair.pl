# Damage below the checkpoint: found by qlog_verify, by the scrub worker and by consumers, and all three say the same; the queue goes on
# without the messages that stood there. Repaired: what is readable is there, what is lost is said, the damaged bytes are
# kept, and every replay agrees.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '50ms'", "qlog.index_memory = '256kB'", "qlog.scrub_interval = 0",
		"qlog.scrub_rate = '1GB'", "qlog.snapshot_interval = '1h'" ]);
my $dir = $node->qlog_dir;

sub file_of { return "$dir/qlog/q$_[0]/r" . sprintf('%08d', $_[1]) . '.qlog' }

# Where this text stands in a file of the log: (file, position).
sub find_text
{
	my ($log, $text) = @_;

	foreach my $file (sort glob "$dir/qlog/q$log/r*.qlog")
	{
		my $at = index(slurp_file($file), $text);

		return ($file, $at) if $at >= 0;
	}
	die "no $text";
}

# A queue of messages that are not compressed, over several files.
sub fill
{
	my ($queue, $n) = @_;

	$node->sql(qq{do \$\$ begin perform queue_create('$queue', '{"compression_level": 0}'); for i in 1 .. $n loop
		perform queue_push('$queue', json_build_object('n', i, 'pad', repeat('$queue ' || i || ' ', 1000))::text, 'lane'); commit; end loop; end \$\$});
	return $node->sql("select log_id from qlog_queues where queue = '$queue'");
}

sub shown { return $node->sql("select string_agg(payload->>'n', ',' order by \"position\") from queue_peek('$_[0]', 'lane', batch => 10000)") }

sub all_but { my ($n, %not) = @_; return join ',', grep { !$not{$_} } 1 .. $n }

my $log = fill('a', 400);
fill('b', 20);
$node->sql('select qlog_checkpoint(true)');
is($node->sql('select count(*) from qlog_verify()'), '0', 'a sound directory: nothing is found');
is($node->sql('select count(*) from qlog_verify(deep => true)'), '0', 'nor by looking deeper');
is($node->sqlstate("select * from qlog_verify('nobody')"), '42704', 'no such queue');
is($node->sql("select count(*) from qlog_repair('a', false)"), '0', 'nothing to repair');
$node->sql('create role nobody');
is($node->sqlstate("set role nobody; select * from qlog_verify('a')"), '42501', 'not for everybody: verify');
is($node->sqlstate("set role nobody; select * from qlog_repair('a')"), '42501', 'not for everybody: repair');

# One flipped byte in a message that nobody has read, in a closed file.
my ($file, $at) = find_text($log, 'a 30 a 30');
my $name = $file =~ s{.*/qlog/qlog/}{qlog/}r;
like($node->sql(q{select string_agg(state, ',') from qlog_files where queue = 'a'}), qr/closed.*active/, 'it has closed files');
QlogNode::patch($file, $at + 100, 'X');
like($node->sql("select queue, file, messages, finding from qlog_verify('a')"), qr/^a\|\Q$name\E\|\|.*checksum/, 'verify: the place');
my $rows = $node->sql("select queue, file is null, partition, first_position, messages, finding from qlog_verify('a', true)");
like($rows, qr/^a\|t\|lane\|29\|1\|messages are in no file$/m, 'verify: the message that is lost');
is(scalar(() = $rows =~ /^a\|/mg), 2, 'and nothing else');
is($node->sql("select count(*) from qlog_verify('b', true)"), '0', 'the other queue is sound');

$node->scrub;
like($node->sql('select queue, file, needed, out_of_service, finding from qlog_damage'), qr/^a\|\Q$name\E\|t\|f\|.*checksum/m, 'scrub: the place');
like($node->sql('select queue, file is null, needed, finding from qlog_damage'), qr/^a\|t\|t\|1 messages from position 29 on are in no file/m,
	'scrub: the message');
ok($node->log_contains('messages of queue "a" cannot be read'), 'and the log says so');

# One policy: the message alone is concerned, whoever finds the damage first. Another consumer group meets it.
is($node->sqlstate("select queue_push('a', '1', 'other')"), undef, 'its queue goes on: push');
is($node->sql("select count(*) from queue_pop('a', 10, partition => 'other', auto_ack => true)"), '1', 'its queue goes on: pop');
$node->sql("select queue_subscribe('a', 'audit', 'oldest')");
is($node->sql("select count(*) from queue_pop('a', 40, partition => 'lane', consumer_group => 'audit')"), '29',
	'a consumer gets the messages before it');
is($node->sql("select queue_ack(lease_id) from qlog_leases where consumer_group = 'audit'"), '29', 'and answers them');
is($node->sqlstate("select * from queue_pop('a', 40, partition => 'lane', consumer_group => 'audit')"), 'XX001', 'then it is told');
is($node->sql("select count(*) from queue_pop('b', 5)"), '5', 'the other queue goes on');
$node->sql("select queue_unsubscribe('a', 'audit'); select queue_subscribe('a', 'audit', 'oldest')");
$node->sql('select qlog_checkpoint()');
$node->stop;
$node->start;
is($node->sqlstate("select * from queue_pop('a', 40, partition => 'lane', consumer_group => 'audit')"), undef, 'after a restart too: those before it');
$node->sql("select queue_ack(lease_id) from qlog_leases where consumer_group = 'audit'");
is($node->sqlstate("select * from queue_pop('a', 40, partition => 'lane', consumer_group => 'audit')"), 'XX001', 'after a restart too: then it');
like($node->sql('select queue, file, needed, out_of_service from qlog_damage'), qr/^a\|\Q$name\E\|t\|f$/, 'what a consumer meets is in the view');
$node->sql("select queue_unsubscribe('a', 'audit')");

# Repair: first what would be done, then it is done.
my $before = slurp_file($file);
like($node->sql("select action from qlog_repair('a')"), qr/would be kept beside.*would be given up/s, 'dry run: says what would be done');
is(slurp_file($file), $before, 'and does nothing');
$rows = $node->sql("select queue, file, partition, first_position, messages, action from qlog_repair('a', false)");
like($rows, qr/^a\|\Q$name\E\|\|\|\|.*kept beside/m, 'repair: the place');
like($rows, qr/^a\|\|lane\|29\|1\|.*given up/m, 'repair: what is lost');
is(shown('a'), all_but(400, 30 => 1), 'everything else is there');
my @kept = glob "$file.bad.*";
is(scalar(@kept), 1, 'the damaged bytes are kept');
my ($position) = $kept[0] =~ /bad\.(\d+)$/;
is(slurp_file($kept[0]), substr($before, $position, -s $kept[0]), 'as they were');
is($node->sql('select count(*) from qlog_damage'), '0', 'nothing is damaged any more');
is($node->sql("select count(*) from qlog_verify('a', true)"), '0', 'and verify agrees');
$node->sql(q{select queue_push('a', json_build_object('n', 401)::text, 'lane')});
is(shown('a'), all_but(401, 30 => 1), 'work goes on');
foreach my $how ('kill9_everything', 'stop')
{
	$node->$how;
	$node->start;
	is(shown('a'), all_but(401, 30 => 1), "$how: the same after a restart");
}

# From an old state: without the checkpoint, from the older snapshot on.
$node->stop;
unlink "$dir/store/data.mdb" or die $!;
$node->start;
is(shown('a'), all_but(401, 30 => 1), 'the same with a snapshot');
is($node->sql(q{select ready from qlog_stat_queues where queue = 'a'}), '400', 'and the count is right');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'qlog_dump agrees') or diag "$out$err";
$node->start;

# More damage, in several files, with leases on what is lost.
my %lost = (30 => 1);
my @places = ([ 50, 'flip' ], [ 51, 'flip' ], [ 150, 'zero' ], [ 260, 'length' ]);
$node->sql("select count(*) from queue_pop('a', 60, partition => 'lane', lease => '1 h')");
$node->stop;
foreach my $place (@places)
{
	my ($n, $how) = @$place;
	my ($f, $p) = find_text($log, "a $n a $n");

	$lost{$n} = 1;
	QlogNode::patch($f, $p + 10, '?') if $how eq 'flip';
	QlogNode::patch($f, $p, "\0" x 500) if $how eq 'zero';

	# From the end of the message before it over the length of this one's record.
	QlogNode::patch($f, $p - 150, "\xff" x 140) if $how eq 'length';
	$lost{ $n - 1 } = 1 if $how eq 'length';
}
$node->start;
$rows = $node->sql("select partition, first_position, messages, finding from qlog_verify('a', true)");
is(scalar(() = $rows =~ /^lane\|\d+\|/mg), 3, 'five messages are lost in three runs') or diag $rows;
$rows = $node->sql("select partition, first_position, messages from qlog_repair('a', false) where messages is not null order by 2");
is($rows, "lane|49|2\nlane|149|1\nlane|258|2", 'and given up');
is($node->sql("select count(*) from qlog_verify('a', true)"), '0', 'sound again');
is($node->sql(q{select sum(messages) from qlog_leases where queue = 'a'}), '58', 'leases go on with what is there');
is($node->sql(q{select queue_ack(lease_id) from qlog_leases where queue = 'a'}), '58', 'and are acknowledged');
$node->kill9_everything;
$node->start;
is($node->sql("select count(*) from qlog_verify('a', true)"), '0', 'and after a crash');

# A whole file is gone.
my $c = fill('c', 400);
$node->sql('select qlog_checkpoint()');
$node->stop;
unlink file_of($c, 2) or die $!;
$node->start;
$rows = $node->sql("select partition, first_position, messages, finding from qlog_verify('c', true)");
like($rows, qr/^lane\|\d+\|\d+\|messages are in no file$/, 'a file is gone: its messages are missing');
my ($first, $n) = $rows =~ /^lane\|(\d+)\|(\d+)\|/;
is($node->sql("select partition, first_position, messages, finding from qlog_verify('c')"), $rows, 'a file is gone: nobody has to look deep for that');
$node->scrub;
like($node->sql("select file is null, needed, finding from qlog_damage where queue = 'c'"),
	qr/^t\|t\|$n messages from position $first on are in no file$/, 'a file is gone: the scrub worker finds it');
ok($node->log_contains("partition \"lane\": $n messages from position $first on"), 'a file is gone: the log says so');
$node->sql("select count(*) from qlog_repair('c', false)");
is(shown('c'), all_but(400, map { $_ => 1 } $first + 1 .. $first + $n), 'repaired: the others are there');
$node->sql(q{select queue_push('c', json_build_object('n', 401)::text, 'lane')});

# A closed file that is nothing but zeros, one that is cut short, one that is another one's.
foreach my $way ([ 'empty', sub { truncate $_[0], 0 or die $! } ], [ 'zeroed', sub { my $f = shift; QlogNode::patch($f, 0, "\0" x -s $f) } ],
	[ 'cut short', sub { truncate $_[0], 300000 or die $! } ],
	[ 'the header torn', sub { QlogNode::patch($_[0], 0, "\0" x 20) } ],
	[ 'swapped', sub { my $f = shift; my $other = slurp_file(file_of($c, 1)); open(my $fh, '>:raw', $f); print $fh $other; close $fh } ])
{
	my ($what, $break) = @$way;
	my $queue = "d $what";
	my $id = fill($queue, 400);

	$node->wait_until(sub { -e file_of($id, 2) =~ s/qlog$/qidx/r }, 'the index');

	# A start that replays pushes reads the messages of their queue for dedup ids; here all is below the checkpoint.
	$node->sql('select qlog_checkpoint()');
	$node->stop;
	$break->(file_of($id, 2));
	$node->start;
	isnt($node->sql("select count(*) from qlog_verify('$queue')"), '0', "$what: found");
	$node->scrub;
	isnt($node->sql("select count(*) from qlog_damage where queue = '$queue' and needed = ('$what' <> 'the header torn')"), '0', "$what: scrub finds it");
	is($node->sqlstate("select queue_push('$queue', '1', 'other')"), undef, "$what: the queue goes on");
	is($node->sql("select count(*) from queue_peek('b')"), '10', "$what: other queues go on");
	my $lost = $node->sql("select coalesce(sum(messages), 0) from qlog_repair('$queue', false)");
	cmp_ok($lost, $what eq 'the header torn' ? '==' : '>', 0, "$what: what is lost is said");
	is($node->sql("select count(*) from queue_peek('$queue', 'lane', batch => 1000)"), 400 - $lost, "$what: the rest is there");
	is($node->sql("select count(*) from qlog_verify('$queue', true) where messages is not null"), '0', "$what: nothing is missing any more");
	$node->sql("select queue_push('$queue', '1')");
}

# Killed at each step.
foreach my $point (qw(repair-after-verify repair-after-lost repair-after-floor repair-after-mend))
{
	my $id = fill("k $point", 60);
	my ($f, $p) = find_text($id, "k $point 7 k $point 7");

	$node->sql('select qlog_checkpoint(true)');
	QlogNode::patch($f, $p + 30, '#');
	my $offset = -s $node->logfile;
	my $handle = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "set qlog.debug_stop = '$point'",
		'-c', "select * from qlog_repair('k $point', false)" ], '<', \undef, '>', \my $sout, '2>', \my $serr);
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $offset) }, $point);
	$node->kill9_everything;
	eval { $handle->finish };
	$node->start;
	$node->sql("select * from qlog_repair('k $point', false)");
	is(shown("k $point"), all_but(60, 7 => 1), "killed at $point: repaired by calling it again");
	is($node->sql("select count(*) from qlog_verify('k $point', true)"), '0', "killed at $point: sound");
	$node->sql("select queue_push('k $point', '1')");
}

# At the end of a record, without the index that would tell how long the file was: its messages tell. The same for the system log, of
# which a start needs what stands above the floor.
my $short = fill('short', 400);
$node->wait_until(sub { -e file_of($short, 2) =~ s/qlog$/qidx/r }, 'the index');
my @records = map { /^record at=(\d+)/ ? $1 : () } split /\n/, ($node->qlog_dump('--payload=none', file_of($short, 2)))[1];
$node->stop;
truncate file_of($short, 2), $records[ int(@records / 2) ] or die $!;
unlink file_of($short, 2) =~ s/qlog$/qidx/r or die $!;
$node->start;
isnt($node->sql("select sum(messages) from qlog_verify('short')"), '', 'cut at a record, without index: verify misses messages');
$node->scrub;
isnt($node->sql("select count(*) from qlog_damage where queue = 'short' and file is null and needed"), '0', 'cut at a record, without index: scrub does');
$node->sql("select * from qlog_repair('short', false)");
is($node->sql("select count(*) from qlog_verify('short')"), '0', 'cut at a record, without index: repaired');
$node->stop;

# Damage above the mark, in the file that is written to: recovery puts the queue out of service, and finds the place again at every
# start until it is repaired. A message alone in its entry, and one of an entry with others.
my $late = QlogNode->started('late', conf => [ "qlog.checkpoint_timeout = '1h'", 'qlog.snapshot_interval = 0', 'qlog.compression_level = 0' ]);
$late->sql(q{create table t(n int); select queue_create('e'); select queue_create('f')});
$late->stop;
$late->start;
$late->sql(qq{select queue_push('e', json_build_object('n', $_, 'pad', repeat('e $_ ', 20))::text)}) foreach 1 .. 9;
$late->sql(q{begin; insert into t values (1); select queue_push('e', json_build_object('n', i, 'pad', repeat('e ' || i || ' ', 20))::text) from generate_series(10, 10) i;
	select queue_push('f', '10'); commit});
$late->sql(qq{select queue_push('e', json_build_object('n', $_, 'pad', repeat('e $_ ', 20))::text)}) foreach 11 .. 15;
$late->sql(q{select queue_push('f', i::text) from generate_series(1, 3) i});
$late->kill9_everything;
my $active = $late->qlog_dir . '/qlog/q1/r00000001.qlog';
foreach my $text ('e 5 e 5', 'e 10 e 10')
{
	my $p = index(slurp_file($active), $text);

	die "no $text" if $p < 0;
	QlogNode::patch($active, $p + 8, '@');
}
$late->start;
is($late->sqlstate("select * from queue_peek('e')"), 'XX001', 'above the mark: out of service');
is($late->sql(q{select queue, file, needed from qlog_damage}), 'e|qlog/q1/r00000001.qlog|t', 'above the mark: the view names the place');
$late->kill9_everything;
$late->start;
is($late->sqlstate("select * from queue_peek('e')"), 'XX001', 'above the mark: and again');
$rows = $late->sql("select count(*) filter (where file is not null), sum(messages) from qlog_repair('e', false)");
is($rows, '2|1', 'above the mark: two places, and the message of which something is known');
sub late_shown { return $late->sql(q{select string_agg(payload->>'n', ',' order by "position") from queue_peek('e', batch => 100)}) }
is(late_shown(), all_but(15, 5 => 1, 10 => 1), 'above the mark: the rest is there');
$late->sql(q{select queue_push('e', json_build_object('n', 16)::text)});
foreach my $how ('kill9_everything', 'stop')
{
	$late->$how;
	$late->start;
	is(late_shown(), all_but(16, 5 => 1, 10 => 1), "above the mark: $how");
	is($late->sql("select count(*) from qlog_verify(deep => true)"), '0', "above the mark: $how: sound");
}
is($late->sql(q{select count(*) from queue_pop('f', 10)}), '4', 'above the mark: the other queue has all of it');
$late->stop;

# Closed files that end too early: nothing tells what to put where the rest stood. A dry run says the same as what is done then.
my $cut = QlogNode->started('cut', conf => [ "qlog.segment_size = '1MB'", 'qlog.compression_level = 0' ]);
$cut->sql(q{select queue_create('c')});
$cut->sql(q{select queue_push('c', to_json(i || repeat('c', 3000))::text) from generate_series(1, 300) i}) foreach 1 .. 4;
foreach my $where ([ 2, 50000 ], [ 3, 10 ])
{
	my ($number, $size) = @$where;

	$cut->sql('select qlog_checkpoint(true)');
	$cut->stop;
	truncate sprintf('%s/qlog/q1/r%08d.qlog', $cut->qlog_dir, $number), $size or die $!;
	$cut->start;
	my $would = $cut->sql(q{select * from qlog_repair('c')});
	my $was = $cut->sql(q{select * from qlog_repair('c', false)});

	like($would, qr/would be left as it is/, "cut to $size bytes: dry run");
	$would =~ s/cannot be read: would be given up/could not be read: given up/g;
	$would =~ s/would be left/left/g;
	is($was, $would, "cut to $size bytes: as it is done");
}
$cut->stop;
done_testing();
