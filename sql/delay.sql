-- A delayed message enters its partition when it is due, in the order of the due times.
CREATE FUNCTION wait_for(queue text, n bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..600 LOOP
		IF (SELECT count(*) FROM queue_peek(queue, batch => 10000)) >= n THEN RETURN true; END IF;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RETURN false;
END $$;
SELECT queue_push('later', '3', deliver_at => clock_timestamp() + '900 ms') AS a \gset
SELECT queue_push('later', '1', deliver_at => clock_timestamp() + '500 ms', headers => '{"h": 1}') AS b \gset
SELECT queue_push('later', '2', 'p', deliver_at => clock_timestamp() + '600 ms') AS c \gset
SELECT queue_push('later', '0') AS d \gset
SELECT queue_push('later', '4', deliver_at => now() - interval '1 day'), queue_push('later', '5', deliver_at => '-infinity') \gset
SELECT payload FROM queue_peek('later');
SELECT ready, delayed, pushed FROM qlog_stat_queues WHERE queue = 'later';
SELECT count(*) FROM queue_pop('later', 10, auto_ack => true);
SELECT wait_for('later', 3);
SELECT partition, "position", payload, headers, message_id IN (:'a', :'b', :'c') AS same FROM queue_peek('later') ORDER BY payload::text;
SELECT pushed_at >= now() - interval '1 min' AS entered FROM queue_peek('later', 'p');
SELECT ready, delayed, pushed FROM qlog_stat_queues WHERE queue = 'later';
SELECT partition, payload, attempt FROM queue_pop('later', 10, partition => '');
SELECT partition, payload FROM queue_pop('later', 10);

-- Many of one time, in a batch and of several partitions: in the order of the pushes.
SELECT count(*) FROM queue_push_batch('later many', (SELECT array_agg(i::text) FROM generate_series(1, 1000) AS i), (SELECT array_agg('p' || i % 2) FROM generate_series(1, 1000) AS i), deliver_at => clock_timestamp() + '300 ms');
SELECT delayed, partitions FROM qlog_stat_queues JOIN qlog_queues USING (queue) WHERE queue = 'later many';
SELECT wait_for('later many', 1000);
SELECT partition, count(*), bool_and(payload::text::int = 2 * "position" + CASE partition WHEN 'p1' THEN 1 ELSE 2 END) AS in_order FROM queue_peek('later many', batch => 2000) GROUP BY 1 ORDER BY 1;

-- The option of the queue; deliver_at goes before it. Also for rows and in queue_transaction.
SELECT queue_create('later all', '{"delay": "1 h"}');
SELECT queue_push('later all', '1') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_push_batch_json('later all', '[2, 3]');
SELECT queue_push('later all', '4', deliver_at => now()) IS NOT NULL AS pushed;
SELECT jsonb_array_length(queue_transaction(jsonb_build_array(
	jsonb_build_object('op', 'push', 'queue', 'later all', 'payload', 5),
	jsonb_build_object('op', 'push', 'queue', 'later all', 'payload', 6, 'deliver_at', '2001-02-03 04:05:06+00'),
	jsonb_build_object('op', 'push', 'queue', 'later', 'payload', 7, 'deliver_at', (now() + interval '1 h')::text))));
CREATE TABLE later_rows (i int);
CREATE TRIGGER t AFTER INSERT ON later_rows FOR EACH ROW EXECUTE FUNCTION queue_push_row('later all');
INSERT INTO later_rows VALUES (1);
SELECT payload FROM queue_peek('later all');
SELECT queue, ready, delayed FROM qlog_stat_queues WHERE queue IN ('later', 'later all') ORDER BY queue;

-- With its transaction: a rollback, a savepoint, a queue of the same transaction.
BEGIN;
SELECT queue_push('later', '"never"', deliver_at => now() + interval '1 s') IS NOT NULL AS pushed;
ROLLBACK;
BEGIN;
SELECT queue_create('later own');
SELECT queue_push('later own', '1', deliver_at => clock_timestamp() + '100 ms') IS NOT NULL AS pushed;
SAVEPOINT s;
SELECT queue_push('later own', '2', deliver_at => clock_timestamp() + '100 ms') IS NOT NULL AS pushed;
ROLLBACK TO s;
SELECT queue_push('later own', '3', 'p', deliver_at => clock_timestamp() + '100 ms') IS NOT NULL AS pushed;
COMMIT;
SELECT wait_for('later own', 2);
SELECT partition, payload FROM queue_peek('later own') ORDER BY payload::text;

-- Cancelled: once, and its dedup id is free again; not what has entered, not of other queues.
SELECT queue_push('later', '8', deliver_at => now() + interval '1 h', dedup_id => 'x') AS e \gset
SELECT queue_push('later', '9', dedup_id => 'x') = :'e' AS same;
SELECT queue_cancel('later own', :'e'), queue_cancel('later', :'d'), queue_cancel('later', gen_random_uuid());
BEGIN;
SELECT queue_cancel('later', :'e');
ROLLBACK;
SELECT queue_cancel('later', :'e');
SELECT queue_push('later', '10', dedup_id => 'x') <> :'e' AS anew;
SELECT delayed FROM qlog_stat_queues WHERE queue = 'later';
BEGIN;
SELECT queue_push('later', '11', deliver_at => now() + interval '1 h') AS f \gset
SELECT queue_cancel('later', :'f');
ROLLBACK;
-- Far away.
SELECT queue_push('later', '12', deliver_at => '9999-12-31 23:59:59+00') AS g \gset
SELECT queue_cancel('later', :'g');
-- What waits counts for max_bytes; a pause of pushes does not hold up what is due.
SELECT queue_create('later small', '{"max_bytes": 1000, "compression_level": 0}');
SELECT queue_push('later small', to_json(repeat(md5('a'), 16)), deliver_at => now() + interval '1 h') AS h \gset
SELECT outcome($$SELECT queue_push('later small', to_json(repeat(md5('b'), 16)))$$);
SELECT queue_cancel('later small', :'h');
SELECT queue_push('later small', to_json(repeat(md5('b'), 16)), 'p', deliver_at => clock_timestamp() + interval '200 ms') IS NOT NULL AS pushed;
SELECT queue_pause('later small', 'push');
SELECT wait_for('later small', 1);
SELECT queue_resume('later small');
SELECT count(*) FROM queue_pop('later small', auto_ack => true);
SELECT queue_push('later small', to_json(repeat(md5('c'), 16)), deliver_at => now() + interval '1 h') IS NOT NULL AS pushed;
-- A purge, and a group that is sent to the end or begins with what is new, pass over nothing that is still to come.
SELECT queue_push('later purge', '1', 'p') IS NOT NULL AS pushed, queue_push('later purge', '2', 'p', deliver_at => clock_timestamp() + '2 s') IS NOT NULL AS delayed;
SELECT queue_purge('later purge'), queue_seek('later purge', '', to_end => true), queue_subscribe('later purge', 'new');
SELECT ready, delayed FROM qlog_stat_queues WHERE queue = 'later purge';
SELECT queue_purge('later purge', 'p');
SELECT wait_for('later purge', 1);
SELECT payload, attempt FROM queue_pop('later purge', 10), queue_ack(lease_id);
SELECT payload, attempt FROM queue_pop('later purge', 10, consumer_group => 'new');
-- Wrong times and arguments.
SELECT outcome($$SELECT queue_push('later', '1', deliver_at => 'infinity')$$);
SELECT outcome($$SELECT queue_push_batch('later', ARRAY['1'], deliver_at => 'infinity')$$);
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "later", "payload": 1, "deliver_at": "soon"}]')$$);
SELECT outcome($$SELECT queue_transaction('[{"op": "push", "queue": "later", "payload": 1, "deliver_at": 5}]')$$);
SELECT outcome($$SELECT queue_cancel('later', NULL)$$);
SELECT outcome($$SELECT queue_cancel('no such queue', gen_random_uuid())$$);
-- Dropped with the queue.
SELECT count(queue_drop(queue)) FROM qlog_queues WHERE queue LIKE 'later%';
DROP TABLE later_rows;
DROP FUNCTION wait_for;
