-- What comes back is delivered again: retry_limit times more, after retry_delay, in whatever way it came back.
CREATE PROCEDURE await_dead(name text, n bigint) LANGUAGE plpgsql AS $$
BEGIN
	WHILE (SELECT dead FROM depth WHERE queue = name) < n LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
END $$;

-- Given back.
SELECT queue_create('retry nack', '{"retry_limit": 2}');
SELECT queue_push('retry nack', '{"n": 1}') IS NOT NULL AS pushed;
SELECT attempt, queue_nack(lease_id, reason => 'first') FROM queue_pop('retry nack');
SELECT attempt, queue_nack(lease_id, reason => 'second') FROM queue_pop('retry nack');
SELECT ready, leased, delayed, dead FROM depth WHERE queue = 'retry nack';
SELECT attempt, queue_nack(lease_id, reason => 'third') FROM queue_pop('retry nack');
SELECT ready, leased, delayed, dead FROM depth WHERE queue = 'retry nack';
SELECT count(*) FROM queue_pop('retry nack');
SELECT consumer_group, partition, "position", attempts, reason, payload FROM qlog_dead_letters WHERE queue = 'retry nack';
SELECT nacked, acked, expired, dropped FROM qlog_stat_queues WHERE queue = 'retry nack';

-- Given back twice: the second answer finds nothing, and there is one letter.
SELECT queue_create('retry twice', '{"retry_limit": 0}');
SELECT queue_push('retry twice', '1') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('retry twice') \gset
SELECT queue_nack(:lease_id, reason => 'one'), queue_nack(:lease_id, reason => 'two'), queue_reject(:lease_id, reason => 'three'),
	queue_ack(:lease_id);
SELECT attempts, reason FROM qlog_dead_letters WHERE queue = 'retry twice';
SELECT nacked, acked, dead FROM qlog_stat_queues WHERE queue = 'retry twice';

-- Without a reason, and with a delay that does not matter any more.
SELECT queue_push('retry nack', '2') IS NOT NULL AS pushed;
SELECT attempt, queue_nack(lease_id) FROM queue_pop('retry nack');
SELECT attempt, queue_nack(lease_id) FROM queue_pop('retry nack');
SELECT attempt, queue_nack(lease_id, retry_after => '1 h') FROM queue_pop('retry nack');
SELECT attempts, reason FROM qlog_dead_letters WHERE queue = 'retry nack' AND payload::text = '2';

-- Some of a lease die, the others come back.
SELECT queue_create('retry mixed', '{"retry_limit": 1}');
SELECT count(*) FROM queue_push_batch('retry mixed', ARRAY['1', '2']);
SELECT queue_nack(lease_id) FROM queue_pop('retry mixed');
SELECT queue_push('retry mixed', '3') IS NOT NULL AS pushed;
SELECT lease_id FROM (SELECT * FROM queue_pop('retry mixed', 10)) p LIMIT 1 \gset
SELECT queue_nack(:lease_id, reason => 'all');
SELECT ready, leased, dead FROM depth WHERE queue = 'retry mixed';
SELECT payload, attempts, reason FROM qlog_dead_letters WHERE queue = 'retry mixed';
SELECT payload, attempt FROM queue_pop('retry mixed', 10);

-- The lease runs out.
SELECT queue_create('retry expiry', '{"retry_limit": 1, "lease": "20 ms"}');
SELECT queue_push('retry expiry', '1') IS NOT NULL AS pushed;
SELECT attempt FROM queue_pop('retry expiry');
DO $$ BEGIN WHILE (SELECT ready FROM depth WHERE queue = 'retry expiry') = 0 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT attempt FROM queue_pop('retry expiry');
CALL await_dead('retry expiry', 1);
SELECT ready, leased, delayed, dead FROM depth WHERE queue = 'retry expiry';
SELECT attempts, reason, payload FROM qlog_dead_letters WHERE queue = 'retry expiry';
SELECT expired FROM qlog_stat_queues WHERE queue = 'retry expiry';

-- The transaction rolls back, or only a savepoint.
SELECT queue_create('retry rollback', '{"retry_limit": 2}');
SELECT queue_push('retry rollback', '1') IS NOT NULL AS pushed;
BEGIN;
SELECT attempt FROM queue_pop('retry rollback');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT attempt FROM queue_pop('retry rollback');
ROLLBACK TO s;
SELECT attempt FROM queue_pop('retry rollback');
SELECT 1 / 0;
COMMIT;
CALL await_dead('retry rollback', 1);
SELECT ready, leased, dead FROM depth WHERE queue = 'retry rollback';
SELECT attempts, reason FROM qlog_dead_letters WHERE queue = 'retry rollback';

-- No retry at all, and no limit.
SELECT queue_create('retry 0', '{"retry_limit": 0}');
SELECT queue_push('retry 0', '1') IS NOT NULL AS pushed;
SELECT queue_nack(lease_id, reason => 'never again') FROM queue_pop('retry 0');
SELECT ready, dead FROM depth WHERE queue = 'retry 0';
SELECT queue_create('retry -1', '{"retry_limit": -1}');
SELECT queue_push('retry -1', '1') IS NOT NULL AS pushed;
DO $$ BEGIN FOR i IN 1 .. 50 LOOP PERFORM queue_nack(lease_id) FROM queue_pop('retry -1'); END LOOP; END $$;
SELECT attempt FROM queue_pop('retry -1');
SELECT ready, leased, dead FROM depth WHERE queue = 'retry -1';

-- Delays: of the queue, of the call, and none for the first delivery.
SELECT queue_create('retry delay', '{"retry_delay": "1 h", "retry_delay_max": "1 day"}');
SELECT queue_push('retry delay', '1') IS NOT NULL AS pushed;
SELECT queue_nack(lease_id) FROM queue_pop('retry delay');
SELECT ready, leased, delayed FROM depth WHERE queue = 'retry delay';
SELECT count(*) FROM queue_pop('retry delay');
SELECT queue_push('retry delay', '2') IS NOT NULL AS pushed;
SELECT queue_nack(lease_id, retry_after => '0') FROM queue_pop('retry delay');
BEGIN;
SELECT payload, attempt FROM queue_pop('retry delay');
ROLLBACK;
SELECT ready, leased, delayed FROM depth WHERE queue = 'retry delay';
SELECT queue_create('retry cap', '{"retry_delay": "1 h", "retry_delay_max": "10 ms"}');
SELECT queue_push('retry cap', '1') IS NOT NULL AS pushed;
SELECT queue_nack(lease_id) FROM queue_pop('retry cap');
DO $$ BEGIN WHILE (SELECT ready FROM depth WHERE queue = 'retry cap') = 0 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT attempt FROM queue_pop('retry cap');

-- In order: only the lowest message is charged, it is waited for, and it takes nobody along.
SELECT queue_create('retry order', '{"retry_limit": 1}');
SELECT count(*) FROM queue_push_batch('retry order', ARRAY['1', '2', '3'], array_fill('p'::text, ARRAY[3]));
SELECT lease_id FROM queue_pop('retry order', 10) LIMIT 1 \gset
SELECT queue_nack(:lease_id);
BEGIN;
SELECT "position", attempt, payload FROM queue_pop('retry order', 10);
ROLLBACK;
CALL await_dead('retry order', 1);
SELECT payload, attempts FROM qlog_dead_letters WHERE queue = 'retry order';
SELECT "position", attempt, payload FROM queue_pop('retry order', 10);
SELECT lease_id FROM qlog_leases WHERE queue = 'retry order' \gset
SELECT queue_ack(:lease_id);
SELECT ready, leased, dead, acked FROM depth WHERE queue = 'retry order';

SELECT count(*) FROM queue_push_batch('retry order', ARRAY['4', '5'], array_fill('p'::text, ARRAY[2]));
SELECT lease_id FROM queue_pop('retry order', 10) LIMIT 1 \gset
SELECT queue_nack(:lease_id, retry_after => '1 h');
SELECT count(*) FROM queue_pop('retry order', 10);
SELECT ready, leased, delayed, dead, acked FROM depth WHERE queue = 'retry order';

-- dead_letters off: dropped, and counted.
SELECT queue_create('retry drop', '{"retry_limit": 0, "dead_letters": false}');
SELECT count(*) FROM queue_push_batch('retry drop', ARRAY['1', '2', '3', '4']);
SELECT queue_nack(lease_id) FROM queue_pop('retry drop');
BEGIN;
SELECT payload FROM queue_pop('retry drop');
ROLLBACK;
DO $$ BEGIN WHILE (SELECT dropped FROM qlog_stat_queues WHERE queue = 'retry drop') < 2 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT queue_reject(lease_id, reason => 'out') FROM queue_pop('retry drop');
SELECT dropped FROM qlog_stat_queues WHERE queue = 'retry drop';
BEGIN;
SELECT queue_reject(lease_id) FROM queue_pop('retry drop');
ROLLBACK;
DO $$ BEGIN WHILE (SELECT dropped FROM qlog_stat_queues WHERE queue = 'retry drop') < 4 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT ready, leased, delayed, dead, acked FROM depth WHERE queue = 'retry drop';
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'retry drop';

-- The limit that holds when a message comes back counts.
SELECT queue_create('retry change');
SELECT queue_push('retry change', '1') IS NOT NULL AS pushed;
SELECT queue_nack(lease_id) FROM queue_pop('retry change');
SELECT queue_nack(lease_id) FROM queue_pop('retry change');
SELECT queue_set('retry change', 'retry_limit', '1');
SELECT ready, dead FROM depth WHERE queue = 'retry change';
SELECT attempt, queue_nack(lease_id) FROM queue_pop('retry change');
SELECT ready, dead FROM depth WHERE queue = 'retry change';

-- Each group has its attempts and its dead letters.
SELECT queue_create('retry groups', '{"retry_limit": 0}');
SELECT queue_push('retry groups', '1') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('retry groups', consumer_group => 'g', auto_ack => true);
SELECT count(*) FROM queue_pop('retry groups', consumer_group => 'h');
SELECT queue_reject(lease_id, reason => 'h does not want it') FROM qlog_leases WHERE queue = 'retry groups' AND consumer_group = 'h';
SELECT queue_nack(lease_id, reason => 'nor does the default one') FROM queue_pop('retry groups');
SELECT consumer_group, attempts, reason FROM qlog_dead_letters WHERE queue = 'retry groups' ORDER BY 1;
SELECT dead FROM depth WHERE queue = 'retry groups';
