# Consumer groups, seeks and purges over restarts and kill -9: what was acknowledged holds, what was rolled back or had not
# committed never happened, together with the rows of its transaction, and what was pushed afterwards comes after it.

use strict;
use warnings;

use IPC::Run ();
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.checkpoint_timeout = '1h'", 'autovacuum = off', 'max_connections = 30' ]);

$node->sql('create table t(n text primary key)');

# What each change makes of a queue whose default group has 1 to 6 before it (4 to 6 in partition p) and whose group g has
# acknowledged 1, 2, 4 and 5; and of 7 (in p) and 8 that are pushed afterwards.
my %changes = (
	new => [ "queue_subscribe(%s, 'a')", 'default: 1 2 3 4 5 6, a:, g: 3 6', 'default: 1 2 3 4 5 6 7 8, a: 7 8, g: 3 6 7 8' ],
	oldest => [ "queue_subscribe(%s, 'a', 'oldest')", 'default: 1 2 3 4 5 6, a: 1 2 3 4 5 6, g: 3 6',
		'default: 1 2 3 4 5 6 7 8, a: 1 2 3 4 5 6 7 8, g: 3 6 7 8' ],
	time => [ "queue_subscribe(%s, 'a', (select n from t where n like '20%%'))", 'default: 1 2 3 4 5 6, a: 3 5 6, g: 3 6',
		'default: 1 2 3 4 5 6 7 8, a: 3 5 6 7 8, g: 3 6 7 8' ],
	drop => [ "queue_unsubscribe(%s, 'g')", 'default: 1 2 3 4 5 6', 'default: 1 2 3 4 5 6 7 8' ],
	back => [ "queue_seek(%s, 'g', to_position => 1)", 'default: 1 2 3 4 5 6, g: 2 3 5 6', 'default: 1 2 3 4 5 6 7 8, g: 2 3 5 6 7 8' ],
	end => [ "queue_seek(%s, 'g', to_end => true)", 'default: 1 2 3 4 5 6, g:', 'default: 1 2 3 4 5 6 7 8, g: 7 8' ],
	one => [ "queue_seek(%s, 'g', 'p', to_position => 0)", 'default: 1 2 3 4 5 6, g: 3 4 5 6',
		'default: 1 2 3 4 5 6 7 8, g: 3 4 5 6 7 8' ],
	default => [ "queue_seek(%s, '', '', to_end => true)", 'default: 4 5 6, g: 3 6', 'default: 4 5 6 7 8, g: 3 6 7 8' ],
	purge => [ 'queue_purge(%s)', 'default:, g:', 'default: 7 8, g: 7 8' ],
	lane => [ "queue_purge(%s, 'p')", 'default: 1 2 3, g: 3', 'default: 1 2 3 7 8, g: 3 7 8' ]);

sub queue { my ($round, $change) = @_; return "$change $round" }

# Two times: what is pushed between them and later is what a group has that begins at the first one.
sub make_queues
{
	my ($round) = @_;
	my @queues = map { queue($round, $_) } sort keys %changes;
	my $each = sub { join '; ', map { my $queue = $_; map { "select queue_push('$queue', '$_', " . ($_ > 3 ? "'p'" : "''") . ')' } @_ } @queues };

	$node->sql('begin; ' . $each->(1, 2, 4) . '; commit');
	$node->sql("delete from t where n like '20%'; insert into t values (clock_timestamp()::text)");
	$node->sql('begin; ' . $each->(3, 5, 6) . '; ' . join('; ', map { "select queue_subscribe('$_', 'g', 'oldest')" } @queues) . '; commit');
	$node->sql(join '; ', 'begin', (map {
		"select sum(queue_ack(lease_id, array[message_id])) from queue_pop('$_', 10, max_partitions => 10, consumer_group => 'g')
			where payload::text in ('1', '2', '4', '5')" } @queues), 'commit');
	$node->sql("select count(queue_nack(lease_id, retry_after => '0')) from (select distinct lease_id from qlog_leases where consumer_group = 'g') l");
	return;
}

# What each group of these queues would be given.
sub shown
{
	my @queues = @_;
	my %shown = map { $_ => [] } @queues;
	my $names = join ', ', map { "'$_'" } @queues;

	foreach my $line (split /\n/, $node->sql("begin; select queue, consumer_group, (select string_agg(payload::text, ' ' order by payload::text)
		from queue_pop(queue, 100, max_partitions => 100, consumer_group => consumer_group))
		from qlog_stat_consumer_groups where queue in ($names) order by 1, 2; rollback"))
	{
		my ($queue, $group, $got) = split /\|/, $line, -1;
		push @{ $shown{$queue} }, ($group || 'default') . ':' . ($got eq '' ? '' : " $got");
	}
	return map { $_ => join ', ', @{ $shown{$_} } } @queues;
}

sub shown_one { my ($queue) = @_; my %shown = shown($queue); return $shown{$queue} }

sub statement
{
	my ($round, $change) = @_;
	my $queue = "'" . queue($round, $change) . "'";
	return 'select ' . sprintf($changes{$change}[0], $queue);
}

sub statements { my ($round) = @_; return join '; ', map { statement($round, $_) } sort keys %changes }

sub push_more
{
	my ($round) = @_;
	return join '; ', map { my $queue = queue($round, $_); "select queue_push('$queue', '7', 'p'), queue_push('$queue', '8')" } sort keys %changes;
}

# Everything is as it was before the changes, or as they make it; then also what is pushed afterwards.
sub expect
{
	my ($round, $happened, $pushed, $what) = @_;
	my %got = shown(map { queue($round, $_) } sort keys %changes);
	my %want = map { queue($round, $_) => $happened ? $changes{$_}[ $pushed ? 2 : 1 ] : $pushed ? 'default: 1 2 3 4 5 6 7 8, g: 3 6 7 8' : 'default: 1 2 3 4 5 6, g: 3 6' } keys %changes;

	is_deeply(\%got, \%want, $what);
	return;
}

# Killed at every step of the commit, alone and with a row.
foreach my $row (0, 1)
{
	foreach my $point (qw(after-reserve after-fill before-wal-insert after-wal-insert commit-event-before-settle commit-event-after-decision))
	{
		my $round = "$point $row";
		my $happens = $point =~ /^commit-event/ ? 1 : 0;

		make_queues($round);
		$node->freeze('walwriter');
		my $handle = $node->stop_at($point, 'begin; ' . ($row ? "insert into t values ('$round'); " : '') . statements($round) . '; commit');
		$node->kill9_everything;
		eval { $handle->finish };
		$node->start;
		is($node->sql("select count(*) from t where n = '$round'"), $happens, "$round: the row") if $row;
		expect($round, $happens, 0, "$round: " . ($happens ? 'it had committed' : 'it never happened'));
		$node->sql(push_more($round));
		$node->kill9_everything;
		$node->start;
		expect($round, $happens, 1, "$round: with what was pushed afterwards, over another crash");
	}
}

# Rolled back, in whole or to a savepoint.
make_queues('rollback');
$node->sql('begin; ' . statements('rollback') . '; rollback');
$node->sql('begin; savepoint s; ' . statements('rollback') . "; rollback to s; insert into t values ('rollback'); commit");
$node->kill9_everything;
$node->start;
expect('rollback', 0, 0, 'what was rolled back never happened');
$node->restart;
expect('rollback', 0, 0, '... nor does it after a shutdown');

# Acknowledged; then everybody pushes with a row, which leaves the messages in the WAL alone. The guard and whoever else writes
# our log are stopped, so that nothing of it is durable but what the commits themselves wait for.
foreach my $round ('kill', 'restart')
{
	make_queues($round);
	$node->sql("insert into t values ('guard $round'); begin; update t set n = n; select queue_push('guarded', '1'); commit");
	$node->poll_sql(q{select count(*) > 0 from qlog_stat_workers where state = 'on guard'});
	$node->freeze($_) foreach 'qlog guard', 'qlog checkpointer', 'walwriter';
	$node->sql('begin; ' . statements($round) . '; commit');
	$node->sql("begin; insert into t values ('$round'); " . push_more($round) . '; commit');
	if ($round eq 'kill')
	{
		$node->kill9_everything;
		$node->start;
	}
	else
	{
		$node->thaw;
		$node->restart;
	}
	expect($round, 1, 1, "$round: what was pushed after a change that was acknowledged comes after it");
	$node->kill9_everything;
	$node->start;
	expect($round, 1, 1, "$round: and after a crash right behind");
}

# A checkpoint, by a shutdown, between the queues and their changes, and then the log alone.
make_queues('checkpoint');
$node->restart;
$node->sql('begin; ' . statements('checkpoint') . '; commit');
$node->sql(push_more('checkpoint'));
$node->kill9_everything;
$node->start;
expect('checkpoint', 1, 1, 'changes behind a checkpoint');

# Leases and answers around a seek: what was delivered before it cannot be answered after a crash either.
{
	$node->sql("select queue_create('leases'); select queue_push('leases', i::text) from generate_series(1, 4) i");
	$node->sql("select queue_subscribe('leases', 'g', 'oldest')");
	my $old = $node->sql("select min(lease_id) from queue_pop('leases', 2, consumer_group => 'g')");
	my $kept = $node->sql("select min(lease_id) from queue_pop('leases', 2)");

	$node->sql("select queue_seek('leases', 'g', to_position => 1)");
	my $new = $node->sql("select min(lease_id) from queue_pop('leases', 2, consumer_group => 'g')");

	# A commit that waits for the log makes all of this durable.
	$node->sql("select queue_push('guarded', '2')");
	$node->kill9_everything;
	$node->start;
	is($node->sql("select queue_ack($old)"), '0', 'a lease that a seek has ended is gone after a crash');
	is($node->sql("select queue_ack($kept)"), '2', 'the lease of another group is not');
	is($node->sql("select queue_ack($new)"), '2', 'nor one from after the seek');
	is(shown_one('leases'), 'default: 3 4, g: 4', 'and what they held is done');
}

# What a consumer holds outlives a purge and a crash.
{
	$node->sql("select queue_create('held'); select queue_push('held', i::text) from generate_series(1, 4) i");
	my $lease = $node->sql("select min(lease_id) from queue_pop('held', 2)");

	$node->sql("select queue_purge('held'); select queue_push('held', '5')");
	$node->kill9_everything;
	$node->start;
	is($node->sql("select string_agg(payload::text, ' ') from queue_pop('held', 10)"), '5', 'what waited is gone');
	$node->sql("select queue_nack($lease, retry_after => '0')");
	is($node->sql("select string_agg(payload::text, ' ' order by payload::text) from queue_pop('held', 10)"), '1 2', 'what was held comes back');
}

$node->stop;
done_testing();
