-- However the call is embedded in a statement, one evaluation takes no more than `batch` messages.
SELECT count(*) FROM queue_push_batch('plan', (SELECT array_agg(i::text) FROM generate_series(1, 400) AS i));
CREATE TABLE plan_rows AS SELECT i FROM generate_series(1, 10000) AS i;
ANALYZE plan_rows;

-- How many messages the statement has leased; an aborted one gives them back.
CREATE FUNCTION leased_by(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	after bigint;
BEGIN
	SELECT leased INTO before FROM depth WHERE queue = 'plan';
	EXECUTE statement;
	SELECT leased INTO after FROM depth WHERE queue = 'plan';
	RETURN after - before;
END $$;

-- Once: under a LIMIT, sorted, in joins whose other side has many rows, in subqueries, aggregates, CTEs, set operations.
SELECT statement, leased_by(statement) AS leased FROM unnest(ARRAY[
	$$SELECT * FROM queue_pop('plan', 3) LIMIT 1$$,
	$$SELECT * FROM queue_pop('plan', 3) LIMIT 0$$,
	$$SELECT * FROM queue_pop('plan', 3) OFFSET 2 LIMIT 1$$,
	$$SELECT * FROM queue_pop('plan', 3) ORDER BY payload::text DESC LIMIT 1$$,
	$$SELECT * FROM queue_pop('plan', 3) WHERE attempt > 1$$,
	$$SELECT * FROM (SELECT * FROM queue_pop('plan', 3) LIMIT 1) AS s$$,
	$$SELECT * FROM queue_pop('plan', 3) AS p, plan_rows$$,
	$$SELECT * FROM plan_rows, queue_pop('plan', 3) AS p WHERE i = p.attempt$$,
	$$SELECT * FROM plan_rows LEFT JOIN queue_pop('plan', 3) AS p ON p.attempt = i$$,
	$$SELECT * FROM plan_rows FULL JOIN queue_pop('plan', 3) AS p ON p.attempt = i$$,
	$$SELECT * FROM queue_pop('plan', 3) AS a, queue_pop('plan', 3) AS b$$,
	$$SELECT i, (SELECT count(*) FROM queue_pop('plan', 3)) FROM plan_rows$$,
	$$SELECT * FROM plan_rows WHERE i IN (SELECT attempt FROM queue_pop('plan', 3))$$,
	$$SELECT * FROM plan_rows WHERE i NOT IN (SELECT attempt FROM queue_pop('plan', 3))$$,
	$$SELECT * FROM plan_rows WHERE i = ANY (ARRAY(SELECT attempt FROM queue_pop('plan', 3)))$$,
	$$SELECT * FROM plan_rows WHERE EXISTS (SELECT FROM queue_pop('plan', 3))$$,
	$$WITH p AS (SELECT * FROM queue_pop('plan', 3)) SELECT * FROM p AS a JOIN p AS b USING (attempt)$$,
	$$WITH p AS NOT MATERIALIZED (SELECT * FROM queue_pop('plan', 3)) SELECT * FROM p AS a JOIN p AS b USING (attempt)$$,
	$$WITH p AS (SELECT * FROM queue_pop('plan', 3)) SELECT 1$$,
	$$SELECT payload FROM queue_pop('plan', 3) UNION ALL SELECT json '0'$$,
	$$SELECT count(*), max(attempt) FROM queue_pop('plan', 3)$$,
	$$SELECT row_number() OVER (ORDER BY "position") FROM queue_pop('plan', 3)$$,
	$$SELECT (queue_pop('plan', 3)).payload$$,
	$$SELECT (queue_pop('plan', 3)).payload LIMIT 1$$,
	$$SELECT CASE WHEN i < 0 THEN (SELECT max(attempt) FROM queue_pop('plan', 3)) END FROM plan_rows$$,
	$$EXPLAIN SELECT * FROM queue_pop('plan', 3)$$,
	$$EXPLAIN ANALYZE SELECT * FROM queue_pop('plan', 3)$$]) AS statement;

-- Once for each row on which it depends.
SELECT statement, leased_by(statement) AS leased FROM unnest(ARRAY[
	$$SELECT * FROM (VALUES (1), (2)) AS v(n), LATERAL queue_pop('plan', n)$$,
	$$SELECT * FROM (VALUES (1), (2), (3)) AS v(n), LATERAL queue_pop('plan', n) LIMIT 2$$,
	$$SELECT n, (SELECT count(*) FROM queue_pop('plan', n)) FROM (VALUES (1), (2)) AS v(n)$$,
	$$SELECT * FROM (VALUES (0), (2)) AS v(n) LEFT JOIN LATERAL (SELECT * FROM queue_pop('plan', 2) WHERE n > 0) AS p ON true$$]) AS statement;

-- Through a view and a function that can be inlined.
CREATE VIEW plan_view AS SELECT * FROM queue_pop('plan', 2);
CREATE FUNCTION plan_wrapper(n int) RETURNS SETOF json LANGUAGE sql VOLATILE AS $$ SELECT payload FROM queue_pop('plan', n) $$;
SELECT leased_by('SELECT * FROM plan_view'), leased_by('SELECT * FROM plan_view AS a, plan_rows'),
	leased_by('SELECT * FROM plan_wrapper(2) LIMIT 1');

-- A function that changes something never runs in a parallel worker, nor beside one.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION gathers(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found boolean := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		found := found OR line LIKE '%Gather%';
	END LOOP;
	RETURN found;
END $$;
SELECT gathers('SELECT count(*) FROM plan_rows'),
	gathers($$SELECT count(*) FROM plan_rows, queue_pop('plan', 3) AS p WHERE i = p.attempt$$),
	gathers($$SELECT count(*) FROM plan_rows WHERE queue_push('plan', '1') IS NULL$$),
	gathers($$SELECT count(queue_ack(i)) FROM plan_rows$$);
SELECT leased_by($$SELECT count(*) FROM plan_rows, queue_pop('plan', 3) AS p WHERE i = p.attempt$$);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- Prepared, until the plan is generic, and with every mode of plans.
PREPARE take(int) AS SELECT count(*) FROM queue_pop('plan', $1);
EXECUTE take(1);
EXECUTE take(2);
EXECUTE take(1);
EXECUTE take(1);
EXECUTE take(1);
EXECUTE take(1);
EXECUTE take(2);
SET plan_cache_mode = force_generic_plan;
EXECUTE take(2);
RESET plan_cache_mode;
SELECT generic_plans > 0 AS generic FROM pg_prepared_statements WHERE name = 'take';
DEALLOCATE take;

-- Cursors: all that the statement takes is taken by the first FETCH, and kept when the cursor is closed.
SELECT min(queue_ack(lease_id)) > 0 AS acked FROM qlog_leases WHERE queue = 'plan';
SELECT leased FROM depth WHERE queue = 'plan';
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT "position" - min("position") OVER () AS nth FROM queue_pop('plan', 3);
SELECT leased FROM depth WHERE queue = 'plan';
FETCH 1 FROM c;
SELECT leased FROM depth WHERE queue = 'plan';
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
MOVE ABSOLUTE 0 IN c;
FETCH 1 FROM c;
CLOSE c;
SELECT leased FROM depth WHERE queue = 'plan';
DECLARE c CURSOR WITH HOLD FOR SELECT 1 AS one FROM queue_pop('plan', 2);
COMMIT;
FETCH ALL FROM c;
CLOSE c;
SELECT leased FROM depth WHERE queue = 'plan';

-- DO blocks and procedures that commit in between: each message once.
CREATE TABLE plan_done (n int);
DO $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT * FROM queue_pop('plan', 4) LOOP
		INSERT INTO plan_done VALUES (r.payload::text::int);
		PERFORM queue_ack(r.lease_id, ARRAY[r.message_id]);
		n := n + 1;
		COMMIT;
	END LOOP;
	RAISE NOTICE '% done', n;
END $$;
CREATE PROCEDURE plan_work(batches int) LANGUAGE plpgsql AS $$
DECLARE
	lease bigint;
BEGIN
	FOR i IN 1..batches LOOP
		WITH p AS (SELECT * FROM queue_pop('plan', 5)), d AS (INSERT INTO plan_done SELECT payload::text::int FROM p)
		SELECT max(lease_id) INTO lease FROM p;
		PERFORM queue_ack(lease);
		IF i % 2 = 0 THEN
			COMMIT;
		ELSE
			ROLLBACK;
		END IF;
	END LOOP;
END $$;
CALL plan_work(6);
SELECT count(*), count(DISTINCT n) FROM plan_done;
SELECT acked = (SELECT pushed FROM qlog_stat_queues WHERE queue = 'plan') - ready - leased AS adds_up, leased FROM depth WHERE queue = 'plan';

-- Rows and messages of one statement.
INSERT INTO plan_done SELECT payload::text::int FROM queue_pop('plan', 3, auto_ack => true) RETURNING n > 0 AS done;
UPDATE plan_rows SET i = -i FROM queue_pop('plan', 2, auto_ack => true) AS p WHERE i = p.attempt RETURNING i;
SELECT queue_push('plan', to_json(-i)) IS NOT NULL AS pushed FROM plan_rows WHERE i < 0;
DROP VIEW plan_view;
DROP PROCEDURE plan_work(int);
DROP FUNCTION plan_wrapper(int), leased_by(text), gathers(text);
DROP TABLE plan_rows, plan_done;
