# The way out of a refused start: qlog_repair(NULL) says what stands in the way and what would have to be given up, gives up that and
# nothing else, and what is left serves; bytes are kept, the server log tells, every replay agrees.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.checkpoint_timeout = '1h'", 'qlog.snapshot_interval = 0', 'qlog.recovery_wait = \'10s\'', 'qlog.compression_level = 0' ]);
my $dir = $node->qlog_dir;

sub shown { return $node->sql("select coalesce(string_agg(payload #>> '{}', ',' order by \"position\"), '') from queue_peek('$_[0]', 'p', batch => 1000)") }

# All files of the directory with their sizes and contents, but for what a server touches by running.
sub contents
{
	return join '', map { "$_ " . slurp_file($_) } sort glob "$dir/qlog/q*/*";
}

is($node->sqlstate('select * from qlog_repair(NULL)'), '22004', 'nothing is refused: a queue has to be named');
$node->sql(q{create table t(n int); select queue_create('a'); select queue_create('b'); select queue_push('a', '"a0"', 'p')});
$node->stop;
$node->start;

# Above the checkpoint: pushes, a pop with its answer (in the system log), more pushes and a transaction with a table.
$node->sql(qq{select queue_push('a', '"a$_"', 'p'); select queue_push('b', '"b$_"', 'p')}) foreach 1 .. 3;
$node->sql(q{select queue_ack((select lease_id from queue_pop('a', 1, partition => 'p')))});
my $q0 = "$dir/qlog/q0/r00000001.qlog";
my $before = length(slurp_file($q0) =~ s/\0+\z//r);
$node->sql(q{select queue_ack((select lease_id from queue_pop('a', 1, partition => 'p')))});
my $damaged = length(slurp_file($q0) =~ s/\0+\z//r) - 30;
cmp_ok($damaged, '>', $before, 'an answer stands in the system log');
$node->sql(qq{select queue_push('a', '"a$_"', 'p')}) foreach 4 .. 5;
$node->sql(q{select queue_push('b', '"b4"', 'p'); select queue_push('b', '"new"', 'other')});
$node->sql(q{begin; insert into t values (1); select queue_push('b', '"joint"', 'p'); commit});
$node->kill9_everything;
my $byte = substr slurp_file($q0), $damaged, 1;
QlogNode::patch($q0, $damaged, chr(ord($byte) ^ 0x55));
my $contents = contents();
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', "select * from queue_peek('b')");
like($err, qr/qlog is out of service.*q0\/r00000001\.qlog at byte \d+.*HINT:.*qlog_repair\(NULL\)/s, 'the start is refused, and the hint names the way out');
my $rows = $node->sql('select queue, file, partition, first_position, messages, action from qlog_repair(NULL)');
like($rows, qr{^\|qlog/q0/r00000001\.qlog\|\|\|\|the start is refused: entry \d+ was durable and is damaged}m, 'dry run: the reason');
my ($entries, $seq) = $rows =~ /^\|\|\|\|\d+\|(\d+) entries from number (\d+) on, in all logs: would be given up, the bytes kept as \*\.cut\.\d+$/m;
cmp_ok($entries, '>=', 5, 'dry run: entries');
like($rows, qr/^a\|\|p\|4\|2\|messages would be given up$/m, 'dry run: messages of a');
like($rows, qr/^\|\|\|3\|2\|messages would be given up, of partition number \d+, which is younger than the checkpoint$/m, 'dry run: a new partition');
is(contents(), $contents, 'dry run: nothing has changed');
$node->sql('create role nobody');
is($node->sqlstate('set role nobody; select * from qlog_repair(NULL)'), '42501', 'not for everybody');
is($node->sqlstate("select * from queue_peek('b')"), 'XX001', 'the start is still refused');

my $mark = -s $node->logfile;
$rows = $node->sql('select queue, partition, first_position, messages, action from qlog_repair(NULL, false)');
like($rows, qr/^a\|p\|4\|2\|messages given up\nb\|p\|3\|2\|messages given up$/m, 'given up: by queue and partition');
is(shown('a'), 'a1,a2,a3', 'what stood in front is there, and the answer that is lost is forgotten');
is(shown('b'), 'b1,b2,b3,joint', 'of what stood behind, what the WAL holds has come back');
is($node->sql('select count(*) from t'), '1', 'as its table');
ok($node->log_contains("$entries entries from $seq on were given up", $mark), 'the log says so');
ok($node->log_contains('given up: queue "a", partition "p", positions 4 to 5', $mark), 'and lists the messages');
ok(scalar(glob "$q0.cut.$seq"), 'the bytes are kept');
is($node->sql('select count(*) from qlog_verify(deep => true)'), '0', 'the logs are sound');
$node->sql(q{select queue_push('a', '"a6"', 'p'); select queue_push('b', '"other"', 'other')});
foreach my $how ('kill9_everything', 'stop')
{
	$node->$how;
	$node->start;
	is(shown('a') . ';' . shown('b'), 'a1,a2,a3,a6;b1,b2,b3,joint', "$how: the same after a restart, without a grant");
}

# A log is gone. Its queue is out of service alone, until it is repaired.
my ($log) = $node->sql(q{select log_id from qlog_queues where queue = 'b'});
$node->stop;
rename("$dir/qlog/q$log", "$dir.away") or die $!;
$node->start;
is($node->sqlstate("select * from queue_peek('a')"), 'XX001', 'a log is gone: refused');
like($node->sql('select action from qlog_repair(NULL)'), qr/log directory that the checkpoint expects does not exist\n1 logs would go on in new files/, 'a log is gone: dry run');
ok(!-e "$dir/qlog/q$log", 'a log is gone: nothing has changed');
$node->sql('select * from qlog_repair(NULL, false)');
is(shown('a'), 'a1,a2,a3,a6', 'a log is gone: the other queue serves');
is($node->sqlstate("select queue_push('b', '1')"), 'XX001', 'a log is gone: its queue is out of service');
$node->sql(q{select queue_push('a', '"a7"', 'p')});
$node->kill9_everything;
$node->start;
is(shown('a'), 'a1,a2,a3,a6,a7', 'a log is gone: the next start goes on');
is($node->sqlstate("select queue_push('b', '1')"), 'XX001', 'a log is gone: also after a crash');
$rows = $node->sql("select partition, first_position, messages, action from qlog_repair('b', false) where messages is not null");
like($rows, qr/^p\|0\|3\|/m, 'a log is gone: its messages are given up by name');
is(shown('b'), '', 'a log is gone: nothing is left of them');
$node->sql(q{select queue_push('b', '"again"', 'p')});
foreach my $how ('kill9_everything', 'stop')
{
	$node->$how;
	$node->start;
	is(shown('b'), 'again', "a log is gone: $how: it serves");
	is($node->sql('select count(*) from qlog_verify(deep => true)'), '0', "a log is gone: $how: sound");
}

# What no grant can help.
$node->stop;
rename("$dir/qlog/LANES", "$dir.lanes") or die $!;
$node->start;
is($node->sqlstate('select * from qlog_repair(NULL, false)'), 'XX001', 'LANES is gone: nothing can be given up for that');
is($node->sql('select count(*) from qlog_repair(NULL)'), '1', 'LANES is gone: only the reason is shown');
$node->stop;
rename("$dir.lanes", "$dir/qlog/LANES") or die $!;
$node->start;
is(shown('b'), 'again', 'LANES is back');
$node->stop;
done_testing();
