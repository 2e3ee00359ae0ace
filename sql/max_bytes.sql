-- max_bytes limits what the queue holds that is not done: pushes over it are refused with 53400, at the call or at COMMIT.
SELECT queue_create('full', '{"max_bytes": 20000, "compression_level": 0}');
SELECT queue_push('full', to_json(repeat('x', 9000))) IS NOT NULL AS pushed FROM generate_series(1, 2);
SELECT live_bytes BETWEEN 18000 AND 20000 AS nearly_full FROM qlog_stat_queues WHERE queue = 'full';
SELECT queue_push('full', to_json(repeat('x', 9000)));
\echo :LAST_ERROR_SQLSTATE
SELECT queue_push('full', to_json(repeat('y', 1000))) IS NOT NULL AS pushed;
BEGIN;
SELECT queue_push('full', to_json(repeat('x', 100))) IS NOT NULL AS pushed;
SELECT queue_push('full', to_json(repeat('x', 9000)), 'other partition') IS NOT NULL AS pushed;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT ready FROM depth WHERE queue = 'full';

-- Joint transactions as well, and their rows are rolled back with them.
CREATE TABLE regress_full (i int);
BEGIN;
INSERT INTO regress_full VALUES (1);
SELECT queue_push('full', to_json(repeat('x', 9000))) IS NOT NULL AS pushed;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM regress_full;
DROP TABLE regress_full;

-- What is done makes room; what is leased, given back or rejected does not.
SELECT lease_id FROM queue_pop('full', 1) \gset
SELECT queue_push('full', to_json(repeat('x', 9000)));
\echo :LAST_ERROR_SQLSTATE
SELECT queue_nack(:lease_id);
SELECT lease_id FROM queue_pop('full', 1) \gset
SELECT queue_reject(:lease_id);
SELECT queue_push('full', to_json(repeat('x', 9000)));
\echo :LAST_ERROR_SQLSTATE
SELECT lease_id FROM queue_pop('full', 1) \gset
SELECT queue_ack(:lease_id);
SELECT queue_push('full', to_json(repeat('x', 9000))) IS NOT NULL AS pushed;

-- A rejected message over the limit still goes to the dead letters.
SELECT queue_set('full', 'max_bytes', '100');
SELECT lease_id FROM queue_pop('full', 1) \gset
SELECT queue_reject(:lease_id);
SELECT left(outcome($$SELECT queue_push('full', '1')$$), 26) AS outcome;
-- Raised in the same transaction.
BEGIN;
SELECT queue_set('full', 'max_bytes', '1 MB');
SELECT queue_push('full', to_json(repeat('x', 9000))) IS NOT NULL AS pushed;
COMMIT;
SELECT queue_reset('full', 'max_bytes');
SELECT queue_push('full', to_json(repeat('x', 100000))) IS NOT NULL AS pushed;

-- Nothing left, nothing counted: also of what was rolled back.
SELECT queue_create('empty', '{"compression_level": 0}');
SELECT count(queue_push('empty', to_json(repeat('x', i * 100)), (i % 7)::text)) FROM generate_series(1, 50) AS i;
BEGIN;
SELECT queue_push('empty', to_json(repeat('x', 100000))) IS NOT NULL AS pushed;
ROLLBACK;
SELECT live_bytes BETWEEN 127500 AND 140000 AS counted FROM qlog_stat_queues WHERE queue = 'empty';
SELECT sum(queue_ack(lease_id)) FROM (SELECT DISTINCT lease_id FROM queue_pop('empty', 20, max_partitions => 3)) AS l;
SELECT live_bytes < 110000 AND live_bytes > 50000 AS fewer FROM qlog_stat_queues WHERE queue = 'empty';
SELECT sum(queue_ack(lease_id)) FROM (SELECT DISTINCT lease_id FROM queue_pop('empty', 100, max_partitions => 10)) AS l;
SELECT ready, live_bytes FROM depth JOIN qlog_stat_queues USING (queue, ready) WHERE queue = 'empty';
SELECT queue_drop('full'), queue_drop('empty');
