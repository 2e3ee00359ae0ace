-- Partitions that have been empty for partition_idle are removed; what refers to one keeps it.
ALTER SYSTEM SET qlog.retention_naptime = '10 ms';
SELECT pg_reload_conf();
-- Waits until a queue has these partitions, and tells them.
CREATE FUNCTION partitions(q text, expected text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
  FOR i IN 1 .. 6000 LOOP
    SELECT string_agg(partition, ' ' ORDER BY partition) INTO found FROM qlog_stat_partitions WHERE queue = q AND partition <> '';
    IF coalesce(found, '') = expected THEN RETURN format('"%s"', found); END IF;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RETURN format('"%s" after a minute', found);
END $$;
CREATE FUNCTION consume(q text, p text) RETURNS bigint LANGUAGE sql AS
$$ SELECT sum(acked)::bigint FROM (SELECT queue_ack(lease_id, array_agg(message_id)) AS acked FROM queue_pop(q, 10, partition => p) GROUP BY lease_id) AS a $$;

SELECT queue_create('idle', '{"partition_idle": "1 s", "retry_limit": 0}');
SELECT count(*) FROM queue_push_batch('idle', ARRAY['1', '2', '3', '4', '5', '6'], ARRAY['a', 'b', 'c', 'd', 'e', 'f']);
-- a: consumed. b: not. c: leased. d: its message is dead. e: a delayed message is for it. f: consumed by one of two groups.
SELECT queue_subscribe('idle', 'second', 'oldest');
SELECT queue_ack(lease_id, array_agg(message_id)) FROM queue_pop('idle', 10, consumer_group => 'second', max_partitions => 10) WHERE partition <> 'f' GROUP BY lease_id;
SELECT consume('idle', 'a'), consume('idle', 'e'), consume('idle', 'f');
SELECT payload FROM queue_pop('idle', 1, partition => 'c');
SELECT queue_reject(lease_id) FROM queue_pop('idle', 1, partition => 'd');
SELECT queue_push('idle', '7', 'e', deliver_at => now() + interval '1 day') IS NOT NULL AS id;
SELECT partitions('idle', 'b c d e f');
-- What kept them ends.
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'idle' AND consumer_group = '';
SELECT queue_purge_dead('idle');
SELECT partitions('idle', 'b e f');
SELECT consume('idle', 'b');
SELECT queue_unsubscribe('idle', 'second');
SELECT partitions('idle', 'e');
-- The next push makes a partition anew, from position 0 on.
SELECT count(*) FROM queue_push_batch('idle', ARRAY['8', '9'], ARRAY['a', 'a']);
SELECT payload, partition, "position" FROM queue_pop('idle', 10, partition => 'a');
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'idle';
SELECT partitions('idle', 'e');
-- A dedup id within its window keeps its partition, and so its answer.
SELECT queue_push('idle', '10', 'g', dedup_id => 'x') IS NOT NULL AS id;
SELECT consume('idle', 'g');
SELECT pg_sleep(1.2);
SELECT queue_push('idle', '11', 'g', dedup_id => 'x') IS NOT NULL AS id, (SELECT deduplicated FROM qlog_stat_queues WHERE queue = 'idle');
SELECT partitions('idle', 'e g');
SELECT queue_set('idle', 'dedup_window', '0');
SELECT partitions('idle', 'e');
-- A queue with the default, 30 days, keeps its partitions.
SELECT count(*) FROM queue_push_batch('busy', ARRAY['1', '2'], ARRAY['a', 'b']);
SELECT consume('busy', 'a'), consume('busy', 'b');
SELECT partitions('busy', 'a b');

SELECT queue_drop('idle'), queue_drop('busy');
ALTER SYSTEM RESET qlog.retention_naptime;
SELECT pg_reload_conf();
DROP FUNCTION partitions, consume;
