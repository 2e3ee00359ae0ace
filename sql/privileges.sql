-- The owner of a queue, members of the owner's role and superusers may use it, nobody else.
CREATE ROLE regress_qlog_owner;
CREATE ROLE regress_qlog_team;
CREATE ROLE regress_qlog_member IN ROLE regress_qlog_team;
CREATE ROLE regress_qlog_stranger;
CREATE FUNCTION every_call(queue text, lease bigint) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT outcome(format(statement, queue, lease)) FROM unnest(ARRAY[
		'SELECT queue_push(%L, ''1'')', 'SELECT queue_push_batch(%L, ARRAY[''1''])', 'SELECT queue_pop(%L)', 'SELECT queue_peek(%L)',
		'SELECT queue_transaction(jsonb_build_array(jsonb_build_object(''op'', ''push'', ''queue'', %L, ''payload'', 1)))',
		'SELECT queue_nack(%2$s)', 'SELECT queue_renew(%2$s)', 'SELECT queue_ack(%2$s)', 'SELECT queue_reject(%2$s)',
		'SELECT queue_drop(%L)']) AS statement $$;
SELECT queue_push('privileges', '1') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('privileges') \gset
SET ROLE regress_qlog_stranger;
SELECT every_call('privileges', :lease_id);
SELECT count(*) FROM qlog_queues;
SELECT count(*) FROM qlog_stat_queues;
SELECT count(*) FROM qlog_leases;
SELECT outcome('SELECT * FROM qlog_stat_log');
SELECT outcome('SELECT * FROM qlog_stat_workers');
SELECT outcome('SELECT * FROM qlog_files');
SELECT outcome('SELECT * FROM qlog_files()');

-- Creating needs CREATE on the database.
SELECT replace(outcome($$SELECT queue_create('privileges 2')$$), current_database(), 'this one') AS outcome;
SELECT left(outcome($$SELECT queue_push('privileges 2', '1')$$), 5) AS sqlstate;
RESET ROLE;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_qlog_owner, regress_qlog_team', current_database()); END $$;
SET ROLE regress_qlog_owner;
SELECT queue_create('owned');
SELECT queue_push('owned too', '1') IS NOT NULL AS pushed;
SELECT queue, owner FROM qlog_queues;
SELECT lease_id FROM queue_pop('owned too') \gset
SELECT queue_ack(:lease_id);
RESET ROLE;
SET ROLE regress_qlog_team;
SELECT queue_create('team');
RESET ROLE;
SET ROLE regress_qlog_member;
SELECT queue_push('team', '1') IS NOT NULL AS pushed;
SELECT queue, owner FROM qlog_queues;
SELECT count(*) FROM queue_pop('team');
SELECT queue, messages FROM qlog_leases;
SELECT queue_drop('team');
RESET ROLE;
-- A superuser.
SELECT outcome($$SELECT queue_peek('owned')$$);

-- pg_monitor sees the server.
GRANT pg_monitor TO regress_qlog_stranger;
SET ROLE regress_qlog_stranger;
SELECT count(*) FROM qlog_stat_log;
SELECT count(*) > 0 AS workers FROM qlog_stat_workers;
SELECT count(*) > 0 AS files FROM qlog_files;
RESET ROLE;

-- A trigger of a role that may push fires for a user who may not, when the function is the role's.
SET ROLE regress_qlog_owner;
CREATE SCHEMA regress_qlog;
CREATE TABLE regress_qlog.t (i int);
CREATE FUNCTION regress_qlog.f() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS
$$ BEGIN PERFORM queue_push('owned', to_json(new.i)); RETURN new; END $$;
CREATE TRIGGER t AFTER INSERT ON regress_qlog.t FOR EACH ROW EXECUTE FUNCTION regress_qlog.f();
GRANT USAGE ON SCHEMA regress_qlog TO regress_qlog_stranger;
GRANT INSERT ON regress_qlog.t TO regress_qlog_stranger;
RESET ROLE;
SET ROLE regress_qlog_stranger;
INSERT INTO regress_qlog.t VALUES (42);
RESET ROLE;
SELECT payload FROM queue_peek('owned');

-- A role that owns queues stays; without them it goes.
SET client_min_messages = warning;
DROP SCHEMA regress_qlog CASCADE;
RESET client_min_messages;
DO $$ BEGIN EXECUTE format('REVOKE CREATE ON DATABASE %I FROM regress_qlog_owner, regress_qlog_team', current_database()); END $$;
DROP ROLE regress_qlog_owner;
\echo :LAST_ERROR_SQLSTATE
SELECT queue_drop('owned');
BEGIN;
SELECT queue_drop('owned too');
ROLLBACK;
SELECT outcome('DROP ROLE regress_qlog_owner');
-- What the transaction itself has dropped or created counts.
BEGIN;
SELECT queue_drop('owned too');
SELECT outcome('DROP ROLE regress_qlog_owner');
ROLLBACK;
SELECT queue_drop('owned too');
ALTER ROLE regress_qlog_owner SUPERUSER;
BEGIN;
SET ROLE regress_qlog_owner;
SELECT queue_create('owned new');
RESET ROLE;
SELECT outcome('DROP ROLE regress_qlog_owner');
ROLLBACK;
DROP ROLE regress_qlog_owner, regress_qlog_member, regress_qlog_team, regress_qlog_stranger;
DROP FUNCTION every_call;
SELECT queue_drop('privileges');
