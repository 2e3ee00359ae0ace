# Start and lifetime: not preloaded, foreign or damaged directories, two servers on one directory, restarts of the
# server by a crashed backend, an untouched directory is not written to.

use strict;
use warnings;

use Digest::SHA;
use File::Copy ();
use File::Find ();
use File::Path qw(rmtree);
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

# Path -> digest of every file below a directory.  LMDB's lock file holds no data and is made anew at every open.
sub digests
{
	my ($directory) = @_;
	my %digests;

	File::Find::find(
		sub {
			$digests{$File::Find::name} = Digest::SHA->new(256)->addfile($_)->hexdigest if -f $_ && $_ ne 'lock.mdb';
		},
		$directory);
	return \%digests;
}

# Not preloaded: a clean error with a hint, nothing created, and the library can be loaded.
{
	my $node = QlogNode->new('bare');

	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', 'create extension qlog');
	like($err, qr/shared_preload_libraries/, 'CREATE EXTENSION without preload names the setting');
	is($node->sqlstate('create extension qlog'), '55000', 'and raises 55000');
	is($node->sql("select count(*) from pg_extension where extname = 'qlog'"), '0', 'nothing is created');
	is($node->psql('postgres', "load 'qlog'"), 0, 'LOAD works, as pg_upgrade --check does it');
	$node->stop;
}

my $node = QlogNode->started('main');
$node->sql("select queue_create('q'); select queue_push('q', '1'); select queue_push('q', '2', 'p')");

# The default of max_worker_processes grows by qlog's own, which all run; what is configured stays.
is($node->sql('show max_worker_processes'), '16', 'room for the workers');
$node->poll_sql('select count(pid) = 8 from qlog_stat_workers');
is($node->sql('select count(pid) from qlog_stat_workers'), '8', 'all of them run');
$node->append_conf('postgresql.conf', "max_worker_processes = 12\n");
$node->restart;
is($node->sql('show max_worker_processes'), '12', 'what is configured counts');

# An untouched directory: start and stop change no byte in logs or store.
$node->sql('select pg_sleep(1.5)');
$node->stop;
my $before = digests($node->qlog_dir);
$node->start;
is($node->sql("select count(*) from queue_peek('q')"), '2', 'reading does not write');
$node->sql('select pg_sleep(2)');
$node->stop;
is_deeply(digests($node->qlog_dir), $before, 'opening an untouched directory changes no byte');

# After kill -9 of an idle server too.
$node->start;
$node->sql('select pg_sleep(1.5)');
$node->kill9_everything;
$node->start;
$node->sql("select count(*) from queue_peek('q')");
$node->sql('select pg_sleep(1.5)');
$node->stop;
my $after = digests($node->qlog_dir . '/qlog');
is_deeply($after, { map { $_ => $before->{$_} } grep { m{/qlog/qlog/} } keys %$before },
	'nor does it after kill -9 of an idle server');

# A second server on the same directory is refused.
{
	$node->start;
	my $second = QlogNode->new('second');

	$second->init;
	$second->append_conf('postgresql.conf', "qlog.data_directory = '" . $node->qlog_dir . "'\nqlog.recovery_wait = '2s'\n");
	$second->start;
	$second->sql('create extension qlog');
	my ($rc, $out, $err) = $second->psql('postgres', "select queue_push('q', '1')");
	isnt($rc, 0, 'a second server on one directory cannot push');
	like($err, qr/lock|in use|belongs|another server/i, 'and says why');
	$second->stop;

	# One that belongs to the same system, a copy, is kept out by the lock alone.
	my $twin = QlogNode->new('twin');

	$node->stop;
	$twin->init;
	rmtree($twin->data_dir);
	PostgreSQL::Test::RecursiveCopy::copypath($node->data_dir, $twin->data_dir);
	chmod 0700, $twin->data_dir or die $!;
	$twin->append_conf('postgresql.conf', 'port = ' . $twin->port . "\nqlog.data_directory = '" . $node->qlog_dir . "'\nqlog.recovery_wait = '2s'\n");
	$node->start;
	$node->sql("select count(*) from queue_peek('q')");
	$twin->start;
	($rc, $out, $err) = $twin->psql('postgres', "select queue_push('q', '1')");
	isnt($rc, 0, 'a copy of the server cannot push into the same directory');
	like($err, qr/LOCK|in use|another/, 'and says why');
	$twin->stop;
	is($node->sql("select count(*) from queue_peek('q')"), '2', 'the first one goes on');
	$node->stop;
}

# What must refuse to open, with the server running and the functions raising the reason.
sub refused
{
	my ($name, $break, $mend, $pattern) = @_;

	$break->();
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', "select queue_push('q', '3')");
	isnt($rc, 0, "$name: refused");
	like($err, $pattern, "$name: the reason is raised");
	is($node->sql('select 1'), '1', "$name: the server itself runs");
	like($node->sql(q{select state || ': ' || last_error from qlog_stat_workers where role = 'checkpointer'}),
		qr/^failed: .*$pattern/, "$name: the view shows the reason");
	$node->stop;
	$mend->();
	$node->start;
	is($node->sql("select count(*) from queue_peek('q')"), '2', "$name: mended, nothing is lost");
	$node->stop;
}

my $dir = $node->qlog_dir;

sub moved_away
{
	my ($path) = @_;
	return (sub { rename("$dir/$path", "$dir.away") or die $! }, sub { rename("$dir.away", "$dir/$path") or die $! });
}

refused('missing IDENTITY', moved_away('IDENTITY'), qr/IDENTITY/);
refused('missing LANES', moved_away('qlog/LANES'), qr/LANES/);
refused('missing system log', moved_away('qlog/q0'), qr/q0/);
refused('missing log of a queue', moved_away('qlog/q1'), qr/q1/);
refused(
	'foreign IDENTITY',
	sub {
		File::Copy::copy("$dir/IDENTITY", "$dir.identity") or die $!;
		my $text = slurp_file("$dir/IDENTITY");
		$text =~ s/^(system[^=]*=\s*)(\d+)/$1 . ($2 + 1)/em or die 'no system identifier';
		open(my $fh, '>', "$dir/IDENTITY") or die $!;
		print $fh $text;
		close $fh;
	},
	sub { rename("$dir.identity", "$dir/IDENTITY") or die $! },
	qr/system identifier|belongs/);

# Strays are left alone.
mkdir "$dir/qlog/q1/r00000009.qlog" or die $!;
foreach my $name (qw(qlog/q1/a.txt qlog/q1/r1.qlog qlog/q1/r00000005.qidx qlog/q01 qlog/qabc))
{
	open(my $fh, '>', "$dir/$name") or die $!;
	print $fh 'stray';
	close $fh;
}
$node->start;
is($node->sql("select count(*) from queue_peek('q')"), '2', 'strays are not read');
$node->sql("select queue_push('q', '3')");
$node->stop;
is(slurp_file("$dir/qlog/q1/a.txt"), 'stray', 'nor removed');
ok(-d "$dir/qlog/q1/r00000009.qlog", 'a sub-directory is ignored');

# A crashed backend restarts the server; what was acknowledged is there.
$node->start;
my $mark = -s $node->logfile;
$node->sql("select queue_push('q', '4')");
$node->psql('postgres', "select pg_backend_pid() as pid \\gset\n\\! kill -SEGV :pid\n");
my ($victim) = $node->pids_named(qr/postgres:.*background writer/);
kill 'SEGV', $victim;
$node->wait_until(sub { $node->log_contains('all server processes terminated', $mark) }, 'the crash restart');
$node->poll_sql("select count(*) = 4 from queue_peek('q')");
pass('everything acknowledged is there after a crash restart');
$node->sql("select queue_push('q', '5')");
is($node->sql("select count(*) from queue_peek('q')"), '5', 'and work goes on');
$node->stop;

# Twice in one cluster, in two databases: queues are apart.
$node->start;
$node->sql('create database other');
$node->safe_psql('other', "create extension qlog; select queue_create('q'); select queue_push('q', '\"other\"')");
is($node->safe_psql('other', "select count(*) from queue_peek('q')"), '1', 'a queue of the same name in another database');
is($node->sql("select count(*) from queue_peek('q')"), '5', 'does not share messages');
$node->sql('create database copy template other');
is($node->safe_psql('copy', 'select count(*) from qlog_queues'), '0', 'a database made from a template has no queues');
# Workers hold no connection that is in the way, and databases without the extension have nothing to do with queues.
$node->sql('alter database other rename to another');
is($node->safe_psql('another', "select count(*) from queue_peek('q')"), '1', 'a database is renamed with its queues');
$node->sql('create database plain template template0');
$node->safe_psql('plain', q{create schema s; create table s.t(i int); create role regress_plain; alter table s.t owner to regress_plain;
	drop table s.t; drop schema s; drop role regress_plain; create extension btree_gist; drop extension btree_gist});
pass('DROP of tables, schemas, roles and extensions in a database without the extension');
$node->sql('drop database plain');
$node->sql('drop database another');
$node->wait_until(sub { !-d "$dir/qlog/q2" }, 'the files of a dropped database to go');
pass('DROP DATABASE removes the queues and their files');
$node->sql('drop extension qlog');
$node->wait_until(sub { !-d "$dir/qlog/q1" }, 'the files of a dropped extension to go');
pass('DROP EXTENSION removes the queues and their files');
$node->stop;

done_testing();
