# A disk that is full, for real, and no reserve (070_reserve.pl has one): the data directory of qlog stands on a small file system
# of its own. 016_faults.pl orders the same errors.

use strict;
use warnings;

use QlogSmallDisk '8m';
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# A queue that has a log of its own needs room when it is made.
QlogNode::plain_layout();

# What is removed later to make room.
my $small = QlogSmallDisk::directory();
QlogSmallDisk::ballast('ballast', 3 * 1024 * 1024);

my $node = QlogNode->started('main',
	conf => [ "qlog.data_directory = '$small/qlog'", "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'",
		'qlog.disk_reserve = 0' ]);

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

# Without a reserve a server that dies needs room for what redo finds in the WAL, or does not start; nothing is lost by trying.
$node->sql("begin; insert into t values (-$_); select queue_push('j', '{\"n\": -$_}'); commit") for 1 .. 2;
QlogSmallDisk::ballast('rest', 'rest');
my $mark = -s $node->logfile;
$node->kill9_everything;
ok(!$node->start(fail_ok => 1), 'full, after a crash: no room to keep what the WAL has');
ok($node->log_contains('could not write file ".*stash": No space left', $mark), 'full, after a crash: the log says so');
QlogSmallDisk::drop_ballast($_) foreach 'ballast', 'rest';
$node->start;
check($pushed, 'with room, after a crash');
is($node->sql('select count(*) from t where n < 0'), '2', 'with room, after a crash: the last transactions too');
$node->sql(q{select queue_push('q', '"on"')});
$pushed++;

# Full again, and room comes back while the server runs.
QlogSmallDisk::ballast('ballast', 1024 * 1024);
my ($more, $again) = fill();
is($again, '53100', 'full once more');
check($pushed += $more, 'full once more');
QlogSmallDisk::drop_ballast('ballast');
$node->wait_until(sub { !defined $node->sqlstate(q{select queue_push('q', to_json(noise(20000))::text)}) }, 'pushes to go on');
check(++$pushed, 'with room, without a restart');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify', "$small/qlog");
is($rc, 0, 'the directory is sound') or diag "$out$err";

done_testing();
