-- A read-only transaction may look, and nothing else: 25006.
SELECT queue_push('read only', '1') IS NOT NULL AS pushed;
BEGIN READ ONLY;
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_create('read only 2')$$, $$SELECT queue_drop('read only')$$, $$SELECT queue_push('read only', '1')$$,
	$$SELECT queue_push_batch('read only', ARRAY['1'])$$, $$SELECT queue_push_batch_bytea('read only', ARRAY['1'::bytea])$$,
	$$SELECT queue_pop('read only')$$, $$SELECT queue_ack(1)$$, $$SELECT queue_nack(1)$$, $$SELECT queue_reject(1)$$,
	$$SELECT queue_renew(1)$$, $$SELECT queue_transaction('[]')$$,
	$$SELECT queue_peek('read only')$$, $$SELECT count(*) FROM qlog_queues$$, $$SELECT count(*) FROM qlog_stat_queues$$,
	$$SELECT count(*) FROM qlog_leases$$, $$SELECT count(*) FROM qlog_stat_log$$, $$SELECT count(*) FROM qlog_stat_workers$$,
	$$SELECT count(*) FROM qlog_files$$]) AS statement;
COMMIT;
SELECT ready, leased FROM depth WHERE queue = 'read only';
