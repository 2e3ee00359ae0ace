-- A repeated dedup id stores nothing and answers with the id of the first message.
SELECT queue_push('dd', '1', dedup_id => 'a') AS a \gset
SELECT queue_push('dd', '2', dedup_id => 'a') = :'a' AS same, queue_push('dd', '3'::jsonb, dedup_id => 'a') = :'a' AS same, queue_push('dd', '4'::bytea, dedup_id => 'a') = :'a' AS same;
SELECT queue_push('dd', '5', dedup_id => 'b') <> :'a' AS other;
SELECT payload, dedup_id FROM queue_peek('dd');
SELECT pushed, deduplicated FROM qlog_stat_queues WHERE queue = 'dd';
-- Per partition, per queue; what has been consumed still counts.
SELECT queue_push('dd', '6', 'p', 'a') <> :'a' AS other, queue_push('dd two', '7', dedup_id => 'a') <> :'a' AS other;
SELECT count(*) FROM queue_pop('dd', 10, partition => '', auto_ack => true);
SELECT queue_push('dd', '8', dedup_id => 'a') = :'a' AS same;
SELECT count(*) FROM queue_pop('dd', 10, partition => '');
-- Ids that look alike are not the same; long ones; white space and case count.
SELECT count(DISTINCT queue_push('dd', '1', 'q', d)) FROM unnest(ARRAY['x', 'X', ' x', 'x ', E'x\n', repeat('x', 1024)]) AS d;
SELECT queue_push('dd', '1', 'q', repeat('x', 1024)) IN (SELECT message_id FROM queue_peek('dd', 'q')) AS known;

-- Within one transaction, over savepoints.
BEGIN;
SELECT queue_push('dd', '1', 'tx', 'k') AS k \gset
SELECT queue_push('dd', '2', 'tx', 'k') = :'k' AS same;
SAVEPOINT s;
SELECT queue_push('dd', '3', 'tx', 'k') = :'k' AS same, queue_push('dd', '4', 'tx', 'l') AS l \gset
ROLLBACK TO s;
SELECT queue_push('dd', '5', 'tx', 'l') <> :'l' AS anew;
SAVEPOINT s;
SELECT queue_push('dd', '6', 'tx', 'm') AS m \gset
RELEASE s;
SELECT queue_push('dd', '7', 'tx', 'm') = :'m' AS same;
COMMIT;
SELECT payload FROM queue_peek('dd', 'tx');
-- A rollback forgets it, with tables too.
BEGIN;
SELECT queue_push('dd', '1', 'rb', 'r') AS r \gset
ROLLBACK;
CREATE TABLE dd_rows (i int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED);
INSERT INTO dd_rows VALUES (1);
BEGIN;
INSERT INTO dd_rows VALUES (1);
SELECT queue_push('dd', '2', 'rb', 'r') <> :'r' AS anew;
COMMIT;
SELECT queue_push('dd', '3', 'rb', 'r') <> :'r' AS anew;
SELECT payload FROM queue_peek('dd', 'rb');
-- Nothing but duplicates: the transaction has nothing to log.
BEGIN;
INSERT INTO dd_rows VALUES (2);
SELECT queue_push('dd', '4', 'rb', 'r') = (SELECT message_id FROM queue_peek('dd', 'rb')) AS same;
COMMIT;
SELECT count(*) FROM queue_peek('dd', 'rb');

-- Batches: repeats inside one, nulls, partitions; the ids stand where the messages stood.
SELECT array_agg(id) AS ids FROM queue_push_batch('dd batch', ARRAY['1', '2', '3', '4', '5', '6'], dedup_ids => ARRAY['a', 'b', 'a', NULL, NULL, 'b']) AS id \gset
SELECT i, array_position(:'ids'::uuid[], (:'ids'::uuid[])[i]) AS first FROM generate_series(1, 6) AS i;
SELECT payload, dedup_id FROM queue_peek('dd batch');
SELECT id = (:'ids'::uuid[])[n] AS same FROM queue_push_batch('dd batch', ARRAY['7', '8'], dedup_ids => ARRAY['a', 'b']) WITH ORDINALITY AS p(id, n);
SELECT count(DISTINCT id) FROM queue_push_batch('dd batch', ARRAY['1', '2', '3', '4'], ARRAY['p', 'q', 'p', 'q'], ARRAY['x', 'x', 'x', 'x']) AS id;
SELECT partition, payload FROM queue_peek('dd batch') WHERE partition <> '' ORDER BY partition;
SELECT count(DISTINCT id) FROM queue_push_batch_bytea('dd batch', ARRAY['1', '2']::bytea[], dedup_ids => ARRAY['y', 'y']) AS id;
SELECT count(*), count(DISTINCT id) FROM queue_push_batch('dd many', (SELECT array_agg(i::text) FROM generate_series(1, 5000) AS i), dedup_ids => (SELECT array_agg('d' || i % 2500) FROM generate_series(1, 5000) AS i)) AS id;
SELECT count(*), count(DISTINCT dedup_id), max(payload::text::int) FROM queue_peek('dd many', batch => 10000);

-- The window: 0 turns it off, a short one ends.
SELECT queue_create('dd off', '{"dedup_window": "0 s"}'), queue_create('dd short', '{"dedup_window": "200 ms"}');
SELECT queue_push('dd off', '1', dedup_id => 'a') <> queue_push('dd off', '2', dedup_id => 'a') AS two;
SELECT payload, dedup_id FROM queue_peek('dd off');
SELECT queue_push('dd short', '1', dedup_id => 'a') AS s \gset
SELECT pg_sleep(0.25);
SELECT queue_push('dd short', '2', dedup_id => 'a') AS t \gset
SELECT :'s' <> :'t' AS anew;

-- In queue_transaction a duplicate refuses the whole call.
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "dd off", "payload": "x"}, {"op": "push", "queue": "dd", "payload": "x", "dedup_id": "a"}]')$$);
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "dd", "payload": "x", "dedup_id": "t1"}, {"op": "push", "queue": "dd", "payload": "x", "dedup_id": "t1"}]')$$);
SELECT count(*) FROM queue_peek('dd off');
SELECT jsonb_array_length(queue_transaction('[{"op": "push", "queue": "dd", "payload": "x", "dedup_id": "t1"}, {"op": "push", "queue": "dd two", "payload": "x", "dedup_id": "t1"}]'));
SELECT queue_push('dd', '"y"', dedup_id => 't1') = message_id AS same FROM queue_peek('dd') WHERE dedup_id = 't1';
-- A queue made, dropped and made again by the same name knows nothing.
SELECT queue_push('dd again', '1', dedup_id => 'a') AS u \gset
SELECT queue_drop('dd again');
SELECT queue_push('dd again', '2', dedup_id => 'a') <> :'u' AS anew;
BEGIN;
SELECT queue_create('dd own');
SELECT queue_push('dd own', '1', dedup_id => 'a') = queue_push('dd own', '2', dedup_id => 'a') AS same;
COMMIT;
SELECT payload FROM queue_peek('dd own');
-- Wrong ids.
SELECT outcome($$SELECT queue_push('dd', '1', dedup_id => '')$$);
SELECT outcome($$SELECT queue_push('dd', '1', dedup_id => repeat('x', 1025))$$);
SELECT outcome($$SELECT queue_push_batch('dd', ARRAY['1'], dedup_ids => ARRAY[''])$$);
SELECT outcome($$SELECT queue_push_batch('dd', ARRAY['1'], dedup_ids => ARRAY['a', 'b'])$$);
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "dd", "payload": 1, "dedup_id": 1}]')$$);
SELECT count(queue_drop(queue)) FROM qlog_queues WHERE queue LIKE 'dd%';
DROP TABLE dd_rows;
