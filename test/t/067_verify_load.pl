# Verification while everything moves: pushes, pops, drops, dead letters, files that are rewritten and removed. Nothing is wrong, so
# nothing is found, no queue goes out of service, and no message is missed; qlog_dump says the same of the directory, and of a copy.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $seconds = $ENV{QLOG_SECONDS} || 15;
my $node = QlogNode->started('main',
	conf => [
		"qlog.segment_size = '1MB'", "qlog.reclaim_naptime = '50ms'", "qlog.retention_naptime = '1s'", "qlog.checkpoint_timeout = '50ms'", "qlog.snapshot_interval = '1s'",
		"qlog.scrub_interval = '1s'", "qlog.scrub_rate = '1GB'", "qlog.index_memory = '256kB'", 'qlog.compression_level = 0', 'autovacuum = off'
	]);

# Queues that are consumed at once, that keep everything, in part, and one whose messages die.
$node->sql(q{select queue_create('flow', '{"ordered": true}'); select queue_create('kept'); select queue_create('mixed');
	select queue_create('dying', '{"retry_limit": 0}')});
my $script = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
open(my $fh, '>', $script) or die $!;
print $fh q{
\set lane random(1, 9)
\set big random(10, 30000)
select queue_push('flow', json_build_object('x', repeat('x', :big))::text, 'lane ' || :lane);
select queue_push('mixed', json_build_object('x', repeat('y', :big))::text);
select queue_push('kept', '{"kept": true}', 'lane ' || :lane);
select queue_push('dying', json_build_object('x', repeat('z', 3000))::text);
select count(queue_ack(lease_id)) from (select distinct lease_id from queue_pop('flow', 20)) x;
select count(queue_ack(lease_id)) from (select distinct lease_id from queue_pop('mixed', 1)) x where random() < 0.9;
select count(queue_nack(lease_id)) from (select distinct lease_id from queue_pop('dying', 2)) x;
};
close $fh;
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '3', '-T', $seconds + 60, '-f', $script, $node->connstr('postgres') ],
	'<', \undef, '>', \my $out, '2>', \my $err);
my $end = time + $seconds;
my ($rounds, $found) = (0, '');
while (time < $end)
{
	$found .= $node->sql('select * from qlog_verify(deep => ' . ($rounds % 2 ? 'true' : 'false') . ')');
	$node->sql(qq{select queue_push('drop $rounds', '1'); select queue_drop('drop $rounds')}) if $rounds % 3 == 0;
	$rounds++;
}
is($found, '', "nothing is found in $rounds rounds under load");
cmp_ok($rounds, '>', 2, 'it comes to an end every time');
is($node->sql('select count(*) from qlog_damage'), '0', 'nor by the scrub worker');
cmp_ok($node->sql(q{select passes from qlog_stat_workers where role = 'scrub'}), '>', 1, 'which has looked');
is($node->sql(q{select count(*) from qlog_files where queue = 'flow' and file ~ 'r00000001'}), '0', 'files were taken away meanwhile')
  or diag $node->sql(q{select file, bytes, live_bytes, state, held_by from qlog_files; select queue, ready, leased, popped, acked, pushed from qlog_stat_queues; select role, state, last_error, passes from qlog_stat_workers});
ok($load->pumpable, 'the load has gone on');

# While the server runs, and records come.
my ($rc, $text, $errors) = $node->qlog_dump('--summary');
is($rc, 0, 'summary of a running server') or diag $errors;
like($text, qr/^checkpoint state=in-use$|^checkpoint path=\S+ state=in-use$/m, 'whose checkpoint is left alone');
like($text, qr/^queue .*name=flow$/m, 'the queues are those of a snapshot');
($rc, $text, $errors) = $node->qlog_dump('--follow', '-n', '500', '--queue=flow');
is($rc, 0, 'following a queue under load') or diag $errors;
is(scalar(() = $text =~ /^record /mg), 500, 'as many records as asked for');
$load->signal('INT');
eval { $load->finish };
is($node->sql("select coalesce(string_agg(v::text, ' '), 'nothing') from qlog_verify(deep => true) v"), 'nothing', 'nor in the end');

# Files and entries were taken away, but none that a start from the older snapshot needs.
my $state = q{select queue, pushed, acked, ready + leased + waiting, dead, delayed from qlog_stat_queues order by queue};
my $before = $node->sql($state);
$node->stop;
my $dir = $node->qlog_dir;
foreach my $what ('the newest snapshot', 'the older one')
{
	# An idle server whose reclaim waits for room gives the older one up.
	my @snapshots = sort { ($a =~ /s(\d+)\.q/)[0] <=> ($b =~ /s(\d+)\.q/)[0] } glob "$dir/snapshots/*.qsnap";
	unlink "$dir/store/data.mdb" or die $!;
	unlink pop @snapshots if $what eq 'the older one' && @snapshots > 1;
	$node->start;
	is($node->sql($state), $before, "begun with $what: the state is as it was");
	is($node->sql("select coalesce(string_agg(v::text, ' '), 'nothing') from qlog_verify(deep => true) v"), 'nothing', "begun with $what: nothing is missing");
	$node->stop;
}
($rc, $text, $errors) = $node->qlog_dump('--verify');
is($rc, 0, 'qlog_dump --verify finds nothing either, although files and parts were removed') or diag "$text$errors";
($rc, $text, $errors) = $node->qlog_dump('--summary', '--format=json');
is($rc, 0, 'summary of a stopped server');
like($text, qr/"type":"checkpoint","seq":\d+/, 'with its checkpoint');
my $copy = "$PostgreSQL::Test::Utils::tmp_check/copy";
system('cp', '-r', $dir, $copy) == 0 or die;
unlink glob "$copy/store/*";
($rc, $text, $errors) = $node->qlog_dump('--verify', $copy);
is($rc, 0, 'a copy without its checkpoint: the same') or diag "$text$errors";
done_testing();
