# doc/reference.md is what the COMMENTs say, and the code of the tutorial, the cookbook and the README runs and gives what it says.
#
# A block of SQL is run by psql as it stands; each line that ends with "-- => text" stands for one line of its output,
# rows unaligned, in order. Blocks of one document run in one database, one after the other, each in a session of its own.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use QlogNode;
use Test::More;

my $inputs = $ENV{TEST_INPUTS} or die 'TEST_INPUTS is not set';
my $node = QlogNode->started('main');

sub slurp_doc { return slurp_file("$inputs/$_[0]") }

# The reference.
my ($out, $err) = ('', '');
IPC::Run::run([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-f', "$inputs/test/docs/reference.sql" ],
	'<', \undef, '>', \$out, '2>', \$err);
is($err, '', 'the reference can be made');
my @now = split /\n/, $out;
my @written = split /\n/, slurp_doc('doc/reference.md');
my $differs = '';
foreach my $i (0 .. ($#now > $#written ? $#now : $#written))
{
	next if ($now[$i] // '') eq ($written[$i] // '');
	$differs = 'line ' . ($i + 1) . ': ' . ($now[$i] // '(nothing)');
	last;
}
is($differs, '', 'doc/reference.md is what the COMMENTs say ("make reference" writes it)');

# The options in the contract are those that there are, in the same order.
my ($hint) = ($node->psql('postgres', q{create extension if not exists qlog; select queue_create('q', '{"no such": 1}')}))[2]
	=~ /Valid options are: (.*)\./;
my @options = slurp_doc('doc/contract.md') =~ /^\| `(\w+)` \|.*$/mg;
is(join(', ', @options), $hint, 'doc/contract.md has every option of a queue');

# Runs one block; returns what it printed.
sub run_block
{
	my ($database, $code) = @_;
	my ($printed, $errors) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database), '-f', '-' ],
		'<', \$code, '>', \$printed, '2>', \$errors);
	return ($printed, $errors);
}

foreach my $doc ('doc/tutorial.md', 'doc/cookbook.md', 'README.md')
{
	my ($database) = $doc =~ /(\w+)\.md/;
	my $text = slurp_doc($doc);
	my $n = 0;

	$database = lc $database;
	$node->safe_psql('postgres', "create database $database");
	while ($text =~ /^```sql\n(.*?)^```$/msg)
	{
		my $code = $1;
		my $line = 1 + (substr($text, 0, $-[0]) =~ tr/\n//);
		my @expected = $code =~ /-- => ?(.*)$/mg;
		my ($printed, $errors) = run_block($database, $code);

		$n++;
		is($errors, '', "$doc:$line runs");
		is($printed, join('', map { "$_\n" } @expected), "$doc:$line gives what it says") if @expected;
	}
	cmp_ok($n, '>', 0, "$doc has code");
}
$node->stop;
done_testing();
