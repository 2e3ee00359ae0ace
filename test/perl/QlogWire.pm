# A PostgreSQL connection that speaks the protocol itself, so that a test can do what psql cannot: go
# on while a statement runs, leave without saying good-bye, give parameters the types that drivers
# give them, put several statements into one round trip.
#
#   my $c = QlogWire->new(host => DIRECTORY, port => 5432, dbname => 'postgres', user => ...);
#   $c->query('select 1')                  a result, see below
#   $c->send_query('call queue_wait(...)') returns at once; then
#   $c->busy                               whether it still runs
#   $c->result                             waits for it
#   $c->execute($sql, [TYPE OIDS], VALUES) extended protocol, unnamed statement, text format
#
# A result is a hash: rows (array of arrays), tag of the last command, notices, and when it failed
# error (SQLSTATE) and message, closed when the connection is. Every wait dies after PostgreSQL::Test::Utils::timeout_default.

package QlogWire;

use strict;
use warnings;

use Carp;
use Errno;
use IO::Select;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

sub new
{
	my ($class, %params) = @_;
	my $path = "$params{host}/.s.PGSQL.$params{port}";
	my $socket = IO::Socket::UNIX->new(Peer => $path) or croak "cannot connect to $path: $!";
	my $self = bless { socket => $socket, buffer => '', pending => 0 }, $class;
	my $startup = pack('N', 196608);

	my %settings = (user => scalar($ENV{PGUSER} || getpwuid($>)), database => $params{dbname} || 'postgres');
	$settings{user} = $params{user} if defined $params{user};
	$settings{options} = $params{options} if defined $params{options};
	$startup .= "$_\0$settings{$_}\0" foreach sort keys %settings;
	$startup .= "\0";
	$self->_put(pack('N', length($startup) + 4) . $startup);
	$self->{pending} = 1;
	my $result = $self->result;
	croak "cannot log in: $result->{message}" if $result->{error};
	return $self;
}

# To a node of PostgreSQL::Test::Cluster.
sub to
{
	my ($class, $node, %params) = @_;

	return $class->new(host => $node->host, port => $node->port, %params);
}

sub pid { return $_[0]{pid}; }

# What cannot be sent because the server has closed the connection shows in the next result.
sub _put
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';

	while (length $bytes && !$self->{closed})
	{
		my $n = syswrite($self->{socket}, $bytes);

		if (defined $n) { substr($bytes, 0, $n) = ''; }
		elsif ($!{EPIPE} || $!{ECONNRESET}) { $self->_read(0) until $self->{closed}; }
		else { croak "cannot send: $!"; }
	}
	return;
}

sub _message
{
	my ($type, $body) = @_;

	return $type . pack('N', length($body) + 4) . $body;
}

# ------------------------------------------------------------------------------------------------
# Sending
# ------------------------------------------------------------------------------------------------

sub send_query
{
	my ($self, $sql) = @_;

	$self->_put(_message('Q', "$sql\0"));
	$self->{pending}++;
	return;
}

# Parse, bind and execute; without sync => 1 the server answers when a later one has it. types: OIDs of
# the parameters, 0 = unspecified. name: of a prepared statement; without sql it exists already.
sub send_execute
{
	my ($self, %call) = @_;
	my @values = @{ $call{values} || [] };
	my @types = @{ $call{types} || [] };
	my $name = $call{name} || '';
	my $out = '';

	$out .= _message('P', "$name\0$call{sql}\0" . pack('n N*', scalar @types, @types)) if defined $call{sql};
	$out .= _message('B',
		"\0$name\0" . pack('n n', 0, scalar @values)
		  . join('', map { defined $_ ? pack('N', length $_) . $_ : pack('N', 0xFFFFFFFF) } @values)
		  . pack('n', 0));
	$out .= _message('E', "\0" . pack('N', 0));
	$out .= _message('S', '') if $call{sync};
	$self->_put($out);
	$self->{pending}++ if $call{sync};
	return;
}

# Parse and describe: what types the parameters have, as the result's params.
sub describe
{
	my ($self, $sql, @types) = @_;

	$self->_put(_message('P', "\0$sql\0" . pack('n N*', scalar @types, @types))
		  . _message('D', "S\0")
		  . _message('S', ''));
	$self->{pending}++;
	return $self->result;
}

# ------------------------------------------------------------------------------------------------
# Receiving
# ------------------------------------------------------------------------------------------------

# Reads what there is; false when nothing came in the time. A closed connection counts as something.
sub _read
{
	my ($self, $seconds) = @_;

	return 1 if $self->{closed};
	return 0 unless IO::Select->new($self->{socket})->can_read($seconds);
	my $n = sysread($self->{socket}, $self->{buffer}, 65536, length $self->{buffer});
	$self->{closed} = 1 unless $n;    # also when it is reset
	return 1;
}

# The next whole message of the buffer: type and body, or nothing.
sub _next
{
	my ($self) = @_;

	return if length($self->{buffer}) < 5;
	my $len = unpack('N', substr($self->{buffer}, 1, 4));
	return if length($self->{buffer}) < $len + 1;
	my $message = substr($self->{buffer}, 0, $len + 1, '');
	return (substr($message, 0, 1), substr($message, 5));
}

# Whether the statement that was sent still runs: nothing has come for it, waiting for so many seconds.
sub busy
{
	my ($self, $seconds) = @_;

	return !length($self->{buffer}) && !$self->_read($seconds || 0);
}

sub _fields
{
	my ($body) = @_;
	my %fields = map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body;

	return \%fields;
}

sub _row
{
	my ($body) = @_;
	my $n = unpack('n', substr($body, 0, 2, ''));
	my @row;

	for (1 .. $n)
	{
		my $len = unpack('N', substr($body, 0, 4, ''));
		push @row, $len == 0xFFFFFFFF ? undef : substr($body, 0, $len, '');
	}
	return \@row;
}

# The result of the oldest statement that was sent and has not been asked for.
sub result
{
	my ($self) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $result = { rows => [], notices => [] };

	croak 'nothing was sent' unless $self->{pending};
	for (;;)
	{
		my ($type, $body) = $self->_next;

		if (!defined $type)
		{
			if ($self->{closed})
			{
				$self->{pending} = 0;
				$result->{error} ||= 'closed';
				$result->{closed} = 1;
				return $result;
			}
			croak 'gave up waiting for the server' if time() > $end;
			$self->_read($end - time() + 1);
			next;
		}
		if ($type eq 'E')
		{
			my $fields = _fields($body);
			($result->{error}, $result->{message}) = @$fields{qw(C M)};
		}
		elsif ($type eq 'D') { push @{ $result->{rows} }, _row($body); }
		elsif ($type eq 'C') { $result->{tag} = substr($body, 0, -1); }
		elsif ($type eq 't') { $result->{params} = [ unpack('x2 N*', $body) ]; }
		elsif ($type eq 'N') { push @{ $result->{notices} }, _fields($body)->{M}; }
		elsif ($type eq 'K') { $self->{pid} = unpack('N', $body); }
		elsif ($type eq 'R') { croak 'the server asks for a password' if unpack('N', $body) != 0; }
		elsif ($type eq 'Z')
		{
			$self->{pending}--;
			$result->{status} = $body;
			return $result;
		}
	}
}

# ------------------------------------------------------------------------------------------------
# Both
# ------------------------------------------------------------------------------------------------

sub query
{
	my ($self, $sql) = @_;

	$self->send_query($sql);
	return $self->result;
}

sub execute
{
	my ($self, $sql, $types, @values) = @_;

	$self->send_execute(sql => $sql, types => $types, values => \@values, sync => 1);
	return $self->result;
}

# The first column of the first row; dies when the statement fails.
sub value
{
	my ($self, $sql) = @_;
	my $result = $self->query($sql);

	croak "$sql: $result->{error} $result->{message}" if $result->{error};
	return $result->{rows}[0] && $result->{rows}[0][0];
}

# Says good-bye, or is simply gone.
sub close
{
	my ($self) = @_;

	eval { $self->_put(_message('X', '')) };
	return $self->abandon;
}

sub abandon
{
	my ($self) = @_;

	CORE::close($self->{socket});
	$self->{closed} = 1;
	return;
}

1;
