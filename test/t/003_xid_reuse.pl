# The trap: assigning an xid writes no WAL. After a crash the xid of a dead transaction is handed to another one, which
# commits; the commit log then answers "committed" for the dead one's entry. Its message must not appear.

use strict;
use warnings;

use IPC::Run ();
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => ["qlog.log_flush_interval = '10s'"]);

$node->sql("select queue_create('q'); create table t(n int)");
$node->sql('checkpoint');

foreach my $round (1 .. 3)
{
	my ($out, $err) = ('', '');
	my $mark = -s $node->logfile;

	# A transaction with an xid is reserved in our log, its WAL record is not inserted; a queue-only push then makes
	# the log durable through both.
	$node->freeze('walwriter');
	my $handle = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', "set qlog.debug_stop = 'before-wal-insert'",
			'-c', "begin; select pg_current_xact_id(); select queue_push('q', '\"dead $round\"'); commit"
		],
		'<', \undef, '>', \$out, '2>', \$err);
	$node->wait_until(sub { $node->log_contains('stopped at "before-wal-insert"', $mark) },
		'the transaction to be reserved');
	$node->sql("select queue_push('q', '\"alive $round\"')");
	$handle->pump_nb;
	$node->kill9_everything;
	eval { $handle->finish };
	my ($dead) = $out =~ /^(\d+)$/m;
	$node->start;

	# Others take xids until the dead one's has been used again and committed.
	my $taken = 0;
	while ($taken < $dead)
	{
		$taken = $node->sql('begin; insert into t values (1); select pg_current_xact_id(); commit');
	}
	cmp_ok($taken, '>=', $dead, "round $round: the xid of the dead transaction ($dead) is taken again");
	is($node->sql(q{select count(*) from queue_peek('q', batch => 1000) where payload #>> '{}' like 'dead%'}), '0',
		"round $round: its message is not there");
	is($node->sql(q{select count(*) from queue_peek('q', batch => 1000) where payload #>> '{}' like 'alive%'}),
		$round, "round $round: what was acknowledged is there");
	$node->kill9_everything;
	$node->start;
	is($node->sql(q{select count(*) from queue_peek('q', batch => 1000) where payload #>> '{}' like 'dead%'}), '0',
		"round $round: nor after another crash");
}
$node->stop;

done_testing();
