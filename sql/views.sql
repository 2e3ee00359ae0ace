-- The columns of the views, and what they count.
SELECT c.relname AS view, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
WHERE c.relkind = 'v' GROUP BY c.relname ORDER BY c.relname COLLATE "C" \gx
SELECT count(*) FROM queue_push_batch('views', ARRAY['1', '2', '3', '4', '5', '6'], ARRAY[NULL, NULL, NULL, NULL, NULL, 'lane']);
SELECT lease_id AS first FROM queue_pop('views', 2, partition => '') GROUP BY 1 \gset
SELECT lease_id AS second FROM queue_pop('views', 1, partition => '') \gset
SELECT lease_id AS third FROM queue_pop('views', 1, partition => '') \gset
SELECT queue_ack(:first);
SELECT queue_nack(:second, retry_after => '1 h');
SELECT queue_reject(:third);
SELECT count(*) FROM queue_pop('views', 1, partition => 'lane');
SELECT ready, leased, delayed, dead, pushed, popped, acked, nacked, expired, deduplicated FROM qlog_stat_queues WHERE queue = 'views';
SELECT oldest_ready_age BETWEEN '0' AND '1 min' AS age, bytes > 0 AS bytes, now() - last_push < '1 min' AS push, now() - last_pop < '1 min' AS pop FROM qlog_stat_queues WHERE queue = 'views';
SELECT queue_create('views 2');
SELECT oldest_ready_age IS NULL AS nothing_ready, last_push, last_pop FROM qlog_stat_queues WHERE queue = 'views 2';
SELECT queue, consumer_group, partition, messages, pid, in_transaction FROM qlog_leases WHERE queue = 'views';
SELECT queue, owner = current_user::regrole AS mine, options, acl, now() - created_at < '1 min' AS created, directory ~ ('^qlog/([0-9]+/)*q' || log_id || '$') AS directory, partitions, damage FROM qlog_queues WHERE queue = 'views';
-- A shared log is nobody's, and has records of others.
SELECT current_setting('qlog.shards')::int > 0 AS shared \gset
SELECT coalesce(queue, 'views') AS queue, (queue IS NULL) = :'shared' AS own, file = directory || '/r00000001.qlog' OR :'shared' AS file, bytes > 0 AS bytes, live_bytes BETWEEN 1 AND bytes AS live, records = 3 OR :'shared' AS records,
       now() - oldest < '1 min' OR :'shared' AS oldest, newest >= oldest AS newest, state, held_by
FROM qlog_files JOIN (SELECT directory FROM qlog_queues WHERE queue = 'views') q ON file LIKE directory || '/%' WHERE state = 'active';
SELECT state, count(*) > 0 AS there FROM qlog_files WHERE queue IS NULL AND state = 'active' GROUP BY state;
SELECT entries > 0 AS entries, bytes > 0 AS bytes, fsyncs > 0 AS fsyncs, group_size_max >= group_size_avg AS groups, durable_seq >= checkpoint_seq AS durable,
       state_memory_used BETWEEN 1 AND state_memory_limit AS state_memory, index_memory_used BETWEEN 1 AND index_memory_limit AS index_memory, disk_free > 0 AS disk_free,
       disk_reserve > 0 AS disk_reserve, pushes_refused FROM qlog_stat_log;
SELECT role, pid > 0 AS running, last_error FROM qlog_stat_workers ORDER BY role;
-- The counters of the log begin anew when a superuser says so; nothing else does.
SELECT stats_reset IS NULL AND entries > 5 AS entries, checkpoint_seq AS stored FROM qlog_stat_log \gset before_
\echo :before_entries
SELECT qlog_stat_reset();
SELECT entries < 5 AS entries, bytes < 5000 AS bytes, fsyncs < 5 AS fsyncs, group_size_avg IS NULL OR group_size_avg < 5 AS average,
       group_size_max < 5 AS largest, checkpoints < 5 AS checkpoints, durable_seq > 5 AS durable, checkpoint_seq >= :before_stored AS stored, now() - stats_reset < '1 min' AS reset FROM qlog_stat_log;
SELECT pushed FROM qlog_stat_queues WHERE queue = 'views';
SELECT count(queue_push('views 2', i::text)) FROM generate_series(1, 30) i;
SELECT entries BETWEEN 1 AND 9 AS entries, bytes > 500 AS bytes, fsyncs > 0 AS fsyncs FROM qlog_stat_log;

-- A queue that is created before another one and committed after it is shown all the same.
BEGIN;
SELECT queue_create('views early');
SELECT queue_push('views late', '1') IS NOT NULL AS pushed;
COMMIT;
SELECT count(*) FROM qlog_stat_queues WHERE queue IN ('views early', 'views late');

-- Counters do not depend on the time zone or on how intervals are shown.
SET TimeZone = 'Asia/Kathmandu';
SET IntervalStyle = 'iso_8601';
SELECT now() - last_push < '1 min' AS push FROM qlog_stat_queues WHERE queue = 'views';
SELECT queue_create('views 3', '{"lease": "PT90S"}');
SELECT options FROM qlog_queues WHERE queue = 'views 3';
SELECT now() - pushed_at < '1 min' AS pushed FROM queue_peek('views', batch => 1);
RESET TimeZone;
RESET IntervalStyle;

-- The same figures for exporters: every one that the views have, under a name of its own, for monitoring roles.
SELECT metric, string_agg(DISTINCT (SELECT string_agg(key, ', ' ORDER BY key) FROM jsonb_object_keys(labels) AS key), ' or ') AS labels FROM qlog_metrics GROUP BY metric ORDER BY metric COLLATE "C";
SELECT metric, value FROM qlog_metrics WHERE labels->>'queue' = 'views' AND labels->>'database' = current_database() AND metric !~ 'bytes|seconds' ORDER BY metric COLLATE "C";
SELECT metric, labels FROM qlog_metrics GROUP BY metric, labels HAVING count(*) > 1 OR bool_or(value IS NULL);
SELECT m.value = extract(epoch FROM q.last_push) AS pushed, l.value > 0 AS bytes, d.value > 0 AS durable
FROM qlog_metrics m, qlog_stat_queues q, qlog_metrics l, qlog_metrics d
WHERE q.queue = 'views' AND m.labels->>'queue' = 'views' AND m.metric = 'qlog_queue_last_push_timestamp_seconds'
  AND l.metric = 'qlog_log_bytes_total' AND d.metric = 'qlog_log_durable_seq';
SELECT count(*) AS workers, sum(value) AS up FROM qlog_metrics WHERE metric = 'qlog_worker_up';
CREATE ROLE regress_qlog_export;
SET ROLE regress_qlog_export;
SELECT outcome('SELECT * FROM qlog_metrics');
SELECT outcome('SELECT qlog_stat_reset()');
RESET ROLE;
GRANT pg_monitor TO regress_qlog_export;
SET ROLE regress_qlog_export;
SELECT count(*) FROM qlog_metrics WHERE metric = 'qlog_queue_ready' AND labels->>'queue' = 'views';
RESET ROLE;
DROP ROLE regress_qlog_export;
