-- queue_pop(wait): sleeps until there is something to take, or the time is over.
SELECT queue_create('wait');
SELECT count(*) FROM queue_pop('wait', wait => NULL);
SELECT count(*) FROM queue_pop('wait', wait => '0');
SELECT count(*) FROM queue_pop('wait', wait => '20 ms');
SELECT waiting, wakeups FROM qlog_stat_queues WHERE queue = 'wait';

-- What is there is taken at once. Under statement_timeout a wait for the whole time would be an error.
SET statement_timeout = '60 s';
SELECT queue_push('wait', '1') IS NOT NULL AS pushed;
SET qlog.max_pop_wait = '1 h';
SELECT payload FROM queue_pop('wait', wait => '1 day') AS p, queue_ack(p.lease_id);

-- Longer than qlog.max_pop_wait is as long as that.
SET qlog.max_pop_wait = '10 ms';
SELECT count(*) FROM queue_pop('wait', wait => '1 day');
SET qlog.max_pop_wait = 0;
SELECT count(*) FROM queue_pop('wait', wait => '1 day');

-- A retry time that comes, a lease that is over, of this session itself.
SET qlog.max_pop_wait = '1 h';
SELECT queue_push('wait', '2') IS NOT NULL AS pushed;
SELECT queue_nack(lease_id, retry_after => '100 ms') FROM queue_pop('wait');
SELECT count(*) FROM queue_pop('wait');
SELECT attempt, payload FROM queue_pop('wait', wait => '1 h', lease => '100 ms');
SELECT attempt, payload FROM queue_pop('wait', wait => '1 h') AS p, queue_ack(p.lease_id);

-- For one partition, whether it exists or not, and within limits.
SELECT count(*) FROM queue_push_batch('wait', ARRAY['3', '4', '5'], ARRAY['a', 'a', 'b']);
SELECT count(*) FROM queue_pop('wait', partition => 'none', wait => '10 ms');
SELECT count(*) FROM queue_pop('wait', partition => '', wait => '10 ms');
SELECT payload FROM queue_pop('wait', 9, partition => 'a', wait => '1 h', max_bytes => 1) AS p, queue_ack(p.lease_id);
SELECT payload FROM queue_pop('wait', 9, wait => '1 h', max_partitions => 9, max_bytes => 100) AS p, queue_ack(p.lease_id);
SELECT count(*) FROM queue_pop('wait', 9, wait => '10 ms', max_bytes => 1);

-- The transaction's own push is not seen, and in its own queue there can be nothing.
BEGIN;
SELECT queue_push('wait', '6') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('wait', wait => '10 ms');
SELECT queue_create('wait own');
SELECT queue_push('wait own', '7') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('wait own', wait => '1 h');
ROLLBACK;

-- The time of the statement ends the wait, nothing is left of it.
SET statement_timeout = '500 ms';
SELECT count(*) FROM queue_pop('wait', wait => '1 h');
BEGIN;
SAVEPOINT a;
SELECT count(*) FROM queue_pop('wait', wait => '1 h');
ROLLBACK TO a;
RESET statement_timeout;
SELECT count(*) FROM queue_pop('wait', wait => '10 ms');
COMMIT;
SELECT waiting, ready, leased FROM qlog_stat_queues WHERE queue = 'wait';

-- Wrong arguments.
SELECT outcome($$SELECT queue_pop('no such queue', wait => '1 s')$$);
SELECT outcome($$SELECT queue_pop('wait', wait => '-1 s')$$);
SELECT outcome($$SELECT queue_pop('wait', wait => '366 days')$$);
