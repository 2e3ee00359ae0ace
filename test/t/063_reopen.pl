# Reopening a log from disk: a directory with pairs of log and index, a log without index, an index without log, sub-directories and
# other files. Everything goes on as before; what is not ours is neither read nor changed; what does not fit together is
# refused and never served.

use strict;
use warnings;

use Digest::MD5 ();
use File::Copy ();
use File::Find ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", 'qlog.compression_level = 0', "qlog.recovery_wait = '10s'", "qlog.checkpoint_timeout = '100ms'" ]);
my $dir = $node->qlog_dir;
my ($pushed, $popped) = (0, 0);

sub push_some
{
	my ($n) = @_;

	$node->sql(qq{select count(queue_push('q', json_build_object('n', i, 'pad', repeat('x', 120000))::text, 'p'))
		from generate_series($pushed + 1, $pushed + $n) i});
	$pushed += $n;
	return;
}

# All that is there, by number, in order.
sub shown { return $node->sql(q{select coalesce(string_agg(payload->>'n', ' ' order by "position"), '') from queue_peek('q', partition => 'p', batch => 10000)}) }

sub expected { return join ' ', $popped + 1 .. $pushed }

sub file { return sprintf '%s/qlog/q1/r%08d.%s', $dir, @_ }

sub newest
{
	my ($number) = (sort grep { -f } glob "$dir/qlog/q1/r????????.qlog")[-1] =~ /r(\d+)\.qlog$/;
	return $number + 0;
}

sub put
{
	my ($path, $text) = @_;

	open(my $fh, '>', $path) or die "$path: $!";
	print $fh $text;
	close $fh;
	return;
}

sub digests
{
	my %found;

	File::Find::find({ no_chdir => 1, wanted => sub { $found{$_} = -d $_ ? 'directory' : Digest::MD5::md5_hex(slurp_file($_)) } }, @_);
	return \%found;
}

# Starts, and says whether all is served as it should be.
sub reopened
{
	my ($what) = @_;

	$node->start;
	is(shown(), expected(), "$what: every message is there, in order, none twice");
	return;
}

$node->sql("select queue_create('q'); select queue_create('other'); select queue_push('other', '\"other\"')");
push_some(30);
$node->wait_until(sub { (() = glob "$dir/qlog/q1/r*.qidx") >= 3 }, 'indexes of closed files');
$node->stop;
cmp_ok(newest(), '>=', 4, 'a log of several files');

# The folder of the example: 1 with index, 2 with index, 3 without index, an index without log, a file, a folder with a file.
my $orphan = newest() + 2;
{
	unlink file(3, 'qidx') or die $!;
	File::Copy::copy(file(1, 'qidx'), file($orphan, 'qidx')) or die $!;
	put("$dir/qlog/q1/a.txt", 'a');
	mkdir "$dir/qlog/q1/b" or die $!;
	put("$dir/qlog/q1/b/c.txt", 'c');
	put("$dir/qlog/q1/b/r00000001.qlog", 'not a log');
	mkdir file(99_999, 'qlog') or die $!;
}
my @foreign = ("$dir/qlog/q1/a.txt", "$dir/qlog/q1/b", file(99_999, 'qlog'));
my $before = digests(@foreign);
reopened('the example folder');
$node->wait_until(sub { -f file(3, 'qidx') }, 'the index of the log that had none');
pass('a log without index is read, and its index made again');
push_some(18);
is(shown(), expected(), 'work goes on where it ended: the next position is the last one + 1');
is($node->sql(q{select max("position") - min("position") + 1 = count(*) from queue_peek('q', partition => 'p', batch => 10000)}), 't', 'no gap in the positions');
cmp_ok(newest(), '>=', $orphan, 'a new log file has come to the number of the index that was alone');
push_some(20);
$node->wait_until(sub { -s file($orphan, 'qidx') && slurp_file(file($orphan, 'qidx')) ne slurp_file(file(1, 'qidx')) }, 'its own index there');
is(shown(), expected(), 'the index that was alone is not adopted');
is_deeply(digests(@foreign), $before, 'other files and folders are as they were');
is($node->sql('select count(*) from pg_ls_dir(\'qlog/qlog/q1/b\')'), '2', 'a folder is not entered');
$node->stop;

# Order is that of the numbers, whatever the times; closed files need not be writable.
{
	my @files = sort glob "$dir/qlog/q1/r*.qlog";

	@files = grep { -f && $_ ne file(newest(), 'qlog') } @files;
	utime(1_000_000 + 1000 * (7 * $_ % @files), 1_000_000 + 1000 * (7 * $_ % @files), $files[$_]) foreach 0 .. $#files;
	chmod 0400, grep { /r0000000[1-4]\.qlog$/ } @files;
	reopened('times shuffled, closed files read only');
	push_some(1);
	$node->stop;
	chmod 0600, @files;
}

# A closed file with or without each of the files that are derived from it, the wrong ones among them.
foreach my $case (0 .. 8)
{
	my ($idx, $hsh) = ($case % 3, int($case / 3));
	my %how = (0 => sub { unlink $_[0] }, 1 => sub { put($_[0], 'wrong' x 1000) unless -f $_[0] }, 2 => sub { put($_[0], '') });

	$how{$idx}->(file(2, 'qidx'));
	$how{$hsh}->(file(2, 'qhsh'));
	reopened("index " . qw(missing present empty)[$idx] . ", hashes " . qw(missing wrong empty)[$hsh]);
	$node->stop;
}
unlink file(2, 'qhsh');

# Files that do not fit: their messages are refused, others are served; right again when they are put back.
sub unfit
{
	my ($name, $break, $mend, $harmless) = @_;
	my ($right, $refused, $wrong) = (0, 0, 0);

	$break->();
	$node->start;
	foreach my $n ($popped + 1 .. $pushed)
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			qq{select payload->>'n' from queue_peek('q', partition => 'p', from_position => $n - 1, batch => 1)});

		$rc != 0 ? $refused++ : $out eq $n ? $right++ : $wrong++;
	}
	is($wrong, 0, "$name: nothing wrong is served");
	cmp_ok($refused, '>', 0, "$name: it is refused ($refused of $pushed messages)") unless $harmless;
	is($node->sql(q{select payload #>> '{}' from queue_peek('other')}), 'other', "$name: other queues go on");
	$node->stop;
	$mend->();
	reopened("$name, and back");
	$node->stop;
}

sub swap
{
	foreach my $suffix (@_)
	{
		rename file(1, $suffix), file(1, 'x') or die $!;
		rename file(2, $suffix), file(1, $suffix) or die $!;
		rename file(1, 'x'), file(2, $suffix) or die $!;
	}
	return;
}
unfit('two files swapped', sub { swap('qlog') }, sub { swap('qlog') }, 'records are known by what they hold');
my $whole = slurp_file(file(2, 'qlog'));
foreach my $size (0, 31, 32)
{
	unfit("header cut to $size bytes", sub { put(file(2, 'qlog'), substr $whole, 0, $size) }, sub { put(file(2, 'qlog'), $whole) });
}
unfit('a file of another queue', sub { File::Copy::copy("$dir/qlog/q2/r00000001.qlog", file(2, 'qlog')) or die $! },
	sub { put(file(2, 'qlog'), $whole) });

# Names that are nearly ours: none is read, none goes, and the log says so once at each start.
my @strays = ((map { "qlog/q1/$_" } qw(r1.qlog r0000001.qlog r000000001.qlog R00000001.qlog r00000001.QLOG r00000001.qlog~ r00000001.qlog.bak
			r00000001.qlog.1 r0000000a.qlog r00000001 r00000001. xr00000001.qlog r-0000001.qlog r99999999999999999999999.qlog .r00000001.qlog
			00000001.qlog r00000001.idx r00000001.log LANES IDENTITY dirx.qdx core)),
	(map { "qlog/$_" } qw(qabc q Q1 q-1 q01 LANES.old q99999999999999999999 lanes)), qw(identity store2 notes.txt));
put("$dir/$_", "stray $_") foreach @strays;
my $mark = -s $node->logfile;
reopened('strays');
push_some(10);
$node->stop;
is_deeply([ grep { !-f "$dir/$_" || slurp_file("$dir/$_") ne "stray $_" } @strays ], [], scalar(@strays) . ' strays are as they were');
like(slurp_file($node->logfile, $mark), qr/qlog: \d+ files or directories below .* are left alone/, 'and were reported');
unlink map { "$dir/$_" } @strays;

# A directory in the place of the next file is not removed: what needs the file is refused, naming it, until it is gone.
{
	my $next = file(newest() + 1, 'qlog');

	mkdir $next or die $!;
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres',
		q{select count(queue_push('q', json_build_object('n', i, 'pad', repeat('x', 120000))::text, 'p')) from generate_series(1, 12) i});
	isnt($rc, 0, 'a directory in the place of the next file: no push that needs it');
	like($err, qr/\Q@{[$next =~ m{(qlog\/q1\/.*)}]}\E/, 'and the error names it');
	ok(-d $next, 'it is not removed');
	rmdir $next or die $!;
	push_some(12);
	is(shown(), expected(), 'it is gone: work goes on, and nothing of what was refused is there');
	$node->stop;
}

# Killed again and again: the files do not become more, and nothing cut comes back.
my $files = newest();
foreach my $round (1 .. 12)
{
	$node->start;
	push_some(1) if $round % 3 == 0;
	$node->kill9_everything;
}
reopened('twelve kills');
cmp_ok(newest() - $files, '<=', 1, 'files do not become more with the starts');

# Popped to the end: one sequence over all of this.
my @order;
while (my $out = $node->sql(q{with p as materialized (select * from queue_pop('q', 7, partition => 'p')), a as (select queue_ack(max(lease_id)) from p having count(*) > 0)
	select string_agg(payload->>'n', ' ' order by "position") || ' ' || (select sum(queue_ack) from a) from p}))
{
	my @numbers = split / /, $out;

	is(pop @numbers, scalar @numbers, 'popped and acknowledged ' . @numbers);
	push @order, @numbers;
}
is(join(' ', @order), expected(), 'popped in one sequence, without gap or repetition');

# Ids are never used again, whatever name, however often, over a kill.
my @ids;
foreach my $round (1 .. 2)
{
	push @ids, split /\n/, $node->sql(q{create temp table ids(n bigint);
		do $$ begin for i in 1 .. 40 loop perform queue_create('again'); insert into ids select log_id from qlog_queues where queue = 'again';
			commit; perform queue_drop('again'); commit; end loop; end $$;
		select n from ids order by n});
	$node->kill9_everything;
	$node->start;
}
my %distinct = map { $_ => 1 } @ids;
is(scalar keys %distinct, 80, 'a name made and dropped 80 times has had 80 ids');
$node->stop;

# Directories that cannot be one.
sub cannot
{
	my ($name, $pattern, $make) = @_;
	my $bad = QlogNode->new($name =~ s/\W+/_/gr);
	my $path = PostgreSQL::Test::Utils::tempdir() . '/data';

	$make->($path);
	$bad->init;
	$bad->append_conf('postgresql.conf', "qlog.data_directory = '$path'\nqlog.recovery_wait = '5s'\n");
	$bad->start;
	my ($rc, $out, $err) = $bad->psql('postgres', "create extension qlog; select queue_push('x', '1')");
	like($err, $pattern, "$name: refused with the reason");
	is($bad->sql('select 1'), '1', "$name: PostgreSQL runs");
	$bad->stop;
	chmod 0700, $path;
	return;
}
cannot('a file', qr/Not a directory/, sub { put($_[0], 'x') });
cannot('readable by others', qr/not permitted/, sub { mkdir $_[0] or die $!; chmod 0755, $_[0] });
cannot('no permission', qr/Permission denied/, sub { mkdir $_[0] or die $!; chmod 0, $_[0] });
cannot('something else', qr/IDENTITY/, sub { mkdir $_[0], 0700 or die $!; put("$_[0]/thesis.tex", 'x') });

done_testing();
