-- queue_nack gives messages back at once, also out of a transaction that rolls back.
SELECT count(*) FROM queue_push_batch('nack', ARRAY['1', '2', '3', '4']);
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('nack', 4) GROUP BY lease_id \gset
BEGIN;
SELECT queue_nack(:lease_id, (:'ids'::uuid[])[2:3], reason => 'busy');
ROLLBACK;
SELECT ready, leased FROM depth WHERE queue = 'nack';
SELECT "position", attempt, payload FROM queue_pop('nack', 4);
SELECT queue_nack(:lease_id);
SELECT queue_nack(:lease_id);
SELECT queue_nack(0), queue_nack(42);
SELECT nacked FROM qlog_stat_queues WHERE queue = 'nack';

-- With a retry time the message waits.
SELECT lease_id FROM queue_pop('nack', 1) \gset
SELECT queue_nack(:lease_id, retry_after => '1 h');
SELECT ready, leased, delayed FROM depth WHERE queue = 'nack';
SELECT count(*) FROM queue_peek('nack', batch => 100);
SELECT lease_id FROM queue_pop('nack', 1) \gset
SELECT queue_nack(:lease_id, retry_after => '20 ms');
DO $$ BEGIN WHILE (SELECT ready FROM depth WHERE queue = 'nack') = 0 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT "position", attempt FROM queue_pop('nack', 1);
SELECT outcome(format('SELECT queue_nack(%s, retry_after => %L)', :lease_id, '-1 s'));
SELECT outcome(format('SELECT queue_nack(%s, retry_after => %L)', :lease_id, '2 years'));
SELECT outcome(format('SELECT queue_nack(%s, reason => %L)', :lease_id, repeat('x', 1025)));

-- In an ordered partition the lowest one named and everything of the lease behind it.
SELECT count(*) FROM queue_push_batch('nack lane', ARRAY['1', '2', '3', '4', '5'], array_fill('lane'::text, ARRAY[5]));
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('nack lane', 4) GROUP BY lease_id \gset
SELECT queue_nack(:lease_id, (:'ids'::uuid[])[3:3]);
SELECT ready, leased FROM depth WHERE queue = 'nack lane';
-- The lane is taken until the rest is answered; then it goes on where the nack was. Only the lowest is charged.
SELECT count(*) FROM queue_pop('nack lane', 10);
SELECT queue_ack(:lease_id);
SELECT "position", attempt FROM queue_pop('nack lane', 10);

-- What the transaction has acknowledged before is not given back.
SELECT count(*) FROM queue_push_batch('nack ack', ARRAY['1', '2', '3']);
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('nack ack', 3) GROUP BY lease_id \gset
BEGIN;
SELECT queue_ack(:lease_id, (:'ids'::uuid[])[1:1]);
SELECT queue_nack(:lease_id);
COMMIT;
SELECT ready, leased, acked FROM depth WHERE queue = 'nack ack';
