-- CREATE EXTENSION in a schema of the user's choice, and what it brings. The other tests need what this one makes.
SET client_min_messages = warning;
CREATE EXTENSION qlog;
SELECT qlog_version() = default_version AS same_version FROM pg_available_extensions WHERE name = 'qlog';

-- Every object has a comment.
SELECT pg_describe_object(classid, objid, objsubid) AS without_comment
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'qlog')
  AND classid IN ('pg_proc'::regclass, 'pg_class'::regclass)
  AND obj_description(objid, classid::regclass::name) IS NULL;

-- The functions: none is STRICT, none runs with its owner's rights, none may run in a parallel worker.
SELECT p.oid::regprocedure AS function, p.prorettype::regtype AS returns, p.proretset AS set
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'qlog')
ORDER BY p.proname COLLATE "C", p.oid;
SELECT p.oid::regprocedure AS offends
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'qlog')
WHERE p.prosecdef OR p.proisstrict OR p.prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
   OR (p.proname NOT IN ('qlog_version', 'has_queue_privilege') AND (p.provolatile <> 'v' OR p.proparallel <> 'u'));

-- It can be moved, and comes back after a rollback.
CREATE SCHEMA elsewhere;
ALTER EXTENSION qlog SET SCHEMA elsewhere;
SELECT elsewhere.queue_create('moved');
SELECT queue FROM elsewhere.qlog_queues;
ALTER EXTENSION qlog SET SCHEMA public;
DROP SCHEMA elsewhere;
SELECT queue_drop('moved');

-- For the other tests: run a statement, say how it ended.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', SQLSTATE || ' ' || message, nullif(detail, ''), nullif(hint, ''));
END $$;

-- What a queue holds.
CREATE VIEW depth AS SELECT queue, ready, leased, delayed, dead, acked FROM qlog_stat_queues;
