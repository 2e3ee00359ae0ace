# Every kind of file operation fails, for the whole server and for a while: a clean error or none, never an end of the server, nothing
# acknowledged lost; a start under the same fault serves or says why; without the fault all goes on.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '50ms'", "qlog.log_flush_interval = '20ms'" ]);
my ($pushed, $number, $made) = (0, 0, 0);

$node->sql(q{
	create function noise(n int) returns text language sql as
	$$ select string_agg(md5(random()::text), '') from generate_series(1, n / 32) $$;
	select queue_create('a'); select queue_create('b', '{"retry_limit": -1}'); select queue_create('j'); create table t(n int primary key);
	create table acked(id uuid primary key);
	select count(queue_push('b', i::text)) from generate_series(1, 2000) i});

# Work of every kind; returns the errors that there were.
sub work
{
	my %errors;
	my $try = sub {
		my ($sql) = @_;
		my $state = $node->sqlstate($sql);

		$errors{$state}++ if defined $state;
		return !defined $state;
	};

	for (1 .. 12)
	{
		$pushed++ if $try->(q{select queue_push('a', to_json(noise(150000))::text)});
		$number++;
		$try->("begin; insert into t values ($number); select queue_push('j', json_build_object('n', $number, 'pad', noise(3000))::text); commit");
		$try->(q{begin; with p as materialized (select * from queue_pop('b', 5)), i as (insert into acked select message_id from p) select queue_ack(lease_id) from p limit 1; commit});
		$made++;
		$try->("select queue_create('made $made'); select queue_push('made $made', '1')");
		$try->("select queue_drop('made $made', if_exists => true)");
	}
	$try->('checkpoint');
	return join ' ', sort keys %errors;
}

sub check
{
	my ($when) = @_;

	is($node->sql(q{select count(*) from queue_peek('a', batch => 100000)}), $pushed, "$when: what was pushed is there");
	is( $node->sql(q{select count(*), sum((payload->>'n')::int) from queue_peek('j', batch => 100000)}),
		$node->sql('select count(*), sum(n) from t'), "$when: rows and messages agree");
	is( $node->sql(q{select 2000 - count(*) from acked}),
		$node->sql(q{select ready + leased from qlog_stat_queues where queue = 'b'}),
		"$when: answers and rows agree");
	return;
}

foreach my $fault ('create=ENOSPC, extend=ENOSPC', 'create=EIO', 'extend=EIO', 'rename=EIO', 'rename=ENOSPC', 'unlink=EIO',
	'truncate=EIO', 'store=ENOSPC', 'store=EIO', 'measure=ENOSPC', 'reserve=ENOSPC')
{
	my $mark = -s $node->logfile;

	$node->fault($fault);
	like(work(), qr/^(53100|58030)?( 58030)?$/, "$fault: clean errors, or none");
	check($fault);

	# The same at a start.
	$node->kill9_everything;
	if ($node->start(fail_ok => 1))
	{
		my $state = $node->sqlstate(q{select count(*) from queue_peek('a', batch => 1)});

		ok(!defined $state || $state =~ /^(53100|58030)$/, "$fault: a start serves, or its calls say why")
		  or diag $state;
		$node->fault('');

		# A start that has failed is tried again for lack of room only.
		$node->restart if defined $state && $state eq '58030';
	}
	else
	{
		ok($node->log_contains('FATAL:  could not .* file ".*stash"', $mark), "$fault: a start that cannot keep what the WAL has says so");
		$node->append_conf('postgresql.auto.conf', "qlog.debug_fault = ''\n");
		$node->start;
	}
	$node->wait_until(sub { !defined $node->sqlstate(q{select queue_push('a', '1')}) }, "pushes after $fault");
	$pushed++;
	check("after $fault");
	is(work(), '', "after $fault: all goes on");
	ok(!$node->log_contains('PANIC', $mark), "$fault: the server did not end");
}
$node->restart;
check('after a restart');
is($node->sql(q{select count(*) from qlog_queues where queue like 'made %'}), '0', 'what was dropped is gone');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'the directory is sound') or diag "$out$err";

done_testing();
