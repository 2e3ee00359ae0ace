# A damaged record at run time: its message is left out of what pops return and becomes a dead letter, and no other
# message is charged, held up or lost for it; the same for answers, delayed messages and after a crash.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '1MB'" ]);

# Messages "QUEUE 1" .. "QUEUE n", each in a record of its own.
sub fill
{
	my ($queue, $options, $n, $more) = @_;

	$node->sql(qq{select queue_create('$queue', '{"compression_level": 0, $options}')});
	$node->sql(qq{select queue_push('$queue', '"$queue $_"'} . ($more // '') . ')') for 1 .. $n;
	return;
}

# Writes one text over another on disk, in the one file that holds it. The server does not run.
sub overwrite
{
	my ($old, $new) = @_;
	my $done = 0;

	foreach my $file (glob $node->log_dir('*') . '/r*.qlog')
	{
		my $at = index slurp_file($file), $old;

		next if $at < 0;
		open(my $fh, '+<', $file) or die "$file: $!";
		binmode $fh;
		seek $fh, $at, 0;
		print $fh $new;
		close $fh;
		$done++;
	}
	return is($done, 1, "$old becomes $new");
}

# Damages these payloads; the server is restarted, by a shutdown.
sub damage
{
	my @texts = @_;

	$node->stop;
	overwrite(qq{"$_"}, qq{#$_#}) foreach @texts;
	$node->start;
	return;
}

# One pop: what came, and the error or warning.
sub pop_of
{
	my ($queue, $more) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		qq{\\set VERBOSITY verbose\nselect string_agg(payload #>> '{}' || ' ' || attempt, ', ') from (select * from queue_pop('$queue', }
		  . ($more // '10') . ')) p');

	return join(' ', grep { length } $out, $err =~ /(WARNING|ERROR):\s+(XX001)/);
}

sub counts
{
	my ($queue) = @_;
	return $node->sql("select ready || ' ' || leased || ' ' || delayed || ' ' || dead from qlog_stat_queues where queue = '$queue'");
}

sub letters
{
	my ($queue) = @_;
	return $node->sql(qq{select string_agg("position" || ' ' || attempts || ' ' || coalesce(payload::text, 'lost') || ' ' || (reason ~ 'r00000001\\.qlog at byte \\d+\$'), ', ' order by "position")
		from qlog_dead_letters where queue = '$queue'});
}

fill('compete', '"retry_limit": 1, "consumed_retention": "1 day"', 5);
fill('order', '"retry_limit": 1', 5, q{, 'p'});
fill('option', '"retry_limit": 1, "ordered": true', 3);
fill('bytes', '"retry_limit": 1', 3);
fill('first', '"retry_limit": 1', 3, q{, 'p'});
fill('auto', '"retry_limit": 1', 3);
fill('patient', '"retry_limit": -1', 3);
fill('standing', '"retry_limit": -1', 2, q{, 'p'});
$node->sql(q{select queue_create('record', '{"retry_limit": 1, "compression_level": 0}');
	select count(*) from queue_push_batch('record', array['"record 1"', '"record 2"', '"record 3"'], array['p', 'p', 'p']);});
$node->sql(q{select count(queue_push('record', n, 'p')) from unnest(array['"record 4"', '"record 5"']) n});
fill('dropped', '"retry_limit": 0, "dead_letters": false', 2);
fill('lanes', '"retry_limit": 1', 2, q{, 'p1'});
$node->sql(q{select queue_push('lanes', '"other"', 'p2')});
damage('compete 3', 'order 3', 'option 2', 'bytes 1', 'first 1', 'auto 2', 'patient 1', 'standing 1', 'dropped 1', 'lanes 1', 'record 2');

# Consumers compete: the others are delivered, at their first attempt, and stay with the consumer.
is(pop_of('compete'), 'compete 1 1, compete 2 1, compete 4 1, compete 5 1 WARNING XX001', 'left out of a batch, with a warning');
is(counts('compete'), '1 4 0 0', 'the others are leased, it is back');
is($node->sql("select messages from qlog_leases where queue = 'compete'"), '4', 'the lease does not hold it');
is($node->sql("select queue_ack(lease_id) from qlog_leases where queue = 'compete'"), '4', 'they are acknowledged');
is(pop_of('compete'), 'ERROR XX001', 'alone it is an error');
$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'compete'");
is(letters('compete'), '2 2 lost true', 'after retry_limit more deliveries it is a letter that tells file and position');
is(counts('compete'), '0 0 0 1', 'nothing else is left');
is(pop_of('compete'), '', 'and nothing is delivered');

# In order: what stands before it is delivered, what stands behind it waits, and nobody else is charged.
foreach my $queue ('order', 'option')
{
	my $before = $queue eq 'order' ? 'order 1 1, order 2 1' : 'option 1 1';
	my $behind = $queue eq 'order' ? 'order 4 1, order 5 1' : 'option 3 1';

	is(pop_of($queue), "$before WARNING XX001", "$queue: those before it");
	is(pop_of($queue), '', "$queue: nothing while they are leased");
	is($node->sql("select queue_ack(lease_id) > 0 from qlog_leases where queue = '$queue'"), 't', "$queue: they are acknowledged");
	is(pop_of($queue), 'ERROR XX001', "$queue: then it is the first one");
	$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = '$queue'");
	is(pop_of($queue), $behind, "$queue: those behind it, at their first attempt");
	is(letters($queue), ($queue eq 'order' ? 2 : 1) . ' 2 lost true', "$queue: its letter");
}
is(pop_of('first'), 'ERROR XX001', 'the first one of a partition') for 1 .. 2;
$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'first'");
is(pop_of('first'), 'first 2 1, first 3 1', 'then the others');

# A record of several messages, in order: all of them are charged, so a batch is through with them together.
is(pop_of('record'), 'ERROR XX001', 'a whole record: an error') for 1 .. 2;
$node->poll_sql("select dead = 3 from qlog_stat_queues where queue = 'record'");
is(letters('record'), join(', ', map { "$_ 2 lost true" } 0 .. 2), 'a whole record: three letters');
is(pop_of('record'), 'record 4 1, record 5 1', 'a whole record: those behind it, at their first attempt');

# Under a limit of bytes, where messages are read before they are leased; acknowledged by the pop; over partitions.
is(pop_of('bytes', '10, max_bytes => 10000'), 'bytes 2 1, bytes 3 1 WARNING XX001', 'max_bytes: left out');
is(pop_of('bytes', '10, max_bytes => 1'), 'ERROR XX001', 'max_bytes: alone it is an error');
$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'bytes'");
is(letters('bytes'), '0 2 lost true', 'max_bytes: its letter');
is(pop_of('auto', '10, auto_ack => true'), 'auto 1 1, auto 3 1 WARNING XX001', 'auto_ack: left out');
is($node->sql("select acked from qlog_stat_queues where queue = 'auto'"), '2', 'auto_ack: the others are acknowledged');
is(counts('auto'), '1 0 0 0', 'auto_ack: it is not');
is(pop_of('lanes', '10, max_partitions => 10'), 'other 1 WARNING XX001', 'over partitions: those of another one');
is(counts('lanes'), '2 1 0 0', 'over partitions: what stands behind it is back');

# The option dead_letters off: dropped and counted.
is(pop_of('dropped', '1'), 'ERROR XX001', 'dead_letters off: an error');
$node->poll_sql("select dropped = 1 from qlog_stat_queues where queue = 'dropped'");
is(pop_of('dropped'), 'dropped 2 1', 'dead_letters off: the others go on');

# Without a limit: tried again, after waits that grow, and small pops find the others meanwhile.
is(pop_of('patient', '1'), 'ERROR XX001', 'no limit: an error');
is(counts('patient'), '2 0 1 0', 'no limit: it waits');
is(pop_of('patient', '1'), "patient $_ 1", "no limit: message $_ meanwhile") for 2, 3;
$node->poll_sql("select delayed = 0 from qlog_stat_queues where queue = 'patient'");
is(pop_of('patient', '1'), 'ERROR XX001', 'no limit: tried again');
$node->sql("select queue_set('patient', 'retry_limit', '1')");
$node->poll_sql("select delayed = 0 or dead = 1 from qlog_stat_queues where queue = 'patient'");
pop_of('patient', '1');
$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'patient'");
like(letters('patient'), qr/^0 [23] lost true$/, 'no limit: it dies once there is one');

# An ordered partition without a limit stands, until it is told to pass over the message.
is(pop_of('standing'), 'ERROR XX001', 'in order, no limit: an error');
is(pop_of('standing'), '', 'in order, no limit: the partition waits');
$node->sql("select queue_seek('standing', '', 'p', to_position => 1)");
is(pop_of('standing'), 'standing 2 1', 'in order, no limit: queue_seek passes over it');

# What was counted is counted after a crash.
is(pop_of('auto', '1'), 'ERROR XX001', 'the second time');
$node->kill9_everything;
$node->start;
$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'auto'");
is(letters('auto'), '1 2 lost true', 'after a crash: its letter');
is(counts('lanes'), '2 1 0 0', 'after a crash: those of a damaged partition');
is(pop_of('lanes', "10, partition => 'p1'"), 'ERROR XX001', 'after a crash: the second time');
$node->poll_sql("select dead = 1 from qlog_stat_queues where queue = 'lanes'");
is(pop_of('lanes', "10, partition => 'p1'"), 'lanes 2 1', 'after a crash: the one behind it');

# Damaged while it is leased: answers that name the others need not read it.
fill('leased', '"lease": "1 h"', 4);
my ($lease, $ids) = split /\|/, $node->sql(q{select lease_id, array_agg(message_id order by "position") from queue_pop('leased', 4) group by 1});
fill('rejected', '"lease": "1 h"', 3, q{, 'p'});
my $reject = $node->sql(q{select lease_id from queue_pop('rejected', 3) limit 1});
damage('leased 1', 'rejected 2');
my @ids = $ids =~ /([0-9a-f-]{36})/g;
is($node->sql("select queue_ack($lease, array['$ids[1]']::uuid[])"), '1', 'an ack by id of another message of the lease');
is($node->sql("select queue_nack($lease, array['$ids[2]']::uuid[])"), '1', 'a nack');
is($node->sql("select queue_reject($lease, array['$ids[3]']::uuid[])"), '1', 'a reject');
is($node->sql("select queue_ack($lease, array['$ids[0]']::uuid[])"), '0', 'its own id is not known any more');
is($node->sql("select queue_ack($lease)"), '1', 'the whole lease can be acknowledged');
is(counts('leased'), '1 0 0 1', 'nothing is leased');

is($node->sql("select queue_reject($reject, reason => 'why')"), '3', 'a whole lease can be rejected');
is($node->sql(q{select string_agg(concat_ws(' ', partition, "position", payload, substring(reason, 'why|r00000001.qlog at byte')), ', ' order by "position") from qlog_dead_letters where queue = 'rejected'}),
	'p 0 "rejected 1" why, p 1 r00000001.qlog at byte, p 2 "rejected 3" why', 'each is a letter');
is(counts('rejected'), '0 0 0 3', 'and nothing else');

# A delayed message: it stays, is reported, and holds up none of those that are due with it; it can be cancelled.
fill('late', '"lease": "1 h"', 1, q{, deliver_at => now() + interval '3 s'});
$node->sql(q{select queue_push('late', '"late 2"', deliver_at => now() + interval '3 s')});
my $id = $node->sql(q{select queue_push('late', '"late 0"', deliver_at => now() + interval '2 s')});
damage('late 0');
$node->poll_sql("select ready = 2 from qlog_stat_queues where queue = 'late'");
is(pop_of('late'), 'late 1 1, late 2 1', 'delayed: the others are delivered');
is(counts('late'), '0 2 1 0', 'delayed: it stays');
ok($node->log_contains(qr/could not deliver a delayed message: .*r00000001\.qlog at byte/), 'delayed: the log says so');
is($node->sql("select queue_cancel('late', '$id')"), 't', 'delayed: it can be cancelled');
is(counts('late'), '0 2 0 0', 'delayed: then it is gone');

# Several consumers at once, of partitions in order and of the default one: whatever can be read is delivered once, everything else is a
# letter.
$node->sql(q{create table got(n text); select queue_create('mixed', '{"retry_limit": 2, "compression_level": 0}')});
$node->sql(q{do $$ begin for i in 1 .. 400 loop
	perform queue_push('mixed', to_json('mixed ' || i || '.'), nullif('p' || i % 5, 'p0')); commit; end loop; end $$});
my @damaged = map { 17 * $_ + $_ % 3 } 1 .. 20;
damage(map { "mixed $_." } @damaged);
my @consumers = map {
	my $batch = $_;
	my $sql = "insert into got select payload #>> '{}' from queue_pop('mixed', $batch, max_partitions => 3, auto_ack => true);\n" x 120;
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ], '<', \$sql, '>', \my $o, '2>', \my $e)
} 1, 3, 7, 20;
eval { $_->finish } foreach @consumers;
$node->wait_until(
	sub {
		$node->psql('postgres', q{insert into got select payload #>> '{}' from queue_pop('mixed', 50, max_partitions => 3, auto_ack => true)});
		return $node->sql("select ready + leased + delayed from qlog_stat_queues where queue = 'mixed'") == 0;
	},
	'everything to be done');
is($node->sql('select count(*), count(distinct n) from got'), '380|380', 'several consumers: what can be read is delivered once');
is($node->sql(q{select count(*), count(distinct (partition, "position")), min(attempts), max(attempts) from qlog_dead_letters where queue = 'mixed' and payload is null}),
	'20|20|3|3', 'several consumers: the others are letters, after three deliveries each');
is($node->sql("select dead || ' ' || acked from qlog_stat_queues where queue = 'mixed'"), '20 380', 'several consumers: no other message died');

# The bytes are still there, as long as the queue keeps what is finished: mended, they can be delivered once more.
$node->stop;
overwrite('#compete 3#', '"compete 3"');
$node->start;
is(letters('compete'), '2 2 lost true', 'mended: the letter is as it was');
$node->sql("select queue_seek('compete', '', '', to_position => 0)");
is(pop_of('compete'), 'compete 1 1, compete 2 1, compete 3 1, compete 4 1, compete 5 1', 'mended: queue_seek delivers all of them');

is($node->sql('select count(*) from qlog_stat_workers where last_error is not null'), '0', 'no worker complains');
$node->stop;
done_testing();
