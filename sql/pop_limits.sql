-- max_partitions: one lease over messages of several partitions, partition by partition, in order within each.
SELECT count(*) FROM queue_push_batch('pop limits', ARRAY['1', '2', '3', '4', '5', '6', '7'], ARRAY['a', 'b', 'a', 'b', 'c', NULL, 'a']);
SELECT partition, "position", payload FROM queue_peek('pop limits') ORDER BY partition, "position";
BEGIN;
CREATE TEMP TABLE taken AS SELECT * FROM queue_pop('pop limits', 10, max_partitions => 2);
SELECT count(DISTINCT lease_id) AS leases, count(DISTINCT partition) AS partitions, count(*) FROM taken;
-- The others are free meanwhile; these are not.
SELECT count(*) AS messages, count(DISTINCT partition) AS partitions FROM queue_pop('pop limits', 10, max_partitions => 10) AS p
WHERE p.partition NOT IN (SELECT t.partition FROM taken AS t);
ROLLBACK;
SELECT partition, payload, attempt FROM queue_pop('pop limits', 10, max_partitions => 100) ORDER BY partition, "position";
SELECT messages FROM qlog_leases WHERE queue = 'pop limits';
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'pop limits';
-- The batch counts over all of them. A part of the lease can be acknowledged in any of them.
SELECT count(*) FROM queue_pop('pop limits', 5, max_partitions => 100);
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'pop limits';
SELECT lease_id, array_agg(message_id) FILTER (WHERE partition IN ('b', 'c')) AS ids FROM queue_pop('pop limits', 10, max_partitions => 4) GROUP BY 1 \gset
SELECT queue_ack(:lease_id, :'ids');
SELECT queue_ack(:lease_id);
SELECT ready, leased FROM depth WHERE queue = 'pop limits';
-- A partition asked for by name is the only one.
SELECT count(*) FROM queue_push_batch('pop limits 2', ARRAY['1', '2'], ARRAY['a', 'b']);
SELECT partition, payload FROM queue_pop('pop limits 2', 10, partition => 'b', max_partitions => 5);

-- max_bytes: payload and headers, counted without charging anybody with an attempt; one message at least.
SELECT count(*) FROM queue_push_batch('pop bytes', ARRAY['"12345678"', '"12345678"', '"12345678"', '"1234567890"', '1']);
SELECT payload FROM queue_pop('pop bytes', 10, max_bytes => 29);
SELECT payload, attempt FROM queue_pop('pop bytes', 10, max_bytes => 1);
SELECT payload, attempt FROM queue_pop('pop bytes', 10, max_bytes => 9223372036854775807);
SELECT count(*) FROM queue_pop('pop bytes', 10, max_bytes => 10);
-- Headers count.
SELECT count(*) FROM queue_push_batch('pop bytes 2', ARRAY['1', '2', '3'], headers => ARRAY['{"h": 1}', NULL, '{}']);
SELECT payload FROM queue_pop('pop bytes 2', 10, max_bytes => 9);
SELECT payload FROM queue_pop('pop bytes 2', 10, max_bytes => 10);
SELECT payload FROM queue_pop('pop bytes 2', 10, max_bytes => 10);
-- Over partitions, in an ordered one, and what was given back.
SELECT count(*) FROM queue_push_batch('pop bytes 3', ARRAY['11', '12', '13', '21', '22'], ARRAY['a', 'a', 'a', 'b', 'b']);
SELECT partition, payload, attempt FROM queue_pop('pop bytes 3', 10, max_partitions => 2, max_bytes => 8);
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'pop bytes 3';
SELECT partition, payload, attempt FROM queue_pop('pop bytes 3', 10, partition => 'a', max_bytes => 5);
SELECT partition, payload, attempt FROM queue_pop('pop bytes 3', 1, partition => 'b', max_bytes => 100);

-- Wrong limits.
SELECT outcome($$SELECT queue_pop('pop bytes', max_partitions => 0)$$);
SELECT outcome($$SELECT queue_pop('pop bytes', max_partitions => -1)$$);
SELECT outcome($$SELECT queue_pop('pop bytes', max_bytes => 0)$$);
SELECT outcome($$SELECT queue_pop('no such queue', max_bytes => 1)$$);
SELECT count(*) FROM queue_pop('pop bytes', 2147483647, max_partitions => 2147483647, max_bytes => NULL);
