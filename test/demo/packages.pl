#!/usr/bin/perl
# Prints package records of this Debian system, one JSON object per line as a row of COPY: section, tab, document.
# Every package that dpkg knows as installed, and then those that apt knows, until there are LIMIT (argument) of them.
use strict;
use warnings;
use JSON::PP;

my $limit = shift // 6000;
my $json = JSON::PP->new->canonical->utf8;
my %seen;
my $count = 0;

# Field: Value lines, continued by a leading blank; records end with an empty line.
sub each_record
{
	my ($in, $visit) = @_;
	my (%record, $field);

	while (my $line = <$in>)
	{
		chomp $line;
		if ($line eq '')
		{
			$visit->({%record}) or return if %record;
			%record = ();
		}
		elsif ($line =~ /^\s/ && defined $field)
		{
			$record{$field} .= "\n" . substr $line, 1;
		}
		elsif ($line =~ /^([^:]+):\s*(.*)$/)
		{
			$field = lc $1;
			$record{$field} = $2;
		}
	}
	$visit->({%record}) if %record;
}

sub put_record
{
	my ($record) = @_;
	my $section = $record->{section} // 'unknown';

	return 1 if $seen{"$record->{package} $record->{version}"}++;
	my $document = $json->encode($record);

	# COPY's text format: a backslash, and what it would take for a separator, is escaped.
	$document =~ s/\\/\\\\/g;
	print "$section\t$document\n";
	return ++$count < $limit;
}

open my $status, '<:encoding(UTF-8)', '/var/lib/dpkg/status' or die "dpkg's database: $!\n";
each_record($status, \&put_record);
close $status;
if ($count < $limit && open my $apt, '-|:encoding(UTF-8)', 'apt-cache dumpavail 2>/dev/null')
{
	each_record($apt, \&put_record);
	close $apt;
}
