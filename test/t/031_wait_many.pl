# Many waiters: idle they cost nothing, each message wakes one of them, and no wake-up is lost under load and loss.

use strict;
use warnings;

use POSIX ();
use PostgreSQL::Test::Utils;
use QlogNode;
use QlogWire;
use Test::More;
use Time::HiRes qw(usleep time);

my $node = QlogNode->started('main',
	conf => [ 'max_connections = 140', "qlog.max_pop_wait = '1h'", 'autovacuum = off' ]);
my $main = QlogWire->to($node);
my $seed = $ENV{WAIT_SEED} || time() % 1_000_000;

note "seed $seed (WAIT_SEED)";
srand($seed);

sub stat_of
{
	my ($column) = @_;

	return $main->value("select $column from qlog_stat_queues where queue = 'q'");
}

sub await
{
	my ($column, $expected) = @_;

	$node->wait_until(sub { stat_of($column) == $expected }, "$column to be $expected");
	return;
}

# How often a process has been given the CPU back.
sub switches
{
	my ($pid) = @_;
	my $sum = 0;

	$sum += $_ foreach slurp_file("/proc/$pid/status") =~ /ctxt_switches:\s*(\d+)/g;
	return $sum;
}

# ------------------------------------------------------------------------------------------------
# A hundred, one message at a time
# ------------------------------------------------------------------------------------------------

$main->value(q{select queue_create('q', '{"lease": "1 h"}')});
foreach my $sql ("select lease_id, payload from queue_pop('q', wait => '1 h')", "call queue_wait('q', '1 h')")
{
	my $pops = $sql =~ /queue_pop/;
	my @waiters = map { QlogWire->to($node) } 1 .. 100;

	$_->send_query($sql) foreach @waiters;
	await('waiting', 100);

	# What they did on their way here is over when nothing changes any more; then nothing happens for two seconds.
	usleep(200_000);
	my %before = map { $_->pid => switches($_->pid) } @waiters;
	sleep 2;
	my @woken = grep { switches($_->pid) != $before{ $_->pid } } @waiters;
	is(scalar @woken, 0, ($pops ? 'queue_pop' : 'queue_wait') . ': 100 idle waiters are never given the CPU');

	my $wakeups = stat_of('wakeups');
	my @got;
	my $collect = sub {
		my ($n) = @_;

		$node->wait_until(
			sub {
				my @still;
				push @{ $_->busy ? \@still : \@got }, $_ foreach @waiters;
				@waiters = @still;
				return @got >= $n;
			},
			"$n waiters to be woken");
	};
	if ($pops)
	{
		my @payloads;

		$main->query("select queue_push('q', '$_')") foreach 1 .. 40;
		$collect->(40);
		$main->query("select queue_push_batch('q', (select array_agg(i::text) from generate_series(41, 70) as i))");
		$collect->(70);
		await('ready', 0);
		is(stat_of('waiting'), 30, '70 messages, 30 still wait');

		# Whoever is told and does not come within 50 ms, as on a machine that is busy, is waited for no longer: then one more is told.
		my $woken = stat_of('wakeups') - $wakeups;
		ok($woken >= 70 && $woken < 85, "70 messages: 70 wake-ups, or a few more where one was late ($woken)");
		foreach my $c (@got)
		{
			my $result = $c->result;
			push @payloads, $result->{rows}[0][1];
			$main->query("select queue_ack($result->{rows}[0][0])");
		}
		is(join(',', sort { $a <=> $b } @payloads), join(',', 1 .. 70), 'each has one of them');

		# One message to a partition that somebody already wakes for: one delivery, one wake-up.
		$wakeups = stat_of('wakeups');
		$main->query("select queue_push_batch('q', array['1', '2', '3'], array['p', 'p', 'p'])");
		$collect->(71);
		$woken = stat_of('wakeups') - $wakeups;
		ok($woken >= 1 && $woken < 10, "three messages of an ordered partition: one wake-up ($woken)");
		$main->query('select queue_ack(' . $got[-1]->result->{rows}[0][0] . ')');
		$collect->(72);
		$woken = stat_of('wakeups') - $wakeups - $woken;
		ok($woken >= 1 && $woken < 10, "its answer: one more ($woken)");
	}
	else
	{
		# Who is told pops at once, through another session, as behind a pooler.
		foreach my $i (1 .. 40)
		{
			$main->query("select queue_push('q', '$i')");
			$collect->($i);
			my $result = $main->query("select queue_ack(lease_id) from queue_pop('q')");
			is($result->{rows}[0][0], '1', "message $i is there for who was told");
		}

		# Each was told of one message, a slow one's neighbour maybe too.
		is(scalar @got, 100 - @waiters, 'nobody was told twice');
		cmp_ok(stat_of('wakeups') - $wakeups, '<', 80, '40 messages have not woken everybody');
	}
	$_->close foreach @got, @waiters;
	$main->query("select queue_drop('q')");
	$main->query(q{select queue_create('q', '{"lease": "1 h"}')});
}

# All at once: more than one hold of the lock can wake.
{
	my @waiters = map { QlogWire->to($node) } 1 .. 100;

	$_->send_query("select count(*) from queue_pop('q', wait => '1 h', auto_ack => true)") foreach @waiters;
	await('waiting', 100);
	$main->query("select queue_push_batch('q', (select array_agg(i::text) from generate_series(1, 100) as i))");
	is(join('', map { $_->result->{rows}[0][0] } @waiters), '1' x 100, '100 messages for 100 waiters: one each');
	is(stat_of('wakeups'), 100, '100 messages for 100 waiters: 100 wake-ups');
	$_->send_query("call queue_wait('q', '1 h')") foreach @waiters;
	await('waiting', 100);
	$main->query("select queue_drop('q')");
	is(scalar(grep { ($_->result->{error} || '') eq '42704' } @waiters), 100, 'a dropped queue ends the wait of all 100');
	$_->close foreach @waiters;
	$main->query(q{select queue_create('q', '{"lease": "1 h"}')});
}

# A batch is one pop's work.
{
	my @waiters = map { QlogWire->to($node) } 1 .. 20;

	$_->send_query("select count(*) from queue_pop('q', 10, wait => '1 h', auto_ack => true)") foreach @waiters;
	await('waiting', 20);
	$main->query("select queue_push_batch('q', (select array_agg(i::text) from generate_series(1, 30) as i))");
	await('acked', 30);
	my $woken = stat_of('wakeups');
	ok($woken >= 3 && $woken < 20, "30 messages, 10 at a time: 3 wake-ups ($woken)");
	is(stat_of('waiting'), 17, '17 still wait');
	$_->abandon foreach @waiters;
	await('waiting', 0);
}

# ------------------------------------------------------------------------------------------------
# In any order, with cancels and terminations
# ------------------------------------------------------------------------------------------------

# A consumer: waits for ever, in one of several ways, takes what it gets and notes it, until it is killed.
sub consume
{
	my ($i) = @_;
	my $c;

	srand($seed + $i);
	for (;;)
	{
		if (!$c || $c->{closed})
		{
			$c = eval { QlogWire->to($node) } or next;
		}
		my $batch = 1 + int rand 4;
		my $wait = ('1 h', '1 h', '20 ms')[ int rand 3 ];
		my $partition = ('', '', ", partition => ''", ", partition => 'a'")[ $i % 4 ];
		my $result;

		if (!$partition && rand() < 0.4)
		{
			$result = $c->query("call queue_wait('stress', '$wait')");
			$wait = '0';
		}
		next if $c->{closed};
		$c->query('begin');
		$result = $c->query(
			"with p as materialized (select * from queue_pop('stress', $batch, wait => '$wait'$partition)),
				i as (insert into done select payload::text::int from p)
			select max(lease_id) from p");
		my $lease = $result->{error} ? undef : $result->{rows}[0][0];

		# Some give it back, one way or another.
		if (!defined $lease || rand() < 0.1) { $c->query('rollback'); }
		elsif (rand() < 0.1) { $c->query("rollback; select queue_nack($lease)"); }
		else { $c->query("select queue_ack($lease); commit"); }
	}
}

$main->query(q{select queue_create('stress', '{"lease": "1 h", "retry_limit": -1}'); create table done(n int)});
my @consumers = map {
	my $i = $_;
	my $pid = fork();
	if (!$pid)
	{
		# Without the server's end, which is for the parent to see.
		$SIG{TERM} = sub { POSIX::_exit(0); };
		eval { consume($i) };
		POSIX::_exit(1);
	}
	$pid;
} 1 .. 10;

# The next messages are pushed only when all of those before are done: a lost wake-up would be for ever.
my $rounds = $ENV{WAIT_ROUNDS} || 250;
my $pushed = 0;
my $hangs = 0;

foreach my $round (1 .. $rounds)
{
	my $n = 1 + int rand 6;
	my @values = map { ++$pushed } 1 .. $n;
	my @partitions = map { ('NULL', 'NULL', "'a'", "'b'")[ int rand 4 ] } 1 .. $n;

	$main->query('begin') if $round % 3 == 0;
	$main->query("select queue_push_batch('stress', array["
		  . join(',', map { "'$_'" } @values) . ']::text[], array[' . join(',', @partitions) . ']::text[])');
	$main->query('insert into done values (-1); delete from done where n < 0; commit') if $round % 3 == 0;

	# Consumers have no work at times, and lose it at others.
	if (rand() < 0.5)
	{
		my $how = ('pg_cancel_backend', 'pg_cancel_backend', 'pg_terminate_backend')[ int rand 3 ];
		$main->query("select $how(pid) from pg_stat_activity
			where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 2");
	}
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	while ($main->value('select count(*) from done') != $pushed)
	{
		if (time() > $end) { $hangs++; last; }
		usleep(1000);
	}
	last if $hangs;
}
is($hangs, 0, "$rounds rounds: whatever was pushed was taken, nobody slept through it");
is($main->value('select count(distinct n) from done'), $pushed, 'each message once');
is(scalar(grep { waitpid($_, POSIX::WNOHANG()) != 0 } @consumers), 0, 'every consumer still runs');
kill 'TERM', @consumers;
waitpid($_, 0) foreach @consumers;
$node->wait_until(sub { $main->value("select waiting + leased from qlog_stat_queues where queue = 'stress'") == 0 },
	'nobody to wait or to hold anything');
is($main->value("select acked || ' ' || ready from qlog_stat_queues where queue = 'stress'"), "$pushed 0", 'all are acknowledged');
note $main->value("select wakeups from qlog_stat_queues where queue = 'stress'") . " wake-ups for $pushed messages";
$node->stop;

done_testing();
