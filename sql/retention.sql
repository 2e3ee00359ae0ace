-- Retention: finished messages go, others when they are too old or too many. The worker does it; this test has it look often.
ALTER SYSTEM SET qlog.retention_naptime = '10 ms';
SELECT pg_reload_conf();
-- Waits until the first position kept of a partition is what it shall be; says what it is after a minute.
CREATE FUNCTION kept(q text, p text, expected bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE first bigint;
BEGIN
  FOR i IN 1 .. 6000 LOOP
    SELECT first_position INTO first FROM qlog_stat_partitions WHERE queue = q AND partition = p;
    IF first = expected THEN RETURN format('from %s on', first); END IF;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RETURN format('from %s on, after a minute', first);
END $$;
-- Waits for two whole passes of the worker.
CREATE PROCEDURE passes() LANGUAGE plpgsql AS $$
DECLARE before bigint;
BEGIN
  SELECT passes INTO before FROM qlog_stat_workers WHERE role = 'retention';
  FOR i IN 1 .. 6000 LOOP
    EXIT WHEN (SELECT passes FROM qlog_stat_workers WHERE role = 'retention') > before + 1;
    PERFORM pg_sleep(0.01);
  END LOOP;
END $$;

-- Finished messages go at once: one group.
SELECT count(*) FROM queue_push_batch('done', ARRAY['1', '2', '3', '4', '5'], ARRAY['a', 'a', 'a', 'a', 'a']);
SELECT queue_ack(lease_id, array_agg(message_id)) FROM queue_pop('done', 3, partition => 'a') GROUP BY lease_id;
SELECT kept('done', 'a', 3);
SELECT payload, "position" FROM queue_peek('done', 'a');
-- What is leased stays, and what is behind it.
SELECT payload FROM queue_pop('done', 1, partition => 'a');
SELECT count(*) FROM queue_push_batch('done', ARRAY['6'], ARRAY['a']);
CALL passes();
SELECT first_position, next_position FROM qlog_stat_partitions WHERE queue = 'done' AND partition = 'a';
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'done';
SELECT kept('done', 'a', 4);
-- The rest of it, and then the partition is empty.
SELECT queue_ack(lease_id, array_agg(message_id)) FROM queue_pop('done', 10, partition => 'a') GROUP BY lease_id;
SELECT kept('done', 'a', 6);
SELECT queue, ready, acked, removed_unread FROM qlog_stat_queues WHERE queue = 'done';

-- Several groups: the one that is behind decides.
SELECT queue_subscribe('groups', 'fast', 'oldest') FROM queue_create('groups');
SELECT queue_subscribe('groups', 'slow', 'oldest');
SELECT queue_unsubscribe('groups', '');
SELECT count(*) FROM queue_push_batch('groups', ARRAY['1', '2', '3', '4']);
SELECT queue_ack(lease_id, array_agg(message_id)) FROM queue_pop('groups', 4, consumer_group => 'fast') GROUP BY lease_id;
SELECT queue_ack(lease_id, array_agg(message_id)) FROM queue_pop('groups', 2, consumer_group => 'slow') GROUP BY lease_id;
SELECT kept('groups', '', 2);
SELECT consumer_group, lag FROM qlog_stat_consumer_groups WHERE queue = 'groups' ORDER BY 1;
-- A seek back, and a new group, begin with what is kept.
SELECT queue_seek('groups', 'fast', to_position => 0, partition => '');
SELECT payload, "position" FROM queue_pop('groups', 10, consumer_group => 'fast') ORDER BY 2;
SELECT payload, "position" FROM queue_pop('groups', 10, consumer_group => 'late') ORDER BY 2;
-- Without the groups that wait for it, everything goes.
SELECT queue_unsubscribe('groups', 'slow'), queue_unsubscribe('groups', 'late');
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'groups' AND consumer_group = 'fast';
SELECT kept('groups', '', 4);
-- A queue without groups keeps everything.
SELECT queue_unsubscribe('groups', 'fast');
SELECT count(*) FROM queue_push_batch('groups', ARRAY['5', '6']);
CALL passes();
SELECT payload, "position" FROM queue_pop('groups', 10, consumer_group => 'very late') ORDER BY 2;
SELECT queue_drop('groups');

-- consumed_retention: finished ones stay for a while, counted from the push.
SELECT queue_create('consumed', '{"consumed_retention": "1 hour"}');
SELECT count(*) FROM queue_push_batch('consumed', ARRAY['1', '2', '3']);
SELECT queue_ack(lease_id, array_agg(message_id)) FROM queue_pop('consumed', 2) GROUP BY lease_id;
CALL passes();
SELECT queue_seek('consumed', '', to_position => 1, partition => '');
SELECT payload FROM queue_pop('consumed', 10);
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'consumed';
SELECT queue_set('consumed', 'consumed_retention', '50 ms');
SELECT kept('consumed', '', 3);

-- retention: old ones go, read or not; what is leased or dead stays.
SELECT queue_create('aged', '{"retention": "1 hour", "retry_limit": 0}');
SELECT count(*) FROM queue_push_batch('aged', ARRAY['1', '2', '3', '4', '5', '6']);
SELECT queue_reject(lease_id) FROM queue_pop('aged', 1);
SELECT payload FROM queue_pop('aged', 1);
CALL passes();
SELECT ready, leased, dead, removed_unread FROM qlog_stat_queues WHERE queue = 'aged';
SELECT queue_set('aged', 'retention', '50 ms');
SELECT kept('aged', '', 1);
CREATE PROCEDURE waits(q text, n bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 6000 LOOP
    EXIT WHEN (SELECT ready FROM qlog_stat_queues WHERE queue = q) = n;
    PERFORM pg_sleep(0.01);
  END LOOP;
END $$;
CALL waits('aged', 0);
SELECT ready, leased, dead, removed_unread FROM qlog_stat_queues WHERE queue = 'aged';
SELECT payload FROM queue_pop('aged', 10);
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'aged';
SELECT kept('aged', '', 6);
SELECT payload, reason FROM qlog_dead_letters WHERE queue = 'aged';
-- A dead letter goes back as a new message, and then ages as one.
SELECT queue_set('aged', 'retention', '1 hour');
SELECT queue_redrive('aged');
CALL passes();
SELECT payload FROM queue_pop('aged');

-- An open transaction's messages stay as well, and those behind them; what it gave back goes.
SELECT queue_create('open', '{"retention": "50 ms"}');
SELECT count(*) FROM queue_push_batch('open', ARRAY['1', '2']);
SELECT kept('open', '', 2);
SELECT ready, removed_unread FROM qlog_stat_queues WHERE queue = 'open';

-- retention_bytes: the oldest go, of all partitions.
CREATE FUNCTION noise(n int) RETURNS text LANGUAGE sql AS
$$ SELECT to_json(string_agg(md5(random()::text), '')) FROM generate_series(1, n / 32) $$;
SELECT queue_create('bytes', '{"retention_bytes": "200 kB", "compression_level": 0}');
CREATE PROCEDURE push(n int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. n LOOP
    PERFORM queue_push('bytes', noise(10000)::json, partition => CASE i % 2 WHEN 0 THEN 'even' ELSE 'odd' END);
    COMMIT;
  END LOOP;
END $$;
CALL push(18);
CALL passes();
SELECT ready, removed_unread FROM qlog_stat_queues WHERE queue = 'bytes';
CALL push(22);
CREATE PROCEDURE removed(q text) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 6000 LOOP
    EXIT WHEN (SELECT removed_unread FROM qlog_stat_queues WHERE queue = q) > 0;
    PERFORM pg_sleep(0.01);
  END LOOP;
END $$;
CALL removed('bytes');
CALL passes();
CALL passes();
SELECT ready BETWEEN 17 AND 20 AS about_200_kb, ready + removed_unread AS all FROM qlog_stat_queues WHERE queue = 'bytes';
SELECT partition, next_position - first_position BETWEEN 8 AND 11 AS its_share, next_position FROM qlog_stat_partitions WHERE queue = 'bytes' AND partition <> '' ORDER BY 1;
-- A transaction that is larger goes as a whole, but not before there is something newer.
SELECT count(queue_push('bytes', noise(10000)::json, partition => 'even')) FROM generate_series(1, 30);
CALL waits('bytes', 30);
SELECT queue_set('bytes', 'retention_bytes', '0');
SELECT queue_push('bytes', '1') IS NOT NULL AS newer;
CALL waits('bytes', 0);
SELECT ready, removed_unread FROM qlog_stat_queues WHERE queue = 'bytes';

-- A dedup id is remembered for its window although its message has gone.
SELECT queue_push('dedup', '1', dedup_id => 'x') = queue_push('dedup', '2', dedup_id => 'x') AS same;
SELECT queue_ack(lease_id) FROM queue_pop('dedup');
SELECT kept('dedup', '', 1);
SELECT queue_push('dedup', '3', dedup_id => 'x') IS NOT NULL AS id, (SELECT deduplicated FROM qlog_stat_queues WHERE queue = 'dedup');
SELECT payload FROM queue_pop('dedup');

SELECT count(queue_drop(queue)) FROM qlog_queues WHERE queue IN ('done', 'consumed', 'aged', 'open', 'bytes', 'dedup');
ALTER SYSTEM RESET qlog.retention_naptime;
SELECT pg_reload_conf();
DROP FUNCTION kept, noise;
DROP PROCEDURE passes, waits, removed, push;
