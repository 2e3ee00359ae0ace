-- queue_peek takes nothing.
SELECT count(*) FROM queue_push_batch('peek', ARRAY['1', '2', '3', '4', '5', '6'], ARRAY[NULL, NULL, NULL, 'a', 'a', 'b']);
SELECT partition, "position", attempt, payload FROM queue_peek('peek');
SELECT ready, leased FROM depth WHERE queue = 'peek';
SELECT partition, payload FROM queue_peek('peek', batch => 2);
SELECT partition, payload FROM queue_peek('peek', 'a');
SELECT partition, payload FROM queue_peek('peek', 'none');

-- Leased ones are shown with their attempt, done ones are not.
SELECT lease_id FROM queue_pop('peek', 1, partition => '') \gset
SELECT lease_id AS lease2 FROM queue_pop('peek', 1, partition => '') \gset
SELECT partition, "position", attempt, payload FROM queue_peek('peek', '');
SELECT queue_ack(:lease2);
SELECT partition, "position", attempt, payload FROM queue_peek('peek', '');

-- From a position: what is kept, done or not.
SELECT "position", attempt, payload FROM queue_peek('peek', '', 0);
SELECT "position", attempt, payload FROM queue_peek('peek', '', 2);
SELECT "position", attempt, payload FROM queue_peek('peek', '', 3);
SELECT outcome($$SELECT queue_peek('peek', from_position => 0)$$);
SELECT outcome($$SELECT queue_peek('peek', '', -1)$$);
SELECT outcome($$SELECT queue_peek('peek', batch => 0)$$);

-- From a time.
SELECT count(*) FROM queue_peek('peek', from_time => '-infinity');
SELECT count(*) FROM queue_peek('peek', from_time => 'infinity');
SELECT pg_sleep(0.01);
SELECT clock_timestamp() AS later \gset
SELECT count(queue_push('peek', i::text, 'a')) FROM generate_series(7, 9) AS i;
SELECT partition, "position", payload FROM queue_peek('peek', from_time => :'later');
SELECT bool_and(pushed_at >= :'later') FROM queue_peek('peek', from_time => :'later');
SELECT count(*) FROM queue_peek('peek', 'b', from_time => :'later');

-- A push that is rolled back takes no position.
SELECT queue_push('peek gap', '1') IS NOT NULL AS pushed;
BEGIN;
SELECT queue_push('peek gap', '2') IS NOT NULL AS pushed;
ROLLBACK;
SELECT queue_push('peek gap', '3') IS NOT NULL AS pushed;
SELECT "position", payload FROM queue_peek('peek gap', '', 0);

-- More messages and more partitions than one step looks at.
SELECT count(*) FROM queue_push_batch('peek many', (SELECT array_agg(i::text ORDER BY i) FROM generate_series(1, 3000) AS i));
SELECT count(*), min("position"), max("position") FROM queue_peek('peek many', batch => 2500);
SELECT count(*) FROM queue_push_batch('peek wide', (SELECT array_agg(i::text) FROM generate_series(1, 1000) AS i), (SELECT array_agg(i::text) FROM generate_series(1, 1000) AS i));
SELECT count(DISTINCT partition) FROM queue_peek('peek wide', batch => 900);

-- Allowed in a read-only transaction.
BEGIN READ ONLY;
SELECT count(*) FROM queue_peek('peek');
COMMIT;
