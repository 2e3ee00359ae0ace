# A physical standby keeps joint queue work in the stash until its promotion: over restarts, with records larger than the
# window in which it is read, and with a torn tail.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main',
	init => { allows_streaming => 1 },
	conf => [ "qlog.wal_payload_limit = '8MB'", "qlog.max_message_size = '4MB'" ]);
my $number = 0;

$node->sql("select queue_create('q'); create table t(n int primary key, len int)");
$node->backup('base');
my $standby = QlogNode->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
chmod 0700, $standby->qlog_dir or die $!;
$standby->start;

# Rows with messages of a few bytes and of three million, in turn.
sub joint
{
	my ($n) = @_;

	foreach my $i (1 .. $n)
	{
		my $len = 32 * ($i % 3 == 0 ? 94000 : $i);

		$number++;
		$node->sql("begin; insert into t values ($number, $len); select queue_push('q', json_build_object('n', $number, 'x', (select string_agg(md5(i::text || $number), '') from generate_series(1, $len / 32) i))::text); commit");
	}
	return;
}

sub stash_size { return -s $standby->qlog_dir . '/replication/stash' }

sub agrees
{
	my ($server) = @_;
	my $rows = $server->sql("select string_agg(n || ':' || len, ',' order by n) from t");
	my $messages = $server->sql(
		q{select string_agg((payload->>'n') || ':' || length(payload->>'x'), ',' order by (payload->>'n')::int)
		from queue_peek('q', batch => 1000000)});

	return $rows eq $messages ? $rows : "$rows against $messages";
}

joint(7);
$node->wait_for_catchup($standby);
is($standby->sqlstate("select * from queue_peek('q')"), '25006', 'nothing is served on a standby');
my $size = stash_size();
cmp_ok($size, '>', 2000000, 'its stash holds the joint work');

# Restarts read the stash again; a crash in the middle of a record leaves a torn tail.
$standby->restart;
joint(5);
$node->wait_for_catchup($standby);
cmp_ok(stash_size(), '>=', $size, 'after a restart the stash goes on');
$standby->kill9_everything;
open(my $fh, '>>', $standby->qlog_dir . '/replication/stash') or die $!;
binmode $fh;
print $fh pack('V', 5000000) . 'half of a record, then nothing';
close $fh;
$standby->start;
joint(4);
$node->wait_for_catchup($standby);

# Promotion.
my $expected = agrees($node);
$node->stop;
$standby->promote;
is(agrees($standby), $expected, 'promoted: every row has its message');
ok(!-e $standby->qlog_dir . '/replication/stash', 'and the stash is gone');
$standby->sql("begin; insert into t values (1000, 1); select queue_push('q', '{\"n\": 1000, \"x\": \"y\"}'); commit");
$standby->kill9_everything;
$standby->start;
is(agrees($standby), "$expected,1000:1", 'work goes on, over a crash too');
$standby->stop;

done_testing();
