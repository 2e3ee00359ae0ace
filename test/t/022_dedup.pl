# Dedup ids over crashes and restarts, under concurrency, and when their memory is full.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main', conf => [ "qlog.segment_size = '1MB'", "qlog.dedup_memory = '1MB'", 'wal_level = replica', 'max_wal_senders = 2' ]);
$node->sql("select queue_create('q'); create table t (i int)");

sub push_id
{
	my ($id, $more) = @_;
	return $node->sql("select queue_push('q', '1', dedup_id => '$id')" . ($more // ''));
}

# Over a crash: queue-only, with a table, in a batch, consumed meanwhile, in closed files and in the active one.
my %first = map { $_ => push_id($_) } qw(alone eaten);
$first{joint} = $node->sql("begin; insert into t values (1); select queue_push('q', '2', dedup_id => 'joint'); commit");
$node->sql("select count(*) from queue_pop('q', 2, auto_ack => true)");
$node->sql("select count(*) from queue_push_batch('q', (select array_agg(to_json(md5(i::text) || md5('a' || i) || md5('b' || i) || md5('c' || i) || md5('d' || i) || md5('e' || i) || md5('f' || i) || md5('g' || i) || md5('h' || i))::text) from generate_series(1, 9000) i), dedup_ids => (select array_agg('batch' || i) from generate_series(1, 9000) i))");
my $late = $node->sql("select queue_push('q', '3', 'p', 'late')");
$node->sql("begin; select queue_push('q', '4', dedup_id => 'undone'); rollback");
cmp_ok($node->sql("select count(*) from qlog_files where file like (select directory || '/%' from qlog_queues where queue = 'q') and state = 'closed'"), '>=', 1, 'a closed file');

foreach my $how ('kill', 'restart')
{
	if ($how eq 'kill')
	{
		$node->kill9_everything;
		$node->start;
	}
	else
	{
		$node->restart;
	}
	is(push_id($_), $first{$_}, "$how: $_ is known") foreach sort keys %first;
	is($node->sql("select queue_push('q', '5', 'p', 'late')"), $late, "$how: in the active file and another partition");
	is($node->sql("select count(distinct id) || ' ' || count(*) from queue_push_batch('q', array['1', '2'], dedup_ids => array['batch1', 'batch9000']) id where id in (select message_id from queue_peek('q', batch => 20000))"),
		'2 2', "$how: first and last of a batch");
}

# Closed files have their ids beside them (.qhsh): made after the roll, used by the start, made again when they are missing or wrong.
sub hashes
{
	return map { $node->qlog_dir . '/' . s/qlog$/qhsh/r } split /\n/,
	  $node->sql("select file from qlog_files where file like (select directory || '/%' from qlog_queues where queue = 'q') and state = 'closed' order by file");
}
$node->wait_until(sub { my @hashes = hashes(); @hashes >= 1 && !grep { !-e } @hashes }, 'dedup ids of closed files');
my @hashes = hashes();
my %right = map { $_ => slurp_file($_) } @hashes;
cmp_ok((sort { $b <=> $a } map { length } values %right)[0], '>=', 48 + 32 + 64 * 64, 'many ids');
my %breaks = (
	missing => sub { unlink $_[0] or die $! },
	cut => sub { truncate $_[0], (-s $_[0]) - 32 or die $! },
	wrong => sub { open(my $fh, '+<', $_[0]) or die $!; seek $fh, -5, 2; print $fh '!'; close $fh });
foreach my $how (sort keys %breaks)
{
	$node->stop;
	$breaks{$how}->($_) foreach @hashes;
	$node->start;
	is(push_id($_), $first{$_}, "$how: $_ is known") foreach sort keys %first;
	is($node->sql("select count(distinct id) || ' ' || count(*) from queue_push_batch('q', array['1', '2'], dedup_ids => array['batch1', 'batch9000']) id where id in (select message_id from queue_peek('q', batch => 20000))"),
		'2 2', "$how: first and last of a batch");
	$node->wait_until(sub { !grep { !-e || slurp_file($_) ne $right{$_} } @hashes }, "$how: the dedup ids to be made again");
}
my $undone = push_id('undone');
like($undone, qr/^[0-9a-f-]{36}$/, 'what was rolled back is not known');
is(push_id('undone'), $undone, 'and is, once it has been pushed');

# A twin that is committing is waited for: it may come to nothing yet. Here it waits for a standby that is not there.
my ($out, $err) = ('', '');
$node->sql("alter system set synchronous_standby_names = 'nobody'");
$node->sql('select pg_reload_conf()');
my $twin = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "begin; insert into t values (2); select queue_push('q', '6', dedup_id => 'twin'); commit" ],
	'<', \undef, '>', \$out, '2>', \$err);
$node->poll_wait_event('SyncRep');

# Pushes the same id from a session of its own, and returns when that waits.
sub push_twin
{
	my ($payload, $err) = @_;
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "select queue_push('q', '$payload', dedup_id => 'twin')" ],
		'<', \undef, '>', \my $out, '2>', $err);
	$node->poll_sql(
		"select count(*) = 1 from pg_stat_activity where query like '%''$payload''%twin%' and wait_event_type = 'Extension'");
	return $handle;
}

my ($err1, $err2) = ('', '');
my $cancelled = push_twin(7, \$err1);
$node->sql("select pg_cancel_backend(pid) from pg_stat_activity where query like '%''7''%twin%' and wait_event_type = 'Extension'");
eval { $cancelled->finish };
like($err1, qr/canceling statement due to user request/, 'a push of the same id waits, and can be cancelled');
my $second = push_twin(8, \$err2);
my $other = push_id('other');
like($other, qr/^[0-9a-f-]{36}$/, 'others are not held up');
$node->sql("alter system reset synchronous_standby_names");
$node->sql('select pg_reload_conf()');
$twin->finish;
$second->finish;
is($err . $err2, '', 'both have committed');
is($node->sql("select count(*) || ' ' || min(payload::text) from queue_peek('q', batch => 20000) where dedup_id = 'twin'"),
	'1 6', 'one message');

# Many sessions, few ids: each id once, with its first message.
my @clients = map {
	my $c = $_;
	my $sql = join '', map { "select queue_push('q', '\"c\"', 'race', 'race$_');" } 1 .. 200;
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ], '<', \$sql, '>', \my $o, '2>', \my $e)
} 1 .. 6;
$_->finish foreach @clients;
is($node->sql("select count(*) || ' ' || count(distinct dedup_id) from queue_peek('q', 'race', batch => 20000)"), '200 200',
	'six sessions push the same two hundred ids');

# Too little memory for what the logs hold: refused at the start, not forgotten.
$node->append_conf('postgresql.conf', "qlog.dedup_memory = '64kB'\nqlog.recovery_wait = '10s'");
$node->restart;
my (undef, undef, $refused) = $node->psql('postgres', "select queue_push('q', '1')");
like($refused, qr/qlog\.dedup_memory is too small/, 'too little memory is refused');
$node->append_conf('postgresql.conf', "qlog.dedup_memory = '1MB'");
$node->restart;
is(push_id('alone'), $first{alone}, 'and nothing was forgotten');
$node->stop;

# Full: a clean error at COMMIT; pushes without an id go on; room again when the window has passed.
my $small = QlogNode->started('small', conf => ["qlog.dedup_memory = '64kB'"]);
$small->sql(q{select queue_create('w', '{"dedup_window": "2 s"}')});
is($small->sqlstate("select count(*) from queue_push_batch('w', (select array_agg(i::text) from generate_series(1, 2000) i), dedup_ids => (select array_agg(i::text) from generate_series(1, 2000) i))"),
	'53400', 'more ids than fit');
is($small->sql("select count(*) from queue_peek('w')"), 0, 'nothing of it');
is($small->sql("select count(*) from queue_push_batch('w', (select array_agg(i::text) from generate_series(1, 1000) i), dedup_ids => (select array_agg(i::text) from generate_series(1, 1000) i))"),
	1000, 'a thousand fit');
is($small->sqlstate("select count(*) from queue_push_batch('w', (select array_agg(i::text) from generate_series(1, 1000) i), dedup_ids => (select array_agg('x' || i) from generate_series(1, 1000) i))"),
	'53400', 'no more');
is($small->sql("select queue_push('w', '1') is not null"), 't', 'without an id');
$small->poll_sql("select pg_sleep(0.2) is not null and (select count(*) from queue_push_batch('w', (select array_agg(i::text) from generate_series(1, 1000) i), dedup_ids => (select array_agg('y' || i) from generate_series(1, 1000) i))) = 1000");
pass('room again after the window');

# A longer window does not bring back what had left the shorter one, or a start would have to find room for more than there was.
$small->sql("select queue_drop('w')");
$small->sql(q{select queue_create('longer', '{"dedup_window": "10 ms"}')});
$small->poll_sql("select pg_sleep(0.1) is not null and (select count(*) from queue_push_batch('longer', (select array_agg(i::text) from generate_series(1, 700) i), dedup_ids => (select array_agg('$_.' || i) from generate_series(1, 700) i))) = 700")
  foreach 1 .. 3;
$small->sql("select pg_sleep(0.1)");
$small->sql("begin; select queue_set('longer', 'dedup_window', '1 h'); select queue_set('longer', 'dedup_window', '2 h'); commit");
is($small->sql("select options from qlog_queues where queue = 'longer'"), '{"dedup_window": "7200 s"}', 'nothing else is shown');
my $new = $small->sql("select queue_push('longer', '1', dedup_id => 'new')");
foreach my $how ('before', 'after')
{
	is($small->sql("select queue_push('longer', '1', dedup_id => 'new')"), $new, "$how a crash: a new one is known");
	is($small->sql("begin; select count(*) from (select queue_push('longer', '1', dedup_id => '3.' || i) id from generate_series(1, 700) i) x where id in (select message_id from queue_peek('longer', batch => 10000)); rollback"),
		0, "$how a crash: what had left the window is not");
	$small->kill9_everything if $how eq 'before';
	$small->start if $how eq 'before';
}

# Neither had what was pushed while the window was off.
$small->sql(q{select queue_create('off', '{"dedup_window": "0"}')});
$small->sql("select queue_push('off', '1', dedup_id => 'a') from generate_series(1, 3)");
$small->sql("select queue_reset('off', 'dedup_window')");
$small->kill9_everything;
$small->start;
is($small->sql("select queue_push('off', '1', dedup_id => 'a') in (select message_id from queue_peek('off'))"), 'f', 'a new message');
is($small->sql("select count(*) || ' ' || count(distinct dedup_id) from queue_peek('off')"), '4 1', 'beside those of before');
$small->stop;
done_testing();
