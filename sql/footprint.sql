-- What queues leave in the database: nothing that could bloat, be vacuumed, be listed beside tables, or stand in anybody's way.
SELECT c.relkind, count(*) > 0 AS there FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'qlog' GROUP BY 1;
SELECT count(*) AS rows_written FROM pg_class c JOIN pg_depend d ON d.objid = c.oid WHERE d.deptype = 'e' AND pg_relation_filenode(c.oid) IS NOT NULL
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'qlog');
-- Work with messages takes no transaction id; and no lock, advisory or other.
SELECT count(*) FROM queue_push_batch('foot', ARRAY['1', '2', '3', '4'], ARRAY['p', 'p', NULL, NULL]);
BEGIN;
SELECT queue_push('foot', '5') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('foot', 2, partition => '') LIMIT 1 \gset
SELECT queue_ack(:lease_id);
SELECT queue_nack(lease_id), queue_renew(lease_id) FROM queue_pop('foot', consumer_group => 'g', partition => 'p') LIMIT 1;
SELECT count(*) FROM queue_peek('foot');
SELECT queue_reject(lease_id) FROM queue_pop('foot', partition => 'p') LIMIT 1;
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
SELECT DISTINCT locktype, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype NOT IN ('virtualxid', 'relation') ORDER BY 1, 2;
COMMIT;
SELECT ready, leased, dead, acked FROM depth WHERE queue = 'foot';
-- Definitions and subscriptions do take one, and no advisory lock either.
BEGIN;
SELECT queue_set('foot', 'lease', '2 min'), queue_subscribe('foot', 'h'), queue_purge('foot');
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid, (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS advisory;
ROLLBACK;
SELECT queue_drop('foot');
