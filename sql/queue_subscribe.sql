-- A group begins with what is pushed from then on, with everything that is kept, or at a time.
SELECT count(*) FROM queue_push_batch('subscribe', ARRAY['1', '2', '3'], ARRAY['a', 'b', NULL]);
SELECT queue_subscribe('subscribe', 'new');
SELECT queue_subscribe('subscribe', 'oldest', 'oldest');
SELECT queue_subscribe('subscribe', 'null', NULL);
SELECT count(*) FROM queue_pop('subscribe', 10, consumer_group => 'new', max_partitions => 10);
SELECT count(*) FROM queue_push_batch('subscribe', ARRAY['4', '5', '6'], ARRAY['a', 'c', NULL]);
SELECT partition, payload FROM queue_pop('subscribe', 10, consumer_group => 'new', max_partitions => 10) ORDER BY partition, "position";
SELECT partition, payload FROM queue_pop('subscribe', 10, consumer_group => 'null', max_partitions => 10) ORDER BY partition, "position";
SELECT partition, payload FROM queue_pop('subscribe', 10, consumer_group => 'oldest', max_partitions => 10) ORDER BY partition, "position";

-- One that exists stays as it is.
SELECT queue_subscribe('subscribe', 'oldest', 'new');
SELECT queue_subscribe('subscribe', '');
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'subscribe' AND consumer_group = 'oldest';
SELECT count(*) FROM queue_pop('subscribe', 10, consumer_group => 'oldest', max_partitions => 10);

-- By time: pushes half a second apart, one partition of them after the other.
SELECT queue_push('by time', '1', 'a') IS NOT NULL AND queue_push('by time', '2', 'b') IS NOT NULL AS pushed;
SELECT pg_sleep(0.05);
SELECT clock_timestamp() AS instant \gset
SELECT pg_sleep(0.05);
SELECT queue_push('by time', '3', 'b') IS NOT NULL AND queue_push('by time', '4', 'c') IS NOT NULL AS pushed;
SELECT queue_subscribe('by time', 'then', :'instant');
SELECT queue_subscribe('by time', 'ever', '-infinity');
SELECT queue_subscribe('by time', 'never', 'infinity');
SELECT queue_subscribe('by time', 'tomorrow', (now() + interval '1 day')::text);
SELECT queue_push('by time', '5', 'a') IS NOT NULL AS pushed;
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'then', max_partitions => 10) ORDER BY partition, "position";
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'ever', max_partitions => 10) ORDER BY partition, "position";
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'never', max_partitions => 10) ORDER BY partition, "position";
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'tomorrow', max_partitions => 10) ORDER BY partition, "position";

-- The time zone of the session counts, as in every timestamp.
BEGIN;
SET LOCAL timezone = 'Asia/Tokyo';
SELECT queue_subscribe('by time', 'tokyo', to_char(:'instant'::timestamptz AT TIME ZONE 'Asia/Tokyo', 'YYYY-MM-DD HH24:MI:SS.US'));
COMMIT;
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'tokyo', partition => 'b');
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'tokyo', partition => 'a');
SELECT partition, payload FROM queue_pop('by time', 10, consumer_group => 'tokyo', max_partitions => 10) ORDER BY partition, "position";

-- At COMMIT: what is pushed by a transaction that commits with it is not new.
BEGIN;
SELECT queue_subscribe('subscribe', 'own');
SELECT queue_push('subscribe', '7', 'a') IS NOT NULL AS pushed;
SELECT queue_subscribe('subscribe', 'own');
SELECT count(*) FROM queue_pop('subscribe', 10, consumer_group => 'own', max_partitions => 10);
COMMIT;
SELECT count(*) FROM queue_pop('subscribe', 10, consumer_group => 'own', max_partitions => 10);
SELECT queue_push('subscribe', '8', 'a') IS NOT NULL AS pushed;
SELECT payload FROM queue_pop('subscribe', 10, consumer_group => 'own', max_partitions => 10);

-- Rolled back it never was; the same with a savepoint.
BEGIN;
SELECT queue_subscribe('subscribe', 'never');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT queue_subscribe('subscribe', 'never');
ROLLBACK TO s;
SELECT queue_subscribe('subscribe', 'kept', 'oldest');
COMMIT;
SET qlog.auto_create = off;
SELECT outcome($$SELECT queue_pop('subscribe', consumer_group => 'never')$$);
SELECT count(*) > 0 AS found FROM queue_pop('subscribe', consumer_group => 'kept');
RESET qlog.auto_create;

-- Unsubscribed: its leases are gone, and it begins anew when it is made again.
SELECT lease_id FROM queue_pop('subscribe', 10, consumer_group => 'again', partition => 'a') LIMIT 1 \gset
SELECT queue_unsubscribe('subscribe', 'again'), queue_unsubscribe('subscribe', 'missing');
SELECT queue_ack(:lease_id), queue_nack(:lease_id), queue_renew(:lease_id), queue_reject(:lease_id);
SELECT count(*) FROM qlog_leases WHERE queue = 'subscribe' AND consumer_group = 'again';
SELECT queue_unsubscribe('subscribe', 'again');
SELECT attempt, payload FROM queue_pop('subscribe', 10, consumer_group => 'again', partition => 'a') LIMIT 2;

-- Within one transaction, in the order of the calls.
BEGIN;
SELECT queue_unsubscribe('subscribe', 'again');
SELECT outcome($$SELECT queue_pop('subscribe', consumer_group => 'again')$$);
SELECT queue_subscribe('subscribe', 'again');
SELECT queue_unsubscribe('subscribe', 'again');
SELECT queue_subscribe('subscribe', 'again', 'oldest');
COMMIT;
SELECT count(*) FROM queue_pop('subscribe', 2, consumer_group => 'again', partition => 'a');

-- The default group can be dropped as well, and comes again with the first pop without a group.
SELECT queue_unsubscribe('subscribe', '');
SELECT count(*) AS kept FROM queue_peek('subscribe', batch => 100);
SELECT partition, payload FROM queue_pop('subscribe', 10, partition => 'b');

-- 64 of them.
SELECT queue_create('sixty-four');
SELECT count(*) FILTER (WHERE made) AS made FROM (SELECT queue_subscribe('sixty-four', 'g' || i) AS made FROM generate_series(1, 63) AS i) AS s;
SELECT outcome($$SELECT queue_subscribe('sixty-four', 'g64')$$);
BEGIN;
SELECT queue_unsubscribe('sixty-four', 'g1');
SELECT queue_subscribe('sixty-four', 'g64');
COMMIT;
SELECT outcome($$SELECT queue_subscribe('sixty-four', 'g1')$$);
SELECT outcome($$SELECT queue_pop('sixty-four', consumer_group => 'g1')$$);

-- A queue of this transaction.
BEGIN;
SELECT queue_create('own subscribe');
SELECT queue_subscribe('own subscribe', 'g', 'oldest'), queue_subscribe('own subscribe', ''), queue_subscribe('own subscribe', 'h');
SELECT queue_push('own subscribe', '1') IS NOT NULL AS pushed;
SELECT queue_unsubscribe('own subscribe', 'h');
COMMIT;
SELECT payload FROM queue_pop('own subscribe', consumer_group => 'g');
SET qlog.auto_create = off;
SELECT outcome($$SELECT queue_pop('own subscribe', consumer_group => 'h')$$);
RESET qlog.auto_create;

-- Bad input.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_subscribe(NULL, 'g')$$,
	$$SELECT queue_subscribe('subscribe', NULL)$$,
	$$SELECT queue_subscribe('nowhere', 'g')$$,
	$$SELECT queue_subscribe('subscribe', E'a\nb')$$,
	$$SELECT queue_subscribe('subscribe', 'bad', 'yesterdai')$$,
	$$SELECT queue_subscribe('subscribe', 'bad', '')$$,
	$$SELECT queue_unsubscribe(NULL, 'g')$$,
	$$SELECT queue_unsubscribe('subscribe', NULL)$$,
	$$SELECT queue_unsubscribe('nowhere', 'g')$$]) AS statement;
