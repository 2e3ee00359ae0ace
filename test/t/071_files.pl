# Life of log files: room made ahead for busy logs only, zeros of closed files given back, the system's cache, ways to sync, few
# descriptors for many files. Workers that read or write closed files for reasons of their own stand back.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# Each queue has its own log here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'", 'qlog.scrub_interval = 0', "qlog.reclaim_naptime = '1h'" ]);
my $dir = $node->qlog_dir;

$node->sql(q{create function noise(n int) returns text language sql as
	$$ select string_agg(md5(random()::text), '') from generate_series(1, n / 32) $$});

sub set
{
	my ($setting) = @_;

	$node->sql("alter system set $setting");
	$node->sql('select pg_reload_conf()');
	my ($name, $value) = split / = /, $setting;
	$value =~ s/'//g;
	$node->poll_sql("show $name", $value);
	return;
}

sub log_of { return $node->sql("select log_id from qlog_queues where queue = '$_[0]'") }

sub files { return sort glob $node->log_dir($_[0]) . '/r*.qlog' }

# Closed files of a queue.
sub closed { return map { "$dir/$_" } split /,/, $node->sql("select coalesce(string_agg(file, ','), '') from qlog_files where queue = '$_[0]' and state = 'closed'") }

sub push_many
{
	my ($queue, $count, $size) = @_;

	$node->sql("do \$\$ begin for i in 1 .. $count loop perform queue_push('$queue', to_json(noise($size))::text); commit; end loop; end \$\$");
	return;
}

# ------------------------------------------------------------------------------------------------
# Closed files end where their last record does
# ------------------------------------------------------------------------------------------------
{
	$node->sql(q{select queue_create('wide')});
	push_many('wide', 20, 400_000);
	my @closed = closed('wide');
	cmp_ok(@closed, '>=', 3, 'files have been closed');
	$node->wait_until(sub { !grep { -s $_ == 1024 * 1024 } @closed }, 'closed files to become shorter');
	cmp_ok(-s $_, '>', 900_000, 'closed files keep their records') foreach @closed;
	is($node->sql(q{select count(*) from queue_peek('wide', batch => 1000)}), '20', 'messages are found');
	$node->kill9_everything;
	$node->start;
	is($node->sql(q{select count(*) from queue_peek('wide', batch => 1000)}), '20', 'after a crash too');
	push_many('wide', 5, 400_000);
	is($node->sql(q{select count(*) from queue_peek('wide', batch => 1000)}), '25', 'and pushes go on');
	my ($rc, $out, $err) = $node->qlog_dump('--verify');
	is($rc, 0, 'the directory is sound') or diag "$out$err";
}

# ------------------------------------------------------------------------------------------------
# Room ahead
# ------------------------------------------------------------------------------------------------
{
	my $made_ahead = sub { return $node->sql("select count(*) from qlog_files where queue = 'busy' and state not in ('active', 'closed')") };
	my $seen = 0;

	$node->sql(q{select queue_create('busy')});
	set(q{qlog.preallocate = '1MB'});
	for (1 .. 400)
	{
		push_many('busy', 5, 20_000);
		last if $seen = $made_ahead->();
	}
	is($seen, '1', 'a busy log gets its next file ahead of need');

	# Nothing is made for logs that are not in use, however full.
	$node->sql("select queue_create('idle ' || i) from generate_series(1, 20) i");
	$node->sql("select queue_push('idle ' || i, to_json(noise(i * 12000))::text) from generate_series(1, 20) i");
	my $sizes = sub { return join ' ', map { -s } map { files($_) } split /,/, $node->sql(q{select string_agg(log_id::text, ',') from qlog_queues where queue like 'idle%'}) };
	my $before = $sizes->();
	sleep 2;
	is($sizes->(), $before, 'idle logs cost nothing');

	# Without: whoever needs room makes it.
	set('qlog.preallocate = 0');
	$node->sql(q{select queue_drop('busy'); select queue_create('busy')});
	my $ahead = 0;
	for (1 .. 40)
	{
		push_many('busy', 5, 20_000);
		$ahead += $made_ahead->();
	}
	my @files = files(log_of('busy'));
	cmp_ok(@files, '>', 1, 'without preallocation files come and go');
	is($ahead, 0, 'and none stands ahead');
	set(q{qlog.preallocate = '16MB'});
}

# ------------------------------------------------------------------------------------------------
# The system's cache
# ------------------------------------------------------------------------------------------------
SKIP:
{
	my ($type) = `df --output=fstype '$dir'` =~ /\n(\S+)/;
	skip 'no program that tells what is cached', 3 if system('fincore --version >/dev/null 2>&1') != 0 || $type eq 'tmpfs';
	my $cached = sub { my $total = 0; $total += $_ foreach map { `fincore -nb -o RES '$_'` } @_; return $total };

	$node->sql(q{select queue_create('kept'); select queue_create('dropped')});
	push_many('kept', 40, 100_000);
	my @kept = closed('kept');
	$node->wait_until(sub { !grep { !-e s/qlog$/qidx/r } @kept }, 'indexes of closed files');
	cmp_ok($cached->(@kept), '>', 0, 'closed files stay in the cache');
	set('qlog.drop_page_cache = on');
	$node->restart;
	push_many('dropped', 40, 100_000);

	# The view would read them; those that have an index are closed.
	my $log = log_of('dropped');
	my @dropped;
	$node->wait_until(sub { @dropped = grep { -e s/qlog$/qidx/r } files($log) }, 'an index of a closed file');

	# The system may keep what it is busy with, until the next file is closed.
	$node->wait_until(sub { push_many('dropped', 12, 100_000); $cached->(@dropped) == 0 }, 'closed files to leave the cache');
	pass('closed files leave the cache');
	is($node->sql(q{select count(*) >= 52 from queue_peek('dropped', batch => 1000)}), 't', 'and are read again');
	set('qlog.drop_page_cache = off');
}

# ------------------------------------------------------------------------------------------------
# Ways to sync
# ------------------------------------------------------------------------------------------------
{
	# Syncs of a commit that touches this many logs. The system log has none of it; others sync nothing meanwhile.
	my $syncs = sub {
		my ($logs) = @_;
		my $least;

		for (1 .. 5)
		{
			my $before = $node->sql('select fsyncs from qlog_stat_log');
			$node->sql("select count(queue_push('many ' || i, '1')) from generate_series(1, $logs) i");
			my $count = $node->sql('select fsyncs from qlog_stat_log') - $before;
			$least = $count if !defined $least || $count < $least;
		}
		return $least;
	};

	$node->sql("select queue_create('many ' || i) from generate_series(1, 40) i");
	set('qlog.sync_method = files');
	is($syncs->(40), 40, 'files: each file is synced');
	my $can = !defined $node->sqlstate('alter system set qlog.sync_method = syncfs');
	if ($can)
	{
		set('qlog.sync_method = syncfs');
		is($syncs->(40), 1, 'syncfs: one sync for all');
		set('qlog.sync_method = auto');
		is($syncs->(40), 1, 'auto: one sync for many');
	}
	else
	{
		is($node->sqlstate('alter system set qlog.sync_method = syncfs'), '22023', 'a system that would not report failures: refused');
		set('qlog.sync_method = auto');
		is($syncs->(40), 40, 'auto: each file is synced');
	}
	is($syncs->(3), 3, 'auto: each file when they are few');
	$node->kill9_everything;
	$node->start;
	is($node->sql(q{select sum(pushed) from qlog_stat_queues where queue like 'many %'}), 5 * (40 * 3 + 3), 'and everything is there after a crash');
}

# ------------------------------------------------------------------------------------------------
# Descriptors
# ------------------------------------------------------------------------------------------------
{
	my $queues = 400;

	# One session has to do with all of them; its descriptors are counted by itself.
	my $count = $node->sql(qq{
		do \$\$ begin for i in 1 .. $queues loop perform queue_push('fd ' || i, '1'); commit; end loop; end \$\$;
		select count(*) from generate_series(1, $queues) i, queue_peek('fd ' || i) p;
		select count(*) from pg_ls_dir('/proc/' || pg_backend_pid() || '/fd')});
	my ($peeked, $open) = split /\n/, $count;
	is($peeked, $queues, 'all of them were read');
	cmp_ok($open, '<', 64 + 60, 'a session keeps few files open');
	foreach my $pid ($node->pids_named(qr/postgres:.*qlog/))
	{
		my $n = () = glob "/proc/$pid/fd/*";
		cmp_ok($n, '<', 64 + 60, "worker $pid keeps few files open");
	}
}
$node->stop;

done_testing();
