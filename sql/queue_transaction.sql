-- Pushes and acks over any queues in one call, all or nothing.
CREATE FUNCTION ops(operations jsonb) RETURNS SETOF text LANGUAGE sql AS
$$ SELECT CASE WHEN r ? 'message_id' THEN r->>'op' || ' ' || (r->>'message_id' IS NOT NULL) ELSE r::text END FROM jsonb_array_elements(queue_transaction(operations)) AS r $$;
SELECT ops('[{"op": "push", "queue": "tx 1", "payload": {"a": [1, null]}},
             {"op": "push", "queue": "tx 2", "payload": "text", "partition": "p", "headers": {"h": true}},
             {"op": "push", "queue": "tx 2", "payload": null},
             {"op": "push", "queue": "tx 1", "payload": 12.50, "partition": null, "headers": null, "dedup_id": null, "deliver_at": null}]');
SELECT partition, payload, headers FROM queue_peek('tx 1');
SELECT partition, payload, headers FROM queue_peek('tx 2') ORDER BY 1;
SELECT queue_transaction('[]');

-- Acks: the lease id as a number or a string.
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('tx 1', 2) GROUP BY lease_id \gset
SELECT ops(jsonb_build_array(jsonb_build_object('op', 'ack', 'lease_id', :lease_id, 'message_ids', (:'ids'::uuid[])[1:1]),
                             jsonb_build_object('op', 'push', 'queue', 'tx 2', 'payload', 'next'),
                             jsonb_build_object('op', 'ack', 'lease_id', :'lease_id')));
SELECT queue, ready, leased, acked FROM depth WHERE queue LIKE 'tx%' ORDER BY queue;

-- A lost lease refuses all of it.
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "tx 1", "payload": 1}, {"op": "ack", "lease_id": "42"}]')$$);
SELECT queue, ready FROM depth WHERE queue = 'tx 1';

-- It belongs to its transaction like everything else.
BEGIN;
SELECT ops('[{"op": "push", "queue": "tx 1", "payload": "rolled back"}]');
ROLLBACK;
SELECT count(*) FROM queue_peek('tx 1');

-- What is wrong with an operation.
SELECT outcome(format('SELECT queue_transaction(%L)', o)) FROM unnest(ARRAY[
	NULL, '{}', '1', '[1]', '[[]]', '[{}]', '[{"op": 1}]', '[{"op": "pop"}]', '[{"op": "push"}]',
	'[{"op": "push", "queue": "tx 1"}]', '[{"op": "push", "queue": 1, "payload": 1}]', '[{"op": "push", "queue": null, "payload": 1}]',
	'[{"op": "push", "queue": "tx 1", "payload": 1}, {"op": "push", "queue": "tx 1", "payload": 1, "colour": "red"}]',
	'[{"op": "push", "queue": "tx 1", "payload": 1, "lease_id": 1}]', '[{"op": "ack"}]', '[{"op": "ack", "lease_id": true}]',
	'[{"op": "ack", "lease_id": "x"}]', '[{"op": "ack", "lease_id": 1, "queue": "tx 1"}]', '[{"op": "ack", "lease_id": 1.5}]',
	'[{"op": "ack", "lease_id": 99999999999999999999}]']) AS o;
SELECT lease_id FROM queue_pop('tx 2', 1, partition => '') \gset
SELECT outcome(format('SELECT queue_transaction(%L)', jsonb_build_array(jsonb_build_object('op', 'ack', 'lease_id', :'lease_id', 'message_ids', ids)))) FROM unnest(ARRAY['"x"', '[1]', '["x"]', '{}']::jsonb[]) AS ids;
SELECT count(*) FROM queue_peek('tx 1');
DROP FUNCTION ops;
