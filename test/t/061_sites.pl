# The journal and the checkpoint in directories of their own, on another device where there is one (/dev/shm): work, kills,
# a damaged checkpoint put aside there; swapped, emptied, missing and used directories are refused with their path; one may
# be moved.

use strict;
use warnings;

use File::Temp ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

QlogNode::plain_layout();

sub device { return (stat $_[0])[0] }

my $base = PostgreSQL::Test::Utils::tempdir();
my $other = -d '/dev/shm' && -w '/dev/shm' && device('/dev/shm') != device($base)
  ? File::Temp::tempdir(DIR => '/dev/shm', CLEANUP => 1) : $base;
my ($journal, $checkpoint) = ("$other/journal", "$other/checkpoint");

note $other eq $base ? 'there is no other device here' : 'the sites are on another device than the data directory';

my $node = QlogNode->started('main',
	conf => [
		"qlog.journal_directory = '$journal'", "qlog.checkpoint_directory = '$checkpoint'",
		"qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'", "qlog.recovery_wait = '10s'" ]);
my $dir = $node->qlog_dir;

sub log_since
{
	my ($from) = @_;

	return substr(slurp_file($node->logfile), $from);
}

# Starts, and gives the error of a call with DETAIL and HINT.
sub refusal
{
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', "select queue_push('q', '0')");
	my $up = $node->sql('select 1');

	$node->stop;
	return $up eq '1' ? $err : 'PostgreSQL does not run';
}

sub setting
{
	my ($name, $value) = @_;

	$node->append_conf('postgresql.conf', "qlog.$name = '$value'\n");
	return;
}

$node->sql("select queue_create('first')");
ok(-f "$journal/q0/r00000001.qlog", 'the system log is where the setting says');
$node->wait_until(sub { -f "$checkpoint/store/data.mdb" }, 'a checkpoint where the setting says');
ok(!-e "$dir/qlog/q0" && !-e "$dir/store", 'and not in the data directory');

# Work that goes to q0 alone (acknowledgements), to both (tables), to queues' logs; kills in between.
$node->sql("select queue_create('q'); create table t(n int)");
foreach my $round (1 .. 4)
{
	$node->sql("insert into t select queue.n from (select count(queue_push('q', i::text))::int as n from generate_series(1, 500) i) queue");
	$node->sql("select count(*) from (select queue_ack(max(lease_id)) from queue_pop('q', 300)) x");
	$node->sql("select qlog_checkpoint()") if $round == 2 && $node->sql("select count(*) from pg_proc where proname = 'qlog_checkpoint' and pronargs = 0") eq '1';
	$node->kill9_everything;
	$node->start;
	is($node->sql("select sum(n) || ' ' || (select acked || ' ' || ready from qlog_stat_queues where queue = 'q') from t"),
		500 * $round . ' ' . 300 * $round . ' ' . 200 * $round, "round $round: all that was answered is there");
}
is($node->sql("select count(*) from queue_peek('q', batch => 1000)"), '800', 'every message reads back');

# Nothing is written when nothing is to be done; then a damaged checkpoint is put aside within its site.
$node->stop;
my $from = -s $node->logfile;
{
	open(my $fh, '+<', "$checkpoint/store/data.mdb") or die $!;
	binmode $fh;
	seek $fh, 16, 0;
	print $fh 'x' x 8192;
	close $fh;
}
$node->start;
is($node->sql("select ready from qlog_stat_queues where queue = 'q'"), '800', 'a damaged checkpoint is rebuilt');
is(scalar(() = glob "$checkpoint/store.damaged.*"), 1, 'and kept in its own directory');
unlike(log_since($from), qr/cross-device|Invalid cross/i, 'nothing was renamed to another device');
unlike(log_since($from), qr/not qlog's/, 'no file of the sites is a stray');
$node->stop;

# What is refused. Nothing is changed by it.
setting('journal_directory', $checkpoint);
setting('checkpoint_directory', $journal);
my $err = refusal();
like($err, qr/\Q$checkpoint\E|\Q$journal\E/, 'swapped: refused with the path');
setting('journal_directory', $journal);
setting('checkpoint_directory', $checkpoint);

rename "$journal", "$journal.away" or die $!;
$err = refusal();
like($err, qr/\Q$journal\E.*No such file/s, 'missing: refused with the path');
ok(!-e $journal, 'and not made anew');
mkdir $journal, 0700 or die $!;
$err = refusal();
like($err, qr/\Q$journal\E/, 'emptied: refused with the path');
like($err, qr/not the directory of a journal/, 'and the reason');
is(scalar(() = glob "$journal/*"), 0, 'and nothing put into it');
rmdir $journal or die $!;
rename "$journal.away", $journal or die $!;

setting('checkpoint_directory', '');
$err = refusal();
like($err, qr/\Q$checkpoint\E/, 'not asked for any more: refused with the path where it is');
like($err, qr/HINT:.*qlog\.checkpoint_directory/s, 'and the hint to set it back');
setting('checkpoint_directory', $checkpoint);

# Of another cluster.
{
	my $second = QlogNode->new('second');

	$second->init;
	$second->append_conf('postgresql.conf', "qlog.journal_directory = '$journal'\nqlog.recovery_wait = '5s'\n");
	$second->start;
	my ($rc, $out, $text) = $second->psql('postgres', 'create extension qlog; select queue_push(\'x\', \'1\')');
	like($text, qr/holds a journal already/, 'a second cluster is refused the journal of the first');
	like($text, qr/\Q$journal\E/, 'with the path');
	$second->stop;
}
$node->start;
is($node->sql("select ready from qlog_stat_queues where queue = 'q'"), '800', 'all that refused has changed nothing');

# The program that reads a directory without a server.
$node->stop;
my ($code, $lines, $complaint) = $node->qlog_dump('--verify');
is($code, 0, 'qlog_dump finds the journal') or diag $complaint;

# Moved, with the setting.
rename $journal, "$other/moved" or die $!;
setting('journal_directory', "$other/moved");
$node->start;
is($node->sql("select ready from qlog_stat_queues where queue = 'q'"), '800', 'a journal that was moved is found under its new path');
is($node->sql("select queue_push('q', '1') is not null"), 't', 'and work goes on');
$node->stop;
like(slurp_file("$dir/SITES"), qr{journal = \Q$other\E/moved}, 'which is recorded');

# A path that is not one counts as none.
setting('journal_directory', 'relative');
$from = -s $node->logfile;
like(refusal(), qr/\Q$other\E\/moved/, 'a relative path: refused with the path where the journal is');
like(log_since($from), qr/must be absolute/, 'and the server log says why');
setting('journal_directory', "$other/moved");
$node->start;
is($node->sql("select ready from qlog_stat_queues where queue = 'q'"), '801', 'and set right it comes up');
$node->stop;

done_testing();
