# Something takes for ever: the sync of a log, room for a log, a checkpoint, recovery. Whoever does not need it goes on, and
# functions say what they are waiting for.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(usleep);

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'", 'max_connections = 40' ]);

$node->sql(q{
	select queue_create('a'); select queue_create('b'); create table t(n int);
	select queue_push('a', i::text) from generate_series(1, 10) i; select queue_push('b', i::text) from generate_series(1, 10) i});

# A session that stops at the point.
sub stop_session
{
	my ($point, $sql) = @_;
	my $mark = -s $node->logfile;
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "set qlog.debug_stop = '$point'", '-c', $sql ],
		'<', \undef, '>', \my $out, '2>', \my $err);

	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, "a session to reach $point");
	return $handle;
}

# Everything is killed, and starts again.
sub restart
{
	my (@handles) = @_;

	$node->kill9_everything;
	eval { $_->finish } foreach @handles;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	return;
}

# ------------------------------------------------------------------------------------------------
# The sync of a log
# ------------------------------------------------------------------------------------------------
{
	my $stopped = stop_session('after-write-before-sync', q{select queue_push('a', '"stopped"')});

	# No lock that appenders or readers need is held: work that waits for no sync goes on, in the same log and in others.
	$node->sql(q{set synchronous_commit = off; select queue_push('a', '"beside"'); select queue_push('b', '"beside"')});
	pass('a stalled sync: pushes that do not wait for it return');
	is($node->sql(q{select count(*) from queue_peek('b', batch => 100) where payload #>> '{}' = 'beside'}), '1',
		'a stalled sync: and are seen');
	is($node->sql(q{set synchronous_commit = off; select count(*) from queue_pop('a', 5) where queue_renew(lease_id, '1 h') is not null}),
		'5', 'a stalled sync: messages are popped and leases renewed');
	$node->sql(q{begin; insert into t values (1); select queue_push('a', '"undone"'); rollback});
	is($node->sql(q{select count(*) > 0 from qlog_stat_queues}), 't', 'a stalled sync: views are shown');

	is($node->sql('select checkpoint_seq <= durable_seq from qlog_stat_log'), 't',
		'a stalled sync: the mark does not pass what is durable');

	# Who waits for it can be seen waiting and can be ended from outside by an immediate stop only, as for the WAL.
	my $waits = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q{select queue_push('b', '"waits"')} ],
		'<', \undef, '>', \my $out, '2>', \my $err);
	$node->poll_sql(q{select count(*) = 1 from pg_stat_activity where wait_event = 'QlogSync' and query like '%waits%'});
	pass('a stalled sync: a commit that needs one waits and says for what');
	restart($stopped, $waits);
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100) where payload #>> '{}' in ('stopped', 'beside')}), '2',
		'what was written and not synced is there after a kill');
}

# Whoever waits for another one's sync has committed: neither cancel nor termination ends that wait, and the message is there,
# once, when the sync is over.
{
	my $leads = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', 'set qlog.commit_delay = 100000; set qlog.commit_siblings = 0',
			'-c', q{do $$ begin loop perform queue_push('a', '"leads"'); commit; end loop; end $$}
		],
		'<', \undef, '>', \my $out, '2>', \my $err);

	$node->poll_sql(q{select count(*) = 1 from pg_stat_activity where query like 'do %leads%'});
	my $leader = $node->sql(q{select pid from pg_stat_activity where query like 'do %leads%'});
	foreach my $how (qw(pg_cancel_backend pg_terminate_backend))
	{
		my $waits = qq{wait_event = 'QlogSync' and query like '%"$how"%' and query not like '%pg_stat_activity%'};
		my ($follows, $n, $pushed) = (undef, 0, '');

		# Nearly all the time it stands where it leads and gives others time to join.
		while ($n == 0)
		{
			kill 'STOP', $leader;
			$follows = IPC::Run::start(
				[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', qq{select queue_push('b', '"$how"')} ],
				'<', \undef, '>', \$pushed, '2>', \my $said);
			for (1 .. 50)
			{
				$follows->pump_nb;
				$n = $node->sql("select count(*) from pg_stat_activity where $waits");
				last if $n > 0;
				usleep(20_000);
			}
			last if $n > 0;
			kill 'CONT', $leader;
			$follows->finish;
		}
		my $before = $node->sql(qq{select $how(pid) from pg_stat_activity where $waits});
		is($before, 't', "$how: a commit waits for another one's sync");
		is($node->sql("select count(*) from pg_stat_activity where $waits"), '1', "$how: and goes on waiting");
		kill 'CONT', $leader;
		eval { $follows->finish };
		like($pushed, qr/^[0-9a-f-]{36}$/m, "$how: a cancelled commit answers all the same") if $how eq 'pg_cancel_backend';
		$node->poll_sql(qq{select count(*) = 0 from pg_stat_activity where $waits});
		cmp_ok($node->sql(qq{select count(*) from queue_peek('b', batch => 1000) where payload #>> '{}' = '$how'}), '>=', 1,
			"$how: the message is there");
		is($node->sql(qq{select count(*) - count(distinct message_id) from queue_peek('b', batch => 1000)}), '0', "$how: nothing is there twice");
	}
	$node->sql("select pg_terminate_backend($leader)");
	eval { $leads->finish };
}

# ------------------------------------------------------------------------------------------------
# Room for a log
# ------------------------------------------------------------------------------------------------
{
	my $large = q{select queue_push('a', to_json(string_agg(md5(random()::text), ''))::text) from generate_series(1, 12000)};
	my $stopped = stop_session('extend-before-io', $large);

	$node->sql(q{select queue_push('a', '"small"'); select queue_push('b', '"small"')});
	pass('making room stalls: pushes that have room go on, in that log too');
	is($node->sql(q{select count(*) from queue_peek('b', batch => 100) where payload #>> '{}' = 'small'}), '1',
		'making room stalls: and are seen');
	$node->sql(q{select queue_ack(lease_id) from (select distinct lease_id from queue_pop('b', 3)) x});
	pass('making room stalls: pops and acknowledgements too');

	# Others that need room wait, and can be cancelled and terminated.
	foreach my $how (qw(pg_cancel_backend pg_terminate_backend))
	{
		my $err = '';
		my $waits = IPC::Run::start(
			[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "/* waits */ $large" ],
			'<', \undef, '>', \my $out, '2>', \$err);

		$node->poll_sql(q{select count(*) = 1 from pg_stat_activity where wait_event is not null and query like '/* waits */%'});
		$node->sql("select $how(pid) from pg_stat_activity where query like '/* waits */%'");
		eval { $waits->finish };
		like($err, qr/canceling statement|terminating connection/, "making room stalls: $how ends one that waits for it");
	}
	restart($stopped);
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100) where length(payload #>> '{}') > 100}), '0',
		'neither of the large ones is there');
}

# ------------------------------------------------------------------------------------------------
# A checkpoint
# ------------------------------------------------------------------------------------------------
{
	my $mark = -s $node->logfile;

	$node->sql(q{alter system set qlog.debug_stop = 'checkpoint-before-apply'});
	$node->sql('select pg_reload_conf()');
	$node->wait_until(sub {
			$node->sql(q{select queue_push('b', '"work"')});
			$node->log_contains('stopped at "checkpoint-before-apply"', $mark) }, 'the checkpointer to stop');
	$node->sql(q{begin; insert into t values (1); select queue_push('a', '"joint"'); commit});
	$node->sql(q{select queue_ack(lease_id) from (select distinct lease_id from queue_pop('b', 3)) x});
	$node->sql(q{select queue_create('d'); select queue_push('d', i::text, 'p' || i) from generate_series(1, 500) i});
	is($node->sql(q{select ready from qlog_stat_queues where queue = 'd'}), '500', 'a checkpoint stalls: work goes on');
	$node->sql('checkpoint');
	pass(q{a checkpoint stalls: PostgreSQL's own completes});
	restart();
	is($node->sql(q{select ready from qlog_stat_queues where queue = 'd'}), '500', 'a checkpoint stalls: nothing is lost');
}

# ------------------------------------------------------------------------------------------------
# Recovery
# ------------------------------------------------------------------------------------------------
{
	$node->sql(q{select queue_push('b', '"tail"')});
	my $count = $node->sql(q{select count(*) from queue_peek('b', batch => 100)});

	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = 'recovery-end'");
	my $mark = -s $node->logfile;
	$node->start;
	$node->wait_until(sub { $node->log_contains('stopped at "recovery-end"', $mark) }, 'recovery to stop');

	# Nothing is answered from a state that is not complete: not a push, not a look, not the statistics.
	my @calls = (
		q{select queue_push('b', '1')}, q{select * from queue_pop('b')}, q{select * from queue_peek('b')},
		q{select queue_create('e')}, q{select * from qlog_queues}, q{select * from qlog_stat_queues}, q{select * from qlog_leases});
	is($node->sqlstate("set qlog.recovery_wait = '50ms'; $_"), '57P03', "recovering: $_") foreach @calls;
	is($node->sqlstate(qq{set statement_timeout = '100ms'; $calls[0]}), '57014', 'recovering: a call that waits can be cancelled');
	like($node->sql(q{select state from qlog_stat_workers where role = 'checkpointer'}), qr/^recovering/, 'recovering: the view says so');
	is($node->sql('select count(*) from t'), '1', 'recovering: tables are served');
	my ($rc, $out, $err) = $node->psql('postgres', "set qlog.recovery_wait = '50ms'; $calls[0]");
	like($err, qr/starting up/, 'recovering: the reason is raised');

	# A call that waits is answered when it is over.
	restart();
	is($node->sql(q{select count(*) from queue_peek('b', batch => 100)}), $count, 'recovered: nothing is lost');
	$node->kill9_everything;
	$node->start;
	is($node->sql(q{set qlog.recovery_wait = '1 h'; select count(*) from queue_peek('b', batch => 100)}), $count,
		'a call right after the start waits and is answered');
}
$node->stop;

done_testing();
