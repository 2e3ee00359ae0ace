# The timer worker: sleeps while nothing is due, is not held up by checkpoints, and may end at any moment.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(sleep);

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '1MB'", 'autovacuum = off' ]);

$node->sql("select queue_create('q', '{\"retry_limit\": -1}')");

sub timer_pid
{
	return $node->sql("select pid from qlog_stat_workers where role = 'timer' and pid > 0");
}

# How often the process has slept.
sub sleeps
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : undef;
}

# Waits until the message can be taken, and takes it; returns its attempt.
sub take_when_ready
{
	my ($lease) = @_;

	$node->poll_sql("select ready > 0 from qlog_stat_queues where queue = 'q'");
	return $node->sql("select attempt from queue_pop('q', lease => '$lease')");
}

my $pid = timer_pid();

# Nothing is due before tomorrow.
$node->sql("select queue_push('q', '1'); select lease_id from queue_pop('q', lease => '1 day')");
$node->wait_until(sub { (QlogNode::_stat($pid))[0] eq 'S' }, 'the worker to sleep');
sleep 0.2;
my $before = sleeps($pid);
sleep 2;
is(sleeps($pid), $before, 'the worker does not wake up while nothing is due');

# An earlier deadline than the one it sleeps for; the checkpointer is not there to help.
$node->freeze('qlog checkpointer');
$node->sql("select queue_renew(lease_id, '100 ms') from qlog_leases");
is(take_when_ready('100 ms'), '2', 'a lease runs out while the checkpointer stands still');
is(take_when_ready('1 ms'), '3', 'and the next one');
$node->poll_sql("select ready > 0 from qlog_stat_queues where queue = 'q'");
$node->sql("select queue_nack(lease_id, retry_after => '200 ms') from queue_pop('q')");
is($node->sql("select ready || ' ' || delayed from qlog_stat_queues where queue = 'q'"), '0 1', 'given back with a delay');
is(take_when_ready('1 day'), '5', 'a retry time comes while the checkpointer stands still');
$node->thaw;

# Ended while a lease is about to run out: it is started again and goes on.
$node->sql("select pg_terminate_backend($pid); select queue_renew(lease_id, '10 ms') from qlog_leases");
is(take_when_ready('1 day'), '6', 'the worker that was started again releases the lease');
isnt(timer_pid(), $pid, 'it is another process');
is($node->sql("select restarts from qlog_stat_workers where role = 'timer'"), '1', 'one restart');

# Killed: the server restarts, leases run anew for their time.
$node->sql("select queue_renew(lease_id, '2 s') from qlog_leases");
kill 'KILL', timer_pid();
$node->wait_until(
	sub {
		my ($rc, $out) = $node->psql('postgres', "select count(*) from qlog_stat_queues");
		return $rc == 0 && $out eq '1';
	},
	'the server to come back');
is(take_when_ready('1 day'), '7', 'after a crash the lease runs out');
is($node->sql("select last_error is null from qlog_stat_workers where role = 'timer'"), 't', 'no error');

$node->stop;
done_testing();
