# Random work of several sessions against a model that knows what each statement must answer: pushes, pops, acks, nacks,
# rejects, renewals, expiries, seeks, savepoints, rollbacks, kills and restarts. One statement runs at a time, so the
# model is exact, and the same seed makes the same statements again.
#
# QLOG_SEED replays a run; QLOG_SECONDS makes it longer (15).

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogModel;
use QlogNode;
use QlogWire;
use Test::More;
use Time::HiRes qw(time usleep);

my $seed = $ENV{QLOG_SEED} || (time ^ $$) & 0x7fffffff;
my $seconds = $ENV{QLOG_SECONDS} || 15;
my $sessions = 6;
srand($seed);
note "seed $seed; to replay: QLOG_SEED=$seed QLOG_SECONDS=$seconds";

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'" ]);
my @groups = ('', 'g');
my %models = (
	free => QlogModel->new(groups => \@groups, partitions => [ '', 'a', 'b' ], limit => -1),
	strict => QlogModel->new(groups => \@groups, partitions => [ '', 'a', 'b' ], limit => 2));

$node->sql(q{select queue_create('free', '{"retry_limit": -1}'); select queue_create('strict', '{"retry_limit": 2}')});
$node->sql("select count(*) from queue_pop('$_', consumer_group => 'g')") foreach keys %models;

my ($number, $steps, $kills) = (0, 0, 0);
my @trace;
my @clients;

# ------------------------------------------------------------------------------------------------
# Sessions
# ------------------------------------------------------------------------------------------------

sub give_up
{
	my ($why) = @_;

	note "  $_" foreach @trace > 40 ? @trace[ -40 .. -1 ] : @trace;
	fail("seed $seed, step $steps: $why");
	$node->stop('immediate');
	done_testing();
	exit 1;
}

# Runs a statement of a client; returns its rows, or the SQLSTATE when that was expected.
sub run
{
	my ($client, $sql, $expected) = @_;
	my $result = $client->{wire}->query($sql);

	push @trace, "$client->{name}: $sql" . ($result->{error} ? " -> $result->{error}" : '');
	give_up("'$sql' gave " . ($result->{error} // 'no error') . " ($result->{message}) instead of " . ($expected // 'none'))
	  if ($result->{error} // '') ne ($expected // '');
	return $result->{rows};
}

# The one value that a statement returns.
sub value { return run(@_)->[0][0] }

sub fresh_client
{
	my ($i) = @_;
	return { name => "s$i", wire => QlogWire->to($node), tx => 0 };
}

sub begin
{
	my ($client) = @_;

	run($client, 'begin');
	@$client{qw(tx pushes answers popped marks)} = (1, [], [], [], []);
	return;
}

# Undo what a client has done since a mark, or all.
sub undo
{
	my ($client, $mark) = @_;
	my ($pushes, $answers, $popped) = $mark ? @$mark : (0, 0, 0);

	$#{ $client->{pushes} } = $pushes - 1;
	$#{ $client->{answers} } = $answers - 1;
	foreach my $pop (splice @{ $client->{popped} }, $popped)
	{
		my ($queue, $lease) = @$pop;
		delete $client->{owns}{$lease};
		$models{$queue}->release($lease);
	}
	return;
}

sub end_transaction
{
	my ($client) = @_;

	$client->{tx} = 0;
	$client->{owns} = {};
	return;
}

sub rollback
{
	my ($client) = @_;

	run($client, 'rollback');
	undo($client);
	end_transaction($client);
	return;
}

# Do all answers still find what they answered?
sub answers_hold
{
	my ($client) = @_;

	foreach my $answer (@{ $client->{answers} })
	{
		my ($queue, $lease, $as, @ns) = @$answer;
		return 0 unless $models{$queue}->holds($lease, @ns);
	}
	return 1;
}

sub apply
{
	my ($client) = @_;

	$models{ $_->[0] }->commit_push($_->[1], $_->[2]) foreach @{ $client->{pushes} };
	foreach my $answer (@{ $client->{answers} })
	{
		my ($queue, $lease, $as, @ns) = @$answer;
		$models{$queue}->finish($lease, $as, @ns);
	}
	return;
}

sub commit
{
	my ($client) = @_;

	if (answers_hold($client))
	{
		run($client, 'commit');
		apply($client);
	}
	else
	{
		run($client, 'commit', '40001');
		undo($client);
	}
	end_transaction($client);
	return;
}

# ------------------------------------------------------------------------------------------------
# Operations
# ------------------------------------------------------------------------------------------------

sub pick { return $_[ int rand @_ ] }
sub literal { return defined $_[0] ? "'$_[0]'" : 'null' }

sub do_push
{
	my ($client, $queue) = @_;
	my $k = 1 + int rand 4;
	my @pushes = map { [ $queue, ++$number, pick('', 'a', 'b') ] } 1 .. $k;
	my $payloads = join ', ', map { "'$_->[1]'" } @pushes;
	my $partitions = join ', ', map { "'$_->[2]'" } @pushes;

	run($client, "select queue_push_batch('$queue', array[$payloads], array[$partitions])");
	if ($client->{tx}) { push @{ $client->{pushes} }, @pushes }
	else { $models{$queue}->commit_push(@$_[ 1, 2 ]) foreach @pushes }
	return;
}

# Pops, and checks the delivery; returns the lease.
sub take
{
	my ($client, $queue, $lease_time) = @_;
	my ($group, $batch, $partition) = (pick(@groups), 1 + int rand 5, pick(undef, undef, '', 'a', 'b'));
	my $rows = run($client, "select payload, partition, attempt, lease_id from queue_pop('$queue', $batch, "
		  . literal($group) . ', ' . literal($partition) . ", lease => '$lease_time')");
	my $lease = @$rows ? $rows->[0][3] : undef;
	my $why = $models{$queue}->deliver($lease, $group, $batch, $partition, $rows);

	give_up($why) if $why;
	return $lease;
}

sub do_pop
{
	my ($client, $queue) = @_;
	my $lease = take($client, $queue, '1 hour');

	return unless defined $lease && $client->{tx};
	push @{ $client->{popped} }, [ $queue, $lease ];
	$client->{owns}{$lease} = 1;
	return;
}

# A lease whose time runs out.
sub do_expire
{
	my ($client, $queue) = @_;
	return if $client->{tx};
	my $lease = take($client, $queue, '10 ms');

	return unless defined $lease;
	my $end = time + 20;
	until (value($client, "select count(*) from qlog_leases where lease_id = $lease") == 0)
	{
		give_up("lease $lease does not expire") if time > $end;
		usleep(20_000);
	}
	$models{$queue}->release($lease);
	return;
}

# A lease that this client may answer, and some or all of its messages that it has not answered yet.
sub choose_lease
{
	my ($client, $queue) = @_;
	my $leases = $models{$queue}{leases};
	my %foreign = map { map { $_ => 1 } $_ == $client ? () : keys %{ $_->{owns} || {} } } @clients;
	my $lease = pick(grep { !$foreign{$_} } sort { $leases->{$a}{number} <=> $leases->{$b}{number} } keys %$leases);

	return unless defined $lease;
	my %answered = map { $_ => 1 } map { my ($q, $l, $as, @ns) = @$_; $l eq $lease ? @ns : () }
	  @{ $client->{tx} ? $client->{answers} : [] };
	my @left = grep { !$answered{$_} } @{ $leases->{$lease}{ns} };
	my @some = rand() < 0.5 ? @left : grep { rand() < 0.5 } @left;

	return ($lease, \@left, \@some);
}

# The argument that names messages: by ids out of the log.
sub ids_of
{
	my ($queue, @ns) = @_;
	my $list = join ', ', map { "'$_'" } @ns;

	return "(select array_agg(message_id) from (select message_id from unnest(array['', 'a', 'b']) p, "
	  . "queue_peek('$queue', p, 0, batch => 100000) where payload::text in ($list)) m)";
}

sub answer
{
	my ($client, $queue, $function, $as) = @_;
	my ($lease, $left, $some) = choose_lease($client, $queue);

	return unless defined $lease && @$some;
	my $ids = @$some == @$left ? 'null' : ids_of($queue, @$some);
	my $n = value($client, "select $function($lease, $ids)");
	give_up("$function of " . @$some . " messages answered $n") if $n != @$some;
	if ($client->{tx}) { push @{ $client->{answers} }, [ $queue, $lease, $as, @$some ] }
	else { $models{$queue}->finish($lease, $as, @$some) }
	return;
}

sub do_ack { return answer(@_, 'queue_ack', 'done') }
sub do_reject { return answer(@_, 'queue_reject', 'dead') }

sub do_nack
{
	my ($client, $queue) = @_;
	my ($lease, $left, $some) = choose_lease($client, $queue);

	# What it has answered itself would be given back with the rest.
	return unless defined $lease && @$some && @$left == @{ $models{$queue}{leases}{$lease}{ns} };
	my @back = $models{$queue}->nacked($lease, @$some);
	my $ids = @$some == @$left ? 'null' : ids_of($queue, @$some);
	my $n = value($client, "select queue_nack($lease, $ids)");
	give_up('nack of ' . @back . " messages answered $n") if $n != @back;
	$models{$queue}->give_back($lease, @back);
	return;
}

sub do_renew
{
	my ($client, $queue) = @_;
	my ($lease) = choose_lease($client, $queue);

	return unless defined $lease;
	give_up("lease $lease cannot be renewed")
	  unless defined value($client, "select queue_renew($lease, '1 hour')");
	return;
}

# Answers of leases that are gone, or never were, find nothing.
sub do_stale
{
	my ($client) = @_;
	my $lease = 1 + int rand 1000;

	foreach my $function (qw(queue_ack queue_nack queue_reject))
	{
		my $n = value($client, "select $function($lease)");
		give_up("$function of an unknown lease answered $n") if $n != 0;
	}
	return;
}

sub do_seek
{
	my ($client, $queue) = @_;

	return if $client->{tx} || rand() < 0.7;
	my $to_end = rand() < 0.3;
	run($client, "select queue_seek('$queue', 'g', " . ($to_end ? 'to_end => true' : 'to_position => 0') . ')');
	$models{$queue}->seek('g', $to_end);
	return;
}

sub do_begin { my ($client) = @_; begin($client) unless $client->{tx}; return }
sub do_commit { my ($client) = @_; commit($client) if $client->{tx}; return }
sub do_rollback { my ($client) = @_; rollback($client) if $client->{tx}; return }

sub do_savepoint
{
	my ($client) = @_;

	return unless $client->{tx} && @{ $client->{marks} } < 3;
	run($client, 'savepoint s' . @{ $client->{marks} });
	push @{ $client->{marks} },
	  [ scalar @{ $client->{pushes} }, scalar @{ $client->{answers} }, scalar @{ $client->{popped} } ];
	return;
}

sub do_rollback_to
{
	my ($client) = @_;

	return unless $client->{tx} && @{ $client->{marks} };
	my $mark = pop @{ $client->{marks} };
	run($client, 'rollback to s' . @{ $client->{marks} });
	undo($client, $mark);
	return;
}

# ------------------------------------------------------------------------------------------------
# Kills, and what must be there afterwards
# ------------------------------------------------------------------------------------------------

# Dead messages have been moved.
sub await_dead
{
	foreach my $queue (sort keys %models)
	{
		my $dead = $models{$queue}->dead_letters;
		$node->poll_sql("select dead = $dead from qlog_stat_queues where queue = '$queue'");
	}
	return;
}

# The commit of a pop is not waited for: after a crash its lease may be over.
sub match_leases
{
	my %alive = map { $_ => 1 } split /\n/, $node->sql('select lease_id from qlog_leases');

	foreach my $queue (keys %models)
	{
		foreach my $lease (keys %{ $models{$queue}{leases} })
		{
			$models{$queue}->release($lease) unless delete $alive{$lease};
		}
	}
	give_up('unknown leases after a start: ' . join ' ', keys %alive) if %alive;
	return;
}

sub do_restart
{
	$kills++;
	push @trace, 'restart';
	foreach my $client (@clients)
	{
		undo($client) if $client->{tx};
		end_transaction($client);
	}
	if (rand() < 0.7) { $node->kill9_everything; $node->start }
	else { $node->restart }
	@clients = map { fresh_client($_) } 1 .. $sessions;
	match_leases();
	check_waiting();
	return;
}

# What is still to be done by the default group, in order within each named partition.
sub check_waiting
{
	foreach my $queue (sort keys %models)
	{
		my $model = $models{$queue};
		await_dead();
		foreach my $partition ('', 'a', 'b')
		{
			my $state = $model->{state}{''};
			my @expected = grep { $state->{$_} eq 'ready' || $state->{$_} eq 'leased' } @{ $model->{order}{$partition} };
			my $got = $node->sql("select string_agg(payload::text, ' ' order by \"position\") from queue_peek('$queue', '$partition', batch => 1000000)");

			give_up("queue $queue, partition '$partition' holds '$got' instead of '@expected'") if $got ne "@expected";
		}
	}
	return;
}

# ------------------------------------------------------------------------------------------------
# The run
# ------------------------------------------------------------------------------------------------

my %weights = (
	do_push => 12, do_pop => 16, do_ack => 14, do_nack => 6, do_reject => 2, do_renew => 2, do_expire => 1, do_stale => 1,
	do_seek => 1, do_begin => 10, do_commit => 8, do_rollback => 3, do_savepoint => 4, do_rollback_to => 3);
delete $weights{do_seek} unless $node->sql("select to_regproc('queue_seek') is not null") eq 't';
my @operations = map { ($_) x $weights{$_} } sort keys %weights;

@clients = map { fresh_client($_) } 1 .. $sessions;
my $end = time + $seconds;
my $next_kill = 400;

while (time < $end)
{
	my ($client, $operation, $queue) = (pick(@clients), pick(@operations), pick(sort keys %models));

	$steps++;
	no strict 'refs';
	&$operation($client, $queue);
	await_dead() if $queue eq 'strict' && $operation =~ /nack|expire|rollback|commit/;
	next if $steps < $next_kill;
	do_restart();
	$next_kill = $steps + 200 + int rand 800;
}
pass("$steps steps, $kills restarts, $number messages");

# Drain: every message of every group that is neither done nor dead is delivered, each once, in order.
foreach my $client (@clients)
{
	rollback($client) if $client->{tx};
}
foreach my $queue (sort keys %models)
{
	my $model = $models{$queue};
	my $client = $clients[0];

	foreach my $lease (sort keys %{ $model->{leases} })
	{
		my $n = value($client, "select queue_ack($lease)");
		give_up("last ack of lease $lease answered $n") if $n != @{ $model->{leases}{$lease}{ns} };
		$model->finish($lease, 'done', @{ $model->{leases}{$lease}{ns} });
	}
	foreach my $group (@groups)
	{
		while (1)
		{
			my $rows = run($client, "select payload, partition, attempt, lease_id from queue_pop('$queue', 100, '$group', auto_ack => true)");
			my $lease = @$rows ? $rows->[0][3] : undef;
			my $why = $model->deliver($lease, $group, 100, undef, $rows);

			give_up($why) if $why;
			last unless defined $lease;
			$model->finish($lease, 'done', @{ $model->{leases}{$lease}{ns} });
		}
	}
	is($node->sql("select ready || ' ' || leased || ' ' || delayed from qlog_stat_queues where queue = '$queue'"), '0 0 0',
		"$queue is empty");
	my $expected = join "\n", $model->dead_letters;
	is($node->sql("select consumer_group || '|' || payload::text from qlog_dead_letters where queue = '$queue' order by consumer_group, payload::text::int"),
		$expected, "$queue: dead letters are complete");
}
$node->stop;
done_testing();
