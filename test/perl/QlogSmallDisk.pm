# QlogSmallDisk: runs a test inside a mount namespace of its own, where a directory is a small file system.
#
#   use QlogSmallDisk '8m';
#   my $small = QlogSmallDisk::directory();
#
# Mounting takes a user namespace; where there is none the test is skipped.  Comes before anything that has side effects: the
# test is begun anew inside.

package QlogSmallDisk;

use strict;
use warnings;

sub directory
{
	return ($ENV{TESTDIR} || '.') . '/small';
}

# Runs the same test again, inside.
sub import
{
	my ($class, $size) = @_;
	my $small = directory();
	my $group = (split ' ', $))[0];
	my $mount = "mount -t tmpfs -o size=$size,mode=0700 none '$small'";

	return if $ENV{QLOG_SMALL_DISK};
	mkdir $small;
	if (system("unshare -Urm sh -c '$mount && unshare -U --map-user=$> true' >/dev/null 2>&1") != 0)
	{
		print "1..0 # SKIP no file system can be mounted here\n";
		exit 0;
	}
	$ENV{QLOG_SMALL_DISK} = 1;
	exec 'unshare', '-Urm', 'sh', '-c', "$mount && exec unshare -U --map-user=$> --map-group=$group \"\$@\"", 'sh', $^X,
	  (map { "-I$_" } @INC), $0
	  or die $!;
}

# Makes a file of this many bytes, or ("rest") one that takes what room there is; returns its size.
sub ballast
{
	my ($name, $bytes) = @_;
	my $path = directory() . "/$name";
	my $chunk = 'x' x 4096;

	open(my $fh, '>', $path) or die "$path: $!";
	for (my $done = 0; $bytes eq 'rest' || $done < $bytes; $done += 4096)
	{
		syswrite($fh, $chunk) or last;
	}
	close $fh;
	return -s $path;
}

sub drop_ballast
{
	my ($name) = @_;

	unlink(directory() . "/$name") or die "$name: $!";
	return;
}

1;
