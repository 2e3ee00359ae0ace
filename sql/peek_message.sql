-- One message by its id: waiting, leased, done; in any partition; alone, in a batch, with other queues around.
SELECT queue_push('one', '{"n": 1}', headers => '{"h": true}') AS a \gset
SELECT queue_push('one', '"bytes"'::bytea, 'p') AS b \gset
SELECT array_agg(id) AS ids FROM queue_push_batch('one', (SELECT array_agg(i::text) FROM generate_series(1, 3000) AS i), (SELECT array_agg(('p' || i % 3)) FROM generate_series(1, 3000) AS i)) AS id \gset
SELECT queue_push('two', '"other"') AS c \gset
SELECT message_id = :'a' AS same, partition, "position", attempt, payload, payload_bytes, headers, dedup_id, pushed_at <= now() + '1 s' AS at FROM queue_peek_message('one', :'a');
SELECT message_id = :'b' AS same, partition, "position", attempt, payload, payload_bytes, headers FROM queue_peek_message('one', :'b');
SELECT i, partition, "position", payload, message_id = (:'ids'::uuid[])[i] AS same FROM unnest(ARRAY[1, 2, 1500, 2999, 3000]) AS i, queue_peek_message('one', (:'ids'::uuid[])[i]);
SELECT lease_id FROM queue_pop('one', 1, partition => '') \gset
SELECT attempt FROM queue_peek_message('one', :'a');
SELECT queue_ack(:lease_id);
SELECT attempt, payload FROM queue_peek_message('one', :'a');
-- Of another queue, of nobody, older than everything.
SELECT count(*) FROM queue_peek_message('one', :'c');
SELECT count(*) FROM queue_peek_message('one', gen_random_uuid());
SELECT count(*) FROM queue_peek_message('one', '00000000-0000-7000-8000-000000000000');
SELECT count(*) FROM queue_peek_message('one', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
-- Not before COMMIT, never after a rollback.
BEGIN;
SELECT queue_push('two', '"mine"') AS d \gset
SELECT count(*) FROM queue_peek_message('two', :'d');
COMMIT;
SELECT payload FROM queue_peek_message('two', :'d');
BEGIN;
SELECT queue_push('two', '"never"') AS e \gset
ROLLBACK;
SELECT count(*) FROM queue_peek_message('two', :'e');
-- A queue that this transaction makes has none yet.
BEGIN;
SELECT queue_create('own');
SELECT count(*) FROM queue_peek_message('own', :'a');
ROLLBACK;
-- Delayed: not before COMMIT, then with the partition that it will enter; once, wherever it is; not when it was cancelled.
BEGIN;
SELECT queue_push('two', '"later"', 'p', 'order 1', '{"h": 2}', clock_timestamp() + '1 h') AS f \gset
SELECT count(*) FROM queue_peek_message('two', :'f');
COMMIT;
SELECT message_id = :'f' AS same, partition, "position", attempt, payload, headers, dedup_id, pushed_at <= now() + '1 s' AS at FROM queue_peek_message('two', :'f');
SELECT count(*) FROM queue_peek_message('one', :'f');
SELECT queue_cancel('two', :'f');
SELECT count(*) FROM queue_peek_message('two', :'f');
BEGIN;
SELECT queue_push('two', '"never"', deliver_at => clock_timestamp() + '1 h') AS g \gset
ROLLBACK;
SELECT count(*) FROM queue_peek_message('two', :'g');
SELECT queue_push('two', '"soon"', 'soon', deliver_at => clock_timestamp() + '100 ms') AS h \gset
SELECT array_agg(payload::text) FROM queue_peek_message('two', :'h');
DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM queue_peek('two', 'soon')) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT message_id = :'h' AS same, partition, "position", attempt, payload FROM queue_peek_message('two', :'h');
-- In a read-only transaction.
BEGIN READ ONLY;
SELECT payload FROM queue_peek_message('two', :'c');
COMMIT;
-- Wrong arguments.
SELECT outcome($$SELECT queue_peek_message(NULL, gen_random_uuid())$$);
SELECT outcome($$SELECT queue_peek_message('one', NULL)$$);
SELECT outcome($$SELECT queue_peek_message('no such queue', gen_random_uuid())$$);
SELECT queue_drop('one'), queue_drop('two');
