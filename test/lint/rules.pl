#!/usr/bin/perl
# The rules of the source that a reader would otherwise have to check by eye: who may include what,
# words that are banned somewhere, sizes, and lists that must be complete. Prints TAP; each rule is
# one test, and each offence a diagnostic line "file:line: what".
#
# Comments and the contents of strings are blanked out before most rules look (see code_of), so
# that a comment may name what it forbids.

use strict;
use warnings;

my $file_lines_max = 900;
my $function_lines_max = 100;
my $undocumented_lines_max = 50;

# ------------------------------------------------------------------------------------------------
# Reading the tree
# ------------------------------------------------------------------------------------------------

my @tracked = grep { -f } split /\n/, `git ls-files --cached --others --exclude-standard 2>/dev/null`;

# Without git: all files but those that .gitignore names.
unless (@tracked)
{
	my $built = join ' ', map { chomp; "-not -path '" . (m{^/} ? '.' : '*/') . "$_" . (m{/$} ? "*'" : "'") } `cat .gitignore`;
	@tracked = split /\n/, `find . -type f -not -path './.git/*' $built | sed 's,^./,,'`;
}

my @core = grep { m{^src/core/.*\.[ch]$} } @tracked;
my @store = grep { m{^src/store/.*\.[ch]$} } @tracked;
my @pg = grep { m{^src/pg/.*\.[ch]$} } @tracked;
my @bin = grep { m{^src/bin/.*\.[ch]$} } @tracked;
my @src = (@core, @store, @pg, @bin);
my @c = (@src, grep { m{^test/.*\.[ch]$} } @tracked);

my (%text, %code);

sub text_of
{
	my ($file) = @_;
	return $text{$file} if exists $text{$file};
	open(my $in, '<', $file) or die "cannot read $file: $!\n";
	local $/;
	my $all = <$in>;
	return $text{$file} = defined $all ? $all : '';
}

# The text of a C file with comments, strings and character constants blanked out, line for line.
sub code_of
{
	my ($file) = @_;
	return $code{$file} if exists $code{$file};
	my $all = text_of($file);

	$all =~ s{(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}
			 {blank($1)}gse;
	return $code{$file} = $all;
}

sub blank
{
	my ($piece) = @_;
	return $piece if $piece =~ m{^//};    # kept: its own rule looks for it
	my $first = substr $piece, 0, 1;
	$piece =~ s/[^\n]/ /g;
	substr($piece, 0, 1) = substr($piece, -1) = $first if $first ne '/' && length $piece > 1;
	return $piece;
}

# Calls CODE with (line, line number, previous lines) for each line of the text.
sub each_line
{
	my ($all, $code) = @_;
	my $number = 0;
	$code->($_, ++$number) foreach split /\n/, $all;
	return;
}

# Include lines of a file: pairs of line number and name with its brackets.
sub includes_of
{
	my ($file) = @_;
	my @found;
	each_line(text_of($file), sub {
		push @found, [ $_[1], $1 ] if $_[0] =~ /^\s*#\s*include\s*([<"][^>"]+[>"])/;
	});
	return @found;
}

# The functions of a file: hashes with name, first line (of the return type), line of the opening
# and of the closing brace, whether static, and the line above. Relies on the layout: both braces
# stand alone in column one.
sub functions_of
{
	my ($file) = @_;
	my @lines = split /\n/, code_of($file);
	my @raw = split /\n/, text_of($file);
	my (@found, $open);

	for my $i (0 .. $#lines)
	{
		if ($lines[$i] =~ /^\{\s*$/ && $i > 0 && $lines[ $i - 1 ] =~ /\)\s*$/)
		{
			my $top = $i - 1;
			$top-- while $top > 0 && $lines[$top] !~ /^\w/;
			my ($name) = $lines[$top] =~ /^.*?\b(\w+)\s*\(/;
			$top-- if $top > 0 && $lines[$top] =~ /^\w+\s*\(/ && $lines[ $top - 1 ] =~ /^\w/;
			$open = { name => $name || '?', top => $top + 1, open => $i + 1,
				static => scalar($lines[$top] =~ /\bstatic\b/),
				above => $top > 0 ? $raw[ $top - 1 ] : '' };
		}
		elsif ($open && $lines[$i] =~ /^\}\s*$/)
		{
			$open->{close} = $i + 1;
			push @found, $open;
			undef $open;
		}
	}
	return @found;
}

# ------------------------------------------------------------------------------------------------
# TAP
# ------------------------------------------------------------------------------------------------

my $test_number = 0;
my $failures = 0;

# rule NAME, OFFENCES: one test.
sub rule
{
	my ($name, @offences) = @_;
	$test_number++;
	$failures++ if @offences;
	printf "%s %d - %s\n", @offences ? 'not ok' : 'ok', $test_number, $name;
	print "#   $_\n" foreach @offences;
	return;
}

# Offences of a pattern in the code of files.
sub matches
{
	my ($pattern, $files, $what) = @_;
	my @found;
	foreach my $file (@$files)
	{
		each_line(code_of($file), sub {
			push @found, "$file:$_[1]: " . ($what || "'$1'") while $_[0] =~ /$pattern/g;
		});
	}
	return @found;
}

sub base { my ($file) = @_; $file =~ s{.*/}{}; return $file; }
sub except { my ($files, @names) = @_; my %n = map { $_ => 1 } @names; return grep { !$n{ base($_) } } @$files; }

# Include lines that ALLOWED (a pattern over the bracketed name) does not allow.
sub wrong_includes
{
	my ($files, $allowed) = @_;
	my @found;
	foreach my $file (@$files)
	{
		foreach my $include (includes_of($file))
		{
			push @found, "$file:$include->[0]: $include->[1]" unless $include->[1] =~ $allowed;
		}
	}
	return @found;
}

# ------------------------------------------------------------------------------------------------
# Floors
# ------------------------------------------------------------------------------------------------

# libc and POSIX; no header of PostgreSQL or LMDB can be among them.
my $libc = qr{<(?:assert|ctype|dirent|errno|fcntl|inttypes|limits|pthread|signal|stdarg|stdatomic
	|stdalign|stdbool|stddef|stdint|stdio|stdlib|string|time|unistd|getopt|sys/\w+|linux/\w+)\.h>}x;

rule('core includes libc, xxhash, zstd and itself only',
	wrong_includes(\@core, qr{^(?:$libc|<xxhash\.h>|<zstd(?:_errors)?\.h>|"qc_\w+\.h")$}));
rule('store includes libc, xxhash, lmdb, the core and itself only',
	wrong_includes(\@store, qr{^(?:$libc|<xxhash\.h>|<lmdb\.h>|"(?:\.\./core/)?q[cs]_\w+\.h")$}));
rule('programs of src/bin include no header of PostgreSQL or of the shell',
	wrong_includes(\@bin, qr{^(?:$libc|<xxhash\.h>|<zstd\.h>|"(?:q[cs]_|qlog_dump)\w*\.h")$}));
rule('only src/store includes lmdb.h',
	map { my $f = $_; map { "$f:$_->[0]" } grep { $_->[1] =~ /[<"\/]lmdb\.h/ } includes_of($f) }
	grep { !m{^src/store/} } @c);
rule('functions (fn_*) do not include workers (wrk_*)',
	map { my $f = $_; map { "$f:$_->[0]: $_->[1]" } grep { $_->[1] =~ /wrk_/ } includes_of($f) }
	grep { base($_) =~ /^fn_/ } @pg);
rule('only qlog_compat.h tests PG_VERSION_NUM',
	matches(qr/\b(PG_VERSION_NUM)\b/, [ except(\@c, 'qlog_compat.h') ]));

# A function that looks at core statuses and also names an SQLSTATE maps one to the other.
{
	my @found;
	foreach my $file (except(\@pg, 'qlog_report.c'))
	{
		my @lines = split /\n/, code_of($file);
		foreach my $function (functions_of($file))
		{
			my $body = join "\n", @lines[ $function->{open} - 1 .. $function->{close} - 1 ];
			push @found, "$file:$function->{top}: $function->{name}"
			  if $body =~ /\bcase\s+QC_\w+\s*:/ && $body =~ /\bERRCODE_/;
		}
		each_line(code_of($file), sub {
			push @found, "$file:$_[1]" if $_[0] =~ /\bQC_E?[A-Z]+\b.*\bERRCODE_\w+/;
		});
	}
	rule('only qlog_report.c maps statuses of the core to SQLSTATEs', @found);
}

# ------------------------------------------------------------------------------------------------
# Words
# ------------------------------------------------------------------------------------------------

rule('no unbounded or blocking libc call',
	matches(qr/(?<![\w.>])((?:v?sprintf|strcpy|strcat|strtok|gets|system|popen|alloca|usleep|sleep)\s*\()/,
		\@src));
rule('no subtransaction of our own, which would fill the cache of those of PostgreSQL',
	matches(qr/\b(BeginInternalSubTransaction|SPI_exec\w*)\s*\(/, \@pg));
rule('no libc allocation in src/pg',
	matches(qr/(?<![\w.>])((?:malloc|calloc|realloc|free|strdup|strndup|asprintf)\s*\()/, \@pg));
rule('files are opened in qlog_io.c and qlog_stash.c only',
	matches(qr/(?<![\w.>])((?:fopen|fdopen|open|openat|creat)\s*\()/,
		[ except(\@pg, 'qlog_io.c', 'qlog_stash.c') ]));
rule('functions (fn_*) raise with an SQLSTATE, not with elog(ERROR)',
	matches(qr/\b(elog\s*\(\s*(?:ERROR|FATAL|PANIC))/, [ grep { base($_) =~ /^fn_/ } @pg ]));
rule('the core does not end the process or jump',
	matches(qr/(?<![\w.>])((?:abort|exit|_exit|longjmp|siglongjmp|raise|kill)\s*\()/, [ @core, @store ]));
rule('comments are /* */', matches(qr{(//)}, \@c));

# Words that say "not finished". In pieces, so that this file does not match itself.
{
	my $unfinished = join '|', 'TO' . 'DO', 'FIX' . 'ME', 'XX' . 'X', 'place' . 'holder',
	  'for ' . 'now', 'not yet ' . 'implemented';
	my @found;
	foreach my $file (grep { m{^(?:src|sql|test|Makefile)} && -T } @tracked)
	{
		each_line(text_of($file), sub {
			push @found, "$file:$_[1]: '$1'" if $_[0] =~ /\b($unfinished)\b(?!\d)/;
		});
	}
	rule('no mark of unfinished work', @found);
}

# Absolute paths that exist on one machine only.
{
	my $private = join '|', map { "/$_/" } qw(home root work srv mnt media workspace builds Users);
	my @found;
	foreach my $file (grep { -T } @tracked)
	{
		each_line(text_of($file), sub {
			push @found, "$file:$_[1]: '$1'" if $_[0] =~ m{(?:^|[\s"'=(<>`:,])((?:$private)\w[\w./-]*)};
		});
	}
	rule('no path of one machine', @found);
}

# ------------------------------------------------------------------------------------------------
# Constructs
# ------------------------------------------------------------------------------------------------

# Runs CODE over the lines between an opening and a closing call.
sub between
{
	my ($files, $open, $close, $bad) = @_;
	my @found;
	foreach my $file (@$files)
	{
		my $inside = 0;
		each_line(code_of($file), sub {
			my ($line, $number) = @_;
			$inside = 0 if $line =~ $close;
			push @found, "$file:$number: '$1'" if $inside && $line =~ $bad;
			$inside = 1 if $line =~ $open;
			$inside = 0 if $line =~ /^\}/;
		});
	}
	return @found;
}

rule('a spinlock is held over loads and stores only',
	between(\@pg, qr/\bSpinLockAcquire\s*\(/, qr/\bSpinLockRelease\s*\(/,
		qr/\b(ereport|elog|palloc\w*|pfree|LWLock\w+|Condition\w+|File\w+|pg_fsync|pg_usleep|SetLatch|WaitLatch|CHECK_FOR_INTERRUPTS)\s*\(/));
rule('no return or goto out of PG_TRY',
	between(\@pg, qr/\bPG_TRY\s*\(/, qr/\bPG_END_TRY\s*\(/, qr/\b(return|goto)\b/));

# ------------------------------------------------------------------------------------------------
# Shape
# ------------------------------------------------------------------------------------------------

{
	my (@long, @headless, @white);
	foreach my $file (@c)
	{
		my $lines = () = text_of($file) =~ /\n/g;
		push @long, "$file: $lines lines" if $lines > $file_lines_max;
		push @headless, $file unless text_of($file) =~ m{^/\*};
	}
	foreach my $file (grep { -T && !m{expected/.*\.out$} } @tracked)
	{
		push @white, "$file: no newline at the end" if text_of($file) =~ /[^\n]\z/;
		each_line(text_of($file), sub {
			push @white, "$file:$_[1]" if $_[0] =~ /[ \t\r]$/ && $file !~ /\.md$/;
		});
	}
	rule("no source file has more than $file_lines_max lines", @long);
	rule('each source file begins with a comment', @headless);
	rule('no white space at the end of a line', @white);
}

{
	my (@long, @bare, @length);
	my ($static, $documented) = (0, 0);
	foreach my $file (@src)
	{
		foreach my $function (functions_of($file))
		{
			my $length = $function->{close} - $function->{open} + 1;
			push @length, $length;
			push @long, "$file:$function->{top}: $function->{name}, $length lines"
			  if $length > $function_lines_max;
			next unless $function->{static} && $file =~ /\.c$/;
			$static++;
			if ($function->{above} =~ m{\*/\s*$})
			{
				$documented++;
			}
			elsif ($length > $undocumented_lines_max)
			{
				push @bare, "$file:$function->{top}: $function->{name}, $length lines";
			}
		}
	}
	rule("no function has more than $function_lines_max lines", @long);
	rule("each static function of more than $undocumented_lines_max lines has a comment above", @bare);
	@length = sort { $a <=> $b } @length;
	printf "# %d functions in src: median %d lines, 90%% within %d, longest %d\n",
	  scalar @length, @length[ @length / 2, @length * 9 / 10, -1 ]
	  if @length;
	printf "# %d of %d static functions have a comment above\n", $documented, $static;
}

# ------------------------------------------------------------------------------------------------
# Lists
# ------------------------------------------------------------------------------------------------

{
	my %listed = map { $_ => 1 } split ' ', $ENV{REGRESS} || '';
	my @inputs = map { base($_) =~ s/\.sql$//r } grep { m{^sql/[^/]*\.sql$} && !/--/ } @tracked;
	my @specs = map { base($_) =~ s/\.spec$//r } grep { m{^test/isolation/specs/} } @tracked;
	my (%input, %spec);
	$input{$_} = 1 foreach @inputs;
	$spec{$_} = 1 foreach @specs;

	rule('each sql/*.sql is listed in REGRESS or is an extension script',
		grep { !$listed{$_} } @inputs);
	rule('each name in REGRESS has an input', grep { !$input{$_} } sort keys %listed);
	rule('each regression input has an expected output', grep { !-e "expected/$_.out" } @inputs);
	rule('each expected output has an input',
		grep { !$input{ base($_) =~ s/(?:_\d)?\.out$//r } && !$input{ base($_) =~ s/\.out$//r } }
		grep { m{^expected/} } @tracked);
	rule('each isolation spec has an expected output',
		grep { !-e "test/isolation/expected/$_.out" } @specs);
	rule('each expected isolation output has a spec',
		grep { !$spec{ base($_) =~ s/\.out$//r } } grep { m{^test/isolation/expected/} } @tracked);
}

# test/CASES.md and doc/features.md name tests as `file::words of it`; both must be there. There is a row for each case of our
# collection that this version can meet, and for each feature, and each row says something.
{
	my %wanted = (
		'test/CASES.md' => { A => '1-24 38 40-60', C => '2 4-13 16-20 25-35 39 40 46 49 54-60', Q => '1-3 5-8 10 11 13-15 17-25 27 29 30 32-39 42-47 49-53 55-60 63-71' },
		'doc/features.md' => { 'S3-' => '01-50', 'S4-' => '01-34' });

	foreach my $page (sort keys %wanted)
	{
		my (@found, @rows, %seen);
		each_line(text_of($page), sub {
			my ($line, $number) = @_;
			while ($line =~ /`([\w.\/-]+)::([^`]+)`/g)
			{
				my ($file, $words) = ($1, $2);
				$file = "test/$file" unless -e $file;
				push @found, "$page:$number: $file does not say '$words'"
				  unless -f $file && index(text_of($file), $words) >= 0;
			}
			while ($line =~ /`([\w\/]+\.(?:c|h|pl|sql|spec|py))`/g)
			{
				push @found, "$page:$number: there is no $1" unless grep { -f "$_$1" } '', 'test/', 'src/';
			}
			my @cells = $line =~ /^\|/ ? map { s/^\s+|\s+$//gr } split /\|/, $line : ();
			push @rows, "$page:$number: nothing is said" if @cells && $cells[1] !~ /^-/ && ($cells[2] // '') . ($cells[3] // '') ne ''
			  && (($cells[2] // '') eq '' || ($cells[3] // '') eq '');
			$seen{$_} = 1 foreach @cells ? $cells[1] =~ /\b([ACQ]\d+|S[34]-\d+)\b/g : ();
		});
		foreach my $kind (sort keys %{ $wanted{$page} })
		{
			foreach my $range (split ' ', $wanted{$page}{$kind})
			{
				my ($from, $to) = split /-/, $range;
				push @rows, map { "$page: there is no row for $_" }
				  grep { !$seen{$_} } map { "$kind$_" } $from .. ($to // $from);
			}
		}
		rule("$page has a row for each case", @rows);
		rule("each test that $page names is there", @found);
	}
}

# Errors: what is raised is what the contract and the COMMENTs say.
{
	my $server = `\${PG_CONFIG:-pg_config} --includedir-server`;
	my (%sqlstate, %used, %comment, %functions, @undocumented, @unsaid, @unlisted);
	my ($table) = text_of('doc/contract.md') =~ /^## Errors\n(.*)/ms;
	my $sql = text_of('sql/qlog--1.0.sql');

	chomp $server;
	open(my $codes, '<', "$server/utils/errcodes.h") or die "cannot read $server/utils/errcodes.h: $!\n";
	while (<$codes>)
	{
		$sqlstate{$1} = $2 =~ tr/A-Z0-9//cdr if /^#define (ERRCODE_\w+) MAKE_SQLSTATE\(([^)]*)\)/;
	}
	$comment{$1} .= " $2" while $sql =~ /COMMENT ON (?:FUNCTION|PROCEDURE) (\w+)\([^)]*\) IS\s*'((?:[^']|'')*)'/g;
	push @{ $functions{ $2 // $1 } }, $1
	  while $sql =~ /CREATE (?:FUNCTION|PROCEDURE) (\w+)\([^;]*?AS 'MODULE_PATHNAME'(?:, '(\w+)')?/gs;
	foreach my $file (@pg)
	{
		my @own = map { $comment{$_} // () } map { @{ $functions{$_} || [] } } text_of($file) =~ /^PG_FUNCTION_INFO_V1\((\w+)\)/mg;

		each_line(code_of($file), sub {
			my ($line, $number) = @_;
			foreach my $name ($line =~ /\b(ERRCODE_\w+)/g)
			{
				my $state = $sqlstate{$name} or die "unknown $name in $file\n";
				push @undocumented, "$file:$number: $state" unless $state eq '00000' || $table =~ /\b$state\b/;
				push @unsaid, "$file:$number: $state" if $file =~ m{/fn_} && !grep { /\b$state\b/ } @own;
			}
		});
	}
	foreach my $name (sort keys %comment)
	{
		push @unlisted, "$name: $_"
		  foreach grep { $table !~ /\b$_\b/ } $comment{$name} =~ /\b((?:[02-4]\d|2[BD]|5[3-8]|22|XX)[0-9A-Z]{3})\b(?! bytes| groups)/g;
	}
	rule('each SQLSTATE that is raised stands in doc/contract.md', @undocumented);
	rule('each SQLSTATE that a function raises stands in its COMMENT', @unsaid);
	rule('each SQLSTATE of a COMMENT stands in doc/contract.md', @unlisted);
}

{
	my %top = map { $_ => 1 } qw(Makefile README.md LICENSE qlog.control sql src expected test doc);
	my %extra;
	foreach my $file (@tracked)
	{
		my ($first) = split m{/}, $file;
		$extra{$first} = 1 unless $top{$first} || $first =~ /^\./;
	}
	rule('nothing new at the top of the tree', sort keys %extra);
}

print "1..$test_number\n";
exit($failures ? 1 : 0);
