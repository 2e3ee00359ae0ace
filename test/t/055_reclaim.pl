# Reclaim: the disk comes back by itself, nobody is left with a deleted file open, and a server that dies at any step of it loses
# nothing that is needed and leaves nothing lying about.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [
		"qlog.segment_size = '1MB'", "qlog.reclaim_naptime = '50ms'", "qlog.checkpoint_timeout = '50ms'",
		'qlog.compression_level = 0', 'autovacuum = off'
	]);

# Numbered messages of about 2 kB that do not compress.
sub push_range
{
	my ($queue, $from, $to) = @_;

	$node->sql("select count(queue_push('$queue', jsonb_build_object('n', i,"
		  . "'x', (select string_agg(md5(random()::text), '') from generate_series(1, 60)))))"
		  . " from generate_series($from, $to) i");
	return;
}

# One that leaves much of a file empty, as it does not fit into the rest.
sub push_large
{
	my ($queue, $n) = @_;

	$node->sql("select queue_push('$queue', jsonb_build_object('n', $n, 'x', repeat('x', 450000)))");
	return;
}

# What is there, in order.
sub numbers
{
	my ($queue) = @_;

	return $node->sql("select string_agg(payload ->> 'n', ' ' order by \"position\")"
		  . " from queue_peek('$queue', partition => '', from_position => 0, batch => 100000)");
}

sub range
{
	return join(' ', $_[0] .. $_[1]);
}

sub log_id
{
	my ($queue) = @_;

	return $node->sql("select log_id from qlog_queues where queue = '$queue'");
}

# Names in the directory of a queue's log, and the bytes that they take on the disk.
sub names
{
	my ($queue) = @_;
	my $dir = $node->log_dir(log_id($queue));

	return map { s{.*/}{}r } glob("$dir/*");
}

sub disk
{
	my ($queue) = @_;
	my $dir = $node->log_dir(log_id($queue));
	my $sum = 0;

	$sum += ((stat($_))[12] // 0) * 512 foreach glob("$dir/*");
	return $sum;
}

sub await_disk
{
	my ($queue, $most) = @_;

	$node->wait_until(sub { disk($queue) <= $most }, "queue $queue to take $most bytes at most, not " . disk($queue));
	return;
}

# ------------------------------------------------------------------------------------------------
# The disk comes back
# ------------------------------------------------------------------------------------------------

push_range('a', 1, 4000);
cmp_ok(disk('a'), '>', 7_000_000, 'eight megabytes of messages take eight megabytes');
$node->sql("select queue_purge('a')");
await_disk('a', 2 * 1024 * 1024);
push_range('a', 4001, 4010);
is(numbers('a'), range(4001, 4010), 'messages pushed after it are there');
is(scalar(grep { /\.(dead|tmp)$/ } names('a')), 0, 'nothing lies about');
is(scalar(grep { /^r00000001\./ } names('a')), 0, 'the first file and its index are gone');
$node->restart;
is(numbers('a'), range(4001, 4010), 'a log without a beginning is recovered');
$node->kill9_everything;
$node->start;
is(numbers('a'), range(4001, 4010), 'after a crash, too');

# A file of which a part is needed: the rest comes back.
push_range('b', 1, 30);
$node->sql("select count(*) from queue_pop('b', batch => 5, lease => '1 h')");
push_range('b', 31, 1000);
$node->sql("select queue_purge('b')");
push_range('b', 1001, 1500);
await_disk('b', 500 * 2100 + 2 * 1024 * 1024 + 65536);
is(numbers('b'), range(1001, 1500), 'what was not purged is there');
is($node->sql("select sum(messages) from qlog_leases where queue = 'b'"),
	5, 'what was leased when the queue was purged is still held');

# ------------------------------------------------------------------------------------------------
# keep_old_files
# ------------------------------------------------------------------------------------------------

$node->sql("alter system set qlog.keep_old_files = 3");
$node->sql('select pg_reload_conf()');
push_range('keep', 1, 4000);
my $closed = $node->sql("select count(*) from qlog_files where queue = 'keep' and state = 'closed'");
cmp_ok($closed, '>', 5, 'more files than are to be kept');
$node->sql("select queue_purge('keep')");
$node->poll_sql("select count(*) = 3 from qlog_files where queue = 'keep' and state = 'closed'");
my $passes = $node->sql("select passes from qlog_stat_workers where role = 'reclaim'");
$node->poll_sql("select passes > $passes + 3 from qlog_stat_workers where role = 'reclaim'");
is($node->sql("select count(*) from qlog_files where queue = 'keep' and state = 'closed'"),
	3, 'three dead files stay');
$node->sql('alter system reset qlog.keep_old_files');
$node->sql('select pg_reload_conf()');
$node->poll_sql("select count(*) = 0 from qlog_files where queue = 'keep' and state = 'closed'");
pass('and go when the setting says so');

# ------------------------------------------------------------------------------------------------
# Nobody keeps a removed file open
# ------------------------------------------------------------------------------------------------

sub deleted_files
{
	my $dir = $node->qlog_dir;
	my @open;

	foreach my $pid (QlogNode::process_tree($node->postmaster_pid))
	{
		foreach my $fd (glob("/proc/$pid/fd/*"))
		{
			my $target = readlink($fd) // '';
			push @open, "$pid $target" if $target =~ /^\Q$dir\E.*\(deleted\)$/;
		}
	}
	return @open;
}

push_range('idle', 1, 2000);
my $idle = $node->background_psql('postgres');
$idle->query_safe("select count(*) from queue_peek('idle', partition => '', from_position => 0, batch => 2000)");
my $busy = $node->background_psql('postgres');
$busy->query_safe("select count(*) from queue_peek('idle', partition => '', from_position => 0, batch => 2000)");
$busy->query_safe('begin');
$busy->query_safe('select 1');
$node->sql("select queue_purge('idle')");
await_disk('idle', 2 * 1024 * 1024);
$busy->query_safe('commit');
$node->wait_until(sub { deleted_files() == 0 }, 'deleted files to be closed: ' . join(', ', deleted_files()));
pass('an idle session lets go of removed files');
is($idle->query_safe("select count(*) from queue_peek('idle')"), 0, 'and works on');
$idle->quit;
$busy->quit;

# ------------------------------------------------------------------------------------------------
# Closing early
# ------------------------------------------------------------------------------------------------

push_range('early', 1, 400);
$node->sql("select queue_purge('early')");
cmp_ok(disk('early'), '>', 800_000, 'a file that nobody closes keeps what is gone');
$node->sql("alter system set qlog.seal_age = '100ms'");
$node->sql('select pg_reload_conf()');
await_disk('early', 400_000);
push_range('early', 401, 410);
is(numbers('early'), range(401, 410), 'it was closed early, and the queue goes on');
$node->sql('alter system reset qlog.seal_age');
$node->sql('select pg_reload_conf()');

# ------------------------------------------------------------------------------------------------
# The server dies at every step
# ------------------------------------------------------------------------------------------------

my $n = 0;
foreach my $step ('copying', 'copied', 'stored', 'floor', 'renamed', 'synced', 'unlinked', 'swapped', 'swap-synced')
{
	my $queue = 'crash' . ++$n;
	my $mark = -s $node->logfile;

	$node->sql("alter system set qlog.debug_stop = 'reclaim-$step'");
	$node->sql('select pg_reload_conf()');
	push_range($queue, 1, 1200);
	$node->sql("select queue_purge('$queue')");
	push_range($queue, 1201, 1994);
	push_large($queue, $_) foreach (1995 .. 2000);
	$node->wait_until(sub { $node->log_contains("stopped at \"reclaim-$step\"", $mark) }, $step);
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	$node->sql('alter system reset qlog.debug_stop');
	is(numbers($queue), range(1201, 2000), "died at $step: everything that is needed is there");
	is($node->sql("select ready from qlog_stat_queues where queue = '$queue'"),
		800, "died at $step: nothing came to life again");
	await_disk($queue, 794 * 2100 + 6 * 451_000 + 2 * 1024 * 1024 + 65536);
	$node->wait_until(sub { !grep { /\.(dead|tmp)$/ } names($queue) }, 'leftovers to go');
	is(numbers($queue), range(1201, 2000), "died at $step: after the next passes, too");
}

# ... and of closing a file early.
foreach my $step ('seal-next', 'sealed')
{
	my $queue = 'crash' . ++$n;
	my $mark = -s $node->logfile;

	push_range($queue, 1, 400);
	$node->sql("select queue_purge('$queue')");
	$node->sql("alter system set qlog.debug_stop = 'reclaim-$step'");
	$node->sql("alter system set qlog.seal_age = '100ms'");
	$node->sql('select pg_reload_conf()');
	$node->wait_until(sub { $node->log_contains("stopped at \"reclaim-$step\"", $mark) }, $step);
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	$node->sql('alter system reset qlog.debug_stop');
	push_range($queue, 401, 410);
	is(numbers($queue), range(401, 410), "died at $step: the queue goes on, and nothing came to life again");
	await_disk($queue, 400_000);
	is(numbers($queue), range(401, 410), "died at $step: when the room has come back, too");
	$node->sql('alter system reset qlog.seal_age');
	$node->sql('select pg_reload_conf()');
}

# ------------------------------------------------------------------------------------------------
# Readers meanwhile
# ------------------------------------------------------------------------------------------------

push_range('read', 1, 500);
my $script = $node->basedir . '/read.sql';
append_to_file($script, <<'SQL');
select count(*) from queue_peek('read', partition => '', from_position => 0, batch => 400);
select count(*) from queue_pop('read', batch => 3, auto_ack => true);
SQL
my $clean = $node->basedir . '/clean.sql';
append_to_file($clean, <<'SQL');
select count(queue_push('read', jsonb_build_object('n', i,
	'x', (select string_agg(md5(random()::text), '') from generate_series(1, 60))))) from generate_series(1, 200) i;
select queue_purge('read');
SQL
my ($out, $err) = ('', '');
my $readers = IPC::Run::start(
	[ 'pgbench', '-n', '-c', 3, '-T', 10, '-f', "$script\@5", '-f', "$clean\@1", '-h', $node->host, '-p', $node->port,
		'postgres' ], '>', \$out, '2>', \$err);
ok($readers->finish, 'readers during deletion and rewriting see no error') or diag($err);
like($out, qr/number of failed transactions: 0 /, 'none at all') or diag($out);
$node->sql("select queue_purge('read')");
# Two files, the active one and the next, and nothing that was derived from others.
await_disk('read', 2 * 1024 * 1024);
$node->wait_until(sub { !grep { !/^r\d+\.qlog$/ } names('read') }, 'only log files to be there, not ' . join(' ', names('read')));

is($node->sql("select coalesce(last_error, '') from qlog_stat_workers where role = 'reclaim'"),
	'', 'the worker is content');
$node->stop;
done_testing();
