# What DBAs see of space: qlog_files says of each file why it is still there, and the progress views show reclaim and repair at work.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# One queue's files stand in its own log here.
QlogNode::plain_layout();

my $node = QlogNode->started('main', init => { allows_streaming => 1 },
	conf => [
		"qlog.segment_size = '1MB'", "qlog.reclaim_naptime = '1d'", "qlog.retention_naptime = '50ms'", "qlog.checkpoint_timeout = '50ms'",
		"qlog.snapshot_interval = '1s'", 'qlog.compression_level = 0', 'autovacuum = off'
	]);

# Enough that the first file is closed.
sub fill
{
	my ($queue, $more) = @_;

	$node->sql("select count(queue_push('$queue', jsonb_build_object('n', i, 'x', repeat('x', 4000))" . ($more // '') . ")) from generate_series(1, 400) i");
	return;
}

sub first_file
{
	my ($queue, $columns) = @_;

	return $node->sql("select $columns from qlog_files where queue = '$queue' and file like '%/r00000001.qlog'");
}

sub ack_all
{
	my ($queue) = @_;

	$node->sql("select count(queue_ack(lease_id)) from (select distinct lease_id from queue_pop('$queue', 1000)) x");
	return;
}

sub held
{
	my ($queue, $why, $live) = @_;

	$node->poll_sql("select held_by = '$why' from qlog_files where queue = '$queue' and file like '%/r00000001.qlog'");
	return is(first_file($queue, "state || ' ' || held_by || ' ' || (live_bytes > 0)"), "closed $why " . ($live ? 'true' : 'false'), "held by: $why");
}

# ------------------------------------------------------------------------------------------------
# Reasons
# ------------------------------------------------------------------------------------------------

fill('unread');
held('unread', 'messages', 1);
is($node->sql("select distinct held_by from qlog_files where queue = 'unread' and state <> 'closed'"), 'active', 'held by: active');

fill('leased');
$node->sql("select count(*) from queue_pop('leased', 3, lease => '1 h')");
$node->sql("select queue_purge('leased')");
held('leased', 'leases', 1);

fill('dead');
$node->sql("select queue_reject(lease_id) from queue_pop('dead')");
ack_all('dead');
held('dead', 'reclaim', 0);
is($node->sql("select held_by from qlog_files where queue = 'dead' and state = 'active'"), 'active', 'the dead letter stands in the active file');
fill('dead');
ack_all('dead');
my $others = "select string_agg(held_by, ' ' order by file) from qlog_files where queue = 'dead' and state = 'closed' and held_by <> 'reclaim'";
$node->poll_sql($others, 'dead letters');
pass('held by: dead letters');

$node->sql(q{select queue_push('late', '"late"', deliver_at => now() + interval '1 d')});
fill('late');
ack_all('late');
held('late', 'delayed messages', 1);

$node->sql(q{select queue_push('ids', '1', dedup_id => 'a'); select queue_set('ids', 'dedup_window', '1 h')});
fill('ids');
ack_all('ids');
held('ids', 'dedup ids', 1);

fill('nothing');
ack_all('nothing');
held('nothing', 'reclaim', 0);
like($node->sql(q{select pg_backup_start('b', true); select held_by from qlog_files where queue = 'nothing' and file like '%/r00000001.qlog';
	select pg_backup_stop()}), qr/^base backup$/m, 'held by: base backup');
is(first_file('nothing', 'held_by'), 'reclaim', 'not any longer');

# The view is for those who watch the server.
$node->sql('create role stranger login');
my ($rc, $out, $err) = $node->psql('postgres', 'set role stranger; select * from qlog_files');
like($err, qr/permission denied for view qlog_files/, 'it is not for everybody');

# A record header that leads nowhere.
my $log = $node->sql("select log_id from qlog_queues where queue = 'unread'");
$node->sql('select qlog_checkpoint()');
$node->stop;
{
	my $file = $node->log_dir($log) . '/r00000001.qlog';
	unlink $file =~ s/qlog$/qidx/r;
	QlogNode::patch($file, 32, "\xff\xff\xff\x7f");
}
$node->start;
is($node->sql(q{select count(*) from qlog_files where held_by = 'damage' and live_bytes is null and state = 'closed'}), '1', 'held by: damage');

# ------------------------------------------------------------------------------------------------
# Progress
# ------------------------------------------------------------------------------------------------

is($node->sql('select count(*) from qlog_stat_progress_reclaim'), '0', 'reclaim: no row when it does not work');
my $mark = -s $node->logfile;
$node->sql("alter system set qlog.debug_stop = 'reclaim-copying'");
$node->sql("alter system set qlog.reclaim_naptime = '50ms'");
$node->sql('select pg_reload_conf()');
$node->wait_until(sub { $node->log_contains('stopped at "reclaim-copying"', $mark) }, 'reclaim to copy');
is($node->sql(q{select phase, done < total, total > 0, started_at between now() - interval '1 h' and now(), pid = (select pid from qlog_stat_workers where role = 'reclaim')
	from qlog_stat_progress_reclaim}), 'copying|t|t|t|t', 'reclaim: copying');
is($node->sql(q{select state from qlog_stat_workers where role = 'reclaim'}), 'reclaim', 'and the worker says so');
$node->kill9_everything;
$node->append_conf('postgresql.auto.conf', "qlog.debug_stop = ''");
$node->start;
$node->poll_sql(q{select count(*) = 0 from qlog_files where queue in ('nothing', 'leased') and file like '%/r00000001.qlog' and bytes > 100000});
is($node->sql(q{select sum(messages) from qlog_leases where queue = 'leased'}), '3', 'what was leased is still held');

is($node->sql('select count(*) from qlog_stat_progress_verify'), '0', 'verify: no row when nothing is verified');
my $session = $node->stop_at('repair-after-verify', q{select * from qlog_repair('unread', dry_run => false)});
is($node->sql(q{select what, files_done || ' of ' || files_total, bytes_done > 2000000, findings > 0 from qlog_stat_progress_verify}),
	"repair|6 of 6|t|t", 'verify: a repair that has read everything twice');
$node->kill9_everything;
eval { $session->finish };
$node->start;
is($node->sql('select count(*) from qlog_stat_progress_verify'), '0', 'verify: gone with its process');
$node->stop;
done_testing();
