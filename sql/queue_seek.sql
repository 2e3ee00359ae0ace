-- Where three partitions of four messages each stand for a group.
CREATE FUNCTION take(consumer text, OUT partition text, OUT positions bigint[], OUT attempts int[]) RETURNS SETOF record LANGUAGE sql AS $$
	SELECT p.partition, array_agg(p."position" ORDER BY p."position"), array_agg(p.attempt ORDER BY p."position")
	FROM queue_pop('seek', 100, consumer_group => consumer, max_partitions => 100) AS p GROUP BY 1 ORDER BY 1
$$;
SELECT count(*) FROM queue_push_batch('seek', ARRAY(SELECT i::text FROM generate_series(1, 12) AS i), ARRAY(SELECT 'p' || i % 3 FROM generate_series(1, 12) AS i));
SELECT * FROM take('g');
SELECT count(queue_ack(lease_id)) FROM qlog_leases WHERE queue = 'seek';
SELECT * FROM take('g');

-- Whole: again from the beginning, from a position, to the end; attempts begin anew.
SELECT queue_seek('seek', 'g', to_position => 0);
SELECT * FROM take('g');
SELECT count(queue_nack(lease_id)) FROM qlog_leases WHERE queue = 'seek';
SELECT * FROM take('g');
SELECT queue_seek('seek', 'g', to_position => 3);
SELECT * FROM take('g');
SELECT queue_seek('seek', 'g', to_end => true);
SELECT * FROM take('g');
SELECT queue_push('seek', '13', 'p0') IS NOT NULL AS pushed;
SELECT * FROM take('g');
SELECT queue_seek('seek', 'g', to_position => 1000);
SELECT * FROM take('g');
SELECT queue_push('seek', '14', 'p0') IS NOT NULL AS pushed;
SELECT * FROM take('g');

-- One partition; the leases of the others stay.
SELECT queue_seek('seek', 'g', to_position => 0);
SELECT count(*) FROM take('g');
SELECT queue_seek('seek', 'g', 'p1', to_position => 2);
SELECT * FROM take('g');
SELECT queue_seek('seek', 'g', 'p1', to_position => 9223372036854775807);
SELECT * FROM take('g');
SELECT queue_seek('seek', 'g', 'p1', to_end => true), queue_seek('seek', 'g', 'p2', to_position => 0);
SELECT * FROM take('g');
SELECT messages FROM qlog_leases WHERE queue = 'seek' AND consumer_group = 'g' ORDER BY 1;
SELECT sum(queue_ack(lease_id)) FROM qlog_leases WHERE queue = 'seek' AND consumer_group = 'g';
SELECT * FROM take('g');

-- A part of the lease is answered before, the rest of it is gone; other groups do not notice.
SELECT lease_id, (array_agg(message_id ORDER BY "position"))[1:2] AS ids FROM queue_pop('seek', 100, consumer_group => 'h', partition => 'p0') GROUP BY 1 \gset
SELECT queue_ack(:lease_id, :'ids');
SELECT queue_seek('seek', 'h', 'p0', to_position => 1);
SELECT queue_ack(:lease_id), queue_nack(:lease_id), queue_renew(:lease_id), queue_reject(:lease_id);
SELECT "position", attempt FROM queue_pop('seek', 100, consumer_group => 'h', partition => 'p0');

-- By time.
SELECT queue_push('seek time', '1', 'a') IS NOT NULL AND queue_push('seek time', '2', 'b') IS NOT NULL AS pushed;
SELECT pg_sleep(0.05);
SELECT clock_timestamp() AS instant \gset
SELECT pg_sleep(0.05);
SELECT queue_push('seek time', '3', 'b') IS NOT NULL AND queue_push('seek time', '4', 'c') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('seek time', 100, max_partitions => 100, auto_ack => true);
SELECT queue_seek('seek time', '', to_time => :'instant');
SELECT partition, payload FROM queue_pop('seek time', 100, max_partitions => 100) ORDER BY 1, 2::text;
SELECT queue_seek('seek time', '', 'a', to_time => :'instant'), queue_seek('seek time', '', 'b', to_time => '-infinity'), queue_seek('seek time', '', 'c', to_time => 'infinity');
SELECT partition, payload FROM queue_pop('seek time', 100, max_partitions => 100) ORDER BY 1, 2::text;
SELECT queue_push('seek time', '5', 'a') IS NOT NULL AS pushed;
SELECT partition, payload FROM queue_pop('seek time', 100, max_partitions => 100) ORDER BY 1, 2::text;

-- Peeking shows what is to be done, also before the group has looked.
SELECT queue_seek('seek time', '', to_position => 1);
SELECT partition, payload FROM queue_peek('seek time') ORDER BY 1, 2::text;
SELECT queue_seek('seek time', '', to_time => :'instant');
SELECT partition, payload FROM queue_peek('seek time') ORDER BY 1, 2::text;
SELECT queue_seek('seek time', '', to_end => true);
SELECT partition, payload FROM queue_peek('seek time') ORDER BY 1, 2::text;
SELECT ready, leased FROM depth WHERE queue = 'seek time';

-- At COMMIT, with the tables: a projection is built anew.
CREATE TABLE projection (payload text);
SELECT queue_seek('seek', 'g', to_end => true);
BEGIN;
TRUNCATE projection;
SELECT queue_seek('seek', 'g', to_position => 0);
SELECT * FROM take('g');
ROLLBACK;
SELECT * FROM take('g');
BEGIN;
TRUNCATE projection;
SELECT queue_seek('seek', 'g', to_position => 3);
SAVEPOINT s;
SELECT queue_seek('seek', 'g', to_position => 0);
ROLLBACK TO s;
COMMIT;
SELECT * FROM take('g');

-- Several in one transaction, in the order of the calls; pushes of its own come before them.
BEGIN;
SELECT queue_seek('seek', 'g', to_position => 0), queue_seek('seek', 'g', 'p0', to_end => true), queue_seek('seek', 'g', 'p1', to_position => 3);
SELECT queue_push('seek', '15', 'p0') IS NOT NULL AS pushed;
COMMIT;
SELECT * FROM take('g');
BEGIN;
SELECT queue_subscribe('seek', 'fresh'), queue_seek('seek', 'fresh', to_position => 4), queue_seek('seek', 'fresh', 'p2', to_position => 3);
COMMIT;
SELECT * FROM take('fresh');

-- A lease is lost at COMMIT when somebody has sought meanwhile; within one transaction acknowledgements come first.
BEGIN;
SELECT sum(queue_ack(lease_id)) FROM qlog_leases WHERE queue = 'seek' AND consumer_group = 'fresh';
SELECT queue_seek('seek', 'fresh', 'p0', to_position => 5);
COMMIT;
SELECT * FROM take('fresh');

-- Own queue.
BEGIN;
SELECT queue_create('own seek');
SELECT queue_push('own seek', '1', 'a') IS NOT NULL AND queue_push('own seek', '2') IS NOT NULL AS pushed;
SELECT queue_subscribe('own seek', 'g');
SELECT queue_seek('own seek', 'g', 'a', to_position => 0), queue_seek('own seek', '', 'a', to_end => true);
SELECT outcome($$SELECT queue_seek('own seek', 'g', 'b', to_position => 0)$$);
COMMIT;
SELECT partition, payload FROM queue_pop('own seek', 10, consumer_group => 'g', max_partitions => 10);
SELECT partition, payload FROM queue_pop('own seek', 10, max_partitions => 10);

-- Bad input.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_seek(NULL, 'g', to_end => true)$$,
	$$SELECT queue_seek('seek', NULL, to_end => true)$$,
	$$SELECT queue_seek('nowhere', 'g', to_end => true)$$,
	$$SELECT queue_seek('seek', 'missing', to_end => true)$$,
	$$SELECT queue_seek('seek', 'g', 'missing', to_end => true)$$,
	$$SELECT queue_seek('seek', 'g')$$,
	$$SELECT queue_seek('seek', 'g', to_end => false)$$,
	$$SELECT queue_seek('seek', 'g', to_position => 1, to_end => true)$$,
	$$SELECT queue_seek('seek', 'g', to_position => 1, to_time => now())$$,
	$$SELECT queue_seek('seek', 'g', to_position => 1, to_time => now(), to_end => true)$$,
	$$SELECT queue_seek('seek', 'g', to_position => -1)$$]) AS statement;
