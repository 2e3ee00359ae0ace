-- queue_pause: pushes are refused, pops find nothing; answers go on.
SELECT count(*) FROM queue_push_batch('pause', ARRAY['1', '2', '3']);
SELECT DISTINCT lease_id FROM queue_pop('pause', 2) \gset
SELECT queue_pause('pause', 'push');
SELECT paused FROM qlog_queues WHERE queue = 'pause';
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_push('pause', '4')$$,
	$$SELECT queue_push('pause', '4', 'p')$$,
	$$SELECT queue_push_batch('pause', ARRAY['4'])$$,
	$$SELECT queue_push_batch_json('pause', '[4]')$$,
	$$SELECT queue_transaction('[{"op": "push", "queue": "pause", "payload": 4}]')$$]) AS statement;
SELECT payload FROM queue_pop('pause');
SELECT queue_pause('pause', 'pop');
SELECT paused FROM qlog_queues WHERE queue = 'pause';
SELECT queue_resume('pause', 'push');
SELECT paused FROM qlog_queues WHERE queue = 'pause';
SELECT queue_push('pause', '4') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('pause', 10);
SELECT count(*) FROM queue_pop('pause', 10, partition => '');
SELECT count(*) FROM queue_peek('pause');
SELECT queue_ack(:lease_id, ARRAY[message_id]) FROM queue_peek('pause', batch => 1);
SELECT queue_renew(:lease_id) IS NOT NULL AS renewed;
SELECT queue_reject(:lease_id);
SELECT queue_resume('pause');
SELECT paused IS NULL AS running FROM qlog_queues WHERE queue = 'pause';
SELECT payload FROM queue_pop('pause', 10);
SELECT queue_pause('pause');
SELECT queue_pause('pause', NULL), queue_pause('pause', 'BOTH');
SELECT paused FROM qlog_queues WHERE queue = 'pause';
SELECT queue_resume('pause', NULL);
SELECT paused IS NULL AS running FROM qlog_queues WHERE queue = 'pause';
SELECT outcome($$SELECT queue_pause('pause', 'peek')$$);
SELECT outcome($$SELECT queue_resume('pause', '')$$);
SELECT outcome($$SELECT queue_pause('no such queue')$$);
SELECT outcome($$SELECT queue_pause(NULL)$$);
SELECT outcome($$SELECT queue_resume(NULL)$$);

-- The transaction sees its own pause at once, and its end.
BEGIN;
SELECT queue_push('pause', '5') IS NOT NULL AS pushed;
SELECT queue_pause('pause', 'push');
SELECT outcome($$SELECT queue_push('pause', '6')$$);
SAVEPOINT a;
SELECT queue_resume('pause');
SELECT queue_push('pause', '7') IS NOT NULL AS pushed;
ROLLBACK TO a;
SELECT outcome($$SELECT queue_push('pause', '8')$$);
ROLLBACK;
SELECT queue_pause('pause', 'push');
BEGIN;
SELECT queue_resume('pause');
SELECT queue_push('pause', '9') IS NOT NULL AS pushed;
COMMIT;
-- What it has pushed before it pauses the queue enters it.
BEGIN;
SELECT queue_push('pause', '10') IS NOT NULL AS pushed;
SELECT queue_pause('pause');
COMMIT;
SELECT paused FROM qlog_queues WHERE queue = 'pause';
SELECT queue_resume('pause');
SELECT payload FROM queue_pop('pause', 10);
SELECT queue_drop('pause');
