-- PREPARE TRANSACTION is refused when the transaction has pushed, popped, acknowledged or created, and only then.
SELECT count(*) FROM queue_push_batch('prepare', ARRAY['1', '2', '3']);
BEGIN;
SELECT queue_push('prepare', '4') IS NOT NULL AS pushed;
PREPARE TRANSACTION 'qlog push';
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT count(*) FROM queue_pop('prepare', 1);
PREPARE TRANSACTION 'qlog pop';
SELECT ready, leased FROM depth WHERE queue = 'prepare';
SELECT lease_id FROM queue_pop('prepare', 1) \gset
BEGIN;
SELECT queue_ack(:lease_id);
PREPARE TRANSACTION 'qlog ack';
BEGIN;
SELECT queue_create('prepare 2');
PREPARE TRANSACTION 'qlog create';
SELECT count(*) FROM qlog_queues WHERE queue = 'prepare 2';
SELECT ready, leased FROM depth WHERE queue = 'prepare';
-- Nothing pending: a look, a push that was taken back, answers that are in force already.
BEGIN;
SELECT count(*) FROM queue_peek('prepare');
SAVEPOINT a;
SELECT queue_push('prepare', '4') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('prepare', 1);
ROLLBACK TO a;
SELECT queue_nack(:lease_id);
PREPARE TRANSACTION 'qlog nothing';
COMMIT PREPARED 'qlog nothing';
SELECT ready, leased FROM depth WHERE queue = 'prepare';
