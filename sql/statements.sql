-- Statements that live longer than what they name: prepared ones and those of functions, over queues that are dropped, made anew
-- and renamed, over another search_path, over DROP EXTENSION.
PREPARE put(text) AS SELECT queue_push('stmt', $1) IS NOT NULL AS pushed;
PREPARE take AS SELECT payload, attempt, queue_ack(lease_id) AS acked FROM queue_pop('stmt');
PREPARE look AS SELECT payload FROM queue_peek('stmt');
CREATE FUNCTION put_and_look(p text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM queue_push('stmt', p);
	RETURN QUERY SELECT payload::text FROM queue_peek('stmt');
END $$;
EXECUTE put('1');
EXECUTE look;
EXECUTE take;
SELECT put_and_look('2');
SELECT queue_drop('stmt');
SET qlog.auto_create = off;
EXECUTE put('3');
\echo :LAST_ERROR_SQLSTATE
EXECUTE take;
\echo :LAST_ERROR_SQLSTATE
EXECUTE look;
\echo :LAST_ERROR_SQLSTATE
SELECT outcome($$SELECT put_and_look('3')$$);
RESET qlog.auto_create;
SELECT queue_create('stmt', '{"ordered": true}');
EXECUTE take;
EXECUTE put('4');
EXECUTE look;
SELECT put_and_look('5');
EXECUTE take;

-- Dropped and made anew within a transaction, and taken back.
BEGIN;
SELECT queue_drop('stmt');
EXECUTE put('6');
EXECUTE look;
EXECUTE take;
ROLLBACK;
EXECUTE look;
BEGIN;
SELECT queue_drop('stmt');
SELECT queue_create('stmt');
EXECUTE put('7');
COMMIT;
EXECUTE look;

-- Another one takes the name.
SELECT queue_rename('stmt', 'stmt old');
EXECUTE put('8');
EXECUTE look;
SELECT queue_rename('stmt', 'stmt new'), queue_rename('stmt old', 'stmt');
EXECUTE look;
EXECUTE take;
SELECT queue_drop('stmt new');

-- The extension moves, goes, and comes back: in a database of its own.
CREATE DATABASE regress_qlog_stmt;
\set home :DBNAME
\c regress_qlog_stmt
SET client_min_messages = warning;
CREATE EXTENSION qlog;
PREPARE put(text) AS SELECT queue_push('stmt', $1) IS NOT NULL AS pushed;
PREPARE look AS SELECT payload FROM queue_peek('stmt');
EXECUTE put('1');
CREATE SCHEMA s;
ALTER EXTENSION qlog SET SCHEMA s;
EXECUTE put('2');
\echo :LAST_ERROR_SQLSTATE
SET search_path = s;
EXECUTE put('2');
EXECUTE look;
DROP EXTENSION qlog;
EXECUTE put('3');
\echo :LAST_ERROR_SQLSTATE
CREATE EXTENSION qlog SCHEMA s;
EXECUTE look;
\echo :LAST_ERROR_SQLSTATE
EXECUTE put('3');
EXECUTE look;
\c :home
DROP DATABASE regress_qlog_stmt;
PREPARE look AS SELECT payload FROM queue_peek('stmt');

-- Cursors: a push runs when its row is fetched, with hold at COMMIT; a pop at the first FETCH, once. A savepoint takes back what ran in it.
-- (With hold PostgreSQL runs a statement from its beginning at COMMIT unless it is NO SCROLL.)
SELECT queue_drop('stmt');
BEGIN;
DECLARE pushes CURSOR FOR SELECT queue_push('stmt', i::text) IS NOT NULL AS pushed FROM generate_series(1, 100) AS i;
FETCH 2 FROM pushes;
SAVEPOINT a;
FETCH 3 FROM pushes;
ROLLBACK TO a;
COMMIT;
EXECUTE look;
BEGIN;
DECLARE pushes NO SCROLL CURSOR WITH HOLD FOR SELECT queue_push('stmt', i::text) IS NOT NULL AS pushed FROM generate_series(11, 13) AS i;
FETCH 1 FROM pushes;
COMMIT;
EXECUTE look;
FETCH ALL FROM pushes;
CLOSE pushes;
BEGIN;
DECLARE pops CURSOR WITH HOLD FOR SELECT payload, queue_ack(lease_id, ARRAY[message_id]) AS acked FROM queue_pop('stmt', 2);
SAVEPOINT a;
FETCH 1 FROM pops;
ROLLBACK TO a;
SELECT ready, leased FROM depth WHERE queue = 'stmt';
COMMIT;
SELECT ready, leased, acked FROM depth WHERE queue = 'stmt';
CLOSE pops;
BEGIN;
DECLARE pops CURSOR WITH HOLD FOR SELECT payload, queue_ack(lease_id, ARRAY[message_id]) AS acked FROM queue_pop('stmt', 2);
COMMIT;
FETCH ALL FROM pops;
SELECT ready, leased, acked FROM depth WHERE queue = 'stmt';
CLOSE pops;
-- One whose materialization fails takes the transaction with it.
BEGIN;
DECLARE pops CURSOR WITH HOLD FOR SELECT 1 / (payload::text::int - 12) AS quotient FROM queue_pop('stmt', 10);
SELECT queue_push('stmt', '99') IS NOT NULL AS pushed;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
EXECUTE look;
SELECT ready, leased FROM depth WHERE queue = 'stmt';

-- In DO blocks: exception handlers, COMMIT and ROLLBACK in a loop over a cursor, a pop of one part answered in the next.
CREATE TABLE stmt_done (n int);
DO $$
DECLARE
	r record;
	lease bigint;
BEGIN
	FOR r IN SELECT i FROM generate_series(101, 104) AS i LOOP
		PERFORM queue_push('stmt', r.i::text);
		IF r.i % 2 = 0 THEN
			COMMIT;
		ELSE
			ROLLBACK;
		END IF;
	END LOOP;
	SELECT max(lease_id) INTO lease FROM queue_pop('stmt', 100);
	COMMIT;
	BEGIN
		PERFORM queue_ack(lease);
		INSERT INTO stmt_done VALUES (1);
		RAISE EXCEPTION 'undo';
	EXCEPTION WHEN raise_exception THEN
		INSERT INTO stmt_done VALUES (2);
	END;
	COMMIT;
	RAISE NOTICE 'after the handler: % leased', (SELECT leased FROM depth WHERE queue = 'stmt');
	PERFORM queue_ack(lease);
	INSERT INTO stmt_done VALUES (3);
	COMMIT;
END $$;
SELECT n FROM stmt_done ORDER BY 1;
SELECT ready, leased FROM depth WHERE queue = 'stmt';

-- In procedures: one that calls another one, with arguments INOUT, and an error behind a COMMIT.
CREATE PROCEDURE stmt_inner(INOUT n int) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM queue_push('stmt', n::text);
	COMMIT;
	n := n + 1;
END $$;
CREATE PROCEDURE stmt_outer() LANGUAGE plpgsql AS $$
DECLARE
	n int := 201;
BEGIN
	CALL stmt_inner(n);
	CALL stmt_inner(n);
	PERFORM queue_push('stmt', '"lost"');
	RAISE EXCEPTION 'behind the last COMMIT';
END $$;
CALL stmt_outer();
EXECUTE look;
-- In a transaction block they cannot commit, and nothing of them stays.
BEGIN;
CALL stmt_inner(301);
ROLLBACK;
EXECUTE look;
DROP PROCEDURE stmt_outer(), stmt_inner(int);
DROP FUNCTION put_and_look(text);
DROP TABLE stmt_done;
SELECT queue_drop('stmt');
