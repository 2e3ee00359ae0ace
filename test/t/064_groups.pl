# Group commit, and sizes of files: many clients share syncs, one alone does not wait for others; another segment size
# counts from the next start on, for what is written then.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", 'qlog.compression_level = 0', "qlog.checkpoint_timeout = '1h'", 'max_connections = 40' ]);

sub syncs { return $node->sql('select fsyncs from qlog_stat_log') }

# Sixteen clients, a hundred commits each; with a delay they gather however fast the disk is.
sub pushed_by
{
	my ($clients, $commits, $delay) = @_;
	my $before = syncs();
	my $script = PostgreSQL::Test::Utils::tempdir() . '/script';
	my @runs;

	open(my $fh, '>', $script) or die $!;
	print $fh "set qlog.commit_delay = $delay;\n", "select queue_push('q', '1');\n" x $commits;
	close $fh;
	push @runs, IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-f', $script ],
		'<', \undef, '>', '/dev/null', '2>', \my $err)
	  foreach 1 .. $clients;
	$_->finish or die 'a client failed' foreach @runs;
	return syncs() - $before;
}

$node->sql("select queue_create('q')");
my $together = pushed_by(16, 100, 2000);
cmp_ok($together, '<', 1600 / 2, "sixteen clients share syncs ($together for 1600 commits)");
my $alone = pushed_by(1, 50, 0);
cmp_ok($alone, '>=', 50, "one client has a sync for each commit ($alone for 50)");
is($node->sql("select ready from qlog_stat_queues where queue = 'q'"), '1650', 'all of it is there');
cmp_ok($node->sql('select group_size_max from qlog_stat_log'), '>', 1, 'the view shows groups');

# A larger segment: files that are closed stay as they are, but for the zeros that they give back; the next ones are larger. A smaller one again.
my $n = 0;

sub fill
{
	my ($messages) = @_;

	$node->sql("select count(queue_push('sizes', json_build_object('n', i, 'pad', repeat('x', 100000))::text)) from generate_series($n + 1, $n + $messages) i");
	$n += $messages;
	return;
}

sub sizes
{
	my $log = $node->sql("select log_id from qlog_queues where queue = 'sizes'");

	return map { -s } sort glob $node->log_dir($log) . '/r*.qlog';
}

$node->sql("select queue_create('sizes')");
fill(25);
my @small = sizes();
is((grep { $_ > 1048576 } @small), 0, 'no file is larger than the segment');
cmp_ok(scalar @small, '>=', 3, 'a record that does not fit goes to the next one');
$node->append_conf('postgresql.conf', "qlog.segment_size = '3MB'\n");
$node->restart;
fill(60);
my @large = sizes();
is((grep { $large[$_] > $small[$_] } 0 .. $#small - 1), 0, 'closed files do not grow');
cmp_ok($large[-2], '>', 1048576, 'later ones are larger');
is((grep { $_ > 3 * 1048576 } @large), 0, 'within the new size');
$node->append_conf('postgresql.conf', "qlog.segment_size = '1MB'\n");
$node->kill9_everything;
$node->start;
fill(25);
is($node->sql("select count(*) || ' ' || sum((payload->>'n')::int) from queue_peek('sizes', batch => 1000)"), '110 ' . 110 * 111 / 2,
	'over all of them every message is there');
cmp_ok((sizes())[-1], '<=', 1048576, 'and small ones again');
$node->stop;

done_testing();
