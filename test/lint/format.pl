#!/usr/bin/perl
# Formats the C sources as PostgreSQL formats its own: pg_bsd_indent with pgindent's options, with
# lines up to 100 columns. Without arguments it changes nothing, prints TAP and shows what differs;
# with --write (make indent) it rewrites the files. Further arguments are the files to look at.
#
# pg_bsd_indent must know which names are types. Ours are found in the sources; those of libc and
# PostgreSQL in the debug information of the objects, so a build comes first (make objects).

use strict;
use warnings;
use File::Temp qw(tempdir);

my @options = qw(-bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 -nfc1 -i4 -l100 -lp -lpl
  -nip -npro -sac -tpg -ts4);
my $write = @ARGV && $ARGV[0] eq '--write' && shift @ARGV;
my $build = 'build/' . (($ENV{CC} || 'gcc') =~ /clang/ ? 'clang' : 'gcc');
my $dir = tempdir(CLEANUP => 1);

my @sources = map { glob } map { ("src/$_/*.[ch]") } qw(core store pg bin);
push @sources, map { glob "test/$_/*.[ch]" } qw(lib unit fuzz sim);
my @files = @ARGV ? @ARGV : @sources;

sub slurp
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "cannot read $file: $!\n";
	local $/;
	my $all = <$in>;
	return $all;
}

sub spew
{
	my ($file, $text) = @_;
	open(my $out, '>', $file) or die "cannot write $file: $!\n";
	print $out $text;
	close $out or die "cannot write $file: $!\n";
	return;
}

# Names of types that the sources define.
sub own_types
{
	my %found;
	foreach my $file (@sources)
	{
		my $text = slurp($file);
		$text =~ s{/\*.*?\*/}{}gs;
		$found{$1} = 1 while $text =~ /^typedef\s+(?:struct|union|enum)\b[^;{]*\{.*?^\}\s*(\w+);/gms;
		$found{$1} = 1 while $text =~ /^typedef\s[^;{]*?\(\*\s*(\w+)\)\s*\(/gm;
		$found{$1} = 1 while $text =~ /^typedef\s[^;{(]*?(\w+);/gm;
	}
	return keys %found;
}

# Names of types in the debug information of the objects.
sub foreign_types
{
	my (@objects) = @_;
	my (%found, $typedef);
	return unless @objects;
	open(my $in, '-|', 'readelf', '--debug-dump=info', @objects) or die "readelf: $!\n";
	while (my $line = <$in>)
	{
		if ($line =~ /\(DW_TAG_(\w+)\)/)
		{
			$typedef = $1 eq 'typedef';
		}
		elsif ($typedef && $line =~ /DW_AT_name\s*:.*?(\w+)\s*$/)
		{
			$found{$1} = 1;
			$typedef = 0;
		}
	}
	close $in;
	return keys %found;
}

# The formatted text of a file, and what pg_bsd_indent had to say. It does not know compound
# literals, so those on one line pass as calls.
sub formatted
{
	my ($file) = @_;
	my $text = slurp($file);

	$text =~ s/\((\w+)\) \{([^{}\n]*)\}/literal_$1_($2)/g;
	spew("$dir/in", $text);
	my $types = $file =~ m{^src/pg/} ? 'types.pg' : 'types';
	my $says = `pg_bsd_indent @options -U$dir/$types $dir/in $dir/out 2>&1`;
	return (slurp($file), $says) if $? != 0 || $says;

	$text = slurp("$dir/out");
	my $nested = qr/(?<in>\((?:[^()\n]|(?&in))*\))/;
	$text =~ s/literal_(\w+)_$nested/"($1) {" . substr($2, 1, -1) . '}'/ge;
	$text =~ s/,\.(?=\w+(?:\[\w+\])? = )/, ./g;

	# As pgindent does: one space before the star of a return type on its own line.
	$text =~ s/^(\w+(?: \w+)*)[ \t]+(\*+)$/$1 $2/gm;
	return (indent_initializers($text), '');
}

# The lines that continue the initializer of a local variable are left in the column of the
# variable by the version of pg_bsd_indent in Debian 12, and the members of a list one too far
# right; both belong one to the right of the variable, where later versions put them.
sub indent_initializers
{
	my ($text) = @_;
	my ($level, $list, @lines);

	foreach my $line (split /\n/, $text, -1)
	{
		if (defined $level)
		{
			my $done = $line =~ /;(?:\s*\/\*.*)?$/;
			if ($list)
			{
				$line =~ s/^\t// if $line =~ /^$level\t\t\S/;
			}
			elsif ($line =~ /^$level(?=\S)/)
			{
				$line = "\t$line";
			}
			undef $level if $done;
		}
		elsif (@lines && $lines[-1] =~ / = \(\w+\)$/ && $line =~ /^(\t+)\{$/)
		{
			($level, $list) = ($1, 1);
		}
		elsif ($line !~ /(?:;(?:\s*\/\*.*)?|\\)$/
			&& $line =~ /^(\t+)(?!return|else|case)(?:\w+ )*\w+[ \t]+\**\w+(?:\[\w*\])* =(?: .*)?$/)
		{
			$level = $1;
			$list = $line =~ /\{$/;
		}
		push @lines, $line;
	}
	return join "\n", @lines;
}

if (!grep { -x "$_/pg_bsd_indent" } split /:/, $ENV{PATH})
{
	print "1..0 # SKIP pg_bsd_indent is not installed\n";
	exit 0;
}

# PostgreSQL has types with everyday names ("text"), which are names of variables elsewhere.
my @shell = glob "$build/src/pg/*.o";
my @other = grep { -f && !m{/src/pg/} } "$build/libqlogcore.a", glob("$build/{src,test}/*/*.o");
my @known = (own_types(), foreign_types(@other));
spew("$dir/types", join("\n", sort @known) . "\n");
spew("$dir/types.pg", join("\n", sort(@known, foreign_types(@shell))) . "\n");

my @differing;
foreach my $file (@files)
{
	my ($text, $says) = formatted($file);
	push @differing, [ $file, $says ] if $says;
	next if $text eq slurp($file);
	if ($write)
	{
		spew($file, $text);
		print "$file\n";
	}
	else
	{
		spew("$dir/new", $text);
		push @differing, [ $file, join "", `diff -u --label $file --label formatted $file $dir/new` ];
	}
}
if ($write)
{
	print STDERR "$_->[0]: $_->[1]" foreach @differing;
	exit(@differing ? 1 : 0);
}
printf "%s 1 - sources are formatted (make indent)\n1..1\n", @differing ? 'not ok' : 'ok';
print "# $_->[0]\n" foreach @differing;
print map { s/^/#   /gmr } map { $_->[1] } @differing;
exit(@differing ? 1 : 0);
