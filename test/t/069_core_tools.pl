# PostgreSQL's own tools for files, on a data directory with queues in it: they neither trip over them nor change them.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main',
	init => { allows_streaming => 1, extra => ['--data-checksums'] },
	conf => [ "qlog.segment_size = '1MB'", "qlog.snapshot_interval = '1s'" ]);
my $dir = $node->qlog_dir;

$node->sql('create table t(n int)');
$node->sql(q{begin; insert into t values (1); select queue_push('a', '"joint"'); commit;
	select count(queue_push('a', to_json(repeat(md5(i::text), 300))::text)) from generate_series(1, 400) i});
$node->sql('select qlog_checkpoint(true)');

# No file of qlog has a name that PostgreSQL would take for a relation's.
my @names = map { s{.*/}{}r } grep { -f } glob "$dir/* $dir/*/* $dir/*/*/* $dir/*/*/*/* $dir/*/*/*/*/*";
is(join(' ', grep { /^\d+(_(fsm|vm|init))?(\.\d+)?$/ || /^t\d+_\d+/ } @names), '', 'no name looks like a relation file');
cmp_ok(scalar @names, '>', 5, 'there are files');

# pg_basebackup checks the checksums of what it takes for pages, and writes a manifest.
$node->backup('one');
my $backup = $node->backup_dir . '/one';
ok(-d "$backup/qlog", 'pg_basebackup takes the queues along');
command_ok([ 'pg_verifybackup', $backup ], 'pg_verifybackup agrees');
my $copy = QlogNode->new('copy');
$copy->init_from_backup($node, 'one');
chmod 0700, $copy->qlog_dir or die $!;
$copy->start;
is($copy->sql(q{select pushed, (select count(*) from t) from qlog_stat_queues where queue = 'a'}), '401|1', 'the copy has them');
is($copy->sql('select count(*) from qlog_verify(deep => true)'), '0', 'and is sound');
$copy->stop;

$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'pg_checksums agrees');
command_ok([ 'pg_controldata', $node->data_dir ], 'pg_controldata too');
my ($rc, $out, $err) = $node->qlog_dump('--verify');
is($rc, 0, 'and nothing was changed') or diag "$out$err";
$node->start;
is($node->sql(q{select count(*) from queue_peek('a', batch => 1000)}), '401', 'the server goes on');
$node->stop;
done_testing();
