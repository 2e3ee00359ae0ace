# .qidx files: written when a log file has been closed, made again when they are missing, damaged or of another content,
# at the start or when a reader notices; and messages are found whatever they say.

use strict;
use warnings;

use File::Copy qw(copy);
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $node = QlogNode->started('main',
	conf => [ "qlog.segment_size = '1MB'", "qlog.checkpoint_timeout = '100ms'" ]);
my $messages = 2000;

# Messages of about 5 kB that do not compress, one record each.
$node->sql(
	q{select queue_create('q');
	create function noise(n int) returns text language sql as
	$$ select string_agg(encode(sha512((n * 1000 + i)::text::bytea), 'base64'), '') from generate_series(1, 60) i $$;
	create procedure fill(a int, b int) language plpgsql as $$
	begin
	  for i in a .. b loop
	    perform queue_push('q', json_build_object('n', i, 'noise', noise(i))::text);
	    commit;
	  end loop;
	end $$;
	} . "call fill(1, $messages)");
my $log = $node->sql("select distinct substring(file from 'q([0-9]+)/r') from qlog_files where file like (select directory || '/%' from qlog_queues where queue = 'q')");
my $closed = $node->sql("select count(*) from qlog_files where file like (select directory || '/%' from qlog_queues where queue = 'q') and state = 'closed'");
cmp_ok($closed, '>=', 8, 'many files are closed');

sub index_path { return sprintf('%s/r%08d.qidx', $node->log_dir($log), $_[0]) }

# Every closed file gets its index.
sub all_indexed
{
	return $node->wait_until(
		sub {
			my @files = sort glob $node->log_dir($log) . '/r*.qlog';
			my ($newest) = $node->sql("select max(file) from qlog_files where file like (select directory || '/%' from qlog_queues where queue = 'q') and state = 'active'") =~ m{(r\d+)\.qlog$};

			return !grep { my ($number) = m{(r\d+)\.qlog$}; $number lt $newest && !-e s/qlog$/qidx/r } @files;
		},
		'indexes of all closed files');
}

ok(all_indexed(), 'closed files get an index');
is($node->sql("select sum(records) > 0.8 * $messages from qlog_files where file like (select directory || '/%' from qlog_queues where queue = 'q') and state = 'closed'"), 't',
	'which lists their records');
my %right = map { $_ => slurp_file(index_path($_)) } 1 .. $closed;

sub write_file
{
	my ($path, $bytes) = @_;

	open(my $fh, '>', $path) or die $!;
	binmode $fh;
	print $fh $bytes;
	close $fh;
	return;
}

# Flip a byte of an index.
sub damage
{
	my ($file, $at) = @_;
	my $bytes = $right{$file};

	substr($bytes, $at, 1) = chr(ord(substr($bytes, $at, 1)) ^ 0x11);
	write_file(index_path($file), $bytes);
	return;
}

sub is_right
{
	my ($file) = @_;

	return -e index_path($file) && slurp_file(index_path($file)) eq $right{$file};
}

sub found
{
	my ($position, $what) = @_;

	is($node->sql(qq{select (payload->>'n')::int - 1 = "position" and payload->>'noise' = noise((payload->>'n')::int) from queue_peek('q', partition => '', from_position => $position, batch => 1)}),
		't', "message $position is found: $what");
	return;
}

# Wrong ones, before a start.
$node->stop;
unlink index_path(2) or die $!;
damage(3, 16);
write_file(index_path(4), substr($right{4}, 0, length($right{4}) - 48));
write_file(index_path(5), $right{6});
write_file(index_path(6), '');
$node->start;
foreach my $file (2 .. 6)
{
	$node->wait_until(sub { is_right($file) }, "the index of file $file to be made again");
	pass("the index of file $file is made again after a start");
}
found($_, 'after a start') foreach (0, 100, 500, 1000, $messages - 1);

# Entries that lie, and an index that goes away while the server runs: found all the same, and a reader has them mended.
damage(3, 48 + 8);
unlink index_path(7) or die $!;
sub read_all
{
	return $node->sql("select count(*) from generate_series(0, $messages - 1, 3) p, lateral queue_peek('q', partition => '', from_position => p, batch => 1) m where (payload->>'n')::int = p + 1");
}

is(read_all(), int(($messages + 2) / 3), 'messages are found beside a wrong index and one that is missing');

# One request at a time is kept; the next reader asks again.
foreach my $file (3, 7)
{
	$node->wait_until(sub { read_all(); is_right($file) }, "the index of file $file to be made again");
	pass("the index of file $file is made again when a reader misses it");
}

# All of it, in order.
is($node->sql(
		q{create table got(n int, at bigint generated always as identity);
		do $$ declare k int; l bigint; begin
		  loop
		    with p as materialized (select * from queue_pop('q', 100)), i as (insert into got select (payload->>'n')::int from p)
		    select count(*), max(lease_id) into k, l from p;
		    exit when k = 0;
		    perform queue_ack(l);
		    commit;
		  end loop;
		end $$;
		select count(*) || ' ' || count(*) filter (where n = at) from got}),
	"$messages $messages", 'every message, in order');

# A roll under way when the server dies: the index belongs to what is there in the end.
$node->sql("call fill(1, 600)");
$node->kill9_everything;
$node->start;
ok(all_indexed(), 'after a crash closed files get an index');
is($node->sql("select count(*) from queue_pop('q', 1000)"), 600, 'and all messages are there');
$node->stop;

# After a start the records of the active file are in the memory index again, so that not every session reads its headers.
{
	my $other = QlogNode->started('warm');

	$other->sql(q{select queue_create('q', '{"retry_limit": -1}');
		do $$ begin for i in 1 .. 3000 loop perform queue_push('q', json_build_object('n', i)::text); commit; end loop; end $$});
	$other->sql('select qlog_checkpoint()');
	$other->restart;
	$other->poll_sql('select index_memory_used >= 3000 * 48 from qlog_stat_log');
	is($other->sql(q{begin; select count(*), min((payload->>'n')::int), max((payload->>'n')::int) from queue_pop('q', 3000); rollback}),
		'3000|1|3000', 'and lead to their messages');
	$other->stop;
}

done_testing();
