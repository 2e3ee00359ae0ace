-- NULL for an argument that is needed: 22004 naming it. NULL for any other: its default.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_create(NULL)$$, $$SELECT queue_drop(NULL)$$,
	$$SELECT queue_push(NULL, '1')$$, $$SELECT queue_push('null', NULL)$$, $$SELECT queue_push('null', NULL::json)$$,
	$$SELECT queue_push('null', NULL::jsonb)$$, $$SELECT queue_push('null', NULL::bytea)$$,
	$$SELECT queue_push_batch(NULL, '{}')$$, $$SELECT queue_push_batch('null', NULL)$$,
	$$SELECT queue_push_batch_bytea('null', NULL)$$,
	$$SELECT queue_pop(NULL)$$, $$SELECT queue_peek(NULL)$$, $$SELECT queue_ack(NULL)$$, $$SELECT queue_nack(NULL)$$,
	$$SELECT queue_reject(NULL)$$, $$SELECT queue_renew(NULL)$$, $$SELECT queue_transaction(NULL)$$]) AS statement;
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
SELECT queue_drop('null', NULL);
