-- A pop takes a lease on a batch of one partition.
SELECT count(*) FROM queue_push_batch('pop', ARRAY['1', '2', '3', '4', '5'], ARRAY['a', 'a', 'a', 'b', 'b']);
SELECT partition, "position", attempt, payload, lease_id <> 0 AS lease, leased_until > now() AS until FROM queue_pop('pop', 2);
-- Ordered: the rest of that partition waits, the other one does not.
SELECT partition, "position", payload FROM queue_pop('pop', 10);
SELECT count(*) FROM queue_pop('pop', 10);
SELECT queue, ready, leased FROM depth WHERE queue = 'pop';
SELECT count(*) AS leases, sum(messages) AS messages FROM qlog_leases WHERE queue = 'pop';

-- One row at a time by default; by name of the partition.
SELECT count(*) FROM queue_push_batch('pop 2', ARRAY['1', '2', '3', '4'], ARRAY['a', 'a', 'b', 'b']);
SELECT partition, payload FROM queue_pop('pop 2', partition => 'b');
SELECT count(*) FROM queue_pop('pop 2', partition => 'b');
SELECT partition, payload FROM queue_pop('pop 2', NULL, '', NULL, '0 s', NULL, NULL, 1, NULL);

-- Nothing there: no rows, and nothing changes.
SELECT queue_create('pop empty');
SELECT count(*) FROM queue_pop('pop empty', 10);
SELECT ready, leased, delayed, dead FROM depth WHERE queue = 'pop empty';
SELECT popped, last_pop FROM qlog_stat_queues WHERE queue = 'pop empty';

-- Wrong arguments.
SELECT outcome($$SELECT queue_pop('no such queue')$$);
SELECT outcome($$SELECT queue_pop('pop', 0)$$);
SELECT outcome($$SELECT queue_pop('pop', -1)$$);
SELECT count(*) FROM queue_push_batch('pop all', ARRAY['1', '2', '3']);
SELECT count(*) FROM queue_pop('pop all', 2147483647);

-- In the select list, under a LIMIT, in a join and through a cursor: never more than asked for is taken.
SELECT count(*) FROM queue_push_batch('pop plan', (SELECT array_agg(i::text) FROM generate_series(1, 20) AS i));
SELECT (queue_pop('pop plan', 2)).payload;
SELECT payload FROM queue_pop('pop plan', 3) LIMIT 1;
SELECT payload FROM queue_pop('pop plan', 2) AS p JOIN (VALUES (1), (2), (3)) AS v(i) ON true ORDER BY 1::text, i;
BEGIN;
DECLARE c CURSOR FOR SELECT payload FROM queue_pop('pop plan', 2);
FETCH 1 FROM c;
CLOSE c;
COMMIT;
SELECT ready, leased FROM depth WHERE queue = 'pop plan';
