-- queue_rename: messages, leases and partitions stay; the old name is free.
SELECT queue_create('rename a', '{"lease": "5 min"}');
SELECT queue_push('rename a', '1') IS NOT NULL AS pushed;
SELECT queue_push('rename a', '2', 'p') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('rename a', partition => '') \gset
SELECT queue_rename('rename a', 'rename b');
SELECT queue, options, partitions FROM qlog_queues WHERE queue LIKE 'rename %';
SELECT partition, payload, attempt FROM queue_peek('rename b');
SELECT queue, messages FROM qlog_leases WHERE queue LIKE 'rename %';
SELECT queue_ack(:lease_id);
SELECT outcome($$SELECT queue_peek('rename a')$$);
SELECT queue_push('rename b', '3', 'p') IS NOT NULL AS pushed;
SELECT "position", payload FROM queue_pop('rename b', 10);
SELECT queue_create('rename a');
SELECT outcome($$SELECT queue_rename('rename b', 'rename a')$$);
SELECT outcome($$SELECT queue_rename('rename b', 'rename b')$$);
SELECT outcome($$SELECT queue_rename('rename c', 'rename d')$$);
SELECT outcome($$SELECT queue_rename('rename b', '')$$);
SELECT outcome($$SELECT queue_rename('rename b', 'qlog.x')$$);
SELECT outcome(format('SELECT queue_rename(%L, %L)', 'rename b', repeat('x', 256)));
SELECT outcome($$SELECT queue_rename(NULL, 'x')$$);
SELECT outcome($$SELECT queue_rename('rename b', NULL)$$);

-- Two queues exchange their names in one transaction; what is staged follows the queue, not the name.
SELECT queue_push('rename a', '"a"') IS NOT NULL AS pushed;
BEGIN;
SELECT queue_push('rename a', '"a2"') IS NOT NULL AS pushed;
SELECT queue_rename('rename a', 'rename x');
SELECT queue_rename('rename b', 'rename a');
SELECT queue_rename('rename x', 'rename b');
SELECT queue_push('rename a', '"b2"', 'p') IS NOT NULL AS pushed;
SELECT queue, partitions FROM qlog_queues WHERE queue LIKE 'rename %' ORDER BY queue;
COMMIT;
SELECT queue, partitions FROM qlog_queues WHERE queue LIKE 'rename %' ORDER BY queue;
SELECT payload FROM queue_peek('rename b');
SELECT payload FROM queue_peek('rename a', 'p', 2);

-- Rolled back, in part and as a whole; a name that the transaction has given up can be taken in it.
BEGIN;
SELECT queue_rename('rename a', 'rename y');
SAVEPOINT s;
SELECT queue_rename('rename y', 'rename z'), queue_create('rename y');
SELECT outcome($$SELECT queue_peek('rename a')$$);
ROLLBACK TO s;
SELECT queue FROM qlog_queues WHERE queue LIKE 'rename %' ORDER BY queue;
ROLLBACK;
SELECT queue FROM qlog_queues WHERE queue LIKE 'rename %' ORDER BY queue;
BEGIN;
SELECT queue_rename('rename a', 'rename y'), queue_drop('rename b'), queue_rename('rename y', 'rename b'), queue_create('rename a');
COMMIT;
SELECT queue, partitions FROM qlog_queues WHERE queue LIKE 'rename %' ORDER BY queue;
-- A queue that the transaction has made.
BEGIN;
SELECT queue_create('rename n', '{"ordered": true}');
SELECT queue_push('rename n', '1', 'p') IS NOT NULL AS pushed;
SELECT queue_rename('rename n', 'rename m');
SELECT queue_push('rename m', '2', 'p') IS NOT NULL AS pushed;
SELECT outcome($$SELECT queue_drop('rename n')$$);
COMMIT;
SELECT options FROM qlog_queues WHERE queue = 'rename m';
SELECT payload FROM queue_peek('rename m');
SELECT count(queue_drop(queue)) FROM unnest(ARRAY['rename a', 'rename b', 'rename m']) AS queue;
