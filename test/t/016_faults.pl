# A full disk and failing files, ordered through qlog.debug_fault: a clean error before the commit, nothing lost, and service
# resumes when the fault is gone. A failed sync is final: the server starts anew from what the disk has.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '200ms'", "qlog.log_flush_interval = '20ms'", 'qlog.disk_reserve = 0' ]);
my $dir = $node->qlog_dir;
my $full = 'create=ENOSPC, extend=ENOSPC';
my $number = 0;

# Rows and messages of queue j, pushed together.
sub joint_sql
{
	my ($pad) = @_;

	$number++;
	$pad ||= 0;
	return "begin; insert into t values ($number); select queue_push('j', json_build_object('n', $number, 'pad', noise($pad))::text); commit";
}

sub rows { return $node->sql(q{select coalesce(string_agg(n::text, ',' order by n), '') from t}) }

sub messages
{
	return $node->sql(q{select coalesce(string_agg(payload->>'n', ',' order by (payload->>'n')::int), '')
		from queue_peek('j', batch => 1000000)});
}

# Runs SQL until it fails, at most 1,000 times: how often it went well, and the SQLSTATE.
sub until_fails
{
	my ($sql) = @_;

	foreach my $count (0 .. 999)
	{
		my $state = $node->sqlstate(ref $sql ? $sql->() : $sql);
		return ($count, $state) if defined $state;
	}
	return (1000, 'none');
}

# Position behind the last byte of the file that is not zero.
sub written_end { return length(slurp_file($_[0]) =~ s/\0+\z//r) }

sub logs { return join ' ', sort map { m{/(q\d+[^/]*)$} } glob "$dir/qlog/q*" }

# Text of this many characters that does not shrink.
$node->sql(q{create function noise(n int) returns text language sql as
	$$ select coalesce(string_agg(md5(random()::text), ''), '') from generate_series(1, n / 32) $$});
$node->sql(q{select queue_create('a'); select queue_create('b', '{"retry_limit": -1}'); select queue_create('j'); create table t(n int primary key);
	select queue_push('b', i::text) from generate_series(1, 50) i});
$node->sql(joint_sql()) for 1 .. 3;
is($node->sqlstate("set qlog.debug_fault = 'sync=EWHAT'"), '22023', 'an order that nobody understands is refused');
is($node->sqlstate("set qlog.debug_fault = 'lunch=EIO'"), '22023', 'as is one for a place that there is not');

# ------------------------------------------------------------------------------------------------
# No room for the logs
# ------------------------------------------------------------------------------------------------
{
	my $before = logs();
	my ($pushed, $state);

	$node->fault($full);
	($pushed, $state) = until_fails(q{select queue_push('a', to_json(noise(9000))::text)});
	is($state, '53100', "log full: 53100, after $pushed pushes");
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $pushed,
		'log full: what was acknowledged is there, and nothing else');
	is($node->sqlstate(q{select queue_push('a', to_json(noise(9000))::text)}), '53100', 'log full: and again');

	(undef, $state) = until_fails(sub { joint_sql(3000) });
	is($state, '53100', 'log full: 53100 for a transaction with a table');
	is(messages(), rows(), 'log full: rows and messages agree');

	# Nothing remains of a queue that could not be made.
	is($node->sqlstate(q{select queue_create('new')}), '53100', 'log full: no queue can be made');
	is($node->sqlstate(q{select queue_push('new', '1')}), '53100', 'log full: not by a push either');
	is($node->sqlstate(q{begin; insert into t values (-1); select queue_create('new'); commit}), '53100',
		'log full: nor with a table');
	$node->fault('extend=ENOSPC');
	is($node->sqlstate(q{select queue_create('new')}), '53100', 'log full: nor when only its file finds no room');
	is(logs(), $before, 'log full: no directory is left of any of them');
	is($node->sql(q{select count(*) from qlog_queues where queue = 'new'}), '0', 'log full: and no queue');
	$node->fault($full);

	# What needs no more room goes on, PostgreSQL's checkpoints among it.
	is($node->sql(q{select queue_ack(lease_id) from (select distinct lease_id from queue_pop('b', 10)) x}), '10',
		'log full: messages are popped and acknowledged while the system log has room');
	$node->sql('checkpoint');
	pass('log full: a checkpoint completes');

	# Until there is none.
	(undef, $state) = until_fails(q{select count(*) from queue_pop('b', 1, lease => '1 day') p, queue_nack(p.lease_id)});
	is($state, '53100', 'system log full: 53100 for a pop');
	is($node->sql(q{select ready || ' ' || leased from qlog_stat_queues where queue = 'b'}), '40 0',
		'system log full: it has taken nothing');
	(undef, $state) = until_fails(sub { joint_sql() });
	is($state, '53100', 'system log full: 53100 for a transaction with a table');
	$node->sql('checkpoint');
	pass('system log full: a checkpoint completes');

	# A server that dies starts again without more room.
	$node->kill9_everything;
	$node->start;
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $pushed,
		'log full: nothing is lost over a crash');
	is(messages(), rows(), 'log full: rows and messages agree after it');
	is($node->sqlstate(q{select queue_push('a', to_json(noise(9000))::text)}), '53100',
		'log full: the log is as full as before');

	$node->fault('');
	$node->sql(q{select queue_push('a', to_json(noise(9000))::text)});
	$node->sql(joint_sql(9000));
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $pushed + 1, 'with room pushes go on');
	is(messages(), rows(), 'transactions with tables too');
	is($node->sql(q{select count(*) from queue_pop('b', 100)}), '40', 'pops too');
	$node->sql(q{select queue_create('new'); select queue_drop('new')});
	pass('and queues can be made');
	my ($rc, $out, $err) = $node->qlog_dump('--verify');
	is($rc, 0, 'the directory is sound') or diag "$out$err";
}

# Other reasons than room.
foreach my $case ([ 'extend=EIO', '58030' ], [ 'create=EMFILE', '58030' ])
{
	my ($fault, $expected) = @$case;

	$node->fault($fault);
	my ($pushed, $state) = until_fails(q{select queue_push('a', to_json(noise(90000))::text)});
	is($state, $expected, "$fault: $expected");
	$node->fault('');
	$node->sql(q{select queue_push('a', '"on"')});
	pass("$fault: and on without it");
}

# ------------------------------------------------------------------------------------------------
# No room for the checkpoint
# ------------------------------------------------------------------------------------------------
foreach my $fault ('store=ENOSPC', 'store=EIO')
{
	my ($pushed, $state);

	$node->fault($fault);
	($pushed, $state) = until_fails(q{select queue_push('c', '1'), pg_sleep(0.05)});
	is($state, '53100', "$fault: pushes are refused after $pushed");
	like($node->sql(q{select last_error from qlog_stat_workers where role = 'checkpointer'}), qr/could not store a checkpoint/,
		"$fault: the view says why");
	cmp_ok($node->sql(q{select count(*) from queue_pop('a', 3, auto_ack => true)}), '>', 0,
		"$fault: messages can be taken out all the same");
	my $kept = $node->sql(q{select count(*) from queue_peek('a', batch => 100000)});
	is(messages(), rows(), "$fault: rows and messages agree");
	$node->kill9_everything;
	$node->start;
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $kept, "$fault: nothing is lost over a crash");
	$node->fault('');
	$node->poll_sql(q{select last_error is null or last_error = '' from qlog_stat_workers where role = 'checkpointer'});
	$node->sql(q{select queue_push('c', '1')});
	is($node->sql(q{select count(*) from queue_peek('c', batch => 100000)}), $pushed + 1, "$fault: and pushes go on");
	$node->sql(q{select queue_drop('c')});
}

# ------------------------------------------------------------------------------------------------
# Reading and writing
# ------------------------------------------------------------------------------------------------
foreach my $fault ('read=EIO', 'open=EMFILE', 'write=EIO')
{
	my $before = $node->sql(q{select ready || ' ' || leased from qlog_stat_queues where queue = 'j'});

	is($node->sqlstate("set qlog.debug_fault = '$fault'; select count(*) from queue_pop('j', 1)"), '58030',
		"$fault: a pop raises 58030");
	is($node->sql(q{select ready || ' ' || leased from qlog_stat_queues where queue = 'j'}), $before,
		"$fault: and has taken nothing");
	is(messages(), rows(), "$fault: others go on");
}

# A sync that failed has lost what it should have saved, although it reads back: the server starts anew.
foreach my $sql (q{select queue_push('a', '"synced?"')}, joint_sql(20000))
{
	my $acknowledged = $node->sql(q{select count(*) from queue_peek('a', batch => 100000)});
	my $mark = -s $node->logfile;

	my ($rc, $out, $err) = $node->psql('postgres', "set qlog.debug_fault = 'sync=EIO'; $sql");
	like($err, qr/could not sync the log|server closed the connection/, 'a failed sync is not survived');
	$node->wait_until(sub { $node->log_contains('qlog: ready', $mark) }, 'the server to start anew');
	ok($node->log_contains('PANIC:  could not sync the log', $mark), 'the reason is in the log');
	my $now = $node->sql(q{select count(*) from queue_peek('a', batch => 100000)});
	cmp_ok($now, '>=', $acknowledged, 'everything acknowledged is there');
	is(messages(), rows(), 'rows and messages agree');
	$node->sql(q{select queue_push('a', '"after"')});
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $now + 1, 'and work goes on');
}

# ------------------------------------------------------------------------------------------------
# At the start
# ------------------------------------------------------------------------------------------------

# Redo cannot keep what the WAL has for us: PostgreSQL's recovery ends, and is repeated.
{
	$node->sql(joint_sql()) for 1 .. 3;
	$node->freeze('walwriter');
	$node->kill9_everything;
	$node->append_conf('postgresql.conf', "qlog.debug_fault = 'stash=ENOSPC'");
	my $mark = -s $node->logfile;
	ok(!$node->start(fail_ok => 1), 'the server does not start without room for the stash');
	ok($node->log_contains('could not write file ".*stash', $mark), 'and says why');
	$node->append_conf('postgresql.conf', "qlog.debug_fault = ''");
	$node->start;
	is(messages(), rows(), 'with room it does, and rows and messages agree');
}

# qlog's recovery has to keep bytes that it cuts, and there is no room: it waits for some, by itself.
{
	my $count = $node->sql(q{select count(*) from queue_peek('a', batch => 100000)});

	$node->stop;
	# The last file that holds records; one made ahead may follow it.
	my ($active) = grep { written_end($_) > 32 } reverse sort glob "$dir/qlog/q1/r*.qlog";
	my $end = written_end($active);
	open(my $fh, '+<', $active) or die $!;
	seek $fh, $end + 8, 0;
	print $fh 'torn';
	close $fh;
	$node->append_conf('postgresql.conf', "qlog.debug_fault = '$full'");
	$node->start;
	is($node->sqlstate(q{select queue_push('a', '"x"')}), '53100', 'no room to keep what is cut: 53100');
	like($node->sql(q{select state || ': ' || last_error from qlog_stat_workers where role = 'checkpointer'}),
		qr/failed: could not recover/, 'the view says so');
	ok(!glob("$active.cut.*"), 'nothing is cut');
	$node->append_conf('postgresql.conf', "qlog.debug_fault = ''");
	$node->reload;
	my $mark = -s $node->logfile;
	$node->wait_until(sub { $node->log_contains('qlog: ready', $mark) }, 'the start to be tried again');
	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $count, 'with room it starts, nothing is lost');
	ok(glob("$active.cut.*"), 'and the cut bytes are kept');
	$node->sql(q{select queue_push('a', '"x"')});
	pass('and work goes on');
}
$node->stop;

done_testing();
