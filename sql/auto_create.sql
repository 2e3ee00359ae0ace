-- A push makes the queue and the partition that it names, at once: they stay when it is rolled back.
BEGIN;
SELECT queue_push('auto', '1', 'lane') IS NOT NULL AS pushed;
ROLLBACK;
SELECT queue, partitions, options FROM qlog_queues WHERE queue = 'auto';
SELECT count(*) FROM queue_peek('auto');
SELECT queue_push('auto', '2', 'lane') IS NOT NULL AS pushed;
SELECT partition, "position", payload FROM queue_peek('auto');

SET qlog.auto_create = off;
SELECT outcome($$SELECT queue_push('auto off', '1')$$);
SELECT outcome($$SELECT queue_push_batch('auto off', ARRAY['1'])$$);
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "auto off", "payload": 1}]')$$);
-- Partitions are not meant by the setting.
SELECT outcome($$SELECT queue_push('auto', '3', 'another')$$);
RESET qlog.auto_create;

-- Only a push makes a queue.
SELECT outcome($$SELECT queue_pop('auto off')$$);
SELECT outcome($$SELECT queue_peek('auto off')$$);
SELECT outcome($$SELECT queue_drop('auto off')$$);
SELECT count(*) FROM qlog_queues WHERE queue = 'auto off';

-- In a transaction with table changes too.
CREATE TABLE auto_rows (i int);
BEGIN;
INSERT INTO auto_rows VALUES (1);
SELECT queue_push('auto joint', '1', 'lane') IS NOT NULL AS pushed;
ROLLBACK;
SELECT queue, partitions FROM qlog_queues WHERE queue = 'auto joint';
BEGIN;
INSERT INTO auto_rows VALUES (2);
SELECT queue_push('auto joint', '2', 'lane') IS NOT NULL AS pushed;
COMMIT;
SELECT i, payload, "position" FROM auto_rows, queue_peek('auto joint');
DROP TABLE auto_rows;
