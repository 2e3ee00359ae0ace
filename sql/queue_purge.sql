-- What waits goes, for every group; what is pushed after stays.
SELECT count(*) FROM queue_push_batch('purge', ARRAY['1', '2', '3', '4', '5'], ARRAY['a', 'a', 'b', NULL, NULL]);
SELECT queue_subscribe('purge', 'oldest', 'oldest'), queue_subscribe('purge', 'lazy', '-infinity');
SELECT queue_purge('purge');
SELECT ready, leased FROM depth WHERE queue = 'purge';
SELECT count(*) FROM queue_pop('purge', 10, max_partitions => 10);
SELECT count(*) FROM queue_pop('purge', 10, consumer_group => 'oldest', max_partitions => 10);
SELECT count(*) FROM queue_peek('purge');
SELECT count(*) FROM queue_peek('purge', 'a', from_position => 0);
SELECT count(*) FROM queue_peek('purge', from_time => '-infinity');
SELECT queue_purge('purge');
SELECT count(*) FROM queue_push_batch('purge', ARRAY['6', '7', '8'], ARRAY['a', 'c', NULL]);
SELECT queue_subscribe('purge', 'new old', 'oldest'), queue_seek('purge', 'oldest', to_position => 0);
SELECT partition, "position", payload FROM queue_pop('purge', 10, max_partitions => 10) ORDER BY 1, 2;
SELECT partition, "position", payload FROM queue_pop('purge', 10, consumer_group => 'oldest', max_partitions => 10) ORDER BY 1, 2;
SELECT partition, "position", payload FROM queue_pop('purge', 10, consumer_group => 'lazy', max_partitions => 10) ORDER BY 1, 2;
SELECT partition, "position", payload FROM queue_pop('purge', 10, consumer_group => 'new old', max_partitions => 10) ORDER BY 1, 2;

-- What consumers hold stays theirs: it can be acknowledged, and comes back; what was given back and waits goes.
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'purge' AND consumer_group IN ('lazy', 'new old');
SELECT queue_nack(lease_id, retry_after => '1 h') FROM queue_pop('purge', 10, consumer_group => 'lazy', partition => 'c');
SELECT queue_purge('purge');
SELECT ready, leased, delayed FROM qlog_stat_queues WHERE queue = 'purge';
SELECT count(*) FROM queue_pop('purge', 10, consumer_group => 'new old', max_partitions => 10);
SELECT partition, payload FROM queue_peek('purge') ORDER BY 1;
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'purge' AND consumer_group = 'oldest';
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'purge' AND consumer_group = '';
SELECT partition, "position", attempt, payload FROM queue_pop('purge', 10, max_partitions => 10) ORDER BY 1, 2;
SELECT count(*) FROM queue_pop('purge', 10, consumer_group => 'oldest', max_partitions => 10);
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'purge' AND consumer_group = '';
SELECT ready, leased, delayed FROM qlog_stat_queues WHERE queue = 'purge';

-- One partition.
SELECT count(*) FROM queue_push_batch('purge', ARRAY['1', '2', '3', '4', '5'], ARRAY['a', 'a', 'a', 'b', NULL]);
SELECT payload FROM queue_pop('purge', partition => 'a');
SELECT queue_purge('purge', 'a'), queue_purge('purge', 'a'), queue_purge('purge', 'missing'), queue_purge('purge', '');
SELECT partition, payload FROM queue_pop('purge', 10, max_partitions => 10) ORDER BY 1, 2::text;
SELECT ready, leased FROM depth WHERE queue = 'purge';
SELECT count(queue_nack(lease_id)) FROM qlog_leases WHERE queue = 'purge';
SELECT partition, payload, attempt FROM queue_pop('purge', 10, max_partitions => 10) ORDER BY 1, 2::text;

-- At COMMIT; what the transaction itself pushes is not committed then, and stays.
SELECT queue_push('purge', '"waits"', 'd') IS NOT NULL AS pushed;
BEGIN;
SELECT queue_push('purge', '"own, before"', 'd') IS NOT NULL AS pushed;
SELECT queue_purge('purge');
SELECT queue_push('purge', '"own, after"', 'd') IS NOT NULL AS pushed;
ROLLBACK;
SELECT payload FROM queue_peek('purge', 'd');
BEGIN;
SAVEPOINT s;
SELECT queue_purge('purge');
ROLLBACK TO s;
COMMIT;
SELECT payload FROM queue_peek('purge', 'd');
BEGIN;
SELECT queue_push('purge', '"own, before"', 'd') IS NOT NULL AS pushed;
SELECT queue_purge('purge'), queue_purge('purge', 'd');
SELECT queue_push('purge', '"own, after"', 'd') IS NOT NULL AS pushed;
COMMIT;
SELECT payload FROM queue_pop('purge', 10, partition => 'd');

-- Dead letters stay.
SELECT queue_push('purge dead', '1') IS NOT NULL AS pushed;
SELECT queue_reject(lease_id) FROM queue_pop('purge dead');
SELECT queue_purge('purge dead');
SELECT dead FROM qlog_stat_queues WHERE queue = 'purge dead';

-- Over many partitions.
SELECT count(*) FROM queue_push_batch('purge wide', ARRAY(SELECT i::text FROM generate_series(1, 1000) AS i), ARRAY(SELECT 'p' || i % 500 FROM generate_series(1, 1000) AS i));
SELECT queue_purge('purge wide');
SELECT count(*) FROM queue_pop('purge wide', 1000, max_partitions => 1000);
SELECT count(*) FROM queue_push_batch('purge wide', ARRAY(SELECT i::text FROM generate_series(1, 1000) AS i), ARRAY(SELECT 'p' || i % 1000 FROM generate_series(1, 1000) AS i));
SELECT count(*), count(DISTINCT partition) FROM queue_pop('purge wide', 2000, max_partitions => 2000);
SELECT queue_purge('purge wide');

-- Own queue, and bad input.
BEGIN;
SELECT queue_create('own purge');
SELECT queue_push('own purge', '1') IS NOT NULL AS pushed;
SELECT queue_purge('own purge');
COMMIT;
SELECT payload FROM queue_pop('own purge');
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_purge(NULL)$$,
	$$SELECT queue_purge('nowhere')$$,
	$$SELECT queue_purge('purge', repeat('x', 256))$$]) AS statement;
