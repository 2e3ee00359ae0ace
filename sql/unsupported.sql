-- What this version does not do is refused by name, with 0A000, and leaves nothing behind.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_push('unsupported', '1'::json, deliver_at => now())$$,
	$$SELECT queue_push('unsupported', '1'::bytea, deliver_at => now())$$,
	$$SELECT queue_push_batch('unsupported', ARRAY['1'], deliver_at => now())$$,
	$$SELECT queue_push_batch_bytea('unsupported', ARRAY['1'::bytea], deliver_at => now())$$]) AS statement;
SELECT count(*) FROM qlog_queues WHERE queue = 'unsupported';
SELECT queue_push('unsupported', '1') IS NOT NULL AS pushed;
SELECT ready, leased FROM depth WHERE queue = 'unsupported';
