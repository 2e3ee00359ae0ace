# Waiting: what a waiter holds, what wakes it, what ends it, and that a message is leased for nobody who has gone.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use QlogWire;
use Test::More;
use Time::HiRes qw(usleep);

my $node = QlogNode->started('main',
	conf => [ 'max_connections = 60', "qlog.max_pop_wait = '1h'", 'autovacuum = off' ]);
my $main = QlogWire->to($node);

$main->value(q{select queue_create('q', '{"lease": "1 h"}')});

# So many sessions wait for the queue.
sub await_waiting
{
	my ($n) = @_;

	$node->wait_until(
		sub { $main->value("select waiting from qlog_stat_queues where queue = 'q'") == $n },
		"$n sessions to wait");
	return;
}

sub waiter
{
	my ($sql, %params) = @_;
	my $c = QlogWire->to($node, %params);

	$c->send_query($sql);
	return $c;
}

my $pop = "select attempt, payload, lease_id from queue_pop('q', wait => '1 h')";
my $call = "call queue_wait('q', '1 h')";

# What is popped is acknowledged, so that the queue is empty again.
sub popped
{
	my ($result, $what) = @_;

	is($result->{error}, undef, "$what: no error");
	is(scalar @{ $result->{rows} }, 1, "$what: one message");
	return $main->value("select queue_ack($result->{rows}[0][2])") == 1;
}

sub take
{
	my ($what) = @_;

	return popped($main->query("select attempt, payload, lease_id from queue_pop('q')"), $what);
}

# ------------------------------------------------------------------------------------------------
# What a waiter holds
# ------------------------------------------------------------------------------------------------

foreach my $isolation ('read committed', 'repeatable read', 'serializable')
{
	foreach my $extended (0, 1)
	{
		my $what = "$isolation, " . ($extended ? 'extended' : 'simple') . ' protocol';
		my $c = QlogWire->to($node);

		$c->query("set default_transaction_isolation = '$isolation'");
		$extended
		  ? $c->send_execute(sql => 'call queue_wait($1, $2)', values => [ 'q', '1 h' ], sync => 1)
		  : $c->send_query($call);
		await_waiting(1);
		is($main->value("select backend_xmin is null and backend_xid is null from pg_stat_activity where pid = " . $c->pid),
			't', "$what: queue_wait holds no snapshot and no transaction id");
		is($main->value("select count(*) from pg_locks where locktype <> 'virtualxid' and pid = " . $c->pid),
			'0', "$what: queue_wait holds no lock");

		# Whatever the waiter has seen can be vacuumed away.
		$main->query('drop table if exists v; create table v as select 1 as i; delete from v');
		my $result = $main->query('vacuum verbose v');
		like(join("\n", @{ $result->{notices} }), qr/1 removed, 0 remain/, "$what: vacuum removes what is dead");
		$main->query("select queue_push('q', '1')");
		is($c->result->{error}, undef, "$what: it is told of a message");
		ok(take($what), "$what: which is there");
		$c->close;
	}
}

# In a procedure, behind a statement that has looked at a table.
{
	$main->query('create table looked as select 1 as i');
	my $c = waiter("do \$\$ begin perform i from looked; $call; end \$\$");

	await_waiting(1);
	is($main->value("select backend_xmin is null from pg_stat_activity where pid = " . $c->pid), 't',
		'in a DO block: no snapshot');
	is($main->value("select count(*) from pg_locks where locktype <> 'virtualxid' and pid = " . $c->pid),
		'0', 'in a DO block: the locks of the statements before it are gone');
	$main->query("select queue_push('q', '1')");
	is($c->result->{error}, undef, 'in a DO block: it goes on');
	ok(take('DO'), 'in a DO block: the message is there');
}

# For a consumer group, which is made when it is missing, and whatever commands need every session to take part. A new
# group begins with the oldest message, so the queue is a new one.
{
	$main->query("select queue_drop('q')");
	$main->query(q{select queue_create('q', '{"lease": "1 h"}')});
	my @waiters = map { waiter("call queue_wait('q', '1 h', consumer_group => '$_')") } 'g1', 'g2', 'g1';
	my @pops = map { waiter("select payload, lease_id from queue_pop('q', wait => '1 h', consumer_group => '$_')") } 'g1', 'g2';

	await_waiting(5);
	foreach my $c (@waiters)
	{
		is($main->value("select backend_xmin is null from pg_stat_activity where pid = " . $c->pid), 't',
			'for a group: no snapshot');
		is($main->value("select count(*) from pg_locks where locktype <> 'virtualxid' and pid = " . $c->pid),
			'0', 'for a group: no lock');
	}
	is($main->query("create database other")->{error}, undef, 'CREATE DATABASE beside waiters');
	is($main->query("drop database other")->{error}, undef, 'DROP DATABASE beside waiters');
	await_waiting(5);

	# One of each group is woken, the first one that came.
	my $wakeups = $main->value("select wakeups from qlog_stat_queues where queue = 'q'");
	$main->query("select queue_push('q', '1')");
	is($_->result->{error}, undef, 'for a group: told') foreach @waiters[ 0, 1 ];
	foreach my $group ('g1', 'g2')
	{
		is($main->value("select queue_ack(lease_id) from queue_pop('q', consumer_group => '$group')"), '1',
			"for a group: the message is there for $group");
	}
	ok(take('default group'), 'the message is there for the default group');
	$main->query("select queue_push('q', '2')");
	is($waiters[2]->result->{error}, undef, 'for a group: the next one is told');
	foreach my $c (@pops)
	{
		my $row = $c->result->{rows}[0];

		is($row->[0], '2', 'for a group: the message') and $main->query("select queue_ack($row->[1])");
	}
	ok(take('default group'), 'the message is there for the default group');
	is($main->value("select ready + leased + waiting from qlog_stat_queues where queue = 'q'"), '0', 'for a group: nothing is left');
	$_->close foreach @waiters, @pops;
	$main->query("select queue_drop('q')");
	$main->query(q{select queue_create('q', '{"lease": "1 h"}')});
}

# ------------------------------------------------------------------------------------------------
# What wakes it
# ------------------------------------------------------------------------------------------------

foreach my $sql ($pop, $call)
{
	my $kind = $sql eq $pop ? 'queue_pop' : 'queue_wait';
	my $holder = QlogWire->to($node);
	my ($c, $lease);

	my $done = sub {
		my ($what) = @_;
		my $result = $c->result;

		is($result->{error}, undef, "$kind, $what: wakes");
		ok($sql eq $pop ? popped($result, "$kind, $what") : take("$kind, $what"), "$kind, $what: the message is there");
		is($main->value("select ready || ' ' || leased || ' ' || waiting from qlog_stat_queues where queue = 'q'"),
			'0 0 0', "$kind, $what: nothing is left");
		$c->close;
	};
	my $begin = sub { $c = waiter($sql); await_waiting(1); };

	# A push, when it is committed and not before; alone, with a table, asynchronously.
	$begin->();
	$holder->query("begin; select queue_push('q', '1')");
	ok($c->busy(0.2), "$kind: an uncommitted push does not wake");
	$holder->query('rollback');
	ok($c->busy(0.2), "$kind: one that is rolled back does not wake");
	$holder->query("begin; select queue_push('q', '1'); commit");
	$done->('push');
	$begin->();
	$holder->query("begin; create table if not exists t(i int); insert into t values (1); select queue_push('q', '1')");
	ok($c->busy(0.1), "$kind: an uncommitted push with a table does not wake");
	$holder->query('commit');
	$done->('push with a table');
	$begin->();
	$holder->query("set synchronous_commit = off; select queue_push('q', '1'); set synchronous_commit = on");
	$done->('asynchronous push');
	$begin->();
	$main->query("select queue_push('q', '1', partition => 'p')");
	$done->('push to a partition');

	# A message that somebody gives back: nack, at once and later; rollback; lost connection; expiry.
	my $lend = sub {
		my ($begin_sql) = @_;
		$main->query("select queue_push('q', '1')");
		$holder->query($begin_sql) if $begin_sql;
		$lease = $holder->value("select lease_id from queue_pop('q', lease => '1 h')");
		$begin->();
	};
	$lend->();
	$holder->query("select queue_nack($lease)");
	$done->('nack');
	$lend->();
	$holder->query("select queue_nack($lease, retry_after => '300 ms')");
	ok($c->busy(0.1), "$kind: a retry time that has not come does not wake");
	$done->('retry time');
	$lend->();
	$holder->query("select queue_renew($lease, '200 ms')");
	$done->('expiry');
	$lend->('begin');
	$holder->query('rollback');
	$done->('rollback');
	$lend->('begin; savepoint a');
	$holder->query('rollback to a');
	$done->('rollback to a savepoint');
	$holder->query('commit');
	$lend->('begin');
	$holder->abandon;
	$done->('lost connection');

	# An ordered partition whose lease is answered.
	$holder = QlogWire->to($node);
	$main->query("select queue_push_batch('q', array['1', '2'], array['p', 'p'])");
	$lease = $holder->value("select lease_id from queue_pop('q')");
	$begin->();
	$holder->query("select queue_ack($lease)");
	$done->('ack of the message before it');

	# The queue is paused: waits on. Dropped: an error.
	$begin->();
	$main->query("select queue_pause('q', 'pop')");
	$main->query("select queue_push('q', '1')");
	ok($c->busy(0.2), "$kind: waits while pops are paused");
	$main->query("select queue_resume('q', 'pop')");
	$done->('resume');

	# A timer.
	SKIP:
	{
		my $delayed = $main->query("select queue_push('q', '1', deliver_at => now() + interval '400 ms')");

		skip 'delayed messages are refused', 4 if $delayed->{error} && $delayed->{error} eq '0A000';
		is($delayed->{error}, undef, "$kind: a delayed message");
		$begin->();
		ok($c->busy(0.1), "$kind: one that is not due does not wake");
		$done->('delayed message');
	}
	$begin->();
	$main->query("begin; select queue_drop('q')");
	ok($c->busy(0.2), "$kind: a drop that is not committed changes nothing");
	$main->query('rollback');
	$main->query("select queue_drop('q')");
	is($c->result->{error}, '42704', "$kind: a dropped queue is an error");
	$main->query(q{select queue_create('q', '{"lease": "1 h"}')});
	$holder->close;
}

# ------------------------------------------------------------------------------------------------
# What ends it
# ------------------------------------------------------------------------------------------------

foreach my $sql ($pop, $call)
{
	my $kind = $sql eq $pop ? 'queue_pop' : 'queue_wait';
	my $c = waiter($sql);

	await_waiting(1);
	$main->query('select pg_cancel_backend(' . $c->pid . ')');
	is($c->result->{error}, '57014', "$kind: cancel");
	await_waiting(0);
	$c->send_query($sql);
	await_waiting(1);
	$main->query('select pg_terminate_backend(' . $c->pid . ')');
	is($c->result->{error}, '57P01', "$kind: terminate");
	await_waiting(0);
	$c = QlogWire->to($node);
	$c->query("set statement_timeout = '100ms'");
	is($c->query($sql)->{error}, '57014', "$kind: statement_timeout");
	await_waiting(0);
	$c->query('reset statement_timeout');

	# The client has gone, without a word: the session ends, though nothing comes.
	$c->send_query($sql);
	await_waiting(1);
	my $pid = $c->pid;
	$c->abandon;
	$node->poll_sql("select count(*) = 0 from pg_stat_activity where pid = $pid");
	await_waiting(0);

	# It is gone when the message comes, and its session has had no time to notice.
	$c = waiter($sql);
	await_waiting(1);
	$pid = $c->pid;
	kill 'STOP', $pid;
	$c->abandon;
	$main->query("select queue_push('q', '1')");
	my $next = waiter($sql);
	kill 'CONT', $pid;
	my $result = $next->result;
	$result = $main->query("select attempt, payload, lease_id from queue_pop('q')") if $sql eq $call;
	is($result->{rows}[0][0], '1', "$kind: no message is leased for a client that has gone");
	ok(popped($result, "$kind, client gone"), "$kind: the next one gets it");
	$node->poll_sql("select count(*) = 0 from pg_stat_activity where pid = $pid");
	$next->close;
}

# A wake-up that is not used goes to the next one: by cancel, by termination, or when its process does not come.
foreach my $how ('pg_cancel_backend', 'pg_terminate_backend', 'nothing')
{
	my $first = waiter($pop);
	await_waiting(1);
	my $second = waiter($pop);
	await_waiting(2);

	kill 'STOP', $first->pid;
	$main->query("select queue_push('q', '1')");
	$main->query("select $how(" . $first->pid . ')') if $how ne 'nothing';
	kill 'CONT', $first->pid if $how ne 'nothing';
	my $result = $second->result;
	ok(popped($result, "$how, the next one"), "$how: the next one gets the message");
	kill 'CONT', $first->pid if $how eq 'nothing';
	if ($how eq 'nothing')
	{
		await_waiting(1);
		$main->query("select queue_push('q', '2')");
	}
	$result = $first->result;
	is($result->{error} || $result->{rows}[0][1], $how =~ /cancel/ ? '57014' : $how =~ /term/ ? '57P01' : '2',
		"$how: the first one");
	popped($result, 'first one') if $how eq 'nothing';
	$_->close foreach $first, $second;
}

# One who was told and does not pop: the next one is told after a moment.
{
	my $first = waiter($call);
	await_waiting(1);
	my $second = waiter($call);
	await_waiting(2);

	$main->query("select queue_push('q', '1')");
	is($first->result->{error}, undef, 'the first one is told');
	is($second->result->{error}, undef, 'the first one does not pop: the second one is told');
	ok(take('told'), 'the message is there');

	# It leaves instead: the next one is told.
	$first->send_query($call);
	await_waiting(1);
	$second->send_query($call);
	await_waiting(2);
	$main->query("select queue_push('q', '1')");
	is($first->result->{error}, undef, 'the first one is told');
	$first->close;
	is($second->result->{error}, undef, 'the first one leaves: the second one is told');
	ok(take('told'), 'the message is there');
	$second->close;
}

# A waiter that is stuck holds up nobody; the size of a message does not matter for the wake-up; the time zone neither.
{
	my $stuck = waiter($call);
	my $c = waiter("set timezone = 'Asia/Kathmandu'; set intervalstyle = 'iso_8601'");

	$c->result;
	await_waiting(1);
	kill 'STOP', $stuck->pid;
	is($main->query("select queue_push('q', '$_')")->{error}, undef, "push $_ beside a stuck waiter") foreach 1 .. 20;
	is($main->value("select count(*) from queue_pop('q', 100, auto_ack => true)"), '20', 'all of them can be taken');
	kill 'CONT', $stuck->pid;
	await_waiting(1);
	$stuck->close;
	await_waiting(0);
	$c->send_query("select length(payload::text), lease_id from queue_pop('q', wait => interval 'PT1H')");
	await_waiting(1);
	$main->query("select queue_push('q', to_json(repeat('x', 8000000)))");
	my $row = $c->result->{rows}[0];
	is($row->[0], '8000002', 'a message of 8 MB wakes like any other');
	is($main->value("select queue_ack($row->[1])"), '1', 'and is acknowledged');
	is($main->value('select pg_notification_queue_usage()'), '0', 'NOTIFY has no part in it');
	$c->close;
}

# ------------------------------------------------------------------------------------------------
# Workers come and go
# ------------------------------------------------------------------------------------------------

{
	my @waiters = map { waiter($_) } $pop, $call, $pop;

	await_waiting(3);
	foreach my $worker ('checkpointer', 'timer', 'guard')
	{
		my @pids = $node->pids_named(qr/postgres:.*qlog $worker/);

		ok(scalar @pids, "qlog $worker runs");
		kill 'TERM', @pids;
		$node->wait_until(
			sub {
				my @now = $node->pids_named(qr/postgres:.*qlog $worker/);
				@now == @pids && !grep { my $p = $_; grep { $_ == $p } @pids } @now;
			},
			"qlog $worker to be started again");
	}
	await_waiting(3);
	$main->query("select queue_push_batch('q', array['1', '2'])");
	popped($waiters[0]->result, 'after the workers were started again');
	is($waiters[1]->result->{error}, undef, 'after the workers were started again: told');
	ok(take('workers'), 'after the workers were started again: the message is there');
	ok($waiters[2]->busy(0.2), 'after the workers were started again: the third one waits on');
	$_->close foreach @waiters;
	await_waiting(0);
}

# ------------------------------------------------------------------------------------------------
# Shutdown
# ------------------------------------------------------------------------------------------------

{
	my @waiters = map { waiter($_) } $pop, $call;

	await_waiting(2);
	$node->stop('fast');
	is($_->result->{error}, '57P01', 'fast shutdown ends the wait') foreach @waiters;
	$node->start;
	$main = QlogWire->to($node);
	@waiters = map { waiter($_) } $pop, $call;
	await_waiting(2);
	my @pids = map { $_->pid } @waiters;
	my $postmaster = $node->postmaster_pid;
	kill 'KILL', $postmaster;
	$node->wait_until(sub { !grep { QlogNode::process_alive($_) } @pids }, 'waiters to end with the postmaster');
	ok($_->result->{closed}, 'the death of the postmaster ends the wait') foreach @waiters;
	$node->kill9_everything if QlogNode::process_alive($postmaster);
	$node->{_pid} = undef;
	$node->wait_until(sub { !QlogNode::process_alive($postmaster) }, 'the postmaster to be gone');
	$node->start;
	is($node->sql("select waiting from qlog_stat_queues where queue = 'q'"), '0', 'nobody waits after the start');
	$node->stop;
}

done_testing();
