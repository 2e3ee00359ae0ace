# Many queues, with shared logs and in hierarchical directories: made, pushed to, popped from, restarted, dropped. Times
# are notes; what is bounded is checked: descriptors, entries of a directory.
#
# QLOG_QUEUES (300) makes it larger.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;
use Time::HiRes qw(time);

QlogNode::plain_layout();

my $queues = $ENV{QLOG_QUEUES} || 300;

# Descriptors of the process that opens the logs.
sub descriptors_of
{
	my ($node, $role) = @_;
	my $pid = $node->sql("select pid from qlog_stat_workers where role = '$role'");
	my @open = glob "/proc/$pid/fd/*";

	return scalar @open;
}

# The largest number of entries in one directory.
sub widest
{
	my ($directory) = @_;
	my @below = grep { -d } glob "$directory/*";
	my @all = glob "$directory/*";
	my $most = @all;

	foreach my $below (grep { !m{/q\d+$} } @below)
	{
		my $found = widest($below);
		$most = $found if $found > $most;
	}
	return $most;
}

foreach my $layout ('shared', 'hierarchical')
{
	my $node = QlogNode->started($layout,
		conf => [
			$layout eq 'shared' ? 'qlog.shards = 8' : 'qlog.directory_layout = hierarchical',
			"qlog.state_memory = '256MB'", 'max_files_per_process = 200', "qlog.recovery_wait = '300s'" ]);
	my $logs = $node->qlog_dir . '/qlog';
	my $popped = "select sum((select count(queue_ack(lease_id)) from queue_pop('queue ' || i))) from generate_series(1, $queues) i";

	$node->timed("$layout: create $queues queues",
		"do \$\$ begin for i in 1 .. $queues loop perform queue_create('queue ' || i); if i % 100 = 0 then commit; end if; end loop; end \$\$");
	is($node->sql('select count(*) from qlog_queues'), $queues, "$layout: all are there");
	is($node->sql('select count(distinct log_id) from qlog_queues'), $layout eq 'shared' ? 8 : $queues, "$layout: in their logs");
	cmp_ok(widest($logs), '<=', 10_000, "$layout: no directory is wide");
	$node->timed("$layout: push to each in a transaction of its own",
		"do \$\$ begin for i in 1 .. $queues loop perform queue_push('queue ' || i, i::text); commit; end loop; end \$\$");
	$node->timed("$layout: push to each, 1000 in a transaction",
		"do \$\$ begin for i in 1 .. $queues loop perform queue_push('queue ' || i, '-1'); if i % 1000 = 0 then commit; end if; end loop; end \$\$");
	is($node->timed("$layout: pop and acknowledge one of each", $popped), $queues, "$layout: each gives a message");
	foreach my $how ('stop', 'kill')
	{
		$node->timed_restart($how);
		cmp_ok(descriptors_of($node, 'checkpointer'), '<', 250, "$layout: descriptors stay bounded over a start after $how");
		is($node->sql("select count(*) from generate_series(1, $queues) i, queue_peek('queue ' || i) where payload::text = '-1'"),
			$queues, "$layout: what was left is there");
	}
	is($node->timed("$layout: pop and acknowledge the other one", $popped), $queues, "$layout: each gives its second one");
	$node->timed("$layout: drop all",
		"do \$\$ begin for i in 1 .. $queues loop perform queue_drop('queue ' || i); if i % 100 = 0 then commit; end if; end loop; end \$\$");
	my $start = time;
	$node->wait_until(
		sub {
			my @left = $layout eq 'shared' ? () : grep { !m{/q0$} } glob "$logs/*/*/q*";
			return !@left;
		},
		'the directories to go');
	note sprintf('%s: files gone after %.1f s', $layout, time - $start);
	is($node->sql('select count(*) from qlog_queues'), '0', "$layout: nothing is left");
	is(scalar(() = glob "$logs/q*"), 9, 'shared logs stay') if $layout eq 'shared';
	$node->timed_restart('kill');
	is($node->sql("select queue_push('again', '1') is not null"), 't', "$layout: and it goes on");
	$node->stop;
}

done_testing();
