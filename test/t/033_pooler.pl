# Through PgBouncer in transaction mode: any statement may meet any server connection, and nothing minds.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use QlogWire;
use Test::More;
use Time::HiRes qw(usleep);

my $version = eval { (run_command([ 'pgbouncer', '--version' ]))[0] };

plan skip_all => 'PgBouncer is not installed' unless defined $version && $version =~ /PgBouncer (\d+)\.(\d+)/;
my ($major, $minor) = ($1, $2);
my $names_statements = $major > 1 || $minor >= 21;

my $node = QlogNode->started('main', conf => [ "qlog.max_pop_wait = '1h'" ]);
my $user = $node->sql('select current_user');
my $direct = QlogWire->to($node);
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my ($host, $server_port) = ($node->host, $node->port);

# Three server connections, given to whoever asks, the one that has rested longest first; reset after each transaction.
append_to_file("$dir/users", qq{"$user" ""\n});
append_to_file("$dir/pgbouncer.ini", qq{
[databases]
* = host=$host port=$server_port
[pgbouncer]
listen_addr =
listen_port = $port
unix_socket_dir = $dir
auth_type = trust
auth_file = $dir/users
pool_mode = transaction
default_pool_size = 3
server_round_robin = 1
server_reset_query = DISCARD ALL
server_reset_query_always = 1
ignore_startup_parameters = extra_float_digits
logfile = $dir/pgbouncer.log
} . ($names_statements ? "max_prepared_statements = 10\n" : ''));

my ($out, $err) = ('', '');
my $bouncer = IPC::Run::start([ 'pgbouncer', "$dir/pgbouncer.ini" ], '<', \undef, '>', \$out, '2>', \$err);

sub client { return QlogWire->new(host => $dir, port => $port, dbname => 'postgres', user => $user); }

$node->wait_until(sub { -S "$dir/.s.PGSQL.$port" && eval { client()->close; 1 } }, 'PgBouncer to come up');

# Runs it on this server connection: the two others are in a transaction meanwhile.
sub on_connection
{
	my ($pid, $sql) = @_;
	my @held = map { client() } 1 .. 3;

	$_->query('begin') foreach @held;
	my ($c) = grep { $_->value('select pg_backend_pid()') == $pid } @held;
	$c->query('rollback');
	my $result = $c->query($sql);
	foreach my $other (@held)
	{
		$other->query('rollback') if $other != $c;
		$other->close;
	}
	return $result;
}

# The server connections.
my @clients = map { client() } 1 .. 3;
$_->query('begin') foreach @clients;
my @pids = map { $_->value('select pg_backend_pid()') } @clients;
$_->query('commit') foreach @clients;
is(scalar(keys %{ { map { $_ => 1 } @pids } }), 3, 'three server connections');

$direct->value(q{select queue_create('q', '{"lease": "1 h"}')});

# ------------------------------------------------------------------------------------------------
# Push, pop and answer each on another server connection
# ------------------------------------------------------------------------------------------------

foreach my $answer ('queue_ack(%s)', 'queue_ack(%s, %s)', 'queue_nack(%s)', 'queue_nack(%s, %s)', 'queue_reject(%s)',
	'queue_reject(%s, %s)', 'queue_renew(%s) > now()')
{
	my $pushed = on_connection($pids[0], "select queue_push('q', '1'), pg_backend_pid()");
	my $popped = on_connection($pids[1], "select lease_id, message_id, pg_backend_pid() from queue_pop('q')");
	my ($lease, $id) = @{ $popped->{rows}[0] };
	my $answered = on_connection($pids[2],
		'select ' . sprintf($answer, $lease, "array['$id']::uuid[]") . ', pg_backend_pid()');

	is_deeply([ map { $_->{rows}[0][-1] } $pushed, $popped, $answered ], \@pids, "$answer: on three server connections");
	is($id, $pushed->{rows}[0][0], "$answer: the message");
	is($answered->{rows}[0][0], $answer =~ /renew/ ? 't' : '1', "$answer: the answer");
	on_connection($pids[0], "select queue_ack(lease_id) from queue_pop('q')") if $answer =~ /nack/;
	on_connection($pids[0], "select queue_ack($lease)") if $answer =~ /renew/;
	is($direct->value("select ready + leased from qlog_stat_queues where queue = 'q'"), '0', "$answer: nothing is left");
}

# A transaction of a client: one server connection from BEGIN to COMMIT, which decides about rows and messages.
{
	my $c = client();

	$direct->query("create table t(i int); select queue_push('q', '5')");
	foreach my $end ('rollback', 'commit')
	{
		$c->query('begin');
		my $row = $c->query("select payload, lease_id from queue_pop('q')")->{rows}[0];
		$c->query("insert into t values ($row->[0])");
		$c->query("select queue_ack($row->[1])");
		is($c->query($end)->{error}, undef, "pop, table, ack, $end");
		is($direct->value('select count(*) from t'), $end eq 'commit' ? '1' : '0', "$end: the row");
		is($direct->value("select ready || ' ' || leased from qlog_stat_queues where queue = 'q'"),
			$end eq 'commit' ? '0 0' : '1 0', "$end: the message");
	}

	# Lost in the middle: PgBouncer ends the server connection, which gives the lease back.
	$direct->query("select queue_push('q', '6')");
	$c->query('begin');
	$c->query("select * from queue_pop('q')");
	$c->abandon;
	$node->poll_sql("select ready = 1 and leased = 0 from qlog_stat_queues where queue = 'q'");
	is($direct->value("select queue_ack(lease_id) from queue_pop('q')"), '1', 'a client lost in its transaction: the message is back');
}

# ------------------------------------------------------------------------------------------------
# Waiting
# ------------------------------------------------------------------------------------------------

foreach my $sql ("call queue_wait('q', '1 h')", "select queue_ack(lease_id) from queue_pop('q', wait => '1 h')")
{
	my $kind = $sql =~ /call/ ? 'queue_wait' : 'queue_pop';
	my ($c, $d) = (client(), client());

	# Two wait, the third server connection serves everybody else.
	$_->send_query($sql) foreach $c, $d;
	$node->poll_sql("select waiting = 2 from qlog_stat_queues where queue = 'q'");
	client()->query("select queue_push('q', '$_')") foreach 1, 2;
	foreach my $waiter ($c, $d)
	{
		my $result = $waiter->result;

		is($result->{error}, undef, "$kind: returns");
		$result = $waiter->query("select queue_ack(lease_id) from queue_pop('q')") if $kind eq 'queue_wait';
		is($result->{rows}[0][0], '1', "$kind: and the message is there");
	}

	# The extended protocol.
	$c->send_execute(sql => $sql, sync => 1);
	$node->poll_sql("select waiting = 1 from qlog_stat_queues where queue = 'q'");
	$d->execute('select queue_push($1, $2)', [], 'q', '3');
	is($c->result->{error}, undef, "$kind, extended protocol: returns");
	$direct->query("select queue_ack(lease_id) from queue_pop('q')") if $kind eq 'queue_wait';

	# A client that leaves while it waits takes its server connection with it; nothing is leased for it.
	$c->send_query($sql);
	$node->poll_sql("select waiting = 1 from qlog_stat_queues where queue = 'q'");
	$c->abandon;
	$node->poll_sql("select waiting = 0 from qlog_stat_queues where queue = 'q'");
	$d->query("select queue_push('q', '4')");
	is($d->value("select attempt from queue_pop('q', auto_ack => true)"), '1', "$kind: the message was not leased before");
	is($direct->value("select ready + leased + waiting from qlog_stat_queues where queue = 'q'"), '0', "$kind: nothing is left");
	$d->close;
}

# ------------------------------------------------------------------------------------------------
# Load: many clients, few server connections
# ------------------------------------------------------------------------------------------------

$direct->query('create table pushed(n int); create table done(n int); create sequence s');
my $producer = "$dir/produce.sql";
my $consumer = "$dir/consume.sql";

append_to_file($producer, <<'SQL');
begin;
select nextval('s') as n \gset
insert into pushed values (:n);
select queue_push('q', to_json(:n::int));
commit;
SQL
append_to_file($consumer, <<'SQL');
select coalesce(max(payload::text::int), -1) as n, coalesce(max(lease_id), 0) as lease from queue_pop('q', wait => '20 ms') \gset
\if :n > 0
begin;
insert into done values (:n);
select queue_ack(:lease);
commit;
\endif
SQL
foreach my $mode ('simple', 'extended', $names_statements ? 'prepared' : ())
{
	my @runs = map {
		my $run = { script => $_ };

		$run->{handle} = IPC::Run::start(
			[ 'pgbench', '-n', '-M', $mode, '-c', 10, '-t', 60, '-h', $dir, '-p', $port, '-U', $user, '-f', $_, 'postgres' ],
			'<', \undef, '>', \$run->{out}, '2>', \$run->{err});
		$run;
	} $producer, $consumer, $consumer;

	foreach my $run (@runs)
	{
		ok($run->{handle}->finish, "$mode: " . ($run->{script} =~ s{.*/}{}r)) || diag $run->{err};
	}
}

# What the consumers have left behind.
while (my $row = $direct->query("select payload, lease_id from queue_pop('q')")->{rows}[0])
{
	$direct->query("begin; insert into done values ($row->[0]); select queue_ack($row->[1]); commit");
}
is($direct->value('select count(*) from pushed full join done using (n) where pushed.n is null or done.n is null'), '0',
	'what was pushed is done, and nothing else');
is($direct->value('select count(*) - count(distinct n) from done'), '0', 'nothing is done twice');
is($direct->value("select ready + leased + waiting from qlog_stat_queues where queue = 'q'"), '0', 'nothing is left');

$bouncer->signal('INT');
$bouncer->finish;
$node->stop;

done_testing();
