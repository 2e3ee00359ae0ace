# Exactly once with tables: concurrent producers and consumers under random kills of backends and of the whole server,
# and a storm of CHECKPOINTs; then tables and queue are compared.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = time ^ $$;
srand($seed);
note "seed $seed";

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", 'max_connections = 60', "qlog.checkpoint_timeout = '200ms'" ]);

# A message whose transactions are rolled back again and again would go to the dead letters.
$node->sql(q{
	select queue_create('a', '{"retry_limit": -1}'); select queue_create('b', '{"retry_limit": -1}');
	create table sent(n bigint generated always as identity primary key, queue text, partition text);
	create table done(seq bigint generated always as identity, n bigint, queue text, partition text, "position" bigint);
	create function produce() returns void language plpgsql as $$
	declare k bigint; q text; p text;
	begin
	  for i in 1 .. 1 + (random() * 3)::int loop
	    q := (array['a', 'b'])[1 + (random() * 1.99)::int];
	    p := case when random() < 0.3 then '' else 'p' || (random() * 5)::int end;
	    insert into sent(queue, partition) values (q, p) returning n into k;
	    perform queue_push(q, json_build_object('n', k, 'pad', repeat('y', (random() * 300)::int))::text, p);
	  end loop;
	  if random() < 0.1 then raise exception 'change of mind'; end if;
	end $$;
	create function consume(q text) returns void language plpgsql as $$
	declare l bigint; ids uuid[];
	begin
	  with p as materialized (select * from queue_pop(q, 1 + (random() * 30)::int)),
	  i as (insert into done(n, queue, partition, "position") select (payload->>'n')::bigint, q, partition, "position" from p order by "position")
	  select max(lease_id), array_agg(message_id) into l, ids from p;
	  if l is not null then
	    if queue_ack(l, ids) <> cardinality(ids) then raise exception 'lost the lease'; end if;
	  end if;
	  if random() < 0.1 then raise exception 'change of mind'; end if;
	end $$});

my %scripts = (
	produce => "select produce();\n",
	consume_a => "select consume('a');\n",
	consume_b => "select consume('b');\n");
foreach my $name (keys %scripts)
{
	open(my $fh, '>', "$PostgreSQL::Test::Utils::tmp_check/$name.sql") or die $!;
	print $fh $scripts{$name};
	close $fh;
}

# A loop of psql sessions rather than pgbench, which gives up at the first error.
sub client
{
	my ($name) = @_;
	my $script = $scripts{$name} x 200;
	my $run = {};

	$run->{handle} = IPC::Run::start(
		[ 'psql', '-XAtq', '-o', '/dev/null', '-d', $node->connstr('postgres') ],
		'<', \$script, '>', \$run->{out}, '2>', \$run->{err});
	return $run;
}

foreach my $round (1 .. 4)
{
	my %running = map { $_ => undef } map { ("produce $_", "consume_a $_", "consume_b $_") } 1 .. 2;
	my $end = time + 3;

	while (time < $end)
	{
		foreach my $key (keys %running)
		{
			my $run = $running{$key};

			if ($run && $run->{handle}->pumpable)
			{
				$run->{handle}->pump_nb;
				next;
			}
			eval { $run->{handle}->finish } if $run;
			$running{$key} = client((split / /, $key)[0]);
		}
		$node->psql('postgres', 'checkpoint') if rand() < 0.2;
		$node->psql('postgres',
			"select pg_terminate_backend(pid) from pg_stat_activity where query like 'select consume%' or query like 'select produce%' order by random() limit 1")
		  if rand() < 0.2;
		usleep(50_000);
	}
	if ($round % 2)
	{
		$node->freeze('walwriter');
	}
	$node->kill9_everything;
	eval { $_->{handle}->finish } foreach grep { $_ } values %running;
	$node->start;
	note "round $round: " . $node->sql('select count(*) from sent') . ' sent, ' . $node->sql('select count(*) from done') . ' done';
}

# Drain what is left, then compare.
$node->sql(
	q{do $$ declare before bigint; begin
	  loop
	    select count(*) into before from done;
	    for i in 1 .. 50 loop
	      begin perform consume('a'); exception when raise_exception then null; end;
	      begin perform consume('b'); exception when raise_exception then null; end;
	    end loop;
	    exit when (select count(*) from done) = before and (select sum(ready) from qlog_stat_queues) = 0;
	    commit;
	  end loop;
	end $$});
is($node->sql('select count(*) from sent s where not exists (select from done d where d.n = s.n)'), '0',
	'every row that was sent has been done');
is($node->sql('select count(*) from done d where not exists (select from sent s where s.n = d.n)'), '0',
	'nothing was done that was not sent');
is($node->sql('select count(*) - count(distinct n) from done'), '0', 'nothing was done twice');
is($node->sql('select count(*) from done d join sent s using (n) where d.queue <> s.queue or d.partition <> s.partition'),
	'0', 'everything arrived where it was sent');
is( $node->sql(
		q{select count(*) from (select "position" <= lag("position") over (partition by queue, partition order by seq) as back
		from done where partition <> '') x where back}),
	'0', 'named partitions were done in order');
is($node->sql('select sum(ready + leased) from qlog_stat_queues'), '0', 'nothing is left in the queues');
cmp_ok($node->sql('select count(*) from done'), '>', 100, 'and it was not nothing');
$node->stop;

done_testing();
