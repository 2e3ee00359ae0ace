# Between PRE_COMMIT, where a transaction with queue work alone takes its credit and holds the leases that it answers, and
# the COMMIT, where that work is logged: here NOTIFY waits for another session's. What the leases hold is nobody else's
# meanwhile; and when the transaction does not get to its COMMIT, nothing has happened.

use strict;
use warnings;

use IPC::Run ();
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ 'wal_level = replica', 'max_wal_senders = 2' ]);

$node->sql(q{select queue_create('q', '{"lease": "1 h", "retry_limit": -1}'); create table t(n int)});
$node->sql("select queue_push('q', i::text) from generate_series(1, 8) i");

sub start
{
	my ($sql, $err) = @_;

	return IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', $sql ],
		'<', \undef, '>', \my $out, '2>', $err);
}

sub set_standby
{
	my ($name) = @_;

	$node->sql($name eq '' ? 'alter system reset synchronous_standby_names' : "alter system set synchronous_standby_names = '$name'");
	$node->sql('select pg_reload_conf()');
	$node->poll_sql('show synchronous_standby_names', $name);
	return;
}

sub figures { return $node->sql("select ready || ' ready, ' || leased || ' leased, ' || acked || ' acked, ' || pushed || ' pushed' from qlog_stat_queues where queue = 'q'") }

sub there { return $node->sql("select count(*) from queue_peek('q', batch => 100) where payload #>> '{}' = '$_[0]'") }

# A session whose NOTIFY holds up those of others until a standby answers that is not there, and one that waits for it
# with an acknowledgement and a push. The lease, and both.
sub between
{
	my ($what, $err) = @_;
	my ($lease) = split /\|/, $node->sql("select lease_id from queue_pop('q')");

	# A pop alone waits for nothing: this commit makes it durable.
	$node->sql(q{select queue_push('other', '1')});
	set_standby('nobody');
	my $first = start("begin; insert into t values (1); notify k, 'first'; commit", \my $said);
	$node->poll_wait_event('SyncRep');
	my $waits = start("begin; select queue_ack($lease), queue_push('q', '\"$what\"'); notify k, '$what'; commit", $err);
	$node->poll_sql("select count(*) = 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%$what%' and query not like '%pg_stat_activity%'");
	return ($lease, $first, $waits);
}

my $is_waiting = "from pg_stat_activity where wait_event_type = 'Lock' and query like '%notify%'";
my $err = '';
my ($lease, $first, $waits) = between('goes on', \$err);
is(figures(), '7 ready, 1 leased, 0 acked, 8 pushed', 'between: nothing has happened yet');
is(there('goes on'), '0', 'between: the push is not seen');
is($node->sqlstate("select queue_$_($lease)"), '55006', "between: $_ by another session is refused") foreach qw(nack renew);
is($node->sqlstate("begin; select queue_$_($lease); commit"), '40001', "between: $_ by another session fails at COMMIT") foreach qw(ack reject);
is($node->sql("select count(*) from queue_pop('q', 10, auto_ack => true)"), '7', 'between: others are delivered, this one is not');
set_standby('');
$_->finish foreach $first, $waits;
is($err, '', 'it commits');
is(figures(), '1 ready, 0 leased, 8 acked, 9 pushed', 'once');
is(there('goes on'), '1', 'and its push is there');

foreach my $how (qw(pg_cancel_backend pg_terminate_backend))
{
	$err = '';
	($lease, $first, $waits) = between($how, \$err);
	my $before = figures();
	is($node->sql("select $how(pid) $is_waiting"), 't', "$how between");
	eval { $waits->finish };
	like($err, qr/canceling statement|terminating connection/, "$how: it fails");
	is(figures(), $before, "$how: nothing has happened");
	is(there($how), '0', "$how: no push");
	is($node->sql("select queue_nack($lease)"), '1', "$how: the lease is as it was");
	set_standby('');
	$first->finish;
}

($lease, $first, $waits) = between('killed', \$err);
$node->append_conf('postgresql.auto.conf', "synchronous_standby_names = ''");
$node->kill9_everything;
eval { $_->finish } foreach $first, $waits;
$node->start;
is(figures(), '0 ready, 1 leased, 8 acked, 9 pushed', 'killed between: nothing has happened');
is(there('killed'), '0', 'killed between: no push');
is($node->sql("select queue_ack($lease)"), '1', 'killed between: the lease is as it was');
$node->stop;

done_testing();
