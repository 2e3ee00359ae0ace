-- queue_set and queue_reset: every option, as text with its unit; they take effect at COMMIT.
SELECT queue_create('set');
SELECT queue_set('set', option, value) FROM (VALUES ('lease', '90 s'), ('retry_limit', '-1'), ('retry_delay', '1 min'), ('retry_delay_max', '2 hours'),
	('dead_letters', 'off'), ('dedup_window', '1 day'), ('ordered', 'yes'), ('retention', '7 days'), ('retention_bytes', '10 GB'),
	('consumed_retention', '1 h'), ('max_bytes', '1 MB'), ('delay', '0'), ('partition_idle', '1 day'), ('compression_level', '3')) AS o(option, value);
SELECT options FROM qlog_queues WHERE queue = 'set';
SELECT queue_reset('set', option) FROM unnest(ARRAY['retention', 'retention_bytes', 'retry_delay', 'dead_letters']) AS option;
SELECT options FROM qlog_queues WHERE queue = 'set';
SELECT queue_reset('set', 'retention');

-- The options of queue_create are the same ones.
SELECT queue_create('set 2', options) FROM qlog_queues WHERE queue = 'set';
SELECT a.options = b.options AS same FROM qlog_queues a, qlog_queues b WHERE a.queue = 'set' AND b.queue = 'set 2';
SELECT queue_drop('set 2');
SELECT queue_create('set 2', '{"max_bytes": "2 MB", "retention_bytes": 1000, "retry_limit": 5}');
SELECT options FROM qlog_queues WHERE queue = 'set 2';

-- What is wrong changes nothing.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_set('set', 'colour', 'red')$$,
	$$SELECT queue_set('set', 'LEASE', '1 s')$$,
	$$SELECT queue_reset('set', '')$$,
	$$SELECT queue_set('set', 'lease', 'soon')$$,
	$$SELECT queue_set('set', 'lease', '')$$,
	$$SELECT queue_set('set', 'lease', '0')$$,
	$$SELECT queue_set('set', 'lease', '-1 s')$$,
	$$SELECT queue_set('set', 'lease', '400 days')$$,
	$$SELECT queue_set('set', 'ordered', 'perhaps')$$,
	$$SELECT queue_set('set', 'retry_limit', '1.5')$$,
	$$SELECT queue_set('set', 'retry_limit', '')$$,
	$$SELECT queue_set('set', 'retry_limit', '-2')$$,
	$$SELECT queue_set('set', 'retry_limit', '1e30')$$,
	$$SELECT queue_set('set', 'max_bytes', '1 pound')$$,
	$$SELECT queue_set('set', 'max_bytes', '-1 MB')$$,
	$$SELECT queue_set('set', 'compression_level', '20')$$,
	$$SELECT queue_set('no such queue', 'lease', '1 s')$$,
	$$SELECT queue_reset('no such queue', 'lease')$$,
	$$SELECT queue_set(NULL, 'lease', '1 s')$$,
	$$SELECT queue_set('set', NULL, '1 s')$$,
	$$SELECT queue_set('set', 'lease', NULL)$$,
	$$SELECT queue_reset('set', NULL)$$,
	$$SELECT queue_reset(NULL, 'lease')$$]) AS statement;
SELECT options FROM qlog_queues WHERE queue = 'set';

-- The transaction itself sees it at once; a rolled back savepoint takes it back.
BEGIN;
SELECT queue_set('set', 'lease', '1 h');
SELECT options->>'lease' AS lease FROM qlog_queues WHERE queue = 'set';
SAVEPOINT a;
SELECT queue_set('set', 'lease', '2 h'), queue_reset('set', 'retry_limit');
SELECT options->>'lease' AS lease, options->>'retry_limit' AS retry_limit FROM qlog_queues WHERE queue = 'set';
ROLLBACK TO a;
SELECT options->>'lease' AS lease, options->>'retry_limit' AS retry_limit FROM qlog_queues WHERE queue = 'set';
COMMIT;
SELECT options->>'lease' AS lease FROM qlog_queues WHERE queue = 'set';
BEGIN;
SELECT queue_set('set', 'lease', '3 h');
ROLLBACK;
SELECT options->>'lease' AS lease FROM qlog_queues WHERE queue = 'set';

-- Together with the creation.
BEGIN;
SELECT queue_create('set 3', '{"lease": "10 s"}');
SELECT queue_set('set 3', 'lease', '20 s'), queue_set('set 3', 'ordered', 'on');
SELECT queue_push('set 3', to_json(i)) IS NOT NULL AS pushed FROM generate_series(1, 3) AS i;
COMMIT;
SELECT options FROM qlog_queues WHERE queue = 'set 3';
SELECT payload, extract(epoch FROM leased_until - now()) BETWEEN 18 AND 22 AS twenty_seconds FROM queue_pop('set 3', 2);
SELECT count(*) FROM queue_pop('set 3');
BEGIN;
SELECT queue_create('set 4');
SELECT queue_set('set 4', 'lease', '20 s');
SELECT queue_drop('set 4');
COMMIT;
BEGIN;
SELECT queue_create('set 5');
SELECT queue_set('set 5', 'lease', '20 s');
ROLLBACK;
SELECT count(*) FROM qlog_queues WHERE queue IN ('set 4', 'set 5');

-- ordered, switched on while messages are leased and given back: from then on in order, one lease at a time.
SELECT queue_create('switch');
SELECT count(*) FROM queue_push_batch('switch', ARRAY['0', '1', '2', '3', '4', '5']);
SELECT lease_id AS a FROM queue_pop('switch', 1) \gset
SELECT lease_id AS b FROM queue_pop('switch', 1) \gset
SELECT lease_id AS c FROM queue_pop('switch', 1) \gset
SELECT queue_nack(:b);
SELECT queue_set('switch', 'ordered', 'on');
SELECT count(*) FROM queue_pop('switch', 10);
SELECT queue_nack(:a);
SELECT count(*) FROM queue_pop('switch', 10);
SELECT queue_ack(:c);
SELECT payload, attempt FROM queue_pop('switch', 3);
SELECT count(*) FROM queue_pop('switch', 10);
-- Off again: consumers compete, also for what comes back.
SELECT queue_set('switch', 'ordered', 'off');
SELECT payload FROM queue_pop('switch', 1);
SELECT lease_id AS d FROM qlog_leases WHERE queue = 'switch' AND messages = 3 \gset
SELECT queue_nack(:d);
SELECT payload, attempt FROM queue_pop('switch', 2);
SELECT payload, attempt FROM queue_pop('switch', 10);
SELECT ready, leased FROM depth WHERE queue = 'switch';

-- compression_level counts from the next push on.
SELECT queue_create('pack', '{"compression_level": 0}');
SELECT queue_push('pack', to_json(repeat('x', 100000))) IS NOT NULL AS pushed;
SELECT live_bytes / 10000 AS live FROM qlog_stat_queues WHERE queue = 'pack';
SELECT queue_set('pack', 'compression_level', '3');
SELECT queue_push('pack', to_json(repeat('x', 100000))) IS NOT NULL AS pushed;
SELECT live_bytes / 10000 AS live FROM qlog_stat_queues WHERE queue = 'pack';
SELECT count(queue_drop(queue)) FROM unnest(ARRAY['set', 'set 2', 'set 3', 'switch', 'pack']) AS queue;
