# A message acknowledged to the client survives kill -9 of everything at any moment; nothing appears twice or out of
# order in its partition. Several clients push one message after the other and print the id of each acknowledged one.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(usleep);

my $clients = 4;
my $rounds = 3;
my $seed = time ^ $$;
srand($seed);
note "seed $seed";

my $node = QlogNode->started('main', conf => ["qlog.segment_size = '1MB'"]);
$node->sql("select queue_create('q')");

# Ids acknowledged to each client, in the order of their pushes.
my @acknowledged = map { [] } 1 .. $clients;

sub start_client
{
	my ($client, $round) = @_;
	my $script = '';

	$script .= sprintf(
		"select queue_push('q', '{\"c\": %d, \"n\": %d, \"pad\": \"%s\"}', 'p%d');\n",
		$client, $round * 100000 + $_, 'x' x int(rand(900)), $client) for 1 .. 5000;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/client$client.sql";
	open(my $fh, '>', $file) or die $!;
	print $fh $script;
	close $fh;
	my $run = { out => '', err => '' };
	$run->{handle} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-f', $file ],
		'<', \undef, '>', \$run->{out}, '2>', \$run->{err});
	return $run;
}

foreach my $round (1 .. $rounds)
{
	my @runs = map { start_client($_, $round) } 0 .. $clients - 1;
	my $end = Time::HiRes::time() + 0.5 + rand(0.7);

	while (Time::HiRes::time() < $end)
	{
		$_->{handle}->pump_nb foreach @runs;
		usleep(10_000);
	}
	$node->kill9_everything;
	foreach my $client (0 .. $clients - 1)
	{
		eval { $runs[$client]{handle}->finish };

		# The last line may be cut.
		push @{ $acknowledged[$client] }, $runs[$client]{out} =~ /^([0-9a-f-]{36})$/mg;
	}
	$node->start;
	my $count = 0;
	$count += @$_ foreach @acknowledged;
	note "round $round: $count acknowledged";
}

foreach my $client (0 .. $clients - 1)
{
	my @stored = split /\n/,
	  $node->sql("select message_id from queue_peek('q', 'p$client', batch => 1000000)");
	my %place = map { $stored[$_] => $_ } 0 .. $#stored;
	my @missing = grep { !exists $place{$_} } @{ $acknowledged[$client] };
	my @places = map { $place{$_} } grep { exists $place{$_} } @{ $acknowledged[$client] };

	cmp_ok(scalar @{ $acknowledged[$client] }, '>', 0, "client $client pushed something");
	is(scalar @missing, 0, "every message acknowledged to client $client is there");
	is(scalar keys %place, scalar @stored, "no message of client $client is there twice");
	is_deeply(\@places, [ sort { $a <=> $b } @places ], "messages of client $client are in order");

	# At most one message of each round was on its way when the server died.
	cmp_ok(@stored - @{ $acknowledged[$client] }, '<=', $rounds,
		"nothing else is there than what was on its way");
}

# The same through pop and ack, in lots, until nothing is left.
my $popped = $node->sql(
	q{do $$
	declare n bigint; total bigint := 0; lease bigint;
	begin
	  loop
	    select count(*), max(lease_id) into n, lease from queue_pop('q', 500);
	    exit when n = 0;
	    perform queue_ack(lease);
	    total := total + n;
	    commit;
	  end loop;
	  raise notice 'total %', total;
	end $$;
	select popped = pushed and acked = pushed and ready = 0 and leased = 0 from qlog_stat_queues where queue = 'q'});
is($popped, 't', 'everything is popped once and acknowledged once');

$node->kill9_everything;
$node->start;
is($node->sql("select count(*) from queue_pop('q', 10)"), '0', 'acknowledged messages stay away');

# Commits of one session, one after the other: each has waited for a sync that began after it was written, so there are as
# many syncs at least.
my $syncs = $node->sql('select fsyncs from qlog_stat_log');
$node->sql(join "\n", map { "select queue_push('q', '$_', 'p" . $_ % 2 . "');" } 1 .. 50);
$node->poll_sql("select fsyncs >= $syncs + 50 from qlog_stat_log");
pass('a sync for each commit');
$node->stop;

done_testing();
