-- A lease belongs to its transaction: a rollback gives it back at once, the attempt stays counted.
SELECT queue_push('back', '1') IS NOT NULL AS pushed;
BEGIN;
SELECT attempt, payload FROM queue_pop('back');
SELECT messages, pid = pg_backend_pid() AS mine, leased_until, in_transaction FROM qlog_leases WHERE queue = 'back';
ROLLBACK;
SELECT ready, leased FROM depth WHERE queue = 'back';
BEGIN;
SAVEPOINT a;
SELECT attempt, payload FROM queue_pop('back');
ROLLBACK TO a;
SELECT attempt, payload FROM queue_pop('back');
SAVEPOINT b;
SELECT count(*) FROM queue_pop('back');
ROLLBACK TO b;
SELECT ready, leased FROM depth WHERE queue = 'back';
COMMIT;
SELECT messages, pid, leased_until > leased_at AS until, in_transaction FROM qlog_leases WHERE queue = 'back';

-- A statement that fails after the pop.
SELECT count(*) FROM queue_push_batch('back 2', ARRAY['1', '2', '3']);
SELECT 1 / (payload::text::int - 2) AS quotient FROM queue_pop('back 2', 3);
SELECT ready, leased FROM depth WHERE queue = 'back 2';

-- Many pops in one transaction, in savepoints kept and taken back.
SELECT count(*) FROM queue_push_batch('back 3', (SELECT array_agg(i::text) FROM generate_series(1, 100) AS i));
DO $$
BEGIN
	FOR i IN 1..100 LOOP
		BEGIN
			PERFORM queue_pop('back 3');
			IF i % 2 = 0 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END $$;
SELECT ready, leased FROM depth WHERE queue = 'back 3';
SELECT count(*) AS leases, count(pid) AS in_transaction FROM qlog_leases WHERE queue = 'back 3';
