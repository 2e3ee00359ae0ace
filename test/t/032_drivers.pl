# What drivers send: parameters without a type, with the types that each driver gives them, literals, NULLs, pipelines.
# Every call finds its function, and stores what was meant.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use QlogNode;
use QlogWire;
use Test::More;

my $node = QlogNode->started('main');
my $c = QlogWire->to($node);

# Type OIDs.
my %oid = (none => 0, bool => 16, bytea => 17, int8 => 20, int2 => 21, int4 => 23, text => 25, json => 114,
	unknown => 705, 'text[]' => 1009, 'varchar[]' => 1015, bpchar => 1042, varchar => 1043, timestamptz => 1184,
	interval => 1186, uuid => 2950, 'uuid[]' => 2951, jsonb => 3802, 'json[]' => 199, 'bytea[]' => 1001);

sub types
{
	return [ map { $oid{$_} } @_ ];
}

sub ok_result
{
	my ($result, $what) = @_;

	return is($result->{error} ? "$result->{error} $result->{message}" : 'ok', 'ok', $what);
}

# The next message of the queue, acknowledged.
sub next_message
{
	my $result = $c->query("select payload, payload_bytes, partition, headers, lease_id from queue_pop('q')");
	my ($payload, $bytes, $partition, $headers, $lease) = @{ $result->{rows}[0] || [] };

	$c->query("select queue_ack($lease)") if defined $lease;
	return defined $payload ? $payload : $bytes;
}

# ------------------------------------------------------------------------------------------------
# Overloads of queue_push
# ------------------------------------------------------------------------------------------------

my $doc = '{"a":  1, "b": [1, 2]}';
my $printed = '{"a": 1, "b": [1, 2]}';

foreach my $case (
	# name of the queue, payload, what is stored
	[ 'none', 'none', $doc, $doc ],              # node-postgres, psycopg str, libpq without types
	[ 'unknown', 'unknown', $doc, $doc ],        # psycopg's older kind
	[ 'text', 'text', $doc, $doc ],
	[ 'varchar', 'varchar', $doc, $doc ],        # JDBC setString
	[ 'varchar', 'none', $doc, $doc ],           # JDBC, stringtype = unspecified for the payload
	[ 'none', 'json', $doc, $doc ],              # psycopg Json, JDBC PGobject
	[ 'varchar', 'json', $doc, $doc ],
	[ 'none', 'jsonb', $doc, $printed ],
	[ 'varchar', 'jsonb', $doc, $printed ],
	[ 'none', 'bytea', '\x00ff41', '\x00ff41' ], # psycopg bytes, JDBC setBytes
	[ 'varchar', 'bytea', '\x', '\x' ],
	[ 'bpchar', 'bpchar', $doc, $doc ])
{
	my ($queue_type, $type, $payload, $stored) = @$case;

	foreach my $sql ('select queue_push($1, $2)', 'select queue_push(queue => $1, payload => $2)',
		'select * from queue_push($1, $2)')
	{
		ok_result($c->execute($sql, types($queue_type, $type), 'q', $payload), "$sql with $queue_type, $type");
		is(next_message(), $stored, "$sql with $queue_type, $type: what is stored");
	}
}

# A driver that asks for the types gets the one of the untyped call.
is_deeply($c->describe('select queue_push($1, $2, $3, $4, $5, $6)')->{params},
	types(qw(text text text text json timestamptz)), 'queue_push: types of untyped parameters');
is_deeply($c->describe('select queue_push_batch($1, $2, $3)')->{params}, types('text', 'text[]', 'text[]'),
	'queue_push_batch: types of untyped parameters');
is_deeply($c->describe('select * from queue_pop($1, $2, $3, $4, $5, $6, $7, $8, $9)')->{params},
	types(qw(text int4 text text interval interval bool int4 int8)), 'queue_pop: types of untyped parameters');
is_deeply($c->describe('select queue_ack($1, $2), queue_nack($1, $2, $3, $4), queue_renew($1, $3)')->{params},
	types('int8', 'uuid[]', 'interval', 'text'), 'answers: types of untyped parameters');
is_deeply($c->describe('call queue_wait($1, $2, $3)')->{params}, types(qw(text interval text)),
	'queue_wait: types of untyped parameters');

# Optional parameters: NULL of any type, and values as drivers type them.
foreach my $set ([qw(none none none none none none)], [qw(varchar varchar varchar varchar json timestamptz)],
	[qw(text jsonb text text json timestamptz)], [qw(none bytea none none none none)],
	[qw(varchar json varchar varchar none none)])
{
	my $payload = $set->[1] eq 'bytea' ? '\x01' : '1';
	my $what = join(', ', @$set);

	ok_result($c->execute('select queue_push($1, $2, $3, $4, $5, $6)', types(@$set), 'q', $payload, undef, undef, undef, undef),
		"NULLs: $what");
	is(next_message(), $payload, "NULLs: $what: what is stored");
	ok_result($c->execute('select queue_push($1, $2, partition => $3, headers => $4)', types(@$set[ 0, 1, 2, 4 ]), 'q', $payload, 'p', '{"h": 1}'),
		"partition and headers: $what");
	my $row = $c->query("select payload, payload_bytes, partition, headers, queue_ack(lease_id) from queue_pop('q')")->{rows}[0];
	is_deeply([ defined $row->[0] ? $row->[0] : $row->[1], @$row[ 2, 3, 4 ] ], [ $payload, 'p', '{"h": 1}', '1' ],
		"partition and headers: $what: what is stored");
}

# A NULL payload is an error whatever its type, and changes nothing.
foreach my $type (qw(none unknown text varchar json jsonb bytea))
{
	is($c->execute('select queue_push($1, $2)', types('none', $type), 'q', undef)->{error}, '22004', "NULL payload, $type");
}
is(next_message(), undef, 'nothing was stored');

# Literals, casts and expressions, in the simple protocol; PREPARE without types.
foreach my $case (
	[ q{'{"a":  1}'},             '{"a":  1}' ],
	[ q{'{"a":  1}'::text},       '{"a":  1}' ],
	[ q{'{"a":  1}'::varchar},    '{"a":  1}' ],
	[ q{'{"a":  1}'::json},       '{"a":  1}' ],
	[ q{'{"a":  1}'::jsonb},      '{"a": 1}' ],
	[ q{'\x41'::bytea},           '\x41' ],
	[ q{to_json(1)},              '1' ],
	[ q{to_jsonb('x'::text)},     '"x"' ],
	[ q{json_build_object('a', 1)}, '{"a" : 1}' ],
	[ q{row_to_json(x)},          '{"a":1}' ],
	[ q{'1' || '2'},              '12' ],
	[ q{current_setting('server_version_num')}, $c->value('show server_version_num') ],
	[ q{convert_to('A', 'UTF8')}, '\x41' ])
{
	my ($expression, $stored) = @$case;

	ok_result($c->query("select queue_push('q', $expression) from (select 1 as a) as x"), "literal $expression");
	is(next_message(), $stored, "literal $expression: what is stored");
}
ok_result($c->query('prepare untyped as select queue_push($1, $2)'), 'PREPARE without types');
ok_result($c->query(q{execute untyped('q', '{"p":  1}')}), 'EXECUTE');
is(next_message(), '{"p":  1}', 'PREPARE without types: what is stored');
is($c->query("select queue_push('q', 1)")->{error}, '42883', 'a number is no payload');
is($c->query("select queue_push('q', 'no json')")->{error}, '22P02', 'text that is not JSON');

# Bytes that are no UTF-8 never become text, payload or name; as bytea they are a message.
foreach my $bytes ("\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"a\0b\"")
{
	my $hex = unpack('H*', $bytes);

	is($c->execute('select queue_push($1, $2)', types('none', $_), 'q', $bytes)->{error}, '22021', "$hex as $_")
	  foreach qw(none text varchar json);
	is($c->execute('select queue_push($1, $2)', types('none', 'none'), $bytes, '1')->{error}, '22021', "$hex as a name");
	ok_result($c->execute('select queue_push($1, $2)', types('none', 'bytea'), 'q', "\\x$hex"), "$hex as bytea");
	is(next_message(), "\\x$hex", "$hex as bytea: what is stored");
}
is(next_message(), undef, 'nothing else was stored');

# ------------------------------------------------------------------------------------------------
# Batches
# ------------------------------------------------------------------------------------------------

foreach my $case ([ 'queue_push_batch', 'none', '{1,2}' ], [ 'queue_push_batch', 'text[]', '{1,2}' ],
	[ 'queue_push_batch', 'varchar[]', '{1,2}' ], [ 'queue_push_batch_bytea', 'none', '{"\\\\x01","\\\\x02"}' ],
	[ 'queue_push_batch_bytea', 'bytea[]', '{"\\\\x01","\\\\x02"}' ], [ 'queue_push_batch_json', 'none', '[1, 2]' ],
	[ 'queue_push_batch_json', 'json', '[1, 2]' ])
{
	my ($function, $type, $values) = @$case;
	my $result = $c->execute("select $function(\$1, \$2)", types('none', $type), 'q', $values);

	ok_result($result, "$function, $type");
	is(scalar @{ $result->{rows} }, 2, "$function, $type: two ids");
	like(next_message(), qr/^(\\x0)?1$/, "$function, $type: the first one");
	like(next_message(), qr/^(\\x0)?2$/, "$function, $type: the second one");
}

# ------------------------------------------------------------------------------------------------
# Pop and its answers
# ------------------------------------------------------------------------------------------------

foreach my $set ([qw(none none none none)], [qw(varchar int4 interval bool)], [qw(text int2 none none)])
{
	my $what = join(', ', @$set);

	$c->query("select queue_push_batch('q', '{1,2,3}')");
	my $result = $c->execute('select lease_id, array_agg(message_id) from queue_pop($1, $2, lease => $3, auto_ack => $4) group by 1',
		types(@$set), 'q', '3', '1 minute', 'f');
	ok_result($result, "queue_pop: $what");
	my ($lease, $ids) = @{ $result->{rows}[0] };
	my ($one, $two) = $ids =~ /([0-9a-f-]{36})/g;

	is($c->execute('select queue_ack($1, $2)', types('int8', 'uuid[]'), $lease, "{$one}")->{rows}[0][0], '1', "queue_ack, typed: $what");
	is($c->execute('select queue_ack($1, $2)', types('none', 'none'), $lease, "{$two}")->{rows}[0][0], '1', "queue_ack, untyped: $what");
	ok_result($c->execute('select queue_renew($1, $2)', types('none', $set->[2]), $lease, '2 minutes'), "queue_renew: $what");
	is($c->execute('select queue_nack($1, null, $2, $3)', types('int8', $set->[2], $set->[0]), $lease, '0', 'why')->{rows}[0][0], '1', "queue_nack: $what");
	is(next_message(), '3', "queue_nack: $what: the message is back");
}
ok_result($c->execute('call queue_wait($1, $2)', types(@$_), 'q', '10 ms'), "queue_wait: @$_")
  foreach [qw(none none)], [qw(varchar interval)], [qw(text none)];

# ------------------------------------------------------------------------------------------------
# Several statements in one round trip
# ------------------------------------------------------------------------------------------------

# Wait, then pop: the wait is a transaction of its own, and gives nothing of the rest away.
{
	my $other = QlogWire->to($node);

	$c->send_execute(sql => 'call queue_wait($1, $2)', values => [ 'q', '1 h' ]);
	$c->send_execute(sql => 'select payload, queue_ack(lease_id) from queue_pop($1)', values => ['q'], sync => 1);
	$node->poll_sql("select waiting = 1 from qlog_stat_queues where queue = 'q'");
	$other->query("select queue_push('q', '7')");
	my $result = $c->result;
	ok_result($result, 'a wait and a pop in one round trip');
	is_deeply($result->{rows}, [ [ '7', '1' ] ], 'a wait and a pop in one round trip: the message');

	# After a push in the same round trip there is something to commit.
	$c->send_execute(sql => 'select queue_push($1, $2)', values => [ 'q', '8' ]);
	$c->send_execute(sql => 'call queue_wait($1, $2)', values => [ 'q', '1 h' ], sync => 1);
	is($c->result->{error}, '25001', 'a wait behind a push in one round trip');
	is(next_message(), undef, 'nothing of it is committed');
	$other->close;
}

# Pushes and a pop: one transaction; one that fails takes all of them.
$c->send_execute(sql => 'select queue_push($1, $2)', values => [ 'q', $_ ]) foreach 1 .. 3;
$c->send_execute(sql => 'select queue_push($1, $2)', values => [ 'q', 'no json' ], sync => 1);
is($c->result->{error}, '22P02', 'the last statement of a round trip fails');
is(next_message(), undef, 'none of them is committed');
$c->send_execute(sql => 'select queue_push($1, $2)', values => [ 'q', $_ ]) foreach 1 .. 3;
$c->send_execute(sql => 'select queue_push($1, $2)', values => [ 'q', '4' ], sync => 1);
ok_result($c->result, 'four pushes in one round trip');
is(join(',', map { next_message() } 1 .. 4), '1,2,3,4', 'all of them are there');

# A named statement, used many times.
$c->send_execute(name => 'take', sql => 'select payload, queue_ack(lease_id) from queue_pop($1, $2)', values => [ 'q', '2' ], sync => 1);
ok_result($c->result, 'a named statement');
foreach my $i (1 .. 8)
{
	$c->query("select queue_push('q', '$i')");
	$c->send_execute(name => 'take', values => [ 'q', '2' ], sync => 1);
	is_deeply($c->result->{rows}, [ [ $i, '1' ] ], "a named statement, use $i");
}
is($c->value("select ready || ' ' || leased from qlog_stat_queues where queue = 'q'"), '0 0', 'nothing is left');
$node->stop;

done_testing();
