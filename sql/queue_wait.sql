-- CALL queue_wait: returns when a pop would find something, or when the time is over.
SELECT queue_create('call');
CALL queue_wait('call', '0');
CALL queue_wait('call', '20 ms');
CALL queue_wait('call', wait => '20 ms', consumer_group => NULL);
SELECT waiting, wakeups FROM qlog_stat_queues WHERE queue = 'call';

-- Something is there: at once. Under statement_timeout a wait for the whole time would be an error.
SET statement_timeout = '60 s';
SELECT queue_push('call', '1') IS NOT NULL AS pushed;
CALL queue_wait('call', '1 h');
SELECT payload FROM queue_pop('call') AS p, queue_ack(p.lease_id);

-- A second call before the pop: the first one's claim has ended.
SELECT queue_push('call', '2') IS NOT NULL AS pushed;
CALL queue_wait('call');
CALL queue_wait('call');
SELECT queue_nack(lease_id, retry_after => '100 ms') FROM queue_pop('call');
CALL queue_wait('call', NULL);
SELECT attempt, payload FROM queue_pop('call', lease => '100 ms');
CALL queue_wait('call', '1 h');
SELECT attempt, payload FROM queue_pop('call') AS p, queue_ack(p.lease_id);

-- With every isolation level.
SELECT queue_push('call', '3') IS NOT NULL AS pushed;
SET default_transaction_isolation = 'repeatable read';
CALL queue_wait('call', '1 h');
SET default_transaction_isolation = 'serializable';
CALL queue_wait('call', '1 h');
RESET default_transaction_isolation;

-- In a DO block and in a procedure, which it commits for.
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT i FROM generate_series(1, 2) AS i LOOP
		CALL queue_wait('call', '1 h');
		RAISE NOTICE 'turn %', r.i;
	END LOOP;
END $$;
CREATE PROCEDURE consume(queue text, n int) LANGUAGE plpgsql AS $$
DECLARE
	taken int := 0;
	lease bigint;
	body json;
BEGIN
	WHILE taken < n LOOP
		CALL queue_wait(queue, '1 h');
		SELECT lease_id, payload INTO lease, body FROM queue_pop(queue);
		IF lease IS NOT NULL THEN
			PERFORM queue_ack(lease);
			COMMIT;
			taken := taken + 1;
			RAISE NOTICE 'consumed %', body;
		END IF;
	END LOOP;
END $$;
SELECT count(*) FROM queue_push_batch('call', ARRAY['4', '5']);
CALL consume('call', 3);
SELECT ready, leased, acked FROM depth WHERE queue = 'call';

-- Where it cannot end the transaction, or would commit what others have done.
BEGIN;
CALL queue_wait('call', '10 ms');
ROLLBACK;
SELECT 1 AS one \; CALL queue_wait('call', '10 ms');
SELECT outcome($$CALL queue_wait('call', '10 ms')$$);
CREATE FUNCTION wait_in_function() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL queue_wait('call', '10 ms'); END $$;
SELECT wait_in_function();
CREATE PROCEDURE wait_in_sql() LANGUAGE sql AS $$ CALL queue_wait('call', '10 ms') $$;
CALL wait_in_sql();
DO $$ BEGIN PERFORM queue_push('call', '9'); CALL queue_wait('call', '10 ms'); END $$;
DO $$ BEGIN CREATE TABLE never_made(); CALL queue_wait('call', '10 ms'); END $$;
SELECT queue_push('call', '6') IS NOT NULL AS pushed;
DO $$ BEGIN PERFORM queue_pop('call'); CALL queue_wait('call', '10 ms'); END $$;
DO $$ BEGIN PERFORM queue_pop('call'); COMMIT; CALL queue_wait('call', '10 ms'); END $$;
SELECT ready, leased FROM depth WHERE queue = 'call';

-- Wrong arguments.
CALL queue_wait(NULL);
CALL queue_wait('no such queue', '1 h');
CALL queue_wait('call', '-1 s');
CALL queue_wait('call', '366 days');
CALL queue_wait('');
CREATE ROLE wait_nobody;
SET ROLE wait_nobody;
CALL queue_wait('call', '0');
RESET ROLE;
DROP ROLE wait_nobody;
SET default_transaction_read_only = on;
CALL queue_wait('call', '10 ms');
RESET default_transaction_read_only;

-- The time of the statement ends the wait, nothing is left of it.
SET statement_timeout = '500 ms';
CALL queue_wait('call', '1 h');
RESET statement_timeout;
SELECT waiting FROM qlog_stat_queues WHERE queue = 'call';
DROP FUNCTION wait_in_function();
DROP PROCEDURE wait_in_sql();
DROP PROCEDURE consume(text, int);
