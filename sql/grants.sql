-- queue_grant and queue_revoke: each privilege opens its functions and no others.
CREATE ROLE regress_qlog_owner;
CREATE ROLE regress_qlog_push;
CREATE ROLE regress_qlog_pop;
CREATE ROLE regress_qlog_manage;
CREATE ROLE regress_qlog_none;
CREATE ROLE regress_qlog_member IN ROLE regress_qlog_pop;
CREATE ROLE regress_qlog_set NOINHERIT IN ROLE regress_qlog_pop;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_qlog_owner', current_database()); END $$;
CREATE FUNCTION as_role(role text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	EXECUTE format('SET LOCAL ROLE %I', role);
	SELECT split_part(outcome(statement), ' |', 1) INTO result;
	RESET ROLE;
	RETURN result;
END $$;
GRANT EXECUTE ON FUNCTION outcome(text) TO PUBLIC;
SET ROLE regress_qlog_owner;
SELECT queue_create('grants');
SELECT acl FROM qlog_queues WHERE queue = 'grants';
SELECT queue_grant('grants', 'regress_qlog_push', 'push'), queue_grant('grants', 'regress_qlog_pop', 'pop'),
	queue_grant('grants', 'regress_qlog_manage', ' MANAGE ');
SELECT unnest(acl) FROM qlog_queues WHERE queue = 'grants';
SELECT grantee::regrole, grantor::regrole, privilege_type, is_grantable FROM qlog_queues, aclexplode(acl) WHERE queue = 'grants' ORDER BY 1, 3;
SELECT count(*) FROM queue_push_batch('grants', ARRAY['1', '2', '3', '4', '5', '6', '7', '8', '9']);
RESET ROLE;
SELECT queue_push('grants lease', '1') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('grants', 1) \gset
CREATE TABLE calls AS SELECT * FROM (VALUES (1, 'SELECT queue_push(''grants'', ''1'')'), (2, 'SELECT queue_push_batch(''grants'', ARRAY[''1''])'),
	(3, 'SELECT queue_push_batch_json(''grants'', ''[1]'')'), (4, 'SELECT queue_transaction(''[{"op": "push", "queue": "grants", "payload": 1}]'')'),
	(5, 'SELECT queue_peek(''grants'')'), (6, 'SELECT queue_pop(''grants'')'), (7, format('SELECT queue_renew(%s)', :lease_id)),
	(8, format('SELECT queue_nack(%s)', :lease_id)), (9, 'SELECT queue_set(''grants'', ''lease'', ''60 s'')'), (10, 'SELECT queue_reset(''grants'', ''lease'')'),
	(11, 'SELECT queue_pause(''grants'', ''pop'')'), (12, 'SELECT queue_resume(''grants'')'), (13, 'SELECT queue_rename(''grants'', ''grants 2'')'),
	(14, 'SELECT queue_owner(''grants'', ''regress_qlog_owner'')'), (15, 'SELECT queue_grant(''grants'', ''regress_qlog_none'', ''push'')'),
	(16, 'SELECT queue_revoke(''grants'', ''regress_qlog_push'', ''push'')'), (17, 'SELECT queue_drop(''grants'')')) AS c(n, call);
SELECT replace(call, :'lease_id', 'lease') AS call, as_role('regress_qlog_push', call) AS push, as_role('regress_qlog_manage', call) AS manage, as_role('regress_qlog_none', call) AS none
FROM calls ORDER BY n;
SELECT replace(call, :'lease_id', 'lease') AS call, as_role('regress_qlog_set', call) AS noinherit, as_role('regress_qlog_member', call) AS member FROM calls ORDER BY n;

-- Answers need pop.
SELECT lease_id FROM queue_pop('grants', 1) \gset
SELECT role, as_role(role, format('SELECT queue_ack(%s)', :lease_id)) AS ack, as_role(role, format('SELECT queue_reject(%s)', :lease_id)) AS reject
FROM unnest(ARRAY['regress_qlog_push', 'regress_qlog_manage', 'regress_qlog_none', 'regress_qlog_set']) AS role;
SELECT as_role('regress_qlog_pop', format('SELECT queue_ack(%s)', :lease_id));

-- Who has any privilege sees the queue, nobody else; pg_monitor sees it all and no message.
CREATE ROLE regress_qlog_monitor IN ROLE pg_monitor;
SELECT role, as_role(role, 'SELECT 1 / count(*) FROM qlog_queues WHERE queue = ''grants''') AS queues,
	as_role(role, 'SELECT 1 / count(*) FROM qlog_stat_queues WHERE queue = ''grants''') AS stat_queues,
	as_role(role, 'SELECT 1 / count(*) FROM qlog_leases WHERE queue = ''grants lease'' OR true') AS leases
FROM unnest(ARRAY['regress_qlog_push', 'regress_qlog_pop', 'regress_qlog_manage', 'regress_qlog_member', 'regress_qlog_set', 'regress_qlog_none', 'regress_qlog_monitor']) AS role;
SELECT as_role('regress_qlog_monitor', call) FROM calls WHERE n IN (1, 5, 6, 9, 17) ORDER BY n;

-- has_queue_privilege answers as has_table_privilege does.
SELECT role, has_queue_privilege(role, 'grants', 'push') AS push, has_queue_privilege(role, 'grants', 'pop') AS pop,
	has_queue_privilege(role, 'grants', 'manage') AS manage, has_queue_privilege(role, 'grants', 'push, pop') AS either
FROM unnest(ARRAY['regress_qlog_owner', 'regress_qlog_push', 'regress_qlog_pop', 'regress_qlog_manage', 'regress_qlog_member', 'regress_qlog_set',
	'regress_qlog_none', '-']::regrole[]) AS role;
SELECT has_queue_privilege('grants', 'manage') AS mine, has_queue_privilege(NULL, 'push') IS NULL AND has_queue_privilege('grants', NULL) IS NULL AS nulls;
SET ROLE regress_qlog_none;
SELECT has_queue_privilege('grants', 'push, pop, manage') AS mine;
RESET ROLE;
SELECT has_queue_privilege(oid, 'grants', 'manage') AS superuser FROM pg_roles WHERE rolname = current_user;
SELECT has_queue_privilege(NULL, 'grants', 'push') IS NULL AND has_queue_privilege('regress_qlog_none', NULL, 'push') IS NULL AND
	has_queue_privilege('regress_qlog_none', 'grants', NULL) IS NULL AS nulls;
SELECT outcome($$SELECT has_queue_privilege('no_such_role', 'grants', 'push')$$);
SELECT outcome($$SELECT has_queue_privilege('regress_qlog_none', 'no such queue', 'push')$$);
SELECT outcome($$SELECT has_queue_privilege('regress_qlog_none', 'grants', 'peek')$$);
SELECT outcome($$SELECT has_queue_privilege('regress_qlog_none', 'grants', '')$$);
SELECT outcome($$SELECT has_queue_privilege('regress_qlog_none', 'grants', 'push,')$$);
SELECT outcome($$SELECT has_queue_privilege('regress_qlog_none', 'grants', 'push with grant option')$$);
SELECT outcome($$SELECT has_queue_privilege('regress_qlog_none', 'grants', 'all')$$);
SELECT has_queue_privilege(0, 'grants', 'push') AS public, has_queue_privilege(4294967295, 'grants', 'push') AS nobody;

-- PUBLIC, lists, and taking back.
SELECT queue_grant('grants', '-', 'push');
SELECT as_role('regress_qlog_none', 'SELECT queue_push(''grants'', ''1'')'), as_role('regress_qlog_none', 'SELECT queue_peek(''grants'')');
SELECT queue_grant('grants', 'regress_qlog_none', 'all'), queue_revoke('grants', 'regress_qlog_none', 'pop,manage'), queue_revoke('grants', 0, 'all');
SELECT unnest(acl) FROM qlog_queues WHERE queue = 'grants';
SELECT queue_revoke('grants', 'regress_qlog_none', 'all'), queue_revoke('grants', 'regress_qlog_none', 'push');
SELECT as_role('regress_qlog_none', 'SELECT queue_push(''grants'', ''1'')');
-- An owner can take its own privileges away and still manage, and give them back.
SELECT queue_revoke('grants', 'regress_qlog_owner', 'all');
SELECT call, as_role('regress_qlog_owner', call) FROM calls WHERE n IN (1, 5, 9, 15) ORDER BY n;
SELECT as_role('regress_qlog_owner', 'SELECT queue_grant(''grants'', ''regress_qlog_owner'', ''all'')'), as_role('regress_qlog_owner', 'SELECT queue_push(''grants'', ''1'')');
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_grant('grants', 'regress_qlog_none', 'peek')$$,
	$$SELECT queue_grant('grants', 'regress_qlog_none', '')$$,
	$$SELECT queue_grant('grants', 'no_such_role', 'push')$$,
	$$SELECT queue_grant('grants', 4294967295, 'push')$$,
	$$SELECT queue_grant('no such queue', 'regress_qlog_none', 'push')$$,
	$$SELECT queue_grant(NULL, 'regress_qlog_none', 'push')$$,
	$$SELECT queue_grant('grants', NULL, 'push')$$,
	$$SELECT queue_grant('grants', 'regress_qlog_none', NULL)$$,
	$$SELECT queue_revoke('grants', 'regress_qlog_none', NULL)$$]) AS statement;
-- Rolled back.
SELECT queue_revoke('grants', 'regress_qlog_none', 'all');
BEGIN;
SELECT queue_grant('grants', 'regress_qlog_none', 'push');
SELECT has_queue_privilege('regress_qlog_none', 'grants', 'push');
SAVEPOINT a;
SELECT queue_revoke('grants', 'regress_qlog_none', 'push');
SELECT has_queue_privilege('regress_qlog_none', 'grants', 'push');
ROLLBACK TO a;
SELECT has_queue_privilege('regress_qlog_none', 'grants', 'push');
ROLLBACK;
SELECT has_queue_privilege('regress_qlog_none', 'grants', 'push');

-- A role with only push pushes from its own triggers, in its own right and for those who may not.
SELECT queue_grant('grants', 'regress_qlog_push', 'push');
CREATE SCHEMA regress_qlog_push AUTHORIZATION regress_qlog_push;
SET ROLE regress_qlog_push;
CREATE TABLE regress_qlog_push.t (i int);
CREATE FUNCTION regress_qlog_push.f() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS
$$ BEGIN PERFORM queue_push('grants', to_json(new.i)); RETURN new; END $$;
CREATE FUNCTION regress_qlog_push.g() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM public.queue_push('grants', to_json(-new.i)); RETURN new; END $$;
CREATE TRIGGER f AFTER INSERT ON regress_qlog_push.t FOR EACH ROW EXECUTE FUNCTION regress_qlog_push.f();
CREATE TRIGGER g AFTER UPDATE ON regress_qlog_push.t FOR EACH ROW EXECUTE FUNCTION regress_qlog_push.g();
CREATE TRIGGER h AFTER DELETE ON regress_qlog_push.t FOR EACH ROW EXECUTE FUNCTION public.queue_push_row('grants');
GRANT USAGE ON SCHEMA regress_qlog_push TO regress_qlog_none;
GRANT SELECT, INSERT, UPDATE, DELETE ON regress_qlog_push.t TO regress_qlog_none;
INSERT INTO regress_qlog_push.t VALUES (1001);
UPDATE regress_qlog_push.t SET i = 1002;
DELETE FROM regress_qlog_push.t;
SET ROLE regress_qlog_none;
INSERT INTO regress_qlog_push.t VALUES (1003);
SELECT outcome('UPDATE regress_qlog_push.t SET i = 1004');
SELECT outcome('DELETE FROM regress_qlog_push.t');
RESET ROLE;
SELECT payload FROM queue_peek('grants', batch => 1000) WHERE payload::text ~ '100';

-- A queue that a superuser made is nobody else's.
SELECT as_role('regress_qlog_owner', 'SELECT queue_peek(''grants lease'')');
SET client_min_messages = warning;
DROP SCHEMA regress_qlog_push CASCADE;
RESET client_min_messages;
SELECT queue_drop('grants'), queue_drop('grants lease');
DO $$ BEGIN EXECUTE format('REVOKE CREATE ON DATABASE %I FROM regress_qlog_owner', current_database()); END $$;
DROP ROLE regress_qlog_owner, regress_qlog_push, regress_qlog_member, regress_qlog_set, regress_qlog_pop, regress_qlog_manage, regress_qlog_none, regress_qlog_monitor;
DROP TABLE calls;
DROP FUNCTION as_role;
