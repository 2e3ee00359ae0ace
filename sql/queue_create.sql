-- queue_create takes effect at COMMIT and is undone by a rollback.
SELECT queue_create('create');
SELECT queue, owner = current_user::regrole AS mine, options, partitions FROM qlog_queues WHERE queue = 'create';
SELECT outcome($$SELECT queue_create('create')$$);
SELECT queue_create('create', if_not_exists => true);
SELECT queue_create('create 2', NULL, NULL);

BEGIN;
SELECT queue_create('rolled back');
SELECT queue_push('rolled back', '1') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('rolled back');
SELECT count(*) FROM queue_peek('rolled back');
ROLLBACK;
SELECT count(*) FROM qlog_queues WHERE queue = 'rolled back';

-- A queue, its partitions and messages come with the transaction.
BEGIN;
SELECT queue_create('whole', '{"ordered": true}');
SELECT queue_push('whole', '1') IS NOT NULL AS pushed;
SELECT queue_push('whole', '2', 'lane') IS NOT NULL AS pushed;
SELECT queue_push('whole', '3', 'lane') IS NOT NULL AS pushed;
SELECT count(*) FROM qlog_queues WHERE queue = 'whole';
COMMIT;
SELECT partition, "position", payload FROM queue_peek('whole');

-- Savepoints.
BEGIN;
SAVEPOINT a;
SELECT queue_create('savepoint');
ROLLBACK TO a;
SELECT queue_create('savepoint', '{"lease": "2 min"}');
SAVEPOINT b;
SELECT outcome($$SELECT queue_create('savepoint')$$);
RELEASE b;
COMMIT;
SELECT options FROM qlog_queues WHERE queue = 'savepoint';

-- Created and dropped in one transaction: nothing remains.
BEGIN;
SELECT queue_create('brief');
SELECT queue_push('brief', '1') IS NOT NULL AS pushed;
SELECT queue_drop('brief');
SELECT outcome($$SELECT queue_peek('brief')$$);
COMMIT;
SELECT count(*) FROM qlog_queues WHERE queue = 'brief';
