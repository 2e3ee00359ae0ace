# Files that are damaged, missing or stale when a server starts: what can be rebuilt is, what cannot is refused where it is
# needed, and nothing is passed over in silence. Queues dropped or made half-way when everything died.

use strict;
use warnings;

use File::Copy ();
use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.index_memory = '256kB'", "qlog.checkpoint_timeout = '100ms'", 'max_connections = 30' ]);
my $dir = $node->qlog_dir;

# Everything that the state says of queues, partitions and leases.
sub state_of
{
	return $node->sql(q{
		select queue, ready, leased, delayed, dead, pushed, popped, acked, nacked from qlog_stat_queues order by queue;
		select queue, consumer_group, partition, messages from qlog_leases order by queue, partition;
		select queue, options, partitions from qlog_queues order by queue;
		select q.queue, p.partition, "position", attempt, payload from qlog_queues q, queue_peek(q.queue, batch => 100000) p
		where q.queue like 's%' order by 1, 2, 3});
}

# ------------------------------------------------------------------------------------------------
# The checkpoint
# ------------------------------------------------------------------------------------------------

$node->sql(q{
	select queue_create('s1', '{"ordered": true}'); select queue_create('s2', '{"lease": "2 h"}');
	select queue_push('s1', i::text, 'p' || i % 3) from generate_series(1, 30) i;
	select queue_push('s2', i::text) from generate_series(1, 30) i;
	create table t(n int)});
$node->sql(q{begin; insert into t values (1); select queue_push('s2', '"joint"'); commit});
$node->sql(q{begin; insert into t values (1); select queue_push('s2', '"undone"'); rollback});
$node->sql(q{select queue_ack(lease_id) from (select distinct lease_id from queue_pop('s2', 5)) x});
$node->sql(q{select queue_nack(lease_id) from (select distinct lease_id from queue_pop('s1', 5)) x});
$node->sql(q{select queue_reject(lease_id) from (select distinct lease_id from queue_pop('s2', 2)) x});
$node->sql(q{select queue_pop('s2', 3, lease => '1 h')});
my $state = state_of();
my @ways = (
	[ 'cut short', sub { truncate $_[0], (-s $_[0]) / 2 or die $! } ],
	[ 'empty', sub { truncate $_[0], 0 or die $! } ],
	[ 'rubbish', sub { QlogNode::patch($_[0], 0, 'rubbish' x 3000) } ],
	[ 'damaged in its pages', sub { my $f = $_[0]; QlogNode::patch($f, 8192 + 97 * $_, 'x') foreach 0 .. (-s $f) / 97 - 100 } ],
	[ 'gone', sub { unlink $_[0] or die $! } ]);

foreach my $way (@ways)
{
	my ($name, $break) = @$way;
	my $mark = -s $node->logfile;
	my $before = () = glob "$dir/store.damaged.*";

	$node->stop;
	$break->("$dir/store/data.mdb");
	$node->start;
	is(state_of(), $state, "checkpoint $name: the state is as it was");
	next if $name eq 'gone';
	is(scalar(() = glob "$dir/store.damaged.*"), $before + 1, "checkpoint $name: it is kept aside");
	ok($node->log_contains('WARNING:  the checkpoint of qlog is damaged', $mark), "checkpoint $name: the log says so");
}
$node->kill9_everything;
$node->start;
is(state_of(), $state, 'and after one more crash');

# ------------------------------------------------------------------------------------------------
# Indexes and files of a log
# ------------------------------------------------------------------------------------------------

# A queue over several files, all of it waiting, and a small one beside.
my $messages = 600;
$node->sql(q{select queue_create('big'); select queue_create('other'); select queue_push('other', '1');
	create function noise(n int) returns text language sql as
	$$ select string_agg(md5(random()::text), '') from generate_series(1, n / 32) $$});
$node->sql(q{do $$ begin for i in 1 .. 600 loop
	perform queue_push('big', json_build_object('n', i, 'pad', noise(20000))::text, 'lane'); commit; end loop; end $$});
my ($log) = $node->sql(q{select log_id from qlog_queues where queue = 'big'});
my @files = sort glob "$dir/qlog/q$log/r*.qlog";
cmp_ok(scalar @files, '>=', 4, 'a queue over several files');
$node->wait_until(sub { (() = glob "$dir/qlog/q$log/r*.qidx") >= 3 }, 'indexes of closed files');

# The numbers of all messages that wait, in the order in which they are shown.
sub shown
{
	return $node->sql(q{select string_agg(payload->>'n', ',' order by "position") from queue_peek('big', 'lane', batch => 1000)});
}
my $all = join ',', 1 .. $messages;
is(shown(), $all, 'all of it is shown');

my @indexes = sort glob "$dir/qlog/q$log/r*.qidx";
my %breaks = (
	'cut short' => sub { truncate $_[0], 30 or die $! },
	'empty' => sub { truncate $_[0], 0 or die $! },
	'damaged' => sub { QlogNode::patch($_[0], 60, 'xxxx') },
	'of another file' => sub { File::Copy::copy($indexes[1], $_[0]) or die $! },
	'gone' => sub { unlink $_[0] or die $! });

foreach my $name (sort keys %breaks)
{
	$node->stop;
	$breaks{$name}->($indexes[0]);
	$node->start;
	is(shown(), $all, "index $name: every message is found");
	$node->stop;
	unlink $indexes[0];
	$node->start;
	$node->sql(q{select queue_push('other', '1')});
	$node->wait_until(sub { -e $indexes[0] }, 'the index to be made again');
}

# A directory over closed files is made, used, and made again when it is missing or wrong; whatever it is like, all is found.
my $dirx = "$dir/qlog/q$log/dirx-00000001-00000004.qdx";
$node->wait_until(sub { -e $dirx }, 'a directory over the first four files');
my $right_dirx = slurp_file($dirx);
foreach my $name ('cut short', 'empty', 'of another file', 'gone')
{
	$node->stop;
	$breaks{$name}->($dirx);
	$node->start;
	is(shown(), $all, "directory $name: every message is found");
	$node->sql(q{select queue_push('other', '1')});
	$node->wait_until(sub { -e $dirx && slurp_file($dirx) eq $right_dirx }, 'the directory to be made again');
}

# A file of messages is missing: an error where one of them is needed, and none is passed over.
foreach my $missing (0, 1, 2)
{
	my $name = (split m{/}, $files[$missing])[-1];

	$node->stop;
	rename($files[$missing], "$dir.away") or die $!;
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nselect * from queue_peek('big', 'lane', batch => 1000)");
	like($err, qr/XX001/, "$name missing: XX001");
	like($err, qr{qlog/q$log\b|q$log/}, "$name missing: the log is named");

	# In lots: what stands in other files is right, for the rest there is the error, and nothing takes its place.
	my ($right, $refused, $wrong) = (0, 0, 0);
	for (my $from = 0; $from < $messages; $from += 10)
	{
		my ($code, $lot, $text) = $node->psql('postgres',
			"\\set VERBOSITY sqlstate\nselect payload->>'n' from queue_peek('big', 'lane', from_position => $from, batch => 10)");
		if    ($lot eq join "\n", $from + 1 .. $from + 10) { $right++ }
		elsif ($lot eq '' && $text =~ /XX001/)              { $refused++ }
		else                                                { $wrong++; diag "from $from: $lot $text" }
	}
	is($wrong, 0, "$name missing: nothing is passed over ($right lots right, $refused refused)");
	ok($right > 5 && $refused > 5, "$name missing: its own messages are refused, and no others");
	is($node->sqlstate(q{select * from queue_pop('big', 10, partition => 'lane')}), $missing == 0 ? 'XX001' : undef,
		"$name missing: a pop from the front");
	$node->sql(q{select queue_nack(lease_id) from qlog_leases where queue = 'big'});
	is($node->sql(q{select leased from qlog_stat_queues where queue = 'big'}), '0', "$name missing: a pop that failed has taken nothing");
	is($node->sql(q{select count(*) > 0 from queue_peek('other')}), 't', "$name missing: other queues go on");
	$node->stop;
	rename("$dir.away", $files[$missing]) or die $!;
	$node->start;
	is(shown(), $all, "$name is back: nothing is lost");
}

# The newest one with records is needed at the start.
{
	my ($newest) = grep { slurp_file($_) =~ /^.{32}.*[^\0]/s } reverse @files;

	$node->stop;
	rename($newest, "$dir.away") or die $!;
	$node->start;
	like($node->sqlstate(q{select * from queue_peek('other')}), qr/^XX001$/, 'newest file missing: refused');
	like($node->sql(q{select last_error from qlog_stat_workers where role = 'checkpointer'}), qr{q$log/r},
		'newest file missing: the view names it');
	$node->stop;
	rename("$dir.away", $newest) or die $!;
	$node->start;
	is(shown(), $all, 'newest file is back: nothing is lost');
}

# ------------------------------------------------------------------------------------------------
# Dropped and made half-way
# ------------------------------------------------------------------------------------------------

# Runs SQL in a session that does not come to an end; everything is killed when the point is reached.
sub killed_at
{
	my ($point, $sql, $everybody) = @_;
	my $mark = -s $node->logfile;

	if ($everybody)
	{
		$node->sql("alter system set qlog.debug_stop = '$point'");
		$node->sql('select pg_reload_conf()');
		$node->poll_sql('show qlog.debug_stop', $point);
	}
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "set qlog.debug_stop = '" . ($everybody ? '' : $point) . "'", '-c', $sql ],
		'<', \undef, '>', \my $out, '2>', \my $err);
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, "$point");
	$node->kill9_everything;
	eval { $handle->finish };
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	return;
}

sub queues { return $node->sql(q{select string_agg(queue, ',' order by queue) from qlog_queues where queue like 'half%'}) }

foreach my $point (qw(checkpoint-before-apply checkpoint-after-apply))
{
	$node->sql(q{select queue_push('half', i::text) from generate_series(1, 5) i});
	my $id = $node->sql(q{select log_id from qlog_queues where queue = 'half'});

	# The first checkpoint behind the drop, or a later one; so none may be due before it.
	$node->poll_sql('select checkpoint_seq = durable_seq from qlog_stat_log');
	killed_at($point, q{select queue_drop('half')}, 1);
	is(queues(), '', "a drop killed at $point: the queue is gone");
	$node->sql(q{select queue_push('other', '1')});
	$node->wait_until(sub { !-d "$dir/qlog/q$id" && !-d "$dir/qlog/q$id.dead" }, 'its files to go');
	pass("a drop killed at $point: and its files");
}
$node->sql(q{select queue_push('half', i::text) from generate_series(1, 5) i});
my $kept = $node->sql(q{select log_id from qlog_queues where queue = 'half'});
killed_at('before-wal-insert', q{begin; insert into t values (1); select queue_drop('half'); commit});
is(queues(), 'half', 'a drop whose transaction had not committed: the queue is there');
is($node->sql(q{select count(*) from queue_peek('half', batch => 100)}), '5', 'and its messages');
$node->sql(q{begin; select queue_drop('half'); rollback});
ok(-d "$dir/qlog/q$kept", 'a drop that was rolled back leaves the files');

my @before = sort glob "$dir/qlog/q*";
killed_at('before-wal-insert', q{begin; insert into t values (1); select queue_create('half made'); commit});
is(queues(), 'half', 'a creation whose transaction had not committed: there is no queue');
$node->sql(q{select queue_push('other', '1')});
$node->wait_until(sub { join(' ', @before) eq join(' ', sort glob "$dir/qlog/q*") }, 'its files to go');
pass('and no file of it');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'the directory is sound') or diag "$out$err";

done_testing();
