# A disk that is full, for real: the data directory of qlog stands on a small file system of its own. Mounting one takes a
# user namespace; where there is none this is skipped, and 016_faults.pl orders the same errors.

use strict;
use warnings;

my $small;

# Once more, inside a mount namespace where the directory is on a small file system.
BEGIN
{
	$small = ($ENV{TESTDIR} || '.') . '/small';
	if (!$ENV{QLOG_SMALL_DISK})
	{
		my $again = "mount -t tmpfs -o size=8m,mode=0700 none '$small' && "
		  . "exec unshare -U --map-user=$> --map-group=" . (split ' ', $))[0] . ' "$@"';

		mkdir $small;
		if (system("unshare -Urm sh -c 'mount -t tmpfs -o size=1m none $small && unshare -U --map-user=$> true' >/dev/null 2>&1") != 0)
		{
			print "1..0 # SKIP no file system can be mounted here\n";
			exit 0;
		}
		$ENV{QLOG_SMALL_DISK} = 1;
		exec 'unshare', '-Urm', 'sh', '-c', $again, 'sh', $^X, (map { "-I$_" } @INC), $0 or die $!;
	}
}

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# What is removed later to make room.
open(my $fh, '>', "$small/ballast") or die $!;
print $fh 'x' x (3 * 1024 * 1024);
close $fh;

my $node = QlogNode->started('main',
	conf => [ "qlog.data_directory = '$small/qlog'", "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'" ]);

$node->sql(q{
	select queue_create('q'); select queue_create('j'); create table t(n int primary key);
	create function noise(n int) returns text language sql as
	$$ select string_agg(md5(random()::text), '') from generate_series(1, n / 32) $$});

my $number = 0;

# Push until it fails, alternately with and without a table; how many messages queue q got, and the SQLSTATE.
sub fill
{
	my $pushed = 0;

	for (1 .. 2000)
	{
		my $state = $node->sqlstate(q{select queue_push('q', to_json(noise(20000))::text)});

		return ($pushed, $state) if defined $state;
		$pushed++;
		$number++;
		$state = $node->sqlstate(
			"begin; insert into t values ($number); select queue_push('j', json_build_object('n', $number, 'pad', noise(9000))::text); commit");
		return ($pushed, $state) if defined $state;
	}
	return ($pushed, 'none');
}

sub check
{
	my ($pushed, $when) = @_;

	is($node->sql(q{select count(*) from queue_peek('q', batch => 100000)}), $pushed, "$when: nothing is lost in queue q");
	is( $node->sql(q{select count(*), sum((payload->>'n')::int) from queue_peek('j', batch => 100000)}),
		$node->sql('select count(*), sum(n) from t'),
		"$when: rows and messages agree");
	return;
}

my ($pushed, $state) = fill();
is($state, '53100', "full after $pushed pushes: 53100");
cmp_ok($pushed, '>', 20, 'which took a while');
check($pushed, 'full');
is($node->sqlstate(q{select queue_create('new')}), '53100', 'no queue can be made');
$node->sql('checkpoint');
pass('a checkpoint completes');

# A server that dies needs room for what redo finds in the WAL, or does not start; nothing is lost by trying.
$node->sql("begin; insert into t values (-$_); select queue_push('j', '{\"n\": -$_}'); commit") for 1 .. 2;
my $mark = -s $node->logfile;
$node->kill9_everything;
ok(!$node->start(fail_ok => 1), 'full, after a crash: no room to keep what the WAL has');
ok($node->log_contains('could not write file ".*stash": No space left', $mark), 'full, after a crash: the log says so');
unlink "$small/ballast" or die $!;
$node->start;
check($pushed, 'with room, after a crash');
is($node->sql('select count(*) from t where n < 0'), '2', 'with room, after a crash: the last transactions too');
$node->sql(q{select queue_push('q', '"on"')});
$pushed++;

# Full again, and room comes back while the server runs.
open($fh, '>', "$small/ballast") or die $!;
print $fh 'x' x (1024 * 1024);
close $fh;
my ($more, $again) = fill();
is($again, '53100', 'full once more');
check($pushed += $more, 'full once more');
unlink "$small/ballast" or die $!;
$node->wait_until(sub { !defined $node->sqlstate(q{select queue_push('q', to_json(noise(20000))::text)}) }, 'pushes to go on');
check(++$pushed, 'with room, without a restart');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify', "$small/qlog");
is($rc, 0, 'the directory is sound') or diag "$out$err";

done_testing();
