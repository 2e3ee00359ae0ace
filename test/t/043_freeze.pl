# VACUUM cuts the commit log behind joint transactions: a crash does not need what it said about them, as the log has decided them;
# the promotion of a standby does, and says so.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $first = 2 * 1024 * 1024 + 100;
my $node = QlogNode->started('main',
	init => { allows_streaming => 1 },
	conf => [ 'autovacuum = off', 'checkpoint_timeout = 1h' ]);

$node->sql("select queue_create('q'); create table t(n int primary key)");
$node->sql('alter database template0 allow_connections true');

# Far ahead: the commit log has segments that can go.
$node->stop;
open(my $segment, '>', $node->data_dir . '/pg_xact/0002') or die $!;
print $segment "\0" x (256 * 1024);
close $segment;
command_ok([ 'pg_resetwal', '-x', $first, '-D', $node->data_dir ], 'the next transaction is far ahead');
$node->start;
$node->backup('base');
my $standby = QlogNode->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
chmod 0700, $standby->qlog_dir or die $!;
$standby->start;

foreach my $n (1 .. 5)
{
	$node->sql("begin; insert into t values ($n); select queue_push('q', '$n'); commit");
}
# The log is decided and synced behind its last entry.
$node->sql('select qlog_checkpoint()');
$node->safe_psql($_, 'vacuum freeze') foreach 'template0', 'template1', 'postgres';
ok(!-e $node->data_dir . '/pg_xact/0000', 'the commit log was cut');
cmp_ok($node->sql('select min(datfrozenxid::text::bigint) from pg_database'), '>', $first + 4, 'behind the transactions');
$node->wait_for_catchup($standby);

$node->kill9_everything;
$node->start;
is($node->sql("select string_agg(payload::text, ' ' order by position) from queue_peek('q')"), '1 2 3 4 5', 'after a crash nothing is missing');
$node->teardown_node;

$standby->promote;
is($standby->sqlstate("select * from queue_peek('q')"), 'XX001', 'a promotion that cannot know refuses to open');
like(slurp_file($standby->logfile), qr/commit log does not reach back.*qlog\.allow_gap/, 'and names the setting');
$standby->sql('alter system set qlog.allow_gap = on');
$standby->sql('select pg_reload_conf()');
ok($standby->poll_sql("select count(*) = 0 from queue_peek('q')"), 'which gives up what is in doubt');
$standby->sql("select queue_push('q', '6')");
is($standby->sql("select payload from queue_pop('q')"), '6', 'and then it works');
$standby->stop;
done_testing();
