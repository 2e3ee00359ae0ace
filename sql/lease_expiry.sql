-- A lease that runs out gives its messages back and charges the attempt.
SELECT count(*) FROM queue_push_batch('expiry', ARRAY['1', '2']);
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('expiry', 2, lease => '30 ms') GROUP BY lease_id \gset
DO $$ BEGIN WHILE (SELECT ready FROM depth WHERE queue = 'expiry') < 2 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT expired FROM qlog_stat_queues WHERE queue = 'expiry';
SELECT queue_ack(:lease_id), queue_ack(:lease_id, :'ids'::uuid[]), queue_nack(:lease_id), queue_renew(:lease_id);
SELECT "position", attempt FROM queue_pop('expiry', 2);

-- Acknowledged, and lost before COMMIT: 40001, and the table change goes with it.
CREATE TABLE worked (i int);
SELECT queue_push('expiry 2', '1') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('expiry 2', lease => '500 ms') \gset
BEGIN;
SELECT queue_ack(:lease_id);
INSERT INTO worked VALUES (1);
DO $$ BEGIN WHILE (SELECT ready FROM depth WHERE queue = 'expiry 2') = 0 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM worked;
-- Without table changes as well.
SELECT lease_id FROM queue_pop('expiry 2', lease => '500 ms') \gset
BEGIN;
SELECT queue_ack(:lease_id);
DO $$ BEGIN WHILE (SELECT ready FROM depth WHERE queue = 'expiry 2') = 0 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT ready, leased, acked FROM depth WHERE queue = 'expiry 2';
-- What the transaction has acknowledged is not its to give back.
BEGIN;
SELECT lease_id FROM queue_pop('expiry 2') \gset
SELECT queue_ack(:lease_id);
SELECT queue_nack(:lease_id);
COMMIT;
SELECT ready, leased, acked FROM depth WHERE queue = 'expiry 2';

-- A lease cannot run out while the transaction of its pop is open.
SELECT queue_push('expiry 3', '1') IS NOT NULL AS pushed;
BEGIN;
SELECT lease_id FROM queue_pop('expiry 3', lease => '1 ms') \gset
SELECT pg_sleep(0.1);
SELECT queue_ack(:lease_id);
COMMIT;
SELECT ready, leased, acked FROM depth WHERE queue = 'expiry 3';
DROP TABLE worked;
