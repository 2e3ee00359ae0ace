-- What qlog_stat_consumer_groups and qlog_stat_partitions count.
CREATE VIEW lags AS SELECT consumer_group, lag, leased, acked, redelivered, last_pop IS NULL AS never,
       oldest_unacked_age BETWEEN '0' AND '1 min' AS age FROM qlog_stat_consumer_groups WHERE queue = 'stat groups' ORDER BY consumer_group;
CREATE VIEW parts AS SELECT partition, first_position, next_position, ready, bytes > 0 AS bytes, last_push <= now() AS push,
       blocked_by_pid, blocked_since FROM qlog_stat_partitions WHERE queue = 'stat groups' ORDER BY partition;
SELECT queue_create('stat groups');
SELECT * FROM lags;
SELECT * FROM parts;
SELECT count(*) FROM queue_push_batch('stat groups', ARRAY['1', '2', '3', '4', '5', '6'], ARRAY[NULL, NULL, 'a', 'a', 'a', 'b']);

-- A group that has not looked at anything has it all before it; one that begins now has nothing.
SELECT queue_subscribe('stat groups', 'all', 'oldest'), queue_subscribe('stat groups', 'new'), queue_subscribe('stat groups', 'then', 'infinity');
SELECT * FROM lags;
SELECT * FROM parts;
SELECT ready FROM qlog_stat_queues WHERE queue = 'stat groups';

-- One step of a pop looks at everything here.
SELECT count(*) FROM queue_pop('stat groups', 10, consumer_group => 'then');
SELECT * FROM lags WHERE consumer_group = 'then';
SELECT queue_unsubscribe('stat groups', 'then');

-- Deliveries change nothing about the lag, acknowledgements do; dead letters are finished, retries are not.
SELECT lease_id AS a FROM queue_pop('stat groups', 2, consumer_group => 'all', partition => 'a') GROUP BY 1 \gset
SELECT * FROM lags;
SELECT queue_ack(:a);
SELECT * FROM lags WHERE consumer_group = 'all';
SELECT lease_id AS b FROM queue_pop('stat groups', 1, consumer_group => 'all', partition => 'b') \gset
SELECT queue_nack(:b, retry_after => '1 h');
SELECT lease_id AS a FROM queue_pop('stat groups', 1, consumer_group => 'all', partition => 'a') \gset
SELECT queue_nack(:a, retry_after => '0');
SELECT lease_id AS a FROM queue_pop('stat groups', 1, consumer_group => 'all', partition => 'a') \gset
SELECT * FROM lags WHERE consumer_group = 'all';
SELECT queue_reject(:a);
SELECT * FROM lags;
SELECT * FROM parts;

-- Delayed messages have not come yet; what is not committed has neither.
SELECT queue_push('stat groups', '7', deliver_at => now() + interval '1 h') IS NOT NULL AS pushed;
BEGIN;
SELECT queue_push('stat groups', '8', 'b') IS NOT NULL AS pushed;
SELECT sum(lag) FROM qlog_stat_consumer_groups WHERE queue = 'stat groups';
ROLLBACK;
SELECT sum(lag) FROM qlog_stat_consumer_groups WHERE queue = 'stat groups';

-- Seeking moves the lag, at once for a partition; a purge moves the first position.
SELECT queue_seek('stat groups', 'all', 'a', to_position => 1);
SELECT * FROM lags WHERE consumer_group = 'all';
SELECT queue_seek('stat groups', 'all', to_position => 0);
SELECT * FROM lags WHERE consumer_group = 'all';
SELECT * FROM parts;
SELECT queue_purge('stat groups', 'a');
SELECT * FROM lags;
SELECT * FROM parts;
SELECT lease_id AS b FROM queue_pop('stat groups', 1, consumer_group => 'all', partition => 'b') \gset
SELECT queue_purge('stat groups');
SELECT * FROM lags;
SELECT * FROM parts;
SELECT queue_nack(:b);
SELECT * FROM lags WHERE consumer_group = 'all';
SELECT queue_push('stat groups', '9', 'a') IS NOT NULL AS pushed;
SELECT * FROM lags;
SELECT * FROM parts;

-- The oldest message of a group is the oldest of any partition, held or waiting for its retry.
SELECT queue_push('stat ages', '1', 'a') IS NOT NULL AS pushed;
SELECT pg_sleep(0.05);
SELECT clock_timestamp() AS instant \gset
SELECT queue_push('stat ages', '2', 'b') IS NOT NULL AS pushed;
CREATE VIEW ages AS SELECT now() - oldest_unacked_age AS oldest, clock_timestamp() - oldest_unacked_age AS latest FROM qlog_stat_consumer_groups WHERE queue = 'stat ages';
SELECT oldest < :'instant' AS first FROM ages;
SELECT lease_id AS a FROM queue_pop('stat ages', partition => 'a') \gset
SELECT oldest < :'instant' AS first FROM ages;
SELECT queue_nack(:a, retry_after => '1 h');
SELECT oldest < :'instant' AS first FROM ages;
SELECT queue_seek('stat ages', '', 'a', to_end => true);
SELECT latest > :'instant' AS second FROM ages;
SELECT queue_seek('stat ages', '', to_time => :'instant');
SELECT latest > :'instant' AS second FROM ages;
SELECT payload FROM queue_pop('stat ages', 10, max_partitions => 10);
SELECT latest > :'instant' AS second FROM ages;
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'stat ages';
SELECT oldest, latest FROM ages;

-- More partitions than are looked at for the oldest message, and than one pop looks at.
SELECT count(*) FROM queue_push_batch('stat many', (SELECT array_agg(i::text) FROM generate_series(1, 300) i), (SELECT array_agg('p' || i) FROM generate_series(1, 300) i));
SELECT queue_subscribe('stat many', 'all', 'oldest');
SELECT consumer_group, lag, oldest_unacked_age BETWEEN '0' AND '1 min' AS age FROM qlog_stat_consumer_groups WHERE queue = 'stat many' ORDER BY 1;
SELECT count(*) FROM queue_pop('stat many', 10, consumer_group => 'all', max_partitions => 10);
SELECT consumer_group, lag, leased, oldest_unacked_age BETWEEN '0' AND '1 min' AS age FROM qlog_stat_consumer_groups WHERE queue = 'stat many' ORDER BY 1;
SELECT count(*), sum(ready), min(next_position), max(next_position) FROM qlog_stat_partitions WHERE queue = 'stat many';

-- A group that begins at a time or at a position has everything before it until all partitions have been looked at, which needs no pop.
SELECT count(*) FROM queue_push_batch('stat bound', (SELECT array_agg(i::text) FROM generate_series(1, 600) i), (SELECT array_agg('p' || i % 300) FROM generate_series(1, 600) i));
SELECT pg_sleep(0.01);
SELECT clock_timestamp() AS instant \gset
SELECT count(*) FROM queue_push_batch('stat bound', (SELECT array_agg(i::text) FROM generate_series(1, 400) i), (SELECT array_agg('p' || i % 200) FROM generate_series(1, 400) i));
CREATE FUNCTION wait_for_lags(VARIADIC lags bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE shown bigint[];
BEGIN
	FOR i IN 1..600 LOOP
		SELECT array_agg(lag ORDER BY consumer_group) INTO shown FROM qlog_stat_consumer_groups WHERE queue = 'stat bound';
		EXIT WHEN shown = lags;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RETURN shown;
END $$;
SELECT queue_subscribe('stat bound', 'then', :'instant'), queue_subscribe('stat bound', 'third', 'oldest');
SELECT wait_for_lags(1000, 400, 1000);
SELECT queue_seek('stat bound', 'third', to_position => 3);
SELECT wait_for_lags(1000, 400, 200);
SELECT queue_seek('stat bound', '', to_time => '2001-02-03'), queue_seek('stat bound', 'then', to_position => 1);
SELECT wait_for_lags(1000, 700, 200);
SELECT count(*) FROM queue_pop('stat bound', 1000, max_partitions => 1000, consumer_group => 'third', auto_ack => true);
SELECT wait_for_lags(1000, 700, 0);
DROP FUNCTION wait_for_lags;

-- As many messages in work as there may be: nothing more comes out of the partition until some are finished.
SELECT queue_create('stat full', '{"retry_limit": -1}');
SELECT count(*) FROM queue_push_batch('stat full', (SELECT array_agg(i::text) FROM generate_series(1, 10001) i));
SELECT lease_id AS full FROM queue_pop('stat full', 10000) GROUP BY 1 \gset
SELECT leased, full_partitions FROM qlog_stat_consumer_groups WHERE queue = 'stat full';
SELECT queue_nack(:full, retry_after => '1 h');
SELECT count(*) FROM queue_pop('stat full', 1);
SELECT lag, leased, full_partitions FROM qlog_stat_consumer_groups WHERE queue = 'stat full';
SELECT queue_purge('stat full'), queue_push('stat full', '1') IS NOT NULL AS pushed;
SELECT payload FROM queue_pop('stat full', 10000);
SELECT lag, leased, full_partitions FROM qlog_stat_consumer_groups WHERE queue = 'stat full';
SELECT queue_drop('stat full');

-- Only for roles that may use the queue.
CREATE ROLE stat_nobody;
SET ROLE stat_nobody;
SELECT count(*) FROM qlog_stat_consumer_groups;
SELECT count(*) FROM qlog_stat_partitions;
RESET ROLE;
SELECT queue_grant('stat ages', 'stat_nobody', 'pop');
SET ROLE stat_nobody;
SELECT queue, consumer_group FROM qlog_stat_consumer_groups;
SELECT queue, partition FROM qlog_stat_partitions ORDER BY partition;
RESET ROLE;
SELECT queue_drop('stat ages');
SELECT count(*) FROM qlog_stat_consumer_groups WHERE queue = 'stat ages';
SELECT count(*) FROM qlog_stat_partitions WHERE queue = 'stat ages';
DROP VIEW lags, parts, ages;
DROP ROLE stat_nobody;
