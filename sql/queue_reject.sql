-- queue_reject sends messages to the dead letters, at COMMIT.
SELECT count(*) FROM queue_push_batch('reject', ARRAY['1', '2', '3', '4'], headers => ARRAY['{"h": 1}', NULL, NULL, NULL]);
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('reject', 4) GROUP BY lease_id \gset
BEGIN;
SELECT queue_reject(:lease_id, reason => 'undone');
ROLLBACK;
SELECT ready, leased, dead, acked FROM depth WHERE queue = 'reject';
SELECT queue_reject(:lease_id, (:'ids'::uuid[])[1:2], 'no such customer');
SELECT ready, leased, dead, acked FROM depth WHERE queue = 'reject';
SELECT queue_reject(:lease_id, (:'ids'::uuid[])[1:2]);
BEGIN;
SELECT queue_ack(:lease_id, (:'ids'::uuid[])[3:3]);
SELECT queue_reject(:lease_id);
SELECT queue_ack(:lease_id), queue_reject(:lease_id);
COMMIT;
SELECT ready, leased, dead, acked FROM depth WHERE queue = 'reject';
SELECT queue_reject(:lease_id), queue_reject(0);

-- A dead letter is neither popped nor shown among the messages of the queue.
SELECT count(*) FROM queue_pop('reject', 10);
SELECT count(*) FROM queue_peek('reject', batch => 100);
SELECT outcome(format('SELECT queue_reject(%s, reason => %L)', :lease_id, repeat('x', 1025)));

-- An ordered lane goes on behind it.
SELECT count(*) FROM queue_push_batch('reject lane', ARRAY['1', '2', '3'], array_fill('lane'::text, ARRAY[3]));
SELECT lease_id FROM queue_pop('reject lane') \gset
SELECT queue_reject(:lease_id);
SELECT "position", attempt, payload FROM queue_pop('reject lane', 10);
SELECT ready, leased, dead FROM depth WHERE queue = 'reject lane';

-- In a transaction with a table, and pushes beside it.
CREATE TABLE rejected (i int);
SELECT count(*) FROM queue_push_batch('reject joint', ARRAY['1', '2']);
BEGIN;
SELECT lease_id FROM queue_pop('reject joint', 2) LIMIT 1 \gset
INSERT INTO rejected VALUES (1);
SELECT queue_reject(:lease_id);
SELECT queue_push('reject joint', '3') IS NOT NULL AS pushed;
COMMIT;
SELECT ready, leased, dead FROM depth WHERE queue = 'reject joint';
DROP TABLE rejected;
