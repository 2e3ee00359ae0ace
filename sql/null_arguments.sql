-- NULL for an argument that is needed: 22004 naming it. NULL for any other: its default.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_create(NULL)$$, $$SELECT queue_drop(NULL)$$,
	$$SELECT queue_push(NULL, '1')$$, $$SELECT queue_push('null', NULL)$$, $$SELECT queue_push('null', NULL::json)$$,
	$$SELECT queue_push('null', NULL::jsonb)$$, $$SELECT queue_push('null', NULL::bytea)$$,
	$$SELECT queue_push_batch(NULL, '{}')$$, $$SELECT queue_push_batch('null', NULL)$$,
	$$SELECT queue_push_batch_bytea('null', NULL)$$,
	$$SELECT queue_pop(NULL)$$, $$SELECT queue_peek(NULL)$$, $$SELECT queue_ack(NULL)$$, $$SELECT queue_nack(NULL)$$,
	$$SELECT queue_reject(NULL)$$, $$SELECT queue_renew(NULL)$$, $$SELECT queue_transaction(NULL)$$,
	$$SELECT queue_push_batch_bytea(NULL, '{}')$$, $$SELECT queue_push_batch_json(NULL, '[]')$$, $$SELECT queue_push_batch_json('null', NULL)$$,
	$$SELECT queue_peek_message(NULL, gen_random_uuid())$$, $$SELECT queue_peek_message('null', NULL)$$,
	$$SELECT queue_cancel(NULL, gen_random_uuid())$$, $$SELECT queue_cancel('null', NULL)$$,
	$$SELECT queue_subscribe(NULL, 'g')$$, $$SELECT queue_subscribe('null', NULL)$$, $$SELECT queue_unsubscribe(NULL, 'g')$$,
	$$SELECT queue_unsubscribe('null', NULL)$$, $$SELECT queue_seek(NULL, 'g', to_end => true)$$, $$SELECT queue_seek('null', NULL, to_end => true)$$,
	$$SELECT queue_purge(NULL)$$, $$SELECT queue_redrive(NULL)$$, $$SELECT queue_purge_dead(NULL)$$,
	$$SELECT queue_set(NULL, 'lease', '1 s')$$, $$SELECT queue_set('null', NULL, '1 s')$$, $$SELECT queue_set('null', 'lease', NULL)$$,
	$$SELECT queue_reset(NULL, 'lease')$$, $$SELECT queue_reset('null', NULL)$$, $$SELECT queue_rename(NULL, 'x')$$, $$SELECT queue_rename('null', NULL)$$,
	$$SELECT queue_pause(NULL)$$, $$SELECT queue_resume(NULL)$$, $$SELECT queue_owner(NULL, current_user::regrole)$$, $$SELECT queue_owner('null', NULL)$$,
	$$SELECT queue_grant(NULL, current_user::regrole, 'push')$$, $$SELECT queue_grant('null', NULL, 'push')$$, $$SELECT queue_grant('null', current_user::regrole, NULL)$$,
	$$SELECT queue_revoke(NULL, current_user::regrole, 'push')$$, $$SELECT queue_revoke('null', NULL, 'push')$$, $$SELECT queue_revoke('null', current_user::regrole, NULL)$$]) AS statement;
CALL queue_wait(NULL);
\echo :LAST_ERROR_SQLSTATE
-- No function takes a NULL queue for anything else, whatever its other arguments: those that do not refuse it only look, or answer NULL.
SELECT DISTINCT p.proname AS passes
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'qlog'
CROSS JOIN LATERAL outcome(format('SELECT %I(%s)', p.proname,
	(SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n)))) AS outcome
WHERE p.prorettype <> 'trigger'::regtype AND p.proname ~ 'queue' AND p.prokind = 'f' AND left(outcome, 5) <> '22004' ORDER BY 1;
SELECT count(*) FROM qlog_queues WHERE queue = 'null';
SELECT queue_create('null', NULL, NULL);
SELECT queue_push('null', '1', NULL, NULL, NULL, NULL) IS NOT NULL AS pushed;
SELECT count(*) FROM queue_push_batch('null', ARRAY['2'], NULL, NULL, NULL, NULL);
SELECT count(*) FROM queue_peek('null', NULL, NULL, NULL, NULL);
SELECT lease_id FROM queue_pop('null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) \gset
SELECT queue_nack(:lease_id, NULL, NULL, NULL);
SELECT lease_id FROM queue_pop('null', 2) GROUP BY 1 \gset
SELECT queue_renew(:lease_id, NULL) IS NOT NULL AS renewed;
SELECT queue_reject(:lease_id, NULL, NULL);
SELECT queue_ack(:lease_id, NULL);
SELECT queue_subscribe('null', 'g', NULL), queue_redrive('null', NULL, NULL), queue_purge_dead('null', NULL), queue_purge('null', NULL) > 0 AS purged;
SELECT outcome($$SELECT queue_seek('null', 'g', NULL, NULL, NULL, NULL)$$);
SELECT queue_seek('null', 'g', NULL, NULL, NULL, true);
SELECT queue_pause('null', NULL);
SELECT paused FROM qlog_queues WHERE queue = 'null';
SELECT queue_resume('null', NULL);
CALL queue_wait('null', '0', NULL);
-- NULL elements, and a NULL in a JSON array, which is a message.
SELECT outcome($$SELECT queue_push_batch_bytea('null', ARRAY[NULL]::bytea[])$$);
SELECT count(*) FROM queue_push_batch_json('null', '[null]');
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "null", "payload": null}, {"op": "push", "queue": "null"}]')$$);
SELECT payload FROM queue_peek('null');
-- Ids: an empty array names none, a NULL in it is an error, also when the lease is gone.
SELECT lease_id FROM queue_pop('null', partition => '') \gset
SELECT f, lease = 42 AS gone, ids, outcome(format('SELECT %s(%s, %L)', f, lease, ids)) FROM unnest(ARRAY['queue_ack', 'queue_nack', 'queue_reject']) AS f,
	unnest(ARRAY[:lease_id, 42]) AS lease, unnest(ARRAY['{}', '{NULL}', '{00000000-0000-0000-0000-000000000000,NULL}']) AS ids
ORDER BY f, lease = 42, ids COLLATE "C";
SELECT queue_ack(:lease_id, '{}'), queue_nack(:lease_id, '{}'), queue_reject(:lease_id, '{}');
SELECT leased FROM depth WHERE queue = 'null';
SELECT queue_drop('null', NULL);
