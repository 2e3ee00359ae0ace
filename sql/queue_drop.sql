-- queue_drop takes effect at COMMIT, with everything in the queue.
SELECT queue_push('drop', '1') IS NOT NULL AS pushed;
SELECT queue_push('drop', '2', 'lane') IS NOT NULL AS pushed;
BEGIN;
SELECT queue_drop('drop');
SELECT outcome($$SELECT queue_peek('drop')$$);
ROLLBACK;
SELECT count(*) FROM queue_peek('drop');
SELECT count(*) FROM queue_pop('drop', 10, partition => 'lane');
SELECT queue_drop('drop');
SELECT outcome($$SELECT queue_peek('drop')$$);
SELECT outcome($$SELECT queue_drop('drop')$$);
SELECT queue_drop('drop', if_exists => true);
SELECT count(*) FROM qlog_leases WHERE queue = 'drop';

-- The name is free at once, and the new queue is empty.
SELECT queue_push('drop', '3') IS NOT NULL AS pushed;
SELECT partition, "position", payload FROM queue_peek('drop');

-- Dropped and made anew in one transaction, by hand and by a push; what was pushed to the old one is gone.
BEGIN;
SELECT queue_push('drop', '"old"') IS NOT NULL AS pushed;
SELECT queue_drop('drop');
SELECT queue_create('drop', '{"ordered": true}');
SELECT queue_push('drop', '"new"') IS NOT NULL AS pushed;
COMMIT;
SELECT options FROM qlog_queues WHERE queue = 'drop';
SELECT payload FROM queue_peek('drop');
BEGIN;
SELECT queue_drop('drop');
SELECT queue_push('drop', '"newest"') IS NOT NULL AS pushed;
COMMIT;
SELECT options FROM qlog_queues WHERE queue = 'drop';
SELECT payload FROM queue_peek('drop');

-- A drop that a savepoint takes back.
BEGIN;
SAVEPOINT a;
SELECT queue_drop('drop');
ROLLBACK TO a;
SELECT queue_push('drop', '"stays"') IS NOT NULL AS pushed;
COMMIT;
SELECT payload FROM queue_peek('drop');

-- A lease on a dropped queue answers like any lost one.
SELECT lease_id FROM queue_pop('drop') \gset
SELECT queue_drop('drop');
SELECT queue_ack(:lease_id), queue_nack(:lease_id), queue_reject(:lease_id), queue_renew(:lease_id);
