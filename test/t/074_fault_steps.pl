# File operations fail while workers and DBAs do the rarer things: snapshots, scrubbing, repairing a queue, giving
# up what refuses a start. A clean error or none, the server does not end, and once the fault is gone the same goes well.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '50ms'", "qlog.snapshot_interval = 0", 'qlog.scrub_interval = 0', "qlog.scrub_rate = '1GB'",
		'qlog.compression_level = 0', "qlog.recovery_wait = '10s'" ]);
my $dir = $node->qlog_dir;

# A write over what was written before may end the server, as it cannot go on without its log: snapshots alone are not that.
my @faults = ('create=ENOSPC, extend=ENOSPC', 'rename=EIO', 'unlink=EIO');
my $clean = qr/^(53100|58030)?$/;

sub log_of { return $node->sql("select log_id from qlog_queues where queue = '$_[0]'") }
sub shown { return $node->sql("select coalesce(string_agg(payload->>'n', ',' order by \"position\"), '') from queue_peek('$_[0]', 'p', batch => 1000)") }

# SQLSTATE of SQL while this fault stands, '' = none.
sub under
{
	my ($fault, $sql) = @_;

	$node->fault($fault);
	my $state = $node->sqlstate($sql, timeout => 60) // '';
	$node->fault('');
	return $state;
}

# Until other processes have seen that the fault is gone.
sub without
{
	my ($sql) = @_;

	$node->wait_until(sub { !defined $node->sqlstate($sql) }, $sql);
	return;
}

$node->sql("select queue_create('live'); select queue_push('live', '1', 'p')");

# ------------------------------------------------------------------------------------------------
# Snapshots
# ------------------------------------------------------------------------------------------------
foreach my $fault (@faults, 'write=EIO', 'read=EIO')
{
	without(q{select queue_push('live', '2', 'p')});
	like(under($fault, 'select qlog_checkpoint(true)'), $clean, "snapshot, $fault: a clean error, or none");
	without('select qlog_checkpoint(true)');
	is(scalar(() = glob "$dir/snapshots/*.tmp"), 0, "snapshot, $fault: without it one is taken, and nothing lies about");
	is($node->sql('select count(*) from qlog_verify()'), '0', "snapshot, $fault: it is whole");
}

# ------------------------------------------------------------------------------------------------
# Scrub and repair
# ------------------------------------------------------------------------------------------------
foreach my $fault (@faults)
{
	my $queue = "repair $fault";

	without(qq{select queue_create('$queue')});
	$node->sql(qq{select queue_push('$queue', json_build_object('n', $_, 'pad', repeat('message $_ ', 20000))::text, 'p')}) foreach 1 .. 8;
	my ($file) = grep { index(slurp_file($_), 'message 2 message 2') >= 0 } glob "$dir/qlog/q" . log_of($queue) . '/r*.qlog';
	without('select qlog_checkpoint(true)');
	QlogNode::patch($file, index(slurp_file($file), 'message 2 message 2') + 30, '#');

	# A pass of the scrub worker, whatever it finds.
	$node->fault($fault);
	$node->scrub;
	$node->fault('');
	like(under($fault, "select * from qlog_repair('$queue', false)"), $clean, "repair, $fault: a clean error, or none");
	without("select * from qlog_repair('$queue', false)");
	is(shown($queue), '1,3,4,5,6,7,8', "repair, $fault: without it the message is given up, and no other");
	is(scalar(() = glob "$file.bad.*"), 1, "repair, $fault: the bytes are kept");
	is($node->sql("select count(*) from qlog_verify('$queue', true)"), '0', "repair, $fault: sound");
	is($node->sqlstate("select queue_push('$queue', '9')"), undef, "repair, $fault: in service");
	without("select queue_drop('$queue')");
}
ok(!$node->log_contains('PANIC'), 'the server did not end');

# ------------------------------------------------------------------------------------------------
# Giving up what refuses a start
# ------------------------------------------------------------------------------------------------
$node->append_conf('postgresql.conf', "qlog.checkpoint_timeout = '1h'\nqlog.reclaim_naptime = '1h'\n");
foreach my $fault ('create=ENOSPC, extend=ENOSPC', 'truncate=EIO')
{
	my $queue = "start $fault";

	$node->sql("select queue_create('$queue'); select queue_push('$queue', '{\"n\": 1}', 'p')");
	$node->restart;
	my $q0 = (sort glob "$dir/qlog/q0/r*.qlog")[-1];
	$node->sql("select queue_push('$queue', '{\"n\": 2}', 'p')");
	$node->sql("select queue_ack((select lease_id from queue_pop('live', 1, partition => 'p')))");
	$q0 = (grep { slurp_file($_) =~ /[^\0]/ && length(slurp_file($_) =~ s/\0+\z//r) > 40 } sort glob "$dir/qlog/q0/r*.qlog")[-1];
	my $at = length(slurp_file($q0) =~ s/\0+\z//r) - 20;
	$node->sql("select queue_push('$queue', '{\"n\": 3}', 'p'); select queue_push('live', '3', 'p')");
	$node->sql("select queue_push('live', '4', 'p')");
	$node->kill9_everything;
	QlogNode::patch($q0, $at, chr(ord(substr slurp_file($q0), $at, 1) ^ 0x55));
	$node->start;
	is($node->sqlstate("select * from queue_peek('$queue')"), 'XX001', "start, $fault: refused");
	like(under($fault, 'select * from qlog_repair(NULL, false)'), $clean, "start, $fault: a clean error, or none");
	if (($node->sqlstate("select * from queue_peek('$queue')") // '') ne '')
	{
		$node->restart;
		$node->sql('select * from qlog_repair(NULL, false)') if defined $node->sqlstate("select * from queue_peek('$queue')");
	}
	is(shown($queue), '1,2', "start, $fault: without it what stands in front is served");
	is($node->sql("select count(*) from qlog_verify('$queue', true)"), '0', "start, $fault: sound");
}
ok(!$node->log_contains('PANIC'), 'the server did not end');
$node->stop;
my ($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'the directory is sound') or diag "$out$err";
done_testing();
