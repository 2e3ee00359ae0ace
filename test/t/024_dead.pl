# Retries and dead letters over crashes: attempts are never forgotten, and every message that comes back too often becomes
# one dead letter, whatever is killed meanwhile.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '1MB'" ]);

sub letters
{
	my ($queue) = @_;

	return $node->sql(
		"select count(*) || ' ' || count(distinct message_id) from qlog_dead_letters where queue = '$queue'");
}

sub await_dead
{
	my ($queue, $n) = @_;

	return $node->poll_sql("select dead >= $n from qlog_stat_queues where queue = '$queue'");
}

sub crash
{
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	$node->sql('alter system reset qlog.debug_stop');
	return;
}

# Waits until a server that lost a backend takes connections again.
sub await_server
{
	$node->wait_until(
		sub { (eval { $node->psql('postgres', 'select 1 from qlog_stat_queues limit 1') } // -1) == 0 },
		'the server to come back');
	return;
}

# Has these frozen workers find the setting when they go on; returns how to wait until one of them has reached the point.
sub stop_frozen_at
{
	my ($point, @pids) = @_;
	my $mark = -s $node->logfile;

	$node->sql("alter system set qlog.debug_stop = '$point'");
	$node->sql('select pg_reload_conf()');
	foreach my $pid (@pids)
	{
		# The signal that announces it waits for them.
		$node->wait_until(sub { slurp_file("/proc/$pid/status") =~ /^ShdPnd:\s*[0-9a-f]*[13579bdf]$/m }, 'SIGHUP');
	}
	return sub {
		$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, $point);
	};
}

# A message that kills its backend every time: the server restarts, the attempt is counted.
$node->sql("select queue_create('poison', '{\"retry_limit\": 2}'); select queue_push('poison', '1')");
foreach my $attempt (1 .. 3)
{
	my ($rc, $out) = $node->psql('postgres',
		q{begin; select attempt from queue_pop('poison'); copy (select 1) to program 'kill -9 $PPID'});

	is($out, $attempt, "attempt $attempt kills its backend");
	await_server();
}
await_dead('poison', 1);
is($node->sql("select attempts, reason from qlog_dead_letters where queue = 'poison'"),
	'3|lost in crashes more often than retry_limit allows', 'then it is a dead letter');
is($node->sql("select count(*) from queue_pop('poison')"), '0', 'and is not delivered again');

# Over restarts of every kind in between; in an ordered partition, for a group, with an acknowledgement in the transaction that dies.
$node->sql(q{select queue_create('poison 2', '{"retry_limit": 3}'); select count(queue_push('poison 2', n, 'p')) from unnest(array['1', '2']) n});
my $attempt = 0;
foreach my $between ([ 'nothing', sub { } ], [ 'a shutdown', sub { $node->restart } ], [ 'an immediate shutdown', sub { $node->stop('immediate'); $node->start } ],
	[ 'a kill', \&crash ])
{
	my ($rc, $out) = $node->psql('postgres',
		q{begin; select payload::text || ' ' || attempt, 'acked ' || queue_ack(lease_id) from queue_pop('poison 2', consumer_group => 'g'); copy (select 1) to program 'kill -9 $PPID'});

	$attempt++;
	is($out, "1 $attempt|acked 1", "attempt $attempt kills its backend, and $between->[0] follows");
	await_server();
	$between->[1]->();
}
await_dead('poison 2', 1);
is($node->sql("select consumer_group, partition, attempts, payload, reason from qlog_dead_letters where queue = 'poison 2'"),
	'g|p|4|1|lost in crashes more often than retry_limit allows', 'then it is a dead letter, with its payload');
is($node->sql("select payload::text || ' ' || attempt from queue_pop('poison 2', consumer_group => 'g')"), '2 1', 'and the one behind it is delivered');
is($node->sql("select payload::text || ' ' || attempt from queue_pop('poison 2')"), '1 1', 'to other groups it was never delivered');

# The same when its delivery had been committed: the lease runs out, over a crash.
$node->sql("select queue_create('slow', '{\"retry_limit\": 1, \"lease\": \"300 ms\"}'); select queue_push('slow', '1')");
is($node->sql("select attempt from queue_pop('slow')"), '1', 'the first delivery');
crash();
$node->poll_sql("select ready = 1 from qlog_stat_queues where queue = 'slow'");
is($node->sql("select attempt from queue_pop('slow')"), '2', 'the second one after a crash');
crash();
await_dead('slow', 1);
# (That the delivery was committed may have been lost with the server: then nobody can have the lease.)
like($node->sql("select attempts, reason from qlog_dead_letters where queue = 'slow'"),
	qr{^2\|(lease expired|lost in crashes) more often than retry_limit allows$}, 'dead after the last time');

# Attempts and retry times survive a shutdown and a kill; in an ordered partition those of the lowest message.
$node->sql("select queue_create('kept', '{\"retry_limit\": 5}'); select queue_push('kept', '1', 'p'); select queue_push('kept', '2', 'p')");
$node->sql(q{select queue_nack(lease_id, retry_after => '0') from (select distinct lease_id from queue_pop('kept', 2)) p}) for 1 .. 2;
$node->restart;
is($node->sql(q{select string_agg(attempt::text, ' ' order by "position") from queue_pop('kept', 2)}), '3 1', 'after a shutdown');
$node->sql(q{select queue_nack(lease_id, retry_after => '0') from qlog_leases where queue = 'kept'});
crash();
is($node->sql(q{select string_agg(attempt::text, ' ' order by "position") from queue_pop('kept', 2)}), '4 1', 'after a kill');
$node->sql(q{select queue_nack(lease_id, retry_after => '1 h') from qlog_leases where queue = 'kept'});
crash();
is($node->sql("select delayed from qlog_stat_queues where queue = 'kept'"), '1', 'a retry time after a kill');

# Killed at each step of the way to the dead letters.
foreach my $point (qw(dying-after-lane dying-after-read after-reserve after-fill dying-after-log))
{
	$node->sql("select queue_create('$point', '{\"retry_limit\": 0}')");
	$node->sql("select count(*) from queue_push_batch('$point', (select array_agg(i::text) from generate_series(1, 150) i))");

	# The worker is stopped, and finds out about the setting when it goes on.
	my @frozen = $node->freeze('qlog timer');
	$node->sql("begin; select count(*) from queue_pop('$point', 150); rollback");
	is($node->sql("select ready || ' ' || leased || ' ' || delayed from qlog_stat_queues where queue = '$point'"),
		'0 0 150', "$point: dying, not delivered meanwhile");
	my $reached = stop_frozen_at($point, @frozen);
	$node->thaw;
	$reached->();
	crash();
	await_dead($point, 150);
	is(letters($point), '150 150', "$point: each is one dead letter");
	is($node->sql("select ready + leased + delayed from qlog_stat_queues where queue = '$point'"), '0', "$point: none is left");
	is($node->sql("select sum((payload #>> '{}')::int) from qlog_dead_letters where queue = '$point'"), 150 * 151 / 2,
		"$point: with its payload");
	crash();
	is(letters($point), '150 150', "$point: also after another crash");
}

# The worker alone is killed in the middle.
{
	$node->sql("select queue_create('worker', '{\"retry_limit\": 0}'); select count(*) from queue_push_batch('worker', (select array_agg(i::text) from generate_series(1, 200) i))");
	$node->sql("begin; select count(*) from queue_pop('worker', 200); rollback");
	kill 'KILL', $node->sql("select pid from qlog_stat_workers where role = 'timer'");
	await_server();
	await_dead('worker', 200);
	is(letters('worker'), '200 200', 'the worker is killed: each is one dead letter');
}

# A nack that is one too many, killed before and after its entry is reserved.
foreach my $point (qw(after-reserve after-fill))
{
	my ($out, $err) = ('', '');
	my $mark = -s $node->logfile;

	$node->sql("select queue_create('nack $point', '{\"retry_limit\": 0}'); select count(*) from queue_push_batch('nack $point', ARRAY['1', '2', '3'])");
	my $lease = $node->sql("select distinct lease_id from queue_pop('nack $point', 3, lease => '1 s')");
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "set qlog.debug_stop = '$point'", '-c', "select queue_nack($lease, reason => 'why')" ],
		'<', \undef, '>', \$out, '2>', \$err);
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, $point);
	crash();
	eval { $handle->finish };
	await_dead("nack $point", 3);
	is(letters("nack $point"), '3 3', "nack killed $point: each is one dead letter");
}

# Moved back: all or nothing, and never twice.
$node->sql("create table moved(n bigint); select queue_create('back', '{\"retry_limit\": 0}'); select count(*) from queue_push_batch('back', (select array_agg(i::text) from generate_series(1, 100) i))");
$node->sql("select queue_reject(lease_id) from (select distinct lease_id from queue_pop('back', 100)) p");
foreach my $case ('queue-only after-reserve', 'queue-only after-fill', 'joint after-fill', 'joint before-wal-insert',
	'joint after-wal-insert', 'joint commit-event-before-settle')
{
	my ($kind, $point) = split ' ', $case;
	my $redrive = $kind eq 'joint' ? "insert into moved select queue_redrive('back', batch => 10)" : "select queue_redrive('back', batch => 10)";
	my ($out, $err) = ('', '');
	my $mark = -s $node->logfile;
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "set qlog.debug_stop = '$point'", '-c', $redrive ],
		'<', \undef, '>', \$out, '2>', \$err);

	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, $point);
	crash();
	eval { $handle->finish };
	my ($ready, $dead, $ids, $moved) = split /\|/, $node->sql(
		q{select ready, dead, (select count(distinct message_id) from (select message_id from queue_peek('back', batch => 1000)
		  union all select message_id from qlog_dead_letters where queue = 'back') m), (select coalesce(sum(n), 0) from moved)
		  from qlog_stat_queues where queue = 'back'});
	is($ready + $dead, 100, "redrive killed: $case: none is lost, none is there twice");
	is($ids, 100, "redrive killed: $case: they are those that were pushed");
	is($ready % 10, 0, "redrive killed: $case: all of a transaction or nothing");
}
is($node->sql("select sum(n) <= (select ready from qlog_stat_queues where queue = 'back') from moved"), 't',
	'what the table says was moved');

# Damaged: it becomes a letter that says so, holds up nobody behind it, and cannot be moved back.
{
	$node->sql("select queue_create('damaged', '{\"retry_limit\": 1, \"compression_level\": 0}')");
	$node->sql("select queue_push('damaged', '\"number $_\"', 'p')") for 1 .. 3;
	my $log = $node->sql("select log_id from qlog_queues where queue = 'damaged'");
	my $file = $node->log_dir($log) . '/r00000001.qlog';

	$node->stop;
	my $bytes = slurp_file($file);
	my $at = index $bytes, 'number 1';
	ok($at > 0, 'found in the file');
	open(my $fh, '+<', $file) or die "$file: $!";
	binmode $fh;
	seek $fh, $at, 0;
	print $fh 'N';
	close $fh;
	$node->start;
	is($node->sqlstate("select * from queue_pop('damaged')"), 'XX001', 'a damaged message is refused') for 1 .. 2;
	await_dead('damaged', 1);
	like($node->sql("select concat_ws('|', message_id, partition, attempts, payload, reason) from qlog_dead_letters where queue = 'damaged'"),
		qr{^p\|2\|.*r00000001\.qlog}, 'its letter tells where it was');
	is($node->sql(q{select string_agg(payload::text, ' ' order by "position") from queue_pop('damaged', 3)}),
		'"number 2" "number 3"', 'the others are delivered');
	is($node->sql("select queue_redrive('damaged') || ' ' || (select dead from qlog_stat_queues where queue = 'damaged')"), '0 1', 'it stays');
	is($node->sql("select queue_purge_dead('damaged')"), '1', 'and can be removed');
	is($node->sql("select last_error from qlog_stat_workers where role = 'timer'"), '', 'the worker is content');
}
$node->stop;

# No memory for a dead letter: it stays due, is reported, and goes when there is room.
{
	my $small = QlogNode->started('small', conf => [ "qlog.state_memory = '1MB'", "qlog.index_memory = '1MB'" ]);

	$small->sql("select queue_create('q', '{\"retry_limit\": 0}'); select queue_push('q', '1')");
	my $lease = $small->sql("select lease_id from queue_pop('q', lease => '1 h')");
	$small->sql("select queue_create('fill', '{\"retry_limit\": -1}')");
	is($small->sqlstate(q{do $$ begin for i in 1 .. 100000 loop perform queue_push('fill', '1', 'p' || i); commit; end loop; end $$}),
		'53200', 'the state memory is full');
	is($small->sql("select queue_nack($lease, reason => 'why')"), '1', 'given back');
	$small->poll_sql("select last_error is not null from qlog_stat_workers where role = 'timer'");
	is($small->sql("select ready || ' ' || leased || ' ' || delayed || ' ' || dead from qlog_stat_queues where queue = 'q'"),
		'0 0 1 0', 'it waits');
	$small->kill9_everything;
	$small->start;

	# Loaded anew the state may leave room for one letter.
	is($small->sql("select ready || ' ' || leased || ' ' || delayed + dead from qlog_stat_queues where queue = 'q'"),
		'0 0 1', 'also after a crash');
	$small->sql("select queue_drop('fill')");
	$small->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'q'");
	$small->poll_sql("select last_error is null from qlog_stat_workers where role = 'timer'");
	is($small->sql("select attempts || ' ' || payload from qlog_dead_letters"), '1 1', 'then it is a dead letter');
	$small->stop;
}
done_testing();
