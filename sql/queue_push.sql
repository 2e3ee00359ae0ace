-- Four payload types. text and json are stored byte for byte, jsonb as it prints, bytea as it is.
SELECT queue_push('push', '{"b" :  1,"a":[ 1 ,2]}') IS NOT NULL AS literal;
SELECT queue_push('push', '{"b" :  2}'::text) IS NOT NULL AS text;
SELECT queue_push('push', '{"b" :  3, "b": 3}'::json) IS NOT NULL AS json;
SELECT queue_push('push', '{"b" :  4, "b": 4}'::jsonb) IS NOT NULL AS jsonb;
SELECT queue_push('push', '\x00ff'::bytea) IS NOT NULL AS bytea;
PREPARE push AS SELECT queue_push('push', $1) IS NOT NULL AS untyped;
EXECUTE push('{"b" :  5}');
SELECT queue_push('push', payload => '"named"', headers => '{"trace" :  1}') IS NOT NULL AS named;
SELECT queue_push('push', ''::bytea) IS NOT NULL AS empty;
SELECT "position", payload, payload_bytes, headers, dedup_id, octet_length(payload::text) AS bytes FROM queue_peek('push');

-- Ids are UUIDs of version 7, ascending, and come back with the message.
SELECT queue_push('push id', '1') AS first \gset
SELECT queue_push('push id', '2') AS second \gset
SELECT :'first'::uuid < :'second'::uuid AS ascending, substr(:'first', 15, 1) AS version, substr(:'first', 20, 1) IN ('8', '9', 'a', 'b') AS variant;
SELECT message_id = :'first' AS first FROM queue_peek('push id', batch => 1);
SELECT now() - to_timestamp(('x' || translate(left(:'first', 13), '-', ''))::bit(48)::bigint / 1000.0) < '1 min' AS recent;

-- What is not JSON is refused with the same error as a cast to json.
SELECT outcome(format('SELECT queue_push(%L, %L)', 'push', j)) AS push, outcome(format('SELECT %L::json', j)) = outcome(format('SELECT queue_push(%L, %L)', 'push', j)) AS same
FROM unnest(ARRAY['', '{', '{"a":}', 'nul', '"\u12"', '1 2', E'"\t"']) AS j;
SELECT outcome($$SELECT queue_push('push', '"\u0000"')$$) = outcome($$SELECT '"\u0000"'::json$$) AS same;
SELECT outcome($$SELECT queue_push('push', '1', headers => '{')$$);
-- \u0000 and halves of surrogate pairs are JSON text for a cast to json, so they are stored as they are, and nothing that reads them fails;
-- jsonb refuses them in its own cast. Everywhere a payload or headers can come from.
SELECT j, left(outcome(format('SELECT queue_push(%L, %L)', 'push odd', j)), 5) AS push, outcome(format('SELECT %L::json', j)) = outcome(format('SELECT queue_push(%L, %L)', 'push odd', j)) AS same,
	split_part(outcome(format('SELECT queue_push(%L, %L::jsonb)', 'push odd jsonb', j)), ' ', 1) AS jsonb
FROM unnest(ARRAY['"\u0000"', '{"\u0000": 1}', '["a", "\ud800"]', '"\udc00\ud800"', '"\u12"', '"\x"', E'"\x01"', '[1,]', '{"a": 1,}', '01', '+1', '.5', '1.', 'NaN', '''1''', '{a: 1}', '[1] x', '/**/ 1', U&'\FEFF1', U&'\00A01']) AS j;
SELECT payload, outcome(format('SELECT queue_push(%L, %L, headers => %L)', 'push odd 2', payload, payload)) AS push,
	(SELECT count(*) FROM queue_push_batch('push odd 2', ARRAY[payload::text], headers => ARRAY[payload::text])) AS batch, (SELECT count(*) FROM queue_push_batch_json('push odd 2', json_build_array(payload), headers => payload)) AS array
FROM queue_peek('push odd', batch => 100);
SELECT payload, headers, count(*) FROM (SELECT payload::text, headers::text FROM queue_pop('push odd 2', 100, auto_ack => true)) AS p GROUP BY 1, 2 ORDER BY p.payload COLLATE "C";
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "push odd", "payload": "\u0000"}]')$$);
SELECT count(*) FROM qlog_queues WHERE queue = 'push odd jsonb';
-- What is no UTF-8 cannot be text; as bytes it is stored as it is.
SELECT outcome($$SELECT queue_push('push odd', E'"\xff"')$$);
SELECT outcome($$SELECT queue_push('push odd', convert_from('\x22c08022', 'UTF8'))$$);
SELECT outcome($$SELECT queue_push('push odd', '1', dedup_id => E'\xed\xa0\x80')$$);
SELECT count(queue_push('push bytes', b)) FROM unnest(ARRAY['', '\x00', '\xff', '\xc080', '\xeda080', '\xf4908080']::bytea[]) AS b;
SELECT payload, payload_bytes FROM queue_pop('push bytes', 10, auto_ack => true);

-- Deeper nesting than the first look follows: PostgreSQL's parser has the last word.
SELECT outcome(format('SELECT queue_push(%L, %L)', 'push deep', j)) AS push, outcome(format('SELECT %L::json', j)) = outcome(format('SELECT queue_push(%L, %L)', 'push deep', j)) AS same
FROM unnest(ARRAY[repeat('[', 1000) || repeat(']', 999), repeat('{"a":', 1000) || '1' || repeat('}', 1000), repeat('[', 1000) || repeat(']', 1000)]) AS j;
SELECT count(*), count(DISTINCT payload::text) AS texts FROM queue_peek('push deep', batch => 10);

-- All of JSON's kinds, and a text of any shape, come back as they went in.
SELECT count(queue_push('push kinds', j)) FROM unnest(ARRAY['null', 'true', '0', '-1.5e3', '""', '[]', '{}', ' 1 ', '"ä€🐘"', '"\ud83d\ude00"']) AS j;
SELECT array_agg(payload::text ORDER BY "position") FROM queue_peek('push kinds', batch => 20);

-- Long payloads, and ones that do not compress.
SELECT queue_push('push long', to_json(repeat('x', 1000000))) IS NOT NULL AS pushed;
SELECT queue_push('push long', (SELECT string_agg(sha512(i::text::bytea), '' ORDER BY i) FROM generate_series(1, 10000) AS i)) IS NOT NULL AS pushed;
SELECT length(payload::text), md5(payload::text) = md5(to_json(repeat('x', 1000000))::text) AS same, length(payload_bytes),
       md5(payload_bytes) = md5((SELECT string_agg(sha512(i::text::bytea), '' ORDER BY i) FROM generate_series(1, 10000) AS i)) AS same
FROM queue_peek('push long');

-- Out of a compressed and out-of-line column, and in a statement over many rows, in their order.
CREATE TABLE toasted AS SELECT i, json_build_object('i', i, 'filler', repeat(i::text, 10000)) AS j FROM generate_series(1, 20) AS i;
SELECT count(queue_push('push rows', j)) FROM (SELECT j FROM toasted ORDER BY i) AS t;
SELECT bool_and(p.payload::text = t.j::text AND p."position" = t.i - 1) AS same, count(*) FROM queue_peek('push rows', batch => 100) AS p JOIN toasted t ON t.i = p."position" + 1;
DROP TABLE toasted;
