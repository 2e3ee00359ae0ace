# The journal and the checkpoint on a device of their own, which is full while that of the data directory is not: it is watched, has a
# reserve of its own, and the messages name it.

use strict;
use warnings;

use QlogSmallDisk '24m';
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The system log is to be the only one on the small disk.
QlogNode::plain_layout();

my $small = QlogSmallDisk::directory();
my $reserve = 3 * 1024 * 1024;
my $node = QlogNode->started('main',
	conf => [ "qlog.journal_directory = '$small/journal'", "qlog.checkpoint_directory = '$small/checkpoint'", "qlog.segment_size = '1MB'",
		"qlog.checkpoint_timeout = '100ms'", "qlog.disk_reserve = '3MB'", "qlog.disk_high_pct = 85", "qlog.disk_low_pct = 75" ]);
my $dir = $node->qlog_dir;

sub figures { return $node->sql('select pushes_refused, disk_reserve from qlog_stat_log') }

sub refusal
{
	my (undef, undef, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nselect queue_push('q', '1')", on_error_stop => 0);

	return $err;
}

sub ack { return $node->sql(q{with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1}) }

$node->sql(q{select queue_create('q'); select queue_create('work', '{"retry_limit": -1, "lease": "1 day"}');
	select count(queue_push('work', i::text)) from generate_series(1, 3000) i});
is(-s "$dir/RESERVE", $reserve, 'the data directory has a reserve');
is(-s "$small/journal/RESERVE", $reserve, 'the other device has one');
ok(!-e "$small/checkpoint/RESERVE", 'and not two');
my $df = (split ' ', (split /\n/, `df -B1 --output=avail '$small'`)[1])[0];
cmp_ok(abs($node->sql('select disk_free from qlog_stat_log') - $df), '<', 4 * 1024 * 1024, 'disk_free is that of the device with the least');

# The high mark.
my ($used, $avail) = split ' ', (split /\n/, `df -B1 --output=used,avail '$small'`)[1];
my $mark = -s $node->logfile;
QlogSmallDisk::ballast('more', int(($used + $avail) * 0.90) - $used);
$node->wait_until(sub { refusal() =~ /53100/ }, 'pushes to be refused');
like(refusal(), qr/DETAIL:  The file system of qlog\.journal_directory is filled to more than 85 %.*HINT:  Make room on the file system that holds qlog\.journal_directory\./s,
	'above the high mark: refused, and the device is named');
is(ack(), '10', 'above the high mark: answers go on');
$node->wait_until(sub { $node->log_contains('Make room on the file system that holds qlog.journal_directory', $mark) }, 'the log to name it');
QlogSmallDisk::drop_ballast('more');
$node->wait_until(sub { figures() eq "f|$reserve" }, 'pushes to be accepted');
$node->append_conf('postgresql.conf', "qlog.disk_high_pct = 100\n");
$node->reload;

# Full: answers live on the reserve of that device.
QlogSmallDisk::ballast('rest', 'rest');
my $rounds = 0;
until (figures() =~ /^t/ || $rounds >= 100)
{
	is($node->sqlstate(q{do $$ declare l bigint; begin for i in 1 .. 300 loop
		select lease_id into l from queue_pop('work', 50, partition => '') limit 1; perform queue_nack(l); commit; end loop; end $$}),
		undef, 'full: pops and nacks go on') if $rounds < 3;
	$node->sqlstate(q{do $$ declare l bigint; begin for i in 1 .. 300 loop
		select lease_id into l from queue_pop('work', 50, partition => '') limit 1; perform queue_nack(l); commit; end loop; end $$});
	$rounds++;
}
like(figures(), qr/^t\|\d+$/, "full: its reserve is being used after $rounds rounds");
cmp_ok(-s "$small/journal/RESERVE", '<', $reserve, 'full: some of it is gone');
is(-s "$dir/RESERVE", $reserve, 'full: that of the data directory, which is no help, is left alone');
like(refusal(), qr/53100.*DETAIL:  The file system of qlog\.journal_directory is full/s, 'full: pushes are refused, and the device is named');
is(ack(), '10', 'full: answers go on');
my $ready = $node->sql(q{select ready + leased from qlog_stat_queues where queue = 'work'});
$node->kill9_everything;
$node->start;
is($node->sql(q{select ready + leased from qlog_stat_queues where queue = 'work'}), $ready, 'full: a start goes on, and all answers are kept');
like(refusal(), qr/53100/, 'full: and refuses pushes');
QlogSmallDisk::drop_ballast('rest');
$node->wait_until(sub { figures() eq "f|$reserve" }, 'the reserve to be whole');
is(-s "$small/journal/RESERVE", $reserve, 'with room: it is whole');
is(refusal(), '', 'with room: pushes go on');
ok(!$node->log_contains('are not qlog\'s and are left alone'), 'a reserve is no stray');
$node->restart;
is(refusal(), '', 'and after a restart');
$node->stop;
done_testing();
