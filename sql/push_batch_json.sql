-- Elements of one JSON array, byte for byte, in order.
SELECT count(*) FROM queue_push_batch_json('array', '[1, "a, ]\" \\", {"b" : [1,2 ,{"c": "]"}]},[[]] ,null,true , -1.50e3,""]');
SELECT "position", payload, partition FROM queue_peek('array', batch => 20);
SELECT count(*) FROM queue_push_batch_json('array', E' \n[\t{"x":  1}\r\n,\n 2 ] ', 'p', '{"h": 1}');
SELECT "position", payload, headers FROM queue_peek('array', 'p');
-- The ids come in the order of the input.
WITH pushed AS (SELECT id, n FROM queue_push_batch_json('array 2', (SELECT json_agg(i) FROM generate_series(1, 1000) AS i)) WITH ORDINALITY AS p(id, n))
SELECT count(*), count(DISTINCT id), min(n), max(n) FROM pushed;
SELECT count(*), min(payload::text::int), max(payload::text::int) FROM queue_peek('array 2', batch => 2000);
SELECT count(*) FROM (SELECT payload::text::int AS v, "position" AS p FROM queue_peek('array 2', batch => 2000)) AS q WHERE v <> p + 1;
-- None at all.
SELECT count(*) FROM queue_push_batch_json('array 3', '[]');
SELECT count(*) FROM queue_push_batch_json('array 3', ' [ ] ');
SELECT count(*) FROM queue_peek('array 3');
-- All or none; with the transaction.
BEGIN;
SELECT count(*) FROM queue_push_batch_json('array 3', '[1, 2]');
ROLLBACK;
SELECT count(*) FROM queue_peek('array 3');
-- A caller who stops reading has pushed all the same.
SELECT count(*) FROM (SELECT queue_push_batch_json('array 3', '[1, 2, 3]') LIMIT 1) AS one;
SELECT count(*) FROM queue_peek('array 3');
-- Wrong arguments.
SELECT outcome($$SELECT queue_push_batch_json('array', '{"a": [1]}')$$);
SELECT outcome($$SELECT queue_push_batch_json('array', '"[1]"')$$);
SELECT outcome($$SELECT queue_push_batch_json('array', '[1, 2')$$);
SELECT outcome($$SELECT queue_push_batch_json('array', NULL)$$);
SELECT outcome($$SELECT queue_push_batch_json(NULL, '[1]')$$);
SELECT outcome($$SELECT queue_push_batch_json('', '[1]')$$);
