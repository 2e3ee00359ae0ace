# Cancel, terminate, statement_timeout, client loss and shutdown under load: the contract holds and nothing leaks.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(usleep);

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '2MB'", 'max_connections = 60' ]);

$node->sql("select queue_create('q'); create table t(n bigint generated always as identity, c int)");

# Load: rows with messages, pops with acks, plain pushes.
my $joint = "$PostgreSQL::Test::Utils::tmp_check/joint.sql";
open(my $fh, '>', $joint) or die $!;
print $fh <<'SQL';
begin;
insert into t(c) values (:client_id) returning n \gset
select queue_push('q', json_build_object('n', :n, 'pad', repeat('x', (random() * 500)::int))::text);
commit;
SQL
close $fh;
my $consume = "$PostgreSQL::Test::Utils::tmp_check/consume.sql";
open($fh, '>', $consume) or die $!;
print $fh <<'SQL';
begin;
with p as materialized (select * from queue_pop('q', 20)), i as (insert into done select (payload->>'n')::bigint from p)
select coalesce(max(lease_id), 0) as lease from p \gset
select queue_ack(:lease);
commit;
SQL
close $fh;
$node->sql('create table done(n bigint)');

sub load_start
{
	my ($script, $clients, $seconds) = @_;
	my $run = {};

	$run->{handle} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $clients, '-T', $seconds, '-f', $script, $node->connstr('postgres') ],
		'<', \undef, '>', \$run->{out}, '2>', \$run->{err});
	return $run;
}

sub check
{
	my ($what) = @_;

	# What was rolled back or lost its connection gave its lease back; pop and acknowledge the rest.
	$node->sql(
		q{do $$ declare k bigint; l bigint; begin
		  loop
		    with p as materialized (select * from queue_pop('q', 1000)), i as (insert into done select (payload->>'n')::bigint from p)
		    select count(*), max(lease_id) into k, l from p;
		    exit when k = 0;
		    perform queue_ack(l);
		    commit;
		  end loop;
		end $$});
	is($node->sql('select count(*) from t full join done using (n) where t.n is null or done.n is null'), '0',
		"$what: every row has its message, and no message is without a row");
	is($node->sql('select count(*) - count(distinct n) from done'), '0', "$what: nothing is done twice");
	is($node->sql("select ready || ' ' || leased from qlog_stat_queues where queue = 'q'"), '0 0', "$what: nothing leaks");
	is($node->sql('select count(*) from qlog_leases'), '0', "$what: no lease is left");
}

foreach my $how (qw(pg_cancel_backend pg_terminate_backend))
{
	my @runs = map { load_start($_, 4, 5) } $joint, $consume;
	my $end = time + 4;

	while (time < $end)
	{
		$node->psql('postgres',
			"select $how(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 2");
		usleep(30_000);

		# pgbench gives a client up when its connection is gone: start others.
		push @runs, load_start($_, 2, 2) foreach grep { rand() < 0.1 } $joint, $consume;
	}
	eval { $_->{handle}->finish } foreach @runs;
	check($how);
}

# statement_timeout and a lock that a commit waits for.
{
	my @runs = map { load_start($_, 4, 3) } $joint, $consume;

	for (1 .. 30)
	{
		$node->psql('postgres',
			"set statement_timeout = '5ms'; begin; insert into t(c) values (99); select queue_push('q', json_build_object('n', currval('t_n_seq'))::text), pg_sleep(0.02); commit");
		usleep(50_000);
	}
	eval { $_->{handle}->finish } foreach @runs;
	check('statement_timeout');
}

# Shutdown under load.
foreach my $mode (qw(fast immediate))
{
	my @runs = map { load_start($_, 8, 30) } $joint, $consume;

	sleep 2;
	my $begin = time;
	$node->stop($mode);
	cmp_ok(time - $begin, '<', 30, "$mode shutdown under load ends");
	eval { $_->{handle}->finish } foreach @runs;
	$node->start;
	check("$mode shutdown");
}

# A backend that crashes inside the server's life.
{
	my @runs = map { load_start($_, 4, 30) } $joint, $consume;

	sleep 1;
	my ($victim) = split /\n/,
	  $node->sql("select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1");
	kill 'KILL', $victim;
	eval { $_->{handle}->finish } foreach @runs;
	$node->poll_sql("select count(*) >= 0 from queue_peek('q')");
	check('crashed backend');
}

# Workers that are killed are back, and a guard that is stopped is safe.
{
	my @runs = map { load_start($_, 4, 6) } $joint, $consume;
	my @guards = $node->pids_named(qr/qlog.*guard/i);

	cmp_ok(scalar @guards, '>=', 2, 'two guards run');
	kill 'STOP', $guards[0];

	# A checkpoint waits for a guard whose flag stands, so it must not be waited for while the guard is stopped.
	my ($out, $err) = ('', '');
	my $checkpoint = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-c', 'checkpoint' ],
		'<', \undef, '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

	sleep 1;
	kill 'CONT', $guards[0];
	ok($checkpoint->finish, 'a checkpoint completes once the stopped guard goes on');
	kill 'TERM', $guards[1];
	eval { $_->{handle}->finish } foreach @runs;
	$node->kill9_everything;
	$node->start;
	check('guards stopped and terminated');
	$node->poll_sql("select count(*) >= 3 from qlog_stat_workers where pid is not null");
	pass('the workers are back');
}
$node->stop;

done_testing();
