-- What a parallel worker pushes or leases would be nobody's when it ends: 25000, also when a function says of itself that it is parallel safe.
SELECT count(*) FROM queue_push_batch('parallel', ARRAY['1', '2', '3']);
CREATE FUNCTION in_worker(statement text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$
DECLARE
	result text;
BEGIN
	EXECUTE statement INTO result;
	RETURN result;
END $$;

-- Each function of the extension, without arguments: this is refused before they are looked at.
CREATE TABLE calls AS
SELECT p.proname AS name, format('%s %I(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, p.proname,
	(SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n))) AS call
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'qlog' WHERE p.prorettype <> 'trigger'::regtype AND p.proname ~ 'queue';
SELECT lease_id FROM queue_pop('parallel') \gset
SELECT count(set_config(name, 'on', false)) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT in_worker('SELECT backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid()');
SELECT DISTINCT left(outcome(format('SELECT in_worker(%L)', call)), 5) AS sqlstate, string_agg(DISTINCT name, ', ') AS functions
FROM calls WHERE left(outcome(format('SELECT in_worker(%L)', call)), 5) = '25000' GROUP BY 1;
SELECT DISTINCT name AS looks_only FROM calls WHERE left(outcome(format('SELECT in_worker(%L)', call)), 5) <> '25000' ORDER BY 1;
SELECT outcome(format('SELECT in_worker(%L)', statement)) FROM unnest(ARRAY[
	$$SELECT queue_push('parallel', '4')$$, $$SELECT * FROM queue_pop('parallel')$$, format('SELECT queue_nack(%s)', :'lease_id')]) AS statement;
SELECT in_worker($$SELECT count(*) FROM queue_peek('parallel')$$), in_worker($$SELECT leased FROM qlog_stat_queues WHERE queue = 'parallel'$$);
SELECT count(set_config(name, 'off', false)) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT ready, leased FROM depth WHERE queue = 'parallel';
SELECT queue_ack(:lease_id);
DROP TABLE calls;
DROP FUNCTION in_worker;
SELECT queue_drop('parallel');
