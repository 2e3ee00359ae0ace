-- Each function of the extension, with each privilege alone, with none, and in a read-only transaction.
CREATE ROLE regress_qlog_owner;
CREATE ROLE regress_qlog_push;
CREATE ROLE regress_qlog_pop;
CREATE ROLE regress_qlog_manage;
CREATE ROLE regress_qlog_none;
CREATE ROLE regress_qlog_monitor IN ROLE pg_monitor;
SELECT queue_create('every'), queue_subscribe('every', 'g');
SELECT queue_owner('every', 'regress_qlog_owner'), queue_grant('every', 'regress_qlog_push', 'push'), queue_grant('every', 'regress_qlog_pop', 'pop'),
	queue_grant('every', 'regress_qlog_manage', 'manage');
SELECT count(*) FROM queue_push_batch('every', ARRAY['"secret"', '2', '3'], ARRAY['p', NULL, NULL]);
SELECT queue_push('every', '4', deliver_at => now() + interval '1 h') AS later \gset
SELECT queue_reject(lease_id) FROM queue_pop('every', partition => 'p');
SELECT lease_id, message_id FROM queue_pop('every', 1, partition => '') \gset

CREATE TABLE calls AS SELECT * FROM (VALUES
	('push', 'queue_push', 'SELECT queue_push(''every'', ''1''), queue_push(''every'', ''1''::json), queue_push(''every'', ''1''::jsonb), queue_push(''every'', ''1''::bytea)'),
	('push', 'queue_push_batch', 'SELECT queue_push_batch(''every'', ARRAY[''1''])'),
	('push', 'queue_push_batch_bytea', 'SELECT queue_push_batch_bytea(''every'', ARRAY[''1''::bytea])'),
	('push', 'queue_push_batch_json', 'SELECT queue_push_batch_json(''every'', ''[1]'')'),
	('push', 'queue_transaction', 'SELECT queue_transaction(''[{"op": "push", "queue": "every", "payload": 1}]'')'),
	('push', 'queue_cancel', format('SELECT queue_cancel(''every'', %L)', :'later')),
	('pop', 'queue_transaction', format('SELECT queue_transaction(''[{"op": "ack", "lease_id": "%s"}]'')', :'lease_id')),
	('pop', 'queue_pop', 'SELECT queue_pop(''every'')'),
	('pop', 'queue_peek', 'SELECT queue_peek(''every'')'),
	('pop', 'queue_peek_message', format('SELECT queue_peek_message(''every'', %L)', :'message_id')),
	('pop', 'queue_ack', format('SELECT queue_ack(%s)', :'lease_id')),
	('pop', 'queue_nack', format('SELECT queue_nack(%s, ''{}'')', :'lease_id')),
	('pop', 'queue_reject', format('SELECT queue_reject(%s)', :'lease_id')),
	('pop', 'queue_renew', format('SELECT queue_renew(%s)', :'lease_id')),
	('manage', 'queue_set', 'SELECT queue_set(''every'', ''lease'', ''1 min'')'),
	('manage', 'queue_reset', 'SELECT queue_reset(''every'', ''lease'')'),
	('manage', 'queue_pause', 'SELECT queue_pause(''every'')'),
	('manage', 'queue_resume', 'SELECT queue_resume(''every'')'),
	('manage', 'queue_subscribe', 'SELECT queue_subscribe(''every'', ''h'')'),
	('manage', 'queue_unsubscribe', 'SELECT queue_unsubscribe(''every'', ''g'')'),
	('manage', 'queue_seek', 'SELECT queue_seek(''every'', ''g'', to_end => true)'),
	('manage', 'queue_purge', 'SELECT queue_purge(''every'')'),
	('manage', 'queue_redrive', 'SELECT queue_redrive(''every'')'),
	('manage', 'queue_purge_dead', 'SELECT queue_purge_dead(''every'')'),
	('owner', 'queue_drop', 'SELECT queue_drop(''every'')'),
	('owner', 'queue_rename', 'SELECT queue_rename(''every'', ''other'')'),
	('owner', 'queue_grant', 'SELECT queue_grant(''every'', ''regress_qlog_none'', ''push'')'),
	('owner', 'queue_revoke', 'SELECT queue_revoke(''every'', ''regress_qlog_push'', ''push'')'),
	('owner', 'queue_owner', 'SELECT queue_owner(''every'', ''regress_qlog_owner'')')) AS c(needs, name, call);
GRANT SELECT ON calls TO PUBLIC;

-- May the role call it?  What it does is undone.
CREATE FUNCTION may(role text, call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SET LOCAL ROLE %I', role);
	EXECUTE call;
	RAISE EXCEPTION 'undo';
EXCEPTION
	WHEN raise_exception THEN RETURN 'yes';
	WHEN insufficient_privilege THEN RETURN 'no';
	WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
SELECT needs, name, may('regress_qlog_push', call) AS push, may('regress_qlog_pop', call) AS pop, may('regress_qlog_manage', call) AS manage,
	may('regress_qlog_owner', call) AS owner, may('regress_qlog_none', call) AS none, may('regress_qlog_monitor', call) AS monitor FROM calls;
-- None is missing but queue_create, which has no queue yet, queue_wait, which cannot be called there, and what asks about a role.
SELECT DISTINCT p.proname AS not_tried FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'qlog'
WHERE (p.proargnames)[1:p.pronargs] && ARRAY['queue', 'lease_id', 'message_id'] AND p.proname ~ 'queue' AND p.proname NOT IN (SELECT name FROM calls) ORDER BY 1;
SET ROLE regress_qlog_push;
CALL queue_wait('every', '0');
\echo :LAST_ERROR_SQLSTATE
SET ROLE regress_qlog_manage;
CALL queue_wait('every', '0');
\echo :LAST_ERROR_SQLSTATE
SET ROLE regress_qlog_none;
CALL queue_wait('every', '0');
\echo :LAST_ERROR_SQLSTATE
SET ROLE regress_qlog_pop;
CALL queue_wait('every', '0');
RESET ROLE;

-- Every view with a column "queue": which of them show this one, to whom. The whole server is for pg_monitor; payloads for pop alone.
CREATE FUNCTION shows(role text, view text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	files text := (SELECT directory || '/%' FROM qlog_queues WHERE queue = 'every');
BEGIN
	EXECUTE format('SET LOCAL ROLE %I', role);
	EXECUTE format('SELECT count(*) FROM %s AS v WHERE to_json(v)->>''queue'' = ''every'' OR (%L = ''qlog_files'' AND to_json(v)->>''file'' LIKE %L)', view, view, files) INTO n;
	RESET ROLE;
	RETURN CASE WHEN n > 0 THEN 'yes' ELSE 'no' END;
EXCEPTION WHEN insufficient_privilege THEN
	RETURN 'refused';
END $$;
SELECT c.relname AS view, shows('regress_qlog_push', c.relname) AS push, shows('regress_qlog_pop', c.relname) AS pop, shows('regress_qlog_manage', c.relname) AS manage,
	shows('regress_qlog_owner', c.relname) AS owner, shows('regress_qlog_none', c.relname) AS none, shows('regress_qlog_monitor', c.relname) AS monitor
FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e' JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'qlog'
WHERE c.relkind = 'v' AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'queue') ORDER BY c.relname COLLATE "C";
CREATE FUNCTION secret(role text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SET LOCAL ROLE %I', role);
	SELECT coalesce(string_agg(coalesce(payload::text, 'hidden'), ','), 'nothing') INTO result FROM qlog_dead_letters WHERE queue = 'every';
	RESET ROLE;
	RETURN result;
END $$;
SELECT role, secret('regress_qlog_' || role) FROM unnest(ARRAY['push', 'pop', 'manage', 'owner', 'none', 'monitor']) AS role;

-- Read-only: what changes something is refused before anything else, whatever its arguments; the others are those that only look.
CREATE TABLE looks (name text, sqlstate text);
CREATE FUNCTION in_read_only() RETURNS SETOF looks LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT p.proname, format('%s %I(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, p.proname,
		(SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n))) AS call
		FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'qlog' WHERE p.prorettype <> 'trigger'::regtype AND p.proname ~ 'queue' ORDER BY p.proname COLLATE "C" LOOP
		RETURN NEXT (r.proname, left(outcome(r.call), 5))::looks;
	END LOOP;
END $$;
BEGIN READ ONLY;
SELECT sqlstate, string_agg(DISTINCT name COLLATE "C", ', ' ORDER BY name COLLATE "C") AS functions FROM in_read_only() WHERE sqlstate = '25006' GROUP BY 1;
SELECT name, min(sqlstate) AS sqlstate FROM in_read_only() WHERE sqlstate <> '25006' GROUP BY name ORDER BY name COLLATE "C";
COMMIT;

SELECT ready, leased, delayed, dead FROM depth WHERE queue = 'every';
SELECT queue_drop('every');
DROP FUNCTION may, shows, secret, in_read_only;
DROP TABLE calls, looks;
DROP ROLE regress_qlog_owner, regress_qlog_push, regress_qlog_pop, regress_qlog_manage, regress_qlog_none, regress_qlog_monitor;
