# Memory and space driven to full: a clean error before commit, nothing lost, service resumes when there is room.

use strict;
use warnings;

use QlogNode;
use Test::More;

# state_memory: partitions until it is full.
{
	my $node = QlogNode->started('state', conf => [ "qlog.state_memory = '8MB'", "qlog.index_memory = '1MB'" ]);
	my $made = 0;
	my $state;

	$node->sql("select queue_create('q')");
	$node->sql("select queue_push('q', '\"kept\"')");
	until (defined $state || $made >= 200)
	{
		$state = $node->sqlstate(
			"select count(queue_push('q', '1', 'p$made-' || i)) from generate_series(1, 1000) i");
		$made++;
	}
	is($state, '53200', 'state_memory full: 53200');
	is($node->sql("select payload #>> '{}' from queue_peek('q', '', batch => 1)"), 'kept', 'what was there is there');
	my $count = $node->sql("select pushed from qlog_stat_queues where queue = 'q'");
	is($count, ($made - 1) * 1000 + 1, 'the refused transaction left nothing');
	$node->sql("select queue_push('q', '\"on\"')");
	is($node->sql("select count(*) from queue_peek('q', '', batch => 10)"), '2',
		'existing partitions still take messages, as far as there is room');
	$node->kill9_everything;
	$node->start;
	is($node->sql("select pushed from qlog_stat_queues where queue = 'q'"), $count + 1, 'and it starts again like that');
	$node->sql("select queue_drop('q')");
	$node->poll_sql("select count(queue_push('r', '1', 'p' || i)) = 1000 from generate_series(1, 1000) i");
	pass('service resumes when a queue is dropped');
	$node->stop;
}

# index_memory: oldest entries give way, messages are found in the files.
{
	my $node = QlogNode->started('index', conf => [ "qlog.index_memory = '1MB'", "qlog.segment_size = '4MB'" ]);

	$node->sql("select queue_create('q')");
	$node->sql("do \$\$ begin for i in 1 .. 60 loop for j in 1 .. 1000 loop perform queue_push('q', to_json(i * 1000 + j)::text); commit; end loop; end loop; end \$\$");
	my $bad = $node->sql(
		q{create table got(n int);
		do $$ declare k int; l bigint; begin
		  loop
		    with p as materialized (select * from queue_pop('q', 500)), i as (insert into got select (payload #>> '{}')::int from p)
		    select count(*), max(lease_id) into k, l from p;
		    exit when k = 0;
		    perform queue_ack(l);
		    commit;
		  end loop;
		end $$;
		select count(*) || ' ' || count(distinct n) || ' ' || min(n) || ' ' || max(n) from got});
	is($bad, '60000 60000 1001 61000', 'index_memory full: every message is found, in the files if need be');
	$node->stop;
}

# The checkpoint store at its limit: new work is refused, nothing is lost, a larger limit resumes service.
{
	my $node = QlogNode->started('store',
		conf => [ "qlog.checkpoint_max_size = '1MB'", "qlog.checkpoint_timeout = '100ms'" ]);
	my $state;

	$node->sql("select queue_create('q')");
	for my $i (1 .. 60)
	{
		$state = $node->sqlstate(
			"select count(queue_push('q', '1', 'p$i-' || j)) from generate_series(1, 1000) j; select pg_sleep(0.15)");
		last if defined $state;
	}
	like($state // 'none', qr/^53/, 'checkpoint store full: an error of class 53');
	my $count = $node->sql("select pushed from qlog_stat_queues where queue = 'q'");
	like($node->sql("select last_error from qlog_stat_workers where role like 'checkpoint%'"), qr/./,
		'the view says why');
	$node->append_conf('postgresql.conf', "qlog.checkpoint_max_size = '1GB'\n");
	$node->restart;
	is($node->sql("select pushed from qlog_stat_queues where queue = 'q'"), $count, 'nothing is lost');
	$node->sql("select queue_push('q', '1')");
	pass('service resumes with a larger limit');
	$node->stop;
}

# A message, a transaction and a number of partitions over the limits.
{
	my $node = QlogNode->started('sizes',
		conf => [ "qlog.max_message_size = '1MB'", "qlog.max_transaction_bytes = '4MB'", "qlog.segment_size = '4MB'" ]);

	$node->sql("select queue_create('q')");
	is($node->sqlstate("select queue_push('q', to_json(repeat('x', 1024 * 1024 - 2))::text)"), undef, 'a message at the limit');
	is($node->sqlstate("select queue_push('q', to_json(repeat('x', 1024 * 1024 - 1))::text)"), '54000', 'one byte more: 54000');
	is($node->sqlstate("select queue_push('q', to_json(repeat('x', 1000000))::text) from generate_series(1, 5)"), '54000',
		'a transaction over the limit: 54000');
	is($node->sqlstate("select queue_push('q', '1', 'p' || i) from generate_series(1, 4097) i"), '54000',
		'too many partitions in one transaction: 54000');
	is($node->sqlstate("select queue_push('q', '1', 'p' || i) from generate_series(1, 4096) i"), undef, 'as many as there may be');
	is($node->sql("select pushed from qlog_stat_queues where queue = 'q'"), '4097', 'refused ones left nothing');
	$node->stop;
}

# What can never fit into a log file is refused by the call, not by the COMMIT.
{
	my $node = QlogNode->started('files', conf => [ "qlog.segment_size = '1MB'" ]);
	my $half = 512 * 1024;
	my ($rc, $out, $err);

	$node->sql("select queue_create('q'); create table t(n int)");
	ok($node->log_contains('messages are limited to less than 512 kB'), 'the start says which limit counts');

	# Every way to push: as JSON, with a dedup id, with headers, delayed, in a batch.
	foreach my $call (
		'queue_push(%s, %s)',
		"queue_push(%s, %s, dedup_id => 'd')",
		"queue_push(%s, '1', headers => %s::json)",
		"queue_push(%s, %s, deliver_at => now() + interval '1 hour')",
		'queue_push_batch(%s, array[%s])')
	{
		my $push = sub { return sprintf "select count(*) from $call;", "'q'", "to_json(repeat('x', $_[0] - 2))::text" };

		($rc, $out, $err) = $node->psql('postgres',
			"begin; insert into t values (1); savepoint s; \\set VERBOSITY verbose\n" . $push->($half)
			  . " rollback to s; insert into t values (2); commit;", on_error_stop => 0);
		like($err, qr/ERROR:  54000: message is too large\nDETAIL:  Its record of \d+ bytes would not fit into half a log file of 1 MB\.\nHINT:  Consider raising "qlog\.segment_size"\./,
			"half a log file, $call: refused by the call");
		is($node->sqlstate($push->($half - 200)), undef, "a little less, $call: fits");
	}
	is($node->sql('select count(*) from t'), '10', 'and the transactions went on');
	is($node->sql("select pushed || ' ' || delayed from qlog_stat_queues where queue = 'q'"), '5 1', 'what was refused left nothing');

	# The entry of a transaction: delayed messages have an effect each when their times differ.
	my $delayed = "select count(queue_push('q', '1', deliver_at => now() + i * interval '1 minute')) from generate_series(1, %d) i;";
	($rc, $out, $err) = $node->psql('postgres',
		"begin; savepoint s; \\set VERBOSITY verbose\n" . sprintf($delayed, 20000) . ' rollback to s; ' . sprintf($delayed, 5000) . ' commit;',
		on_error_stop => 0);
	like($err, qr/ERROR:  54000: transaction has too much queue work\nDETAIL:  Its log entry would not fit into half a log file of 1 MB\.\nHINT:  Commit more often, or raise "qlog\.segment_size"\./,
		'an entry that does not fit: refused by the call');
	is($node->sql("select delayed from qlog_stat_queues where queue = 'q'"), '5001', 'a smaller one after a savepoint is committed');
	is($node->sqlstate("select count(queue_push('q', '1', deliver_at => now() + interval '1 day')) from generate_series(1, 40000)"), undef,
		'messages of one time have one effect');
	$node->stop;
}

done_testing();
