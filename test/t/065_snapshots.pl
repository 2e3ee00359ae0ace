# Snapshots of the checkpoint: taken on demand and by themselves, the two newest are kept, and a start uses them when the
# checkpoint store is damaged, gone or too old; without one that can be used it is refused with the reason, never begun empty.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '50ms'", "qlog.snapshot_interval = '1h'" ]);
my $dir = $node->qlog_dir;

# Names of the snapshots, oldest first.
sub snapshots
{
	my @names = sort { ($a =~ /s(\d+)/)[0] <=> ($b =~ /s(\d+)/)[0] } map { s{.*/}{}r } glob "$dir/snapshots/s*.qsnap";

	return @names;
}

# Everything is killed when the point is reached.
sub killed_at
{
	my ($point, $act) = @_;
	my $offset = -s $node->logfile;

	$node->append_conf('postgresql.conf', "qlog.debug_stop = '$point'");
	$node->reload;
	$node->poll_sql('show qlog.debug_stop', $point);
	my $handle = $act->();
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $offset) }, $point);
	$node->kill9_everything;
	eval { $handle->finish } if $handle;
	$node->append_conf('postgresql.conf', "qlog.debug_stop = ''");
	$node->start;
	return;
}

sub state_of
{
	return $node->sql(q{
		select queue, ready, leased, delayed, dead, pushed, popped, acked, nacked from qlog_stat_queues order by queue;
		select queue, consumer_group, partition, messages from qlog_leases order by queue, partition;
		select queue, options, partitions from qlog_queues order by queue;
		select q.queue, p.partition, "position", attempt, payload from qlog_queues q, queue_peek(q.queue, batch => 100000) p
		order by 1, 2, 3});
}

# The first one comes by itself: without any nothing could be taken away.
$node->wait_until(sub { snapshots() == 1 }, 'the first snapshot');
pass('the first snapshot is taken at once');

# On demand. What it returns is the mark, which names the file.
$node->sql(q{select queue_push('a', i::text, 'p' || i % 3) from generate_series(1, 30) i});
my $mark = $node->sql('select qlog_checkpoint(true)');
is((snapshots())[-1], "s$mark.qsnap", 'on demand: named by its mark');
cmp_ok($node->sql('select checkpoint_seq from qlog_stat_log'), '>=', $mark, 'which is that of a checkpoint');
foreach (1 .. 3)
{
	$node->sql(q{select queue_push('a', '0')});
	$node->sql('select qlog_checkpoint(true)');
}
is(scalar(snapshots()), 2, 'the two newest are kept');
ok(!glob("$dir/snapshots/*.tmp"), 'and nothing else');
my @before = snapshots();
$node->sql(q{select queue_push('a', '0')});
$node->sql('select qlog_checkpoint()');
is_deeply([ snapshots() ], \@before, 'a checkpoint alone makes none');

# A role without privilege.
$node->sql('create role nobody');
is($node->sqlstate('set role nobody; select qlog_checkpoint()'), '42501', 'not for everybody');

# A queue is dropped: its files wait for the snapshots that need them, which are soon replaced.
$node->sql(q{select queue_push('gone', i::text) from generate_series(1, 5) i});
my $log = $node->sql(q{select log_id from qlog_queues where queue = 'gone'});
$node->sql('select qlog_checkpoint(true)');
$node->sql(q{select queue_drop('gone')});
$node->wait_until(sub { $node->sql(q{select queue_push('a', '0')}); !-d $node->log_dir($log) }, 'the directory to go');
ok(-e "$dir/FLOOR", 'logs of dropped queues go, and the floor tells');

# Leases, dead letters and a joint transaction, before and behind the last snapshot.
$node->sql(q{select queue_create('b', '{"lease": "2 h"}'); create table t(n int)});
$node->sql(q{select queue_push('b', i::text) from generate_series(1, 20) i});
$node->sql(q{select queue_reject(lease_id) from (select distinct lease_id from queue_pop('b', 2)) x});
$node->sql('select qlog_checkpoint(true)');
$node->sql(q{begin; insert into t values (1); select queue_push('b', '"joint"'); commit});
$node->sql(q{select queue_ack(lease_id) from (select distinct lease_id from queue_pop('b', 5)) x});
$node->sql('select qlog_checkpoint(true)');
$node->sql(q{select queue_pop('b', 3, lease => '1 h'); select queue_push('a', '"last"')});
my $state = state_of();

my $store = "$dir/store/data.mdb";
my @ways = (
	[ 'cut short', sub { truncate $store, (-s $store) / 2 or die $! } ],
	[ 'empty', sub { truncate $store, 0 or die $! } ],
	[ 'damaged in its pages', sub { QlogNode::patch($store, 8192 + 97 * $_, 'x') foreach 0 .. (-s $store) / 97 - 100 } ],
	[ 'gone', sub { unlink $store or die $! } ],
	[ 'gone with its directory\'s lock', sub { unlink $store, "$dir/store/lock.mdb" or die $! } ],
	[ 'gone with its directory', sub { unlink $store, glob("$dir/store/*"); rmdir "$dir/store" or die $! } ]);

foreach my $way (@ways)
{
	my ($name, $break) = @$way;
	my $offset = -s $node->logfile;

	$node->stop;
	$break->();
	$node->start;
	is(state_of(), $state, "checkpoint $name: the state is as it was");
	ok($node->log_contains('begins with the snapshot at entry', $offset), "checkpoint $name: thanks to a snapshot");
	ok($node->log_contains('WARNING:  the checkpoint of qlog is (damaged|missing)', $offset), "checkpoint $name: the log says so");
}

# One snapshot less at a time.
$node->sql(q{select queue_push('a', '"more"')});
$node->sql('select qlog_checkpoint(true)');
$state = state_of();
my ($older, $newer) = snapshots();
$node->stop;
unlink $store or die $!;
QlogNode::patch("$dir/snapshots/$newer", 100, 'xxxx');
$node->start;
is(state_of(), $state, 'newest snapshot damaged: the one before it is used');
ok($node->log_contains('a snapshot of qlog cannot be used'), 'and the log says so');
$node->sql(q{select queue_push('a', '"more"')});
$node->sql('select qlog_checkpoint(true)');
$state = state_of();
$node->stop;
unlink $store or die $!;
rename("$dir/snapshots", "$dir/away") or die $!;
mkdir "$dir/snapshots", 0700 or die $!;
chown((stat "$dir/away")[ 4, 5 ], "$dir/snapshots");
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nselect * from queue_peek('a')");
like($err, qr/XX001.*have been removed/s, 'no checkpoint and no snapshot: refused with the reason');
is($node->sqlstate(q{select queue_push('a', '1')}), 'XX001', 'and nothing is pushed into what looks empty');
is($node->sql('select count(*) from t'), '1', 'the server itself runs');
$node->stop;
rmdir "$dir/snapshots" or die $!;
rename("$dir/away", "$dir/snapshots") or die $!;
$node->start;
is(state_of(), $state, 'the snapshots are back: the state is as it was');

# Killed at each step of taking one, and of beginning with one.
foreach my $point (qw(snapshot-before-sync snapshot-before-publish snapshot-after-publish))
{
	$node->sql(q{select queue_push('a', '"step"')});
	$node->sql('select qlog_checkpoint()');
	$state = state_of();
	killed_at($point, sub {
		return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'select qlog_checkpoint(true)' ],
			'<', \undef, '>', \my $sout, '2>', \my $serr);
	});
	is(state_of(), $state, "killed at $point: the state is as it was");
	$node->sql(q{select queue_push('a', '"step"')});
	$node->sql('select qlog_checkpoint(true)');
	is(scalar(snapshots()), 2, "killed at $point: the next one leaves two");
	ok(!glob("$dir/snapshots/*.tmp"), "killed at $point: and no leftover");
}
foreach my $point (qw(load-while-aside load-after-aside load-before-fill))
{
	$state = state_of();
	killed_at($point, sub { $node->stop; QlogNode::patch($store, 0, 'x' x 8192); $node->start; return });
	is(state_of(), $state, "killed at $point: the state is as it was");
}
# A copy whose files are of different moments: the checkpoint and a log are older than a snapshot.	What the log has not is cut, and
# that snapshot tells of a history that is no more.
sub written_end { my $bytes = slurp_file($_[0]); $bytes =~ s/\0+\z//; return length $bytes }
$node->sql(q{select queue_push('h', '"kept"')});
my $file = $node->log_dir($node->sql(q{select log_id from qlog_queues where queue = 'h'})) . '/r00000001.qlog';
$node->sql('select qlog_checkpoint(true)');
$node->stop;
my ($old, $written) = (slurp_file($store), written_end($file));
$node->start;
$node->sql(q{select queue_push('h', '"cut"')}) foreach 1 .. 3;
$mark = $node->sql('select qlog_checkpoint(true)');
ok(-e "$dir/snapshots/s$mark.qsnap", 'a later snapshot');
$node->stop;
QlogNode::patch($store, 0, $old);
truncate $store, length $old or die $!;
QlogNode::patch($file, $written, "\0" x (written_end($file) - $written));
unlink "$dir/pgsql_tmp.qlog_node" or die $!;
$node->start;
is($node->sql(q{select string_agg(payload #>> '{}', ',') from queue_peek('h', batch => 10)}), 'kept', 'a copy of different moments: what is missing is cut');
ok(!-e "$dir/snapshots/s$mark.qsnap", 'and the snapshot that knows of it is gone');
$node->sql(q{select queue_push('h', '"new"') from generate_series(1, 5)});
$node->sql('select qlog_checkpoint(true)');
$node->stop;
unlink $store or die $!;
$node->start;
is($node->sql(q{select string_agg(payload #>> '{}', ',') from queue_peek('h', batch => 10)}), 'kept,new,new,new,new,new', 'later snapshots are of the new history');
$node->stop;
($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'the directory is sound') or diag "$out$err";
done_testing();
