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
