# Changes of queues over crashes: after kill -9 of everything each queue is exactly as the last committed transaction left
# it, with checkpoints in between and without, and a transaction with table rows agrees with its rows.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $seed = $ENV{QLOG_SEED} || int(rand(1_000_000));
srand($seed);
note "seed $seed (QLOG_SEED=$seed repeats it)";

my $node = QlogNode->started('main',
	conf => [ "qlog.checkpoint_timeout = '50ms'", 'autovacuum = off', "wal_writer_delay = '10s'", "statement_timeout = '60s'" ]);

$node->sql(q{create role r1; create role r2; create table t(n int);
	select queue_create('q' || i) from generate_series(1, 5) i;
	select count(queue_push('q' || i, i::text)) from generate_series(1, 5) i});

# What there is to see of the queues, with the number of rows.
sub shown
{
	return $node->sql(q{select string_agg(d, E'\n') from queue_definitions() d}) . "\n"
	  . $node->sql(q{select string_agg(queue || m.payload, ',' order by queue) from qlog_queues, lateral (select payload::text from queue_peek(queue)) m})
	  . "\n" . $node->sql('select count(*) from t');
}

sub pick { return $_[ int(rand(@_)) ]; }

# A random change of a queue that exists.
my $counter = 0;

sub change
{
	my ($queue) = @_;

	return pick(
		"select queue_set('$queue', 'lease', '" . (1 + int(rand(1000))) . " s')",
		"select queue_set('$queue', 'ordered', '" . pick('on', 'off') . "')",
		"select queue_set('$queue', 'max_bytes', '" . pick('1 GB', '2 GB') . "')",
		"select queue_reset('$queue', '" . pick('lease', 'max_bytes') . "')",
		"select queue_pause('$queue', '" . pick('push', 'pop', 'both') . "')",
		"select queue_resume('$queue')",
		"select queue_grant('$queue', '" . pick('r1', 'r2', '-') . "', '" . pick('push', 'pop', 'manage', 'all') . "')",
		"select queue_revoke('$queue', '" . pick('r1', 'r2', '-') . "', '" . pick('push', 'pop', 'manage', 'all') . "')",
		"select queue_owner('$queue', '" . pick('r1', 'r2', 'postgres') . "')");
}

# A transaction of one to four changes; a rename comes last, as it changes the name.
sub transaction
{
	my @names = split /\n/, $node->sql('select queue from qlog_queues');
	my $queue = pick(@names);
	my @changes = map { change(rand() < 0.7 ? $queue : pick(@names)) } 1 .. 1 + int(rand(3));

	push @changes, "select queue_rename('$queue', 'q" . (100 + $counter++) . "')" if rand() < 0.4;
	push @changes, 'insert into t values (1)' if rand() < 0.5;
	return join('; ', 'begin', @changes);
}

foreach my $round (1 .. 8)
{
	foreach (1 .. 5)
	{
		$node->sql(transaction() . '; ' . pick('commit', 'commit', 'rollback'));
		$node->sql('checkpoint') if rand() < 0.1;
	}
	my $before = shown();

	# One more that is open, or committing asynchronously, when everything dies.
	my ($in, $out) = (transaction() . "; select 'staged';\n", '');
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \my $err,
		IPC::Run::timer(60));
	$session->pump until $out =~ /staged/ || !$session->pumpable;
	$node->kill9_everything;
	$session->kill_kill;
	$node->start;
	is(shown(), $before, "round $round: queues are as they were committed");
}

# A server that stops cleanly writes the same.
my $before = shown();
$node->restart;
is(shown(), $before, 'over a restart');

# An asynchronous commit is there with its row, or not at all.
foreach my $round (1 .. 5)
{
	my $queue = $node->sql('select queue from qlog_queues limit 1');

	$node->sql("truncate t; select queue_resume('$queue'), queue_set('$queue', 'lease', '1 s')");
	$node->freeze('walwriter');
	$node->sql("set synchronous_commit = off; begin; select queue_set('$queue', 'lease', '77 s'); insert into t values (1); commit");
	$node->kill9_everything;
	$node->start;
	is($node->sql("select coalesce((options->>'lease') = '77 s', false) = ((select count(*) from t) = 1) from qlog_queues where queue = '$queue'"),
		't', "asynchronous round $round: row and change agree");
}

$node->stop;
done_testing();
