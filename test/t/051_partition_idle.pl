# Idle partitions over crashes, with transactions that are about to use them, and the speed of a walk over many.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '4MB'", "qlog.retention_naptime = '20 ms'", "qlog.checkpoint_timeout = '200 ms'", 'autovacuum = off' ]);

sub crash
{
	$node->kill9_everything;
	$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
	$node->start;
	return;
}

sub partitions
{
	return $node->sql("select string_agg(partition, ' ' order by partition) from qlog_stat_partitions where queue = 'q' and partition <> ''");
}

my $push = "select count(*) from queue_push_batch('q', array['1', '2', '3'], array['a', 'a', 'b'])";
my $consume = "select count(*) from (select queue_ack(lease_id) from queue_pop('q', 10, max_partitions => 10) group by lease_id) a";

$node->sql("select queue_create('q', '{\"partition_idle\": \"1 s\"}'); create table t (i int)");
foreach my $point (qw(retention-after-look retention-after-log))
{
	my $mark = -s $node->logfile;

	# Joint work, whose decisions are logged later than it is done.
	$node->sql("begin; insert into t values (1); $push; commit; begin; insert into t values (2); $consume; commit");
	$node->poll_sql("select count(*) = 2 from qlog_stat_partitions where queue = 'q' and partition <> '' and first_position = next_position");
	$node->sql("alter system set qlog.debug_stop = '$point'");
	$node->sql('select pg_reload_conf()');
	$node->wait_until(sub { $node->log_contains("stopped at \"$point\"", $mark) }, $point);
	crash();
	$node->poll_sql("select count(*) = 0 from qlog_stat_partitions where queue = 'q' and partition <> ''");
	$node->sql("alter system reset qlog.debug_stop");
	$node->sql('select pg_reload_conf()');

	# Nobody waits for the entry that removes them: a commit behind it makes it durable.
	$node->sql("select queue_push('other', '1')");
	crash();
	is(partitions(), '', "$point: they have gone, also after another crash");
	$node->sql($push);
	is($node->sql("select string_agg(payload || ' ' || partition || ' ' || \"position\", ', ' order by partition, \"position\") from queue_peek('q', 'a')"),
		'1 a 0, 2 a 1', "$point: they begin anew");
	crash();
	is($node->sql("select count(*) from queue_peek('q', 'a')"), '2', "$point: and are there after a crash");
	$node->sql($consume);
	$node->poll_sql("select count(*) = 0 from qlog_stat_partitions where queue = 'q' and partition <> ''");
}

# A transaction that has pushed to a partition keeps it, however long it takes.
sub session
{
	my %session = (in => '', out => '', err => '');

	$session{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres') ],
		'<', \$session{in}, '>', \$session{out}, '2>', \$session{err});
	return \%session;
}

# Runs SQL in the session and waits for a line of output.
sub say_and_wait
{
	my ($session, $sql, $line) = @_;

	$session->{in} .= "$sql;\n";
	$session->{run}->pump until $session->{out} =~ /^\Q$line\E$/m;
	return;
}

# Two walks that have looked at everything.
sub walk_twice
{
	my $passes = $node->sql("select passes from qlog_stat_workers where role = 'retention'");

	$node->poll_sql("select passes > $passes + 2 from qlog_stat_workers where role = 'retention'");
	return;
}

sub empty
{
	$node->sql($push . "; $consume");
	$node->poll_sql("select count(*) = 0 from qlog_stat_partitions where queue = 'q' and partition <> ''");
	return;
}

empty();
my ($long, $undone) = (session(), session());
say_and_wait($_, "begin; select queue_push('q', '4', 'a') is not null", 't') foreach $long, $undone;
# Some others may stay with it, as names are told apart by a hash; most go.
$node->sql("select queue_push('q', '4', 'b' || i) from generate_series(1, 9) i");
$node->sql($consume);
$node->poll_sql("select count(*) < 4 from qlog_stat_partitions where queue = 'q' and partition ~ '^b'");
like(partitions(), qr/^a\b/, 'others go, that of the open transactions stays');
say_and_wait($undone, 'rollback; select 5', '5');
walk_twice();
like(partitions(), qr/^a\b/, 'one of them has ended, the other has not');
say_and_wait($long, "insert into t values (3); commit; select 6", '6');
is($node->sql("select string_agg(payload::text, ' ') from queue_pop('q', partition => 'a', auto_ack => true)"), '4', 'its commit finds the partition');
is($node->sql('select count(*) from t where i = 3'), '1', 'with its table changes');
$node->poll_sql("select count(*) = 0 from qlog_stat_partitions where queue = 'q' and partition <> ''");

$_->{in} .= "\\q\n", $_->{run}->finish foreach $long, $undone;
is($long->{err} . $undone->{err}, '', 'no error in either session');

# Many: each of 60,000 partitions loses a message; a walk over them takes little more than a second, and less when there is
# nothing to do.
$node->sql("alter system set qlog.retention_naptime = '1 d'");
$node->sql('select pg_reload_conf()');
$node->sql("select queue_create('many')");
foreach my $n (1 .. 20)
{
	$node->sql("select count(*) from queue_push_batch('many', (select array_agg('1'::text) from generate_series(1, 3000)), (select array_agg('p$n.' || i) from generate_series(1, 3000) i))");
}
$node->sql("select count(*) from (select queue_ack(lease_id) from queue_pop('many', 3000, max_partitions => 3000) group by lease_id) a") foreach 1 .. 20;
is($node->sql("select acked from qlog_stat_queues where queue = 'many'"), '60000', 'all are done');
my $passes = $node->sql("select passes from qlog_stat_workers where role = 'retention'");
$node->sql("alter system set qlog.retention_naptime = '10 ms'");
$node->sql('select pg_reload_conf()');
$node->poll_sql("select passes > $passes from qlog_stat_workers where role = 'retention'");
my $ms = $node->sql("select round(last_pass_time) from qlog_stat_workers where role = 'retention'");
note("a walk that removes a message from each of 60,000 partitions: $ms ms");
$node->poll_sql("select count(*) = 0 from qlog_stat_partitions where queue = 'many' and first_position < next_position");
pass('all of them have gone');
$node->stop;
done_testing();
