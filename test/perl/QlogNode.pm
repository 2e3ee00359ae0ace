# QlogNode: a PostgreSQL server with qlog preloaded, for the tests in test/t.
#
# It is PostgreSQL::Test::Cluster with three changes. A new cluster keeps fsync on and preloads
# qlog. It can be killed as a power cut would: postmaster and children in one moment, nobody left
# to write anything. And it starts again although the dead postmaster may stay a zombie: in a
# sandbox process 1 may reap late, and PostgreSQL takes a zombie named in a lock file for a server.
#
#   my $node = QlogNode->started('main', conf => ["qlog.segment_size = '1MB'"]);
#   $node->sql("select queue_create('q')");
#   $node->kill9_everything;
#   $node->start;
#
# Times out rather than hangs: every wait ends after $PostgreSQL::Test::Utils::timeout_default.

package QlogNode;

use strict;
use warnings;

use parent -norequire, 'PostgreSQL::Test::Cluster';

use Carp;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep time);

# ------------------------------------------------------------------------------------------------
# Making and starting
# ------------------------------------------------------------------------------------------------

# QlogNode->started(NAME, conf => [LINES], init => {OPTIONS}, extension => 0): a running server
# with the extension created in database postgres. init goes to PostgreSQL::Test::Cluster::init.
sub started
{
	my ($class, $name, %params) = @_;
	my $node = $class->new($name);

	$node->init(%{ $params{init} || {} });
	$node->append_conf('postgresql.conf', "$_\n") foreach @{ $params{conf} || [] };
	$node->start;
	$node->sql('create extension qlog')
	  unless defined $params{extension} && !$params{extension};
	return $node;
}

# As in the base class, and qlog is preloaded, fsync is on, a crash of one backend restarts the
# server as it does in production, and tests run on a disk that is nearly full.
sub init
{
	my ($self, %params) = @_;

	# Queues need UTF8, whatever the locale of the test run.
	$params{extra} = [ '--encoding=UTF8', '--locale=C.UTF-8', @{ $params{extra} || [] } ];
	$self->SUPER::init(%params);
	$self->append_conf(
		'postgresql.conf', qq{
shared_preload_libraries = 'qlog'
qlog.disk_high_pct = 100
qlog.disk_reserve = 1MB
fsync = on
restart_after_crash = on
max_prepared_transactions = 10
qlog.retention_naptime = '1d'
});

	# LAYOUT of test/run; not in tests that have called plain_layout()
	my $layout = $ENV{QLOG_LAYOUT} || '';
	$self->append_conf('postgresql.conf', "qlog.shards = 3\n") if $layout eq 'shared';
	$self->append_conf('postgresql.conf', "qlog.directory_layout = hierarchical\n")
	  if $layout eq 'hierarchical';
	return;
}

# This test's servers have a log for each queue, in flat directories, whatever LAYOUT says.
sub plain_layout
{
	delete $ENV{QLOG_LAYOUT};
	return;
}

# As in the base class, and lock files that name a process which is gone or a zombie are removed
# first.
sub start
{
	my ($self, %params) = @_;

	$self->_remove_stale_locks;
	return $self->SUPER::start(%params);
}

# Stopped processes would not see the shutdown.
sub teardown_node
{
	my ($self, @args) = @_;

	$self->thaw;
	return $self->SUPER::teardown_node(@args);
}

# ------------------------------------------------------------------------------------------------
# SQL
# ------------------------------------------------------------------------------------------------

# Runs SQL in database postgres and returns the output; dies when a statement fails.
sub sql
{
	my ($self, $sql, %params) = @_;

	return $self->safe_psql('postgres', $sql, %params);
}

# Runs SQL that must fail and returns the SQLSTATE of the error, or undef when it did not fail.
sub sqlstate
{
	my ($self, $sql) = @_;
	my ($rc, $out, $err) =
	  $self->psql('postgres', "\\set VERBOSITY sqlstate\n$sql", on_error_stop => 1);

	return $err =~ /ERROR:\s+([0-9A-Z]{5})/ ? $1 : undef;
}

# Waits until SQL gives the expected output (default 't').
sub poll_sql
{
	my ($self, $sql, $expected) = @_;

	return $self->poll_query_until('postgres', $sql, defined $expected ? $expected : 't')
	  || croak "gave up waiting for: $sql";
}

# Waits until a backend waits in the named wait event.
sub poll_wait_event
{
	my ($self, $event) = @_;

	return $self->poll_sql(
		"select count(*) > 0 from pg_stat_activity where wait_event = '$event'");
}

# wait_until(CODE, WHAT): waits until CODE returns true; dies when the time is over.
sub wait_until
{
	my ($self, $code, $what) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	until ($code->())
	{
		croak 'gave up waiting for ' . ($what || 'a condition') if time() > $end;
		usleep(50_000);
	}
	return 1;
}

# ------------------------------------------------------------------------------------------------
# Processes
# ------------------------------------------------------------------------------------------------

# The fields of /proc/PID/stat after the command: state, parent, ... Empty when there is none.
sub _stat
{
	my ($pid) = @_;
	open(my $file, '<', "/proc/$pid/stat") or return;
	my $line = <$file>;
	close $file;
	return unless defined $line && $line =~ /^\d+ \(.*\) (.*)$/s;
	return split ' ', $1;
}

# Whether a process exists and is no zombie.
sub process_alive
{
	my ($pid) = @_;
	my ($state) = _stat($pid);

	return defined $state && $state !~ /^[ZX]/;
}

# The process and its descendants, parents first.
sub process_tree
{
	my ($root) = @_;
	my (%children, @tree);

	foreach my $pid (map { m{(\d+)} } glob '/proc/[0-9]*')
	{
		my ($state, $parent) = _stat($pid);
		push @{ $children{$parent} }, $pid if defined $parent;
	}
	my @todo = ($root);
	while (defined(my $pid = shift @todo))
	{
		push @tree, $pid;
		push @todo, @{ $children{$pid} || [] };
	}
	return @tree;
}

# The pid of the postmaster, from its pid file.
sub postmaster_pid
{
	my ($self) = @_;
	my $file = $self->data_dir . '/postmaster.pid';

	return unless -e $file;
	my ($pid) = slurp_file($file) =~ /^(\d+)/;
	return $pid;
}

# pids_named(PATTERN): processes of this server whose title matches, such as qr/walwriter/. The
# title is what ps shows, "postgres: main: walwriter".
sub pids_named
{
	my ($self, $pattern) = @_;
	my @found;

	foreach my $pid (process_tree($self->postmaster_pid))
	{
		open(my $file, '<', "/proc/$pid/cmdline") or next;
		local $/;
		my $title = <$file>;
		close $file;
		push @found, $pid if defined $title && $title =~ $pattern;
	}
	return @found;
}

# freeze(NAME): stops the processes with that title (SIGSTOP), so that they write nothing more; the
# WAL writer, for example, would otherwise flush what a test wants lost. Each is stopped where it waits for work: elsewhere it could
# hold a lock that everybody needs, and the server would stand. Returns their pids.
sub freeze
{
	my ($self, $name) = @_;
	my @pids = $self->pids_named(qr/postgres:.*\Q$name\E/);

	croak "no process named $name" unless @pids;
	foreach my $pid (@pids)
	{
		$self->wait_until(
			sub {
				kill 'STOP', $pid;
				$self->wait_until(sub { (_stat($pid))[0] =~ /^[TZX]/ }, "$name to stop");
				return 1 if _waits_for_work($pid);
				kill 'CONT', $pid;
				return 0;
			},
			"$name to wait for work");
	}
	push @{ $self->{_frozen} }, @pids;
	return @pids;
}

# Is the stopped process in epoll_wait or epoll_pwait, in which latches are waited for?  Where that cannot be read it is taken for granted.
sub _waits_for_work
{
	my ($pid) = @_;
	my $call = '';

	if (open(my $file, '<', "/proc/$pid/syscall"))
	{
		$call = readline($file) // '';
		close $file;
	}
	return $call !~ /^\S/ || $call =~ /^(?:232|281|22) / ? 1 : 0;
}

# Lets all frozen processes go on.
sub thaw
{
	my ($self) = @_;

	kill 'CONT', grep { process_alive($_) } @{ $self->{_frozen} || [] };
	$self->{_frozen} = [];
	return;
}

# Kills the postmaster and all its descendants in one moment. The postmaster is stopped first, so
# that it starts no new child meanwhile and sees none die. Returns when all are dead, zombies
# counting as dead; start() brings the server back.
sub kill9_everything
{
	my ($self) = @_;
	my $postmaster = $self->postmaster_pid or croak 'the server does not run';

	kill 'STOP', $postmaster;
	$self->wait_until(sub { (_stat($postmaster))[0] =~ /^[TZX]/ }, 'the postmaster to stop');
	my @pids = process_tree($postmaster);
	note 'killing ' . scalar(@pids) . ' processes of ' . $self->name;
	kill 'KILL', @pids;
	$self->wait_until(sub { !grep { process_alive($_) } @pids }, 'the killed to die');
	$self->{_frozen} = [];
	$self->{_pid} = undef;
	$self->_remove_stale_locks;
	return;
}

# Removes postmaster.pid and the socket's lock file when the process they name is dead.
sub _remove_stale_locks
{
	my ($self) = @_;
	my $socket = $self->host . '/.s.PGSQL.' . $self->port;

	foreach my $lock ($self->data_dir . '/postmaster.pid', "$socket.lock")
	{
		next unless -e $lock;
		my ($pid) = slurp_file($lock) =~ /^(\d+)/;
		next if defined $pid && process_alive($pid);
		unlink $lock;
	}
	unlink $socket unless -e "$socket.lock";
	return;
}

# ------------------------------------------------------------------------------------------------
# Files
# ------------------------------------------------------------------------------------------------

# The directory of qlog's data.
sub qlog_dir
{
	my ($self) = @_;

	return $self->data_dir . '/qlog';
}

# The directory of a log, by its id.
sub log_dir
{
	my ($self, $id) = @_;
	my $levels = ($ENV{QLOG_LAYOUT} || '') eq 'hierarchical' ? sprintf('%02d/%04d/', $id / 100_000_000, $id / 10_000 % 10_000) : '';

	return $self->qlog_dir . "/qlog/${levels}q$id";
}

# qlog_dump(ARGS): runs the program that is first in PATH, on the data directory of qlog unless a path is
# given, and returns exit code, output, error output.
sub qlog_dump
{
	my ($self, @args) = @_;
	my ($out, $err);

	push @args, $self->qlog_dir unless grep { m{/} } @args;
	IPC::Run::run([ 'qlog_dump', @args ], '<', \undef, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# ------------------------------------------------------------------------------------------------
# Stopping, faults, damage
# ------------------------------------------------------------------------------------------------

# Starts a session that runs SQL and stops at the point; returns its handle when it has reached it.
sub stop_at
{
	my ($self, $point, $sql) = @_;
	my ($out, $err) = ('', '');
	my $mark = -s $self->logfile;
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $self->connstr('postgres'), '-c', "set qlog.debug_stop = '$point'", '-c', $sql ],
		'<', \undef, '>', \$out, '2>', \$err);

	$self->wait_until(sub { $self->log_contains("stopped at \"$point\"", $mark) }, "a session to reach $point");
	return $handle;
}

# From now on files of the whole server fail like this ('' = they do not).
sub fault
{
	my ($self, $fault) = @_;

	$self->sql($fault eq '' ? 'alter system reset qlog.debug_fault' : "alter system set qlog.debug_fault = '$fault'");
	$self->sql('select pg_reload_conf()');
	$self->poll_sql('show qlog.debug_fault', $fault);
	return;
}

# patch(FILE, POSITION, BYTES): writes over bytes of a file.
sub patch
{
	my ($file, $position, $bytes) = @_;

	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek $fh, $position, 0;
	print $fh $bytes;
	close $fh;
	return;
}

# The scrub worker looks through everything, from the beginning on.
sub scrub
{
	my ($self) = @_;
	my $passes = $self->sql("select passes from qlog_stat_workers where role = 'scrub'");

	$self->sql("alter system set qlog.scrub_interval = '1s'");
	$self->reload;
	$self->poll_sql("select passes > $passes + 1 from qlog_stat_workers where role = 'scrub'");
	$self->sql('alter system set qlog.scrub_interval = 0');
	$self->reload;
	return;
}

# ------------------------------------------------------------------------------------------------
# How long it takes, as notes
# ------------------------------------------------------------------------------------------------

# Runs SQL and returns its output.
sub timed
{
	my ($self, $what, $sql) = @_;
	my $start = time;
	my $out = $self->sql($sql, timeout => 1800);

	note sprintf('%s: %.2f s', $what, time - $start);
	return $out;
}

# Stops the server, or kills it ('kill'), and waits until it serves again.
sub timed_restart
{
	my ($self, $how) = @_;
	my $start;

	$how eq 'kill' ? $self->kill9_everything : $self->stop;
	$start = time;
	$self->start;
	$self->poll_sql('select count(*) >= 0 from qlog_stat_queues');
	my @ready = slurp_file($self->logfile) =~ /qlog: ready after ([0-9.]+) ms/g;
	note sprintf('start after %s: %.2f s, of which qlog %.0f ms', $how, time - $start, $ready[-1]);
	return;
}

1;
