# What a queue must do, kept beside the server by a test that runs one statement after the other: every committed message
# in its partition, and for each consumer group whether it is ready, leased, done or dead, and how often it was delivered.
#
#   my $model = QlogModel->new(groups => ['', 'g'], partitions => ['', 'a', 'b'], limit => 3);
#   $model->commit_push($n, $partition)            a message is visible
#   my $why = $model->deliver($lease, $group, $batch, $partition, \@rows)      '' or what is wrong with it
#   $model->answerable($lease), ->ack, ->reject, ->give_back, ->release, ->end_lease ...
#
# A row of a delivery is [n, partition, attempt]. limit: retries before a message dies, -1 = none.

package QlogModel;

use strict;
use warnings;

sub new
{
	my ($class, %params) = @_;

	return bless {
		groups => $params{groups}, partitions => $params{partitions}, limit => $params{limit},
		order => { map { $_ => [] } @{ $params{partitions} } },    # partition => message numbers
		partition => {},                                           # n => partition
		state => { map { $_ => {} } @{ $params{groups} } },        # group => n => ready | leased | done | dead
		attempts => { map { $_ => {} } @{ $params{groups} } },
		leases => {},                                              # id => { group, partition, ns => [ ... ] }
		deaths => { map { $_ => [] } @{ $params{groups} } },       # group => [ n, ... ], one for each dead letter
	}, $class;
}

sub commit_push
{
	my ($self, $n, $partition) = @_;

	push @{ $self->{order}{$partition} }, $n;
	$self->{partition}{$n} = $partition;
	foreach my $group (@{ $self->{groups} })
	{
		$self->{state}{$group}{$n} = 'ready';
		$self->{attempts}{$group}{$n} = 0;
	}
	return;
}

# Numbers of a partition that can be delivered to a group now, in order.
sub deliverable
{
	my ($self, $group, $partition) = @_;
	my $state = $self->{state}{$group};
	my @open = grep { $state->{$_} ne 'done' && $state->{$_} ne 'dead' } @{ $self->{order}{$partition} };

	return grep { $state->{$_} eq 'ready' } @open if $partition eq '';
	return () if grep { $state->{$_} eq 'leased' } @open;
	return @open;
}

# Takes a delivery over; returns '' or what is wrong with it. partition undef: it may come from any.
sub deliver
{
	my ($self, $lease, $group, $batch, $partition, $rows) = @_;
	my ($state, $attempts) = ($self->{state}{$group}, $self->{attempts}{$group});

	if (!@$rows)
	{
		my @from = grep { $self->deliverable($group, $_) } defined $partition ? $partition : @{ $self->{partitions} };
		return @from ? "nothing delivered, although partition '$from[0]' has something" : '';
	}
	my $from = $rows->[0][1];
	return "delivered from '$from', asked for '$partition'" if defined $partition && $partition ne $from;
	return "delivered from an unknown partition '$from'" unless $self->{order}{$from};
	my @may = $self->deliverable($group, $from);
	my $want = @may < $batch ? scalar @may : $batch;
	return 'delivered ' . scalar(@$rows) . " messages of '$from' instead of $want" if @$rows != $want;
	my %may = map { $_ => 1 } @may;
	foreach my $i (0 .. $#$rows)
	{
		my ($n, $p, $attempt) = @{ $rows->[$i] };

		return "message $n of partition '$p' in a delivery from '$from'" if $p ne $from;
		return "message $n of '$from' is " . ($state->{$n} // 'unknown') . ' and was delivered'
		  unless delete $may{$n};
		return "message $n delivered where $may[$i] comes next" if $from ne '' && $n != $may[$i];
		my $expected = $attempts->{$n} + 1;
		return "attempt $attempt of message $n instead of $expected" if $attempt != $expected;
	}
	foreach my $row (@$rows)
	{
		$state->{ $row->[0] } = 'leased';
		$attempts->{ $row->[0] } = $row->[2];
	}
	$self->{leases}{$lease} = { number => ++$self->{nleases}, group => $group, partition => $from, ns => [ map { $_->[0] } @$rows ] };
	return '';
}

sub holds
{
	my ($self, $lease, @ns) = @_;
	my $l = $self->{leases}{$lease} or return 0;
	my %has = map { $_ => 1 } @{ $l->{ns} };

	return !grep { !$has{$_} } @ns;
}

# Takes messages out of a lease, which ends when it is empty.
sub _take_out
{
	my ($self, $lease, @ns) = @_;
	my %out = map { $_ => 1 } @ns;
	my $l = $self->{leases}{$lease};

	$l->{ns} = [ grep { !$out{$_} } @{ $l->{ns} } ];
	delete $self->{leases}{$lease} unless @{ $l->{ns} };
	return $l->{group};
}

# Acknowledged ('done') or rejected ('dead') for good.
sub finish
{
	my ($self, $lease, $as, @ns) = @_;
	my $group = $self->_take_out($lease, @ns);

	$self->{state}{$group}{$_} = $as foreach @ns;
	push @{ $self->{deaths}{$group} }, @ns if $as eq 'dead';
	return;
}

# Given back: ready again, or dead when that was once too often. In an ordered partition only the lowest one is charged with
# the attempt.
sub give_back
{
	my ($self, $lease, @ns) = @_;
	my $ordered = $self->{leases}{$lease}{partition} ne '';
	my $group = $self->_take_out($lease, @ns);

	foreach my $i (0 .. $#ns)
	{
		my $n = $ns[$i];
		my $charged = $i == 0 || !$ordered;

		$self->{attempts}{$group}{$n}-- unless $charged;
		my $exhausted = $charged && $self->{limit} >= 0 && $self->{attempts}{$group}{$n} > $self->{limit};
		$self->{state}{$group}{$n} = $exhausted ? 'dead' : 'ready';
		push @{ $self->{deaths}{$group} }, $n if $exhausted;
	}
	return;
}

# What a nack of these numbers gives back: in an ordered partition everything of the lease behind the lowest one, too.
sub nacked
{
	my ($self, $lease, @ns) = @_;
	my $l = $self->{leases}{$lease};

	return @ns if $l->{partition} eq '' || !@ns;
	my %asked = map { $_ => 1 } @ns;
	my $from = 0;
	$from++ until $asked{ $l->{ns}[$from] };
	return @{ $l->{ns} }[ $from .. $#{ $l->{ns} } ];
}

# A lease ends without an answer.
sub release
{
	my ($self, $lease) = @_;

	$self->give_back($lease, @{ $self->{leases}{$lease}{ns} }) if $self->{leases}{$lease};
	return;
}

# A group begins again at the start, or stands at the end; its leases end.
sub seek
{
	my ($self, $group, $to_end) = @_;

	delete $self->{leases}{$_} foreach grep { $self->{leases}{$_}{group} eq $group } keys %{ $self->{leases} };
	foreach my $n (keys %{ $self->{partition} })
	{
		$self->{state}{$group}{$n} = $to_end ? 'done' : 'ready';
		$self->{attempts}{$group}{$n} = 0;
	}
	return;
}

# Dead letters: "group|n", sorted by group and number. A group that was moved back may have more than one of a message.
sub dead_letters
{
	my ($self) = @_;

	return map { my $g = $_; map { "$g|$_" } sort { $a <=> $b } @{ $self->{deaths}{$g} } } @{ $self->{groups} };
}

1;
