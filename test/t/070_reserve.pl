# A disk that is full, for real, and a reserve: pushes are refused, everything else goes on, over a restart too, until there is room
# again. And before it is full: qlog.disk_high_pct and qlog.disk_low_pct.

use strict;
use warnings;

use QlogSmallDisk '24m';
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $small = QlogSmallDisk::directory();
my $reserve = 3 * 1024 * 1024;
my $node = QlogNode->started('main',
	conf => [ "qlog.data_directory = '$small/qlog'", "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'",
		"qlog.disk_reserve = '3MB'", "qlog.log_flush_interval = '20ms'" ]);
my $number = 0;

QlogSmallDisk::ballast('ballast', 10 * 1024 * 1024);
$node->sql(q{
	select queue_create('q'); select queue_create('j'); create table t(n int primary key);
	select queue_create('work', '{"retry_limit": -1, "lease": "1 day"}'); select queue_create('poison', '{"retry_limit": 0}');
	select count(queue_push('work', i::text)) from generate_series(1, 4000) i;
	select count(queue_push('poison', i::text)) from generate_series(1, 100) i;
	create function noise(n int) returns text language sql as
	$$ select string_agg(md5(random()::text), '') from generate_series(1, n / 32) $$});

sub figures { return $node->sql('select pushes_refused, disk_reserve from qlog_stat_log') }

# How often the server log has this text.
sub logged
{
	my ($text, $from) = @_;
	my $count = () = slurp_file($node->logfile, $from || 0) =~ /$text/g;

	return $count;
}

# Fills the file system to this many percent, by the file "more".
sub fill_to
{
	my ($percent) = @_;

	unlink "$small/more";
	my ($used, $avail) = split ' ', (split /\n/, `df -B1 --output=used,avail '$small'`)[1];
	QlogSmallDisk::ballast('more', int(($used + $avail) * $percent / 100) - $used);
	return;
}

# Why a push is refused.
sub refusal
{
	my ($sql) = @_;
	my (undef, undef, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 0);

	return $err;
}

# ------------------------------------------------------------------------------------------------
# Room is measured
# ------------------------------------------------------------------------------------------------
my @stat = stat "$small/qlog/RESERVE";
is($stat[7], $reserve, 'the reserve is there');
cmp_ok($stat[12] * 512, '>=', $reserve, 'and has its blocks');
is(figures(), "f|$reserve", 'the view says so');
my $df = (split ' ', (split /\n/, `df -B1 --output=avail '$small'`)[1])[0];
cmp_ok(abs($node->sql('select disk_free from qlog_stat_log') - $df), '<', 4 * 1024 * 1024, 'disk_free is what df says');

{
	my $mark = -s $node->logfile;

	$node->append_conf('postgresql.conf', "qlog.disk_high_pct = 85\nqlog.disk_low_pct = 75\n");
	$node->reload;
	fill_to(90);
	$node->wait_until(sub { figures() =~ /^t/ }, 'the view to say that pushes are refused');
	my $err = refusal(q{select queue_push('q', '1')});
	like($err, qr/ERROR:  53100: could not push to a queue\nDETAIL:  The file system of qlog.data_directory is filled to more than 85 %/, 'above the high mark: 53100, DETAIL');
	like($err, qr/HINT:  Make room on the file system that holds qlog.data_directory\./, 'and HINT');
	is($node->sqlstate(qq{begin; insert into t values (0); $_; commit}), '53100', "above the high mark: refused: $_")
	  foreach q{select queue_push('q', '1')}, q{select queue_push_batch('q', array['1'])}, q{select queue_create('new')},
	  q{select queue_push('new', '1')}, q{select queue_push('q', '1', deliver_at => now() + interval '1 hour')},
	  q{select queue_transaction('[{"op": "push", "queue": "q", "payload": 1}]')};

	# All the rest.
	is($node->sql(q{with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1}), '10', 'pops and acks go on');
	is($node->sql(q{with p as materialized (select * from queue_pop('work', 10)) select queue_nack(lease_id) from p limit 1}), '10', 'nacks go on');
	is($node->sql(q{with p as materialized (select * from queue_pop('poison', 10)) select queue_reject(lease_id) from p limit 1}), '10', 'rejects go on');
	is($node->sql(q{select count(*) from qlog_dead_letters where queue = 'poison'}), '10', 'and leave dead letters');
	is($node->sqlstate(q{begin; insert into t values (-1); with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1; commit}),
		undef, 'in a transaction with tables too');
	$node->restart;
	is($node->sqlstate(q{select queue_push('q', '1')}), '53100', 'after a restart: refused from the first moment on');
	is($node->sql(q{with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1}), '10', 'after a restart: acks go on');
	is(logged('the disk is filled to more than 85 %, pushes are refused', $mark), 2, 'it is logged once for each start');

	# Between the marks nothing changes; an idle server finds out by itself below the low one.
	fill_to(80);
	sleep 2;
	is($node->sqlstate(q{select queue_push('q', '1')}), '53100', 'between the marks: still refused');
	QlogSmallDisk::drop_ballast('more');
	$node->wait_until(sub { logged('there is room on the disk, pushes are accepted again', $mark) }, 'pushes to be accepted');
	$node->sql(q{select queue_push('q', '1')});
	is(figures(), "f|$reserve", 'below the low mark: pushes go on');
	$node->append_conf('postgresql.conf', "qlog.disk_high_pct = 100\n");
	$node->reload;
}

# ------------------------------------------------------------------------------------------------
# Full
# ------------------------------------------------------------------------------------------------
my $pushed = 1;
my $state;

sub agree
{
	my ($when) = @_;

	is($node->sql(q{select count(*) from queue_peek('q', batch => 100000)}), $pushed, "$when: nothing is lost in queue q");
	is( $node->sql(q{select count(*), sum((payload->>'n')::int) from queue_peek('j', batch => 100000)}),
		$node->sql('select count(*), sum(n) from t where n > 0'),
		"$when: rows and messages agree");
	return;
}

# Pushes, with a table and without, until one fails.
sub fill
{
	until (defined $state)
	{
		$state = $node->sqlstate(q{select queue_push('q', to_json(noise(20000))::text)});
		last if defined $state;
		$pushed++;
		$number++;
		$state = $node->sqlstate(
			"begin; insert into t values ($number); select queue_push('j', json_build_object('n', $number, 'pad', noise(9000))::text); commit");
	}
	return $state;
}

is(fill(), '53100', "full after $pushed pushes: 53100");
QlogSmallDisk::ballast('rest', 'rest');
like(figures(), qr/\|$reserve$/, 'full: pushes leave the reserve alone');
agree('full');

# Work of all kinds but pushes, much more than the room that the logs have.
sub work
{
	my ($calls) = @_;

	return $node->sqlstate(qq{do \$\$ declare l bigint; k bigint; begin
	  for i in 1 .. $calls loop
	    select lease_id into l from queue_pop('work', 50, partition => '') limit 1;
	    perform queue_nack(l);
	    commit;
	  end loop; end \$\$});
}

my $mark = -s $node->logfile;
my $rounds = 0;
until (figures() =~ /^t/ || $rounds >= 100)
{
	is(work(200), undef, 'full: pops and nacks go on') if $rounds < 3;
	work(200);
	$rounds++;
}
like(figures(), qr/^t\|\d+$/, "full: the reserve is being used after $rounds rounds");
my $left = (split /\|/, figures())[1];
cmp_ok($left, '<', $reserve, 'full: some of it is gone');
cmp_ok($left, '>', 0, 'full: not all of it');
like(refusal(q{select queue_push('q', '1')}), qr/ERROR:  53100: could not push to a queue\nDETAIL:  The file system of qlog.data_directory is full; what is left of the reserve/,
	'full: pushes are refused for the sake of the reserve');
is($node->sql(q{with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1}), '10', 'full: acks go on');
is($node->sql(q{with p as materialized (select * from queue_pop('poison', 10)) select queue_reject(lease_id) from p limit 1}), '10', 'full: rejects go on');
my $seq = $node->sql('select durable_seq from qlog_stat_log');
$node->poll_sql("select checkpoint_seq >= $seq from qlog_stat_log");
pass('full: checkpoints go on');
$node->sql('checkpoint');
$node->sql(q{begin; insert into t values (-100); with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1; commit});
pass('full: and transactions with tables');
$node->wait_until(sub { logged('the disk is full, pushes are refused', $mark) }, 'the log to say that it is full');
is(logged('the disk is full, pushes are refused', $mark), 1, 'full: it is logged once');

# Killed while it is full: redo and recovery have what they need.
my $counts = q{select string_agg(queue || ' ' || ready || ' ' || leased || ' ' || dead, ', ' order by queue) from qlog_stat_queues};
my $before = $node->sql($counts);
$node->kill9_everything;
$node->start;
agree('full, after a crash');
is($node->sql($counts), $before, 'full, after a crash: all answers are kept');
is($node->sqlstate(q{select queue_push('q', '1')}), '53100', 'full, after a crash: pushes are refused');
is($node->sql(q{with p as materialized (select * from queue_pop('work', 10)) select queue_ack(lease_id) from p limit 1}), '10', 'full, after a crash: acks go on');
is($node->sql('select count(*) from t where n = -100'), '1', 'full, after a crash: the rows are there');
$node->restart;
is($node->sqlstate(q{select queue_push('q', '1')}), '53100', 'full, after a restart: pushes are refused');
agree('full, after a restart');

# Room comes back: the reserve first, then pushes.
$mark = -s $node->logfile;
QlogSmallDisk::drop_ballast($_) foreach 'ballast', 'rest';
$node->wait_until(sub { logged('pushes are accepted again', $mark) }, 'pushes to be accepted');
is(figures(), "f|$reserve", 'with room: the reserve is whole');
@stat = stat "$small/qlog/RESERVE";
cmp_ok($stat[12] * 512, '>=', $reserve, 'with room: it has its blocks');
undef $state;
$node->sql(q{select queue_push('q', '1')});
$pushed++;
agree('with room');

# The setting is followed.
foreach my $size (1, 0, 2)
{
	$node->append_conf('postgresql.conf', "qlog.disk_reserve = '${size}MB'\n");
	$node->reload;
	$node->sql(q{select queue_push('q', '1')});
	$pushed++;
	$node->wait_until(sub { figures() eq 'f|' . $size * 1024 * 1024 }, "a reserve of $size MB");
}
pass('the size of the reserve follows its setting');
ok(!logged('are not qlog\'s and are left alone'), 'the reserve is no stray');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify', "$small/qlog");
is($rc, 0, 'the directory is sound') or diag "$out$err";

done_testing();
