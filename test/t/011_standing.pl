# Credits that stand for long: thousands of open leases in many transactions and subtransactions, with the smallest
# qlog.buffers and many possible backends, hold up nobody.

use strict;
use warnings;

use IPC::Run ();
use QlogNode;
use Test::More;

my $sessions = 8;
my $pops = 700;		# per session, each in a subtransaction of its own
my $node = QlogNode->started('main',
	conf => [ "qlog.buffers = '1MB'", "qlog.segment_size = '1MB'", 'max_connections = 500',
		"qlog.state_memory = '64MB'", 'qlog.max_leases_per_cursor = 20000', "statement_timeout = '100s'" ]);

$node->sql(
	q{select queue_create('q', '{"lease": "1 hour"}');
	create table t(n bigint generated always as identity, c text);
	select count(queue_push('q', i::text)) from generate_series(1, 40000) i;

	create function pops(n int) returns int language plpgsql as $$
	declare
	  k int := 0;
	begin
	  for i in 1 .. n loop
	    begin
	      k := k + (select count(*) from queue_pop('q', 1));
	    exception when division_by_zero then
	      null;
	    end;
	  end loop;
	  return k;
	end $$});

# A session whose transaction stays open.
sub session
{
	my $run = { in => "begin; select 'popped ' || pops($pops);\n", out => '', err => '' };

	$run->{handle} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
		'<', \$run->{in}, '>', \$run->{out}, '2>', \$run->{err}, IPC::Run::timer(600));
	return $run;
}

sub wait_for
{
	my ($run, $what) = @_;

	$run->{handle}->pump until $run->{out} =~ $what || !$run->{handle}->pumpable;
	like($run->{out}, $what, 'a session goes on') or diag($run->{err});
	return;
}

# Rows with messages, in one statement after the other.
sub joint
{
	my ($n, $name) = @_;

	$node->sql(join('', map { "begin; insert into t(c) values ('$name'); select queue_push('q', '\"$name\"'); commit;\n" } 1 .. $n));
	return;
}

# Each session's credits alone are a third of the ring, all of them much more than it.
my @open = map { session() } 1 .. $sessions;
wait_for($_, qr/popped $pops/) foreach @open;
is($node->sql('select count(*) from qlog_leases'), $sessions * $pops, 'all leases are open');
joint(50, 'meanwhile');
is($node->sql("select count(*) from t where c = 'meanwhile'"), 50, 'joint transactions commit meanwhile');
is($node->sql("select count(*) from queue_pop('q', 10)"), 10, 'and pops are served');

# Half of them commit, half roll back, all at once and beside joint commits.
foreach my $i (0 .. $#open)
{
	$open[$i]{in} .= ($i % 2 ? 'commit' : 'rollback') . ";\n\\echo done\n\\q\n";
	$open[$i]{handle}->pump_nb;
}
joint(50, 'beside');
foreach my $run (@open)
{
	wait_for($run, qr/done/);
	$run->{handle}->finish;
}
my $kept = $sessions / 2 * $pops + 1;
is($node->sql('select count(*) from qlog_leases'), $kept, 'what was committed is leased, what was rolled back is not');
is($node->sql("select ready from qlog_stat_queues where queue = 'q'"), 40000 + 100 - $sessions / 2 * $pops - 10,
	'and can be taken again');

# One transaction with more leases than the credit of one entry could end in a small log file.
is($node->sql("begin; do 'begin for i in 1 .. 12000 loop perform * from queue_pop(''q'', 1); end loop; end'; select count(*) from qlog_leases; rollback"),
	12000 + $kept, 'many leases in one transaction');
is($node->sql('select count(*) from qlog_leases'), $kept, 'are given back together');
$node->kill9_everything;
$node->start;
is($node->sql('select count(*) from qlog_leases'), $kept, 'after a crash the committed ones are leased');
$node->stop;

done_testing();
