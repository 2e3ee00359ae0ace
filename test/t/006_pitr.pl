# Point-in-time restore from a base backup, taken under load, to before and after a joint commit: rows and messages agree.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', init => { has_archiving => 1, allows_streaming => 1 });

$node->sql("select queue_create('q'); create table t(n int primary key)");

sub joint
{
	my ($n) = @_;

	$node->sql("begin; insert into t values ($n); select queue_push('q', '{\"n\": $n}'); commit");
}

# Load while the backup is taken: a fuzzy copy may hold a late file beside an early one.
my $script = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
open(my $fh, '>', $script) or die $!;
print $fh q{
begin;
with r as (insert into t select coalesce(max(n), 0) + 1 + :client_id * 1000000 + (random() * 100000)::int from t where n between :client_id * 1000000 and :client_id * 1000000 + 999999 on conflict do nothing returning n)
select queue_push('q', json_build_object('n', n)::text) from r;
commit;
};
close $fh;
joint(900000000 + $_) for 1 .. 5;
my $load = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '3', '-T', '6', '-f', $script, $node->connstr('postgres') ],
	'<', \undef, '>', \my $load_out, '2>', \my $load_err);
$node->backup('base');
$load->finish;
joint(950000001);
$node->sql("select pg_create_restore_point('before')");
joint(950000002);
$node->sql("select pg_create_restore_point('after')");
joint(950000003);
my $last = $node->sql('select pg_walfile_name(pg_switch_wal())');
$node->poll_sql("select last_archived_wal >= '$last' from pg_stat_archiver");

foreach my $target ('before', 'after')
{
	my $copy = QlogNode->new("restored_$target");

	$copy->init_from_backup($node, 'base', has_restoring => 1, standby => 0);

	# The test module's copy does not keep the mode of directories, as backup tools do.
	chmod 0700, $copy->qlog_dir or die $!;
	$copy->append_conf('postgresql.conf',
		"recovery_target_name = '$target'\nrecovery_target_action = 'promote'\nrecovery_target_timeline = 'current'\narchive_mode = off\nqlog.recovery_wait = '60s'\n");
	$copy->start;
	$copy->poll_sql('select not pg_is_in_recovery()');
	my $rows = $copy->sql('select md5(coalesce(string_agg(n::text, \',\' order by n), \'\')), count(*) from t');
	my $messages = $copy->sql(
		q{select md5(coalesce(string_agg(payload->>'n', ',' order by (payload->>'n')::int), '')), count(*)
		from queue_peek('q', batch => 1000000)});

	is($messages, $rows, "restored to $target: rows and messages agree ($rows)");
	is($copy->sql('select count(*) from t where n = 950000002'), $target eq 'after' ? 1 : 0,
		"restored to $target: at the right point");

	# The copy works on, on its own timeline, and over a crash.
	$copy->sql("begin; insert into t values (1234567890); select queue_push('q', '{\"n\": 1234567890}'); commit");
	$copy->kill9_everything;
	$copy->start;
	is($copy->sql('select count(*) from t'),
		$copy->sql(q{select count(*) from queue_peek('q', batch => 1000000)}),
		"restored to $target: work goes on, over a crash too");
	is($copy->sql(q{select count(*) - count(distinct message_id) from queue_peek('q', batch => 1000000)}), '0',
		"restored to $target: nothing is there twice");
	$copy->stop;
}

# The original is not disturbed.
is($node->sql('select count(*) from t'), $node->sql(q{select count(*) from queue_peek('q', batch => 1000000)}),
	'the original goes on');
$node->stop;

done_testing();
