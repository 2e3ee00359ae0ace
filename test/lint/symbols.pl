#!/usr/bin/perl
# What the core library and the module need from outside and show to it, as nm sees it. The core
# must link into programs that have no PostgreSQL, allocate nothing while serving, and never end
# the process. Prints TAP. Needs the build (make objects).
#
# symbols.allow lists what is allowed: a line "NAME..." for every object file of the library, a
# line "OBJECT: NAME..." for one of them (OBJECT without .o). A * stands for anything.

use strict;
use warnings;
use File::Basename qw(dirname);

my $build = 'build/' . (($ENV{CC} || 'gcc') =~ /clang/ ? 'clang' : 'gcc');
my $library = "$build/libqlogcore.a";
my $module = 'qlog.so';
my ($test_number, $failures) = (0, 0);

sub rule
{
	my ($name, @offences) = @_;
	$test_number++;
	$failures++ if @offences;
	printf "%s %d - %s\n", @offences ? 'not ok' : 'ok', $test_number, $name;
	print "#   $_\n" foreach @offences;
	return;
}

# The symbols of each object file: object => type => [names].
sub symbols_of
{
	my ($file) = @_;
	my %found;
	foreach my $line (split /\n/, `nm -A -P $file 2>/dev/null`)
	{
		next unless $line =~ /^\S+?(?:\[(.+)\.o\])?: (\S+) (\w)/;
		push @{ $found{ defined $1 ? $1 : '' }{$3} }, $2 =~ s/@.*//r;
	}
	return %found;
}

# A pattern that matches any of the names, in which * stands for anything.
sub pattern_of
{
	my $any = join '|', map { join '.*', map { quotemeta } split /\*/, $_, -1 } @_;
	return qr/^(?:$any)$/;
}

my (@everywhere, @for_object);
open(my $list, '<', dirname($0) . '/symbols.allow') or die "no list of symbols: $!\n";
while (my $line = <$list>)
{
	$line =~ s/#.*//;
	my ($object, $names) = $line =~ /^(?:([\w*]+):)?(.*)/;
	push @for_object, [ pattern_of($object), pattern_of(split ' ', $names) ] if defined $object;
	push @everywhere, split ' ', $names unless defined $object;
}
close $list;
my $everywhere = pattern_of(@everywhere);

my %objects = symbols_of($library);
my (%defined, @unknown, @global);
foreach my $object (values %objects)
{
	foreach my $type (qw(T D B R W V C))
	{
		$defined{$_} = 1 foreach @{ $object->{$type} || [] };
	}
}
foreach my $name (sort keys %objects)
{
	foreach my $symbol (sort @{ $objects{$name}{U} || [] })
	{
		next if $defined{$symbol} || $symbol =~ $everywhere;
		next if grep { $name =~ $_->[0] && $symbol =~ $_->[1] } @for_object;
		push @unknown, "$name.o needs $symbol";
	}
	push @global, map { "$name.o: $_" }
	  grep { !/^q[cs]_/ } map { @{ $objects{$name}{$_} || [] } } qw(T D B R C);
	push @unknown, map { "$name.o: writable variable $_" }
	  map { @{ $objects{$name}{$_} || [] } } qw(D B C);
}

rule("$library exists", %objects ? () : 'not built');
rule('the core needs only what symbols.allow lists, and has no global variable', @unknown);
rule('names of the core begin with qc_, of the store with qs_', sort @global);

if (-f $module)
{
	my @shown = split /\n/, `nm -D -P --defined-only $module`;
	rule('the module does not show the core to the server',
		grep { /^q[cs]_/ } map { (split ' ')[0] } @shown);
}
print "1..$test_number\n";
exit($failures ? 1 : 0);
