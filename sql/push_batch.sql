-- Many messages in one call: ids in input order.
SELECT count(*), count(DISTINCT id) AS ids FROM queue_push_batch('batch', ARRAY['1', '{"a" : 2}', 'null']) AS id;
SELECT "position", payload FROM queue_peek('batch');
CREATE TEMP TABLE ids AS SELECT n - 1 AS n, id
FROM queue_push_batch('batch order', (SELECT array_agg(i::text ORDER BY i) FROM generate_series(0, 999) AS i)) WITH ORDINALITY AS p(id, n);
SELECT count(*) AS same FROM ids JOIN queue_peek('batch order', batch => 10000) ON "position" = n AND message_id = id;
SELECT count(*) FROM queue_peek('batch order', batch => 10000);
SELECT count(*) AS in_order FROM queue_peek('batch order', batch => 10000) WHERE payload::text = "position"::text;

SELECT id AS id1 FROM queue_push_batch('batch ids', ARRAY['1']) AS id \gset
SELECT message_id = :'id1' AS same FROM queue_peek('batch ids');

-- Partitions and headers, element by element; NULL is the default partition, no headers.
SELECT count(*) FROM queue_push_batch('batch lanes', ARRAY['1', '2', '3', '4', '5', '6'],
	partitions => ARRAY['a', 'b', NULL, 'a', '', 'b'], headers => ARRAY['{"h": 1}', NULL, '2', NULL, NULL, NULL]);
SELECT partition, "position", payload, headers FROM queue_peek('batch lanes') ORDER BY partition, "position";

-- Bytes.
SELECT count(*) FROM queue_push_batch_bytea('batch bytes', ARRAY['\x00', '', '\xdeadbeef']::bytea[], ARRAY[NULL, 'p', 'p']);
SELECT partition, "position", payload, payload_bytes FROM queue_peek('batch bytes');

-- An empty array, a NULL one, NULL elements, other lengths and shapes.
SELECT count(*) FROM queue_push_batch('batch empty', '{}');
SELECT count(*) FROM qlog_queues WHERE queue = 'batch empty';
SELECT outcome($$SELECT queue_push_batch('batch', NULL)$$);
SELECT outcome($$SELECT queue_push_batch(NULL, ARRAY['1'])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1', NULL])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1', '{'])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1', '2'], ARRAY['a'])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1', '2'], headers => ARRAY['{}'])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1', '2'], headers => ARRAY['{}', '{'])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1'], dedup_ids => ARRAY['a', 'b'])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1'], partitions => '{}')$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY[['1'], ['2']])$$);
SELECT outcome($$SELECT queue_push_batch('batch', ARRAY['1'], dedup_ids => ARRAY[NULL]::text[])$$);
-- Nothing of a refused batch is there.
SELECT count(*) FROM queue_peek('batch', batch => 100);

-- All of it is pushed whatever the caller reads of the ids.
SELECT count(*) FROM (SELECT queue_push_batch('batch part', ARRAY['1', '2', '3']) LIMIT 1) AS t;
SELECT count(*) FROM queue_peek('batch part');

-- Large batches cross record and file boundaries in order.
SELECT count(*) FROM queue_push_batch('batch large', (SELECT array_agg(to_json(i || repeat('.', 1000))::text ORDER BY i) FROM generate_series(0, 4999) AS i));
SELECT count(*) AS in_order FROM queue_peek('batch large', batch => 10000) WHERE payload::text = to_json("position" || repeat('.', 1000))::text;
SELECT count(*) AS popped, min("position"), max("position") FROM queue_pop('batch large', 5000);
SELECT queue_drop('batch large');
