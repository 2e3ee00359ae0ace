-- An ack takes effect at COMMIT. Whole lease, or some of its messages.
SELECT count(*) FROM queue_push_batch('ack', ARRAY['1', '2', '3', '4', '5', '6']);
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('ack', 4) GROUP BY lease_id \gset
BEGIN;
SELECT queue_ack(:lease_id);
SELECT leased, acked FROM depth WHERE queue = 'ack';
ROLLBACK;
SELECT leased, acked FROM depth WHERE queue = 'ack';
SELECT queue_ack(:lease_id, (:'ids'::uuid[])[1:2]);
SELECT ready, leased, acked FROM depth WHERE queue = 'ack';
-- Repeats count once, ids of nobody are ignored, what is done already is done.
SELECT queue_ack(:lease_id, ARRAY[(:'ids'::uuid[])[3], (:'ids'::uuid[])[3], (:'ids'::uuid[])[1], gen_random_uuid()]);
SELECT queue_ack(:lease_id, '{}');
SELECT queue_ack(:lease_id, ARRAY[gen_random_uuid()]);
SELECT outcome(format('SELECT queue_ack(%s, ARRAY[NULL]::uuid[])', :lease_id));
SELECT queue_ack(:lease_id);
SELECT queue_ack(:lease_id);
SELECT queue_ack(0), queue_ack(1), queue_ack(-1);
SELECT ready, leased, acked FROM depth WHERE queue = 'ack';
SELECT payload FROM queue_peek('ack');

-- Twice in one transaction counts once; a savepoint takes its part back.
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('ack', 2) GROUP BY lease_id \gset
BEGIN;
SELECT queue_ack(:lease_id, (:'ids'::uuid[])[1:1]);
SELECT queue_ack(:lease_id);
SELECT queue_ack(:lease_id);
ROLLBACK;
BEGIN;
SELECT queue_ack(:lease_id, (:'ids'::uuid[])[1:1]);
SAVEPOINT a;
SELECT queue_ack(:lease_id);
ROLLBACK TO a;
COMMIT;
SELECT leased, acked FROM depth WHERE queue = 'ack';

-- By ids when another session has popped: the ids are read from the log.
SELECT queue_ack(:lease_id, :'ids'::uuid[]);
SELECT count(*) FROM queue_push_batch('ack 2', ARRAY['1', '2', '3', '4']);
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('ack 2', 4) GROUP BY lease_id \gset
\c -
SELECT queue_ack(:lease_id, (:'ids'::uuid[])[2:3]);
SELECT leased, acked FROM depth WHERE queue = 'ack 2';
-- The others run out or are given back, and come again.
SELECT queue_nack(:lease_id);
SELECT "position", attempt, payload FROM queue_pop('ack 2', 4);

-- Pop and ack in one transaction, with a table.
CREATE TABLE done (i int);
SELECT count(*) FROM queue_push_batch('ack 3', ARRAY['1', '2', '3']);
BEGIN;
WITH taken AS MATERIALIZED (SELECT * FROM queue_pop('ack 3', 10)), work AS (INSERT INTO done SELECT payload::text::int FROM taken)
SELECT queue_ack(lease_id) FROM taken GROUP BY lease_id;
ROLLBACK;
SELECT count(*) FROM done;
SELECT ready, leased, acked FROM depth WHERE queue = 'ack 3';
BEGIN;
WITH taken AS MATERIALIZED (SELECT * FROM queue_pop('ack 3', 10)), work AS (INSERT INTO done SELECT payload::text::int FROM taken)
SELECT queue_ack(lease_id) FROM taken GROUP BY lease_id;
COMMIT;
SELECT count(*) FROM done;
SELECT ready, leased, acked FROM depth WHERE queue = 'ack 3';
DROP TABLE done;

-- auto_ack: acknowledged with the transaction.
SELECT count(*) FROM queue_push_batch('ack 4', ARRAY['1', '2', '3']);
BEGIN;
SELECT payload FROM queue_pop('ack 4', 2, auto_ack => true);
ROLLBACK;
SELECT ready, leased, acked FROM depth WHERE queue = 'ack 4';
SELECT payload, attempt FROM queue_pop('ack 4', 2, auto_ack => true);
SELECT ready, leased, acked FROM depth WHERE queue = 'ack 4';
SELECT count(*) FROM qlog_leases WHERE queue = 'ack 4';
