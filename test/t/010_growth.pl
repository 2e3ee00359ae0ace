# No growth: memory of one backend over a million pushes and pops, descriptors over a thousand queues; an idle server
# uses no CPU and writes nothing.

use strict;
use warnings;

use File::Find ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

# The names of log directories stand in here.
QlogNode::plain_layout();

my $node = QlogNode->started('main',
	conf => [ "qlog.state_memory = '512MB'", "qlog.checkpoint_timeout = '1s'", 'max_files_per_process = 200' ]);

# Each transaction pushes 10,000 messages and pops and acknowledges as many; memory is looked at after the tenth and
# after the hundredth.
$node->sql(q{
	select queue_create('q');
	create function rss() returns bigint language sql as
	$$ select (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'RssAnon:\s+(\d+)'))[1]::bigint $$;
	create procedure turn() language plpgsql as $$
	declare l bigint; k bigint;
	begin
	  perform count(*) from queue_push_batch('q', (select array_agg('{"a": 1, "b": "some text"}'::text) from generate_series(1, 10000)));
	  commit;
	  select max(lease_id), count(*) into l, k from queue_pop('q', 10000);
	  if k <> 10000 or queue_ack(l) <> 10000 then raise exception 'popped %', k; end if;
	  commit;
	end $$});
my $script = "call turn();\n" x 10 . "select rss();\n" . "call turn();\n" x 90 . "select rss();\n";
my ($early, $late) = split /\n/, $node->sql($script);
note "private memory: $early kB after 100,000, $late kB after 1,000,000 messages";
cmp_ok($late - $early, '<', 2048, 'no memory growth over a million pushes and pops in one backend');
is($node->sql("select ready || ' ' || leased || ' ' || acked from qlog_stat_queues where queue = 'q'"), '0 0 1000000',
	'all of them acknowledged');

# A thousand queues from one backend.
my $descriptors = $node->sql(q{
	do $$ begin for i in 1 .. 1000 loop perform queue_create('many' || i); commit; perform queue_push('many' || i, '1'); commit; end loop; end $$;
	select count(*) from pg_ls_dir('/proc/' || pg_backend_pid() || '/fd')});
cmp_ok($descriptors, '<', 200, "descriptors stay bounded over a thousand queues ($descriptors)");
is($node->sql(q{select sum((select count(*) from queue_pop('many' || i))) from generate_series(1, 1000) i}), '1000',
	'every one of them can be read');

# Room is made for queues that are used, not for those that there are.
my @logs = split /\n/, $node->sql(q{select log_id from qlog_queues where queue like 'many%'});
my $bytes = 0;
$bytes += -s $_ foreach map { glob $node->log_dir($_) . '/*' } @logs;
is($bytes, 65536 * @logs, 'a queue that holds one message takes 64 KiB');

# Idle: no CPU, no writes. Times in clock ticks over three seconds, of our workers.
$node->sql('select pg_sleep(3)');
my @workers = split /\n/, $node->sql('select pid from qlog_stat_workers where pid is not null');
cmp_ok(scalar @workers, '>=', 3, 'the workers are known');

sub ticks
{
	my $sum = 0;

	foreach my $pid (@workers)
	{
		my @stat = split ' ', slurp_file("/proc/$pid/stat") =~ s/^.*\) //sr;
		$sum += $stat[11] + $stat[12];
	}
	return $sum;
}

sub switches
{
	my $sum = 0;

	foreach my $pid (@workers)
	{
		$sum += $1 if slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	}
	return $sum;
}

# Bytes that the workers have handed to the system, and every file of the directory with its size and time.
sub written
{
	my $sum = 0;

	foreach my $pid (@workers)
	{
		$sum += $1 if slurp_file("/proc/$pid/io") =~ /^wchar:\s+(\d+)/m;
	}
	return $sum;
}

sub files
{
	my @found;

	File::Find::find({ no_chdir => 1, wanted => sub { push @found, join ' ', $_, (stat $_)[ 7, 9, 10 ] if -f $_ } }, $node->qlog_dir);
	return join "\n", sort @found;
}
my ($written, $files) = (written(), files());
my $log = $node->sql('select entries || \' \' || fsyncs || \' \' || durable_seq from qlog_stat_log');
my ($ticks, $switches) = (ticks(), switches());
sleep 3;
cmp_ok(ticks() - $ticks, '<=', 1, 'the workers of an idle server use no CPU');
cmp_ok(switches() - $switches, '<=', 15, 'and hardly wake up');
is($node->sql('select entries || \' \' || fsyncs || \' \' || durable_seq from qlog_stat_log'), $log,
	'an idle server logs nothing');
is(written(), $written, 'its workers write nothing');
is(files(), $files, 'and no file is touched');
$node->stop;

done_testing();
