# What COMMIT has acknowledged has been synced, for real: a library between the server and the system notes each write and
# each sync of a file. (Kills do not show that, as what is written and not synced outlives them.)

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $tmp = $PostgreSQL::Test::Utils::tmp_check;
my $events = "$tmp/events";

# Each call appends one line, "W path" before it writes or "S path" after a sync has succeeded.
open(my $fh, '>', "$tmp/note.c") or die $!;
print $fh <<'C';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static void
note(char what, int fd)
{
	char		name[64];
	char		line[4200];
	ssize_t		n;
	int			out;
	int			saved = errno;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, line + 2, sizeof(line) - 4);
	if (n > 0 && line[2] == '/')
	{
		line[0] = what;
		line[1] = ' ';
		line[n + 2] = '\n';
		out = open(getenv("NOTE_EVENTS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
		if (out < 0 || write(out, line, n + 3) != n + 3)
			abort();
		close(out);
	}
	errno = saved;
}

#define NEXT(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
#define SYNC(name) int name(int fd) { int rc = NEXT(name)(fd); if (rc == 0) note('S', fd); return rc; }
#define WRITE(name, type, offset) ssize_t name(int fd, const type *from, int_##type n, offset at) \
	{ note('W', fd); return NEXT(name)(fd, from, n, at); }
typedef void bytes;
typedef struct iovec vector;
typedef size_t int_bytes;
typedef int int_vector;

SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)
WRITE(pwrite, bytes, off_t)
WRITE(pwrite64, bytes, off64_t)
WRITE(pwritev, vector, off_t)
WRITE(pwritev64, vector, off64_t)
C
close $fh;
system('gcc', '-O1', '-shared', '-fPIC', '-o', "$tmp/note.so", "$tmp/note.c", '-ldl') == 0 or die 'gcc failed';

$ENV{NOTE_EVENTS} = $events;
my $node = QlogNode->new('main');
$node->init;
$node->append_conf('postgresql.conf', "$_\n")
  foreach "qlog.preallocate = 0", "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '1h'", "qlog.log_flush_interval = '50ms'",
  "qlog.reclaim_naptime = '1h'", "qlog.snapshot_interval = 0", 'autovacuum = off', "wal_writer_delay = '10s'";
{
	local $ENV{LD_PRELOAD} = "$tmp/note.so";
	$node->start;
}
$node->sql('create extension qlog; create table t(n int)');

# The events since the last call, as [what, path below the data directory].
my $seen = 0;

sub news
{
	my $all = slurp_file($events);
	my $new = substr $all, $seen;
	my $dir = $node->data_dir;

	$seen = length $all;
	return map { m{^([WS]) \Q$dir\E/(.*)$} ? [ $1, $2 ] : () } split /\n/, $new;
}

# Number of the last event of this kind on a path that matches, -1 = none.
sub last_of
{
	my ($what, $path, @events) = @_;
	my @found = grep { $events[$_][0] eq $what && $events[$_][1] =~ $path } 0 .. $#events;

	return @found ? $found[-1] : -1;
}

sub first_of
{
	my ($what, $path, @events) = @_;
	my @found = grep { $events[$_][0] eq $what && $events[$_][1] =~ $path } 0 .. $#events;

	return @found ? $found[0] : -1;
}

# The path was written to, and synced behind the last write.
sub written_and_synced
{
	my ($path, $what, @events) = @_;

	cmp_ok(last_of('W', $path, @events), '>=', 0, "$what: written");
	cmp_ok(last_of('S', $path, @events), '>', last_of('W', $path, @events), "$what: and synced");
	return;
}

sub log_of
{
	my ($queue) = @_;
	my $id = $node->sql("select log_id from qlog_queues where queue = '$queue'");

	return qr{^qlog/qlog/q$id/r\d+\.qlog$};
}

# No entry waits for the guards' sync.
sub settle { $node->poll_sql(q{select count(*) = 0 from qlog_stat_workers where state = 'on guard'}); return }

# A new log: file and directories, before anything is acknowledged.
news();
$node->sql("select queue_create('a'); select queue_create('b')");
my @new = news();
my ($a, $b) = map { log_of($_) } 'a', 'b';
my ($a_dir) = $a =~ m{(qlog/qlog/q\d+)};
written_and_synced($a, 'file of a new queue', @new);
cmp_ok(last_of('S', qr{^\Q$a_dir\E$}, @new), '>=', 0, 'file of a new queue: its directory is synced');
cmp_ok(last_of('S', qr{^qlog/qlog$}, @new), '>=', 0, 'file of a new queue: and the one above');

# Queue-only work: its own log, several logs, the system log.
settle();
foreach my $n (1 .. 5)
{
	news();
	$node->sql("select queue_push('a', '$n')");
	written_and_synced($a, "push $n", news());
}
news();
$node->sql("begin; select queue_push('a', '6'); select queue_push('b', '6'); commit");
@new = news();
written_and_synced($a, 'push to two queues, the first', @new);
written_and_synced($b, 'push to two queues, the second', @new);
$node->sql("select queue_ack(lease_id) from queue_pop('b')");
written_and_synced(qr{^qlog/qlog/q0/}, 'acknowledgement', news());

# A joint transaction is committed by the sync of the WAL; the log follows.
$node->sql("begin; insert into t values (1); select queue_push('a', '7'); commit");
@new = news();
cmp_ok(last_of('S', qr{^pg_wal/}, @new), '>', last_of('W', qr{^pg_wal/}, @new), 'row and message: the WAL is synced');
$node->wait_until(sub { push @new, news(); last_of('S', $a, @new) > last_of('W', $a, @new) && last_of('W', $a, @new) >= 0 }, 'the log to follow');
pass('row and message: the log is synced after it');

# One that the WAL only refers to is in the log first.
settle();
news();
$node->sql("set qlog.wal_payload_limit = 0; begin; insert into t values (2); select queue_push('a', '8'); commit");
@new = news();
written_and_synced($a, 'row and message by reference', @new);
cmp_ok(first_of('S', $a, @new), '<', first_of('S', qr{^pg_wal/}, @new), 'row and message by reference: before any of the WAL that refers to it');

# The next file: it is on the disk, with its name, before records go there.
settle();
news();
$node->sql("select count(queue_push('a', text)) from (select to_json(string_agg(md5(random()::text), ''))::text as text from generate_series(1, 1000) j, generate_series(1, 120) i group by i) x");
@new = news();
my $second = qr{^\Q$a_dir\E/r00000002\.qlog$};
cmp_ok(first_of('S', $second, @new), '>=', 0, 'next file: synced');
cmp_ok(first_of('S', qr{^\Q$a_dir\E$}, @new), '>', first_of('W', $second, @new), 'next file: its directory is synced');
cmp_ok(first_of('S', qr{^\Q$a_dir\E$}, @new), '<', last_of('W', $second, @new), 'next file: before the last record');
written_and_synced($second, 'next file', @new);

# A checkpoint: the store, over nothing that is not synced.
news();
$node->sql("set synchronous_commit = off; select queue_push('a', '10'); select queue_push('b', '10'); select qlog_checkpoint()");
@new = news();
my $stored = last_of('S', qr{^qlog/store/}, @new);
cmp_ok($stored, '>=', 0, 'checkpoint: the store is synced');
foreach my $log ($a, $b)
{
	my @before = @new[ 0 .. $stored ];
	cmp_ok(last_of('S', $log, @before), '>', last_of('W', $log, @before), 'checkpoint: what it covers was synced before');
}

# The whole file system at once.
settle();
$node->sql("alter system set qlog.sync_method = 'syncfs'");
$node->sql('select pg_reload_conf()');
$node->poll_sql('show qlog.sync_method', 'syncfs');
news();
$node->sql("begin; select queue_push('a', '11'); select queue_push('b', '11'); commit");
@new = news();
cmp_ok(last_of('S', qr{^qlog$}, @new), '>', last_of('W', $a, @new), 'syncfs: behind the write to the first log');
cmp_ok(last_of('S', qr{^qlog$}, @new), '>', last_of('W', $b, @new), 'syncfs: and to the second');
$node->stop;

done_testing();
