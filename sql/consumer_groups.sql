-- A pop that names a group makes it: it begins at the oldest message kept and reads on its own.
SELECT count(*) FROM queue_push_batch('fan', ARRAY['1', '2', '3', '4'], ARRAY['a', 'a', 'b', NULL]);
SELECT partition, "position", attempt, payload FROM queue_pop('fan', 10, max_partitions => 10) ORDER BY partition, "position";
SELECT partition, "position", attempt, payload FROM queue_pop('fan', 10, consumer_group => 'g', max_partitions => 10) ORDER BY partition, "position";
SELECT consumer_group, messages FROM qlog_leases WHERE queue = 'fan' ORDER BY 1;

-- '' and NULL name the default one.
SELECT count(*) FROM queue_pop('fan', consumer_group => '');
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'fan' AND consumer_group = '';
SELECT count(*) FROM queue_pop('fan', 10, consumer_group => '', max_partitions => 10);

-- What one group does says nothing to the others: acknowledgements, nacks, renewals.
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'fan' AND consumer_group = 'g';
SELECT count(*) FROM queue_pop('fan', 10, consumer_group => 'g', max_partitions => 10);
SELECT queue_nack(lease_id) FROM qlog_leases WHERE queue = 'fan';
SELECT partition, "position", attempt FROM queue_pop('fan', 10, max_partitions => 10) ORDER BY partition, "position";
SELECT queue_renew(lease_id, '1 h') > now() AS renewed FROM qlog_leases WHERE queue = 'fan';
SELECT queue_ack(lease_id) FROM qlog_leases WHERE queue = 'fan';

-- A new partition's first message reaches every group, and so does the next one of an old partition.
SELECT count(*) FROM queue_push_batch('fan', ARRAY['5', '6', '7'], ARRAY['new', 'a', NULL]);
SELECT partition, payload FROM queue_pop('fan', 10, consumer_group => 'g', max_partitions => 10, auto_ack => true) ORDER BY 1, 2::text;
SELECT partition, payload FROM queue_pop('fan', 10, max_partitions => 10, auto_ack => true) ORDER BY 1, 2::text;
SELECT partition, payload FROM queue_pop('fan', 10, consumer_group => 'late', max_partitions => 10, auto_ack => true) ORDER BY 1, 2::text;
SELECT partition, payload FROM queue_pop('fan', 10, consumer_group => 'late', partition => 'a');
SELECT ready, leased FROM depth WHERE queue = 'fan';

-- By partition, before the group has looked anywhere; the rest is still there.
SELECT partition, payload FROM queue_pop('fan', 10, consumer_group => 'one', partition => 'b');
SELECT partition, payload FROM queue_pop('fan', 10, consumer_group => 'one', partition => 'nowhere');
SELECT partition, payload FROM queue_pop('fan', 10, consumer_group => 'one', max_partitions => 10) ORDER BY 1, 2::text;

-- Under a limit of bytes, and over many more partitions than one step looks at.
SELECT count(*) FROM queue_push_batch('wide', ARRAY(SELECT i::text FROM generate_series(1, 300) AS i), ARRAY(SELECT 'p' || i FROM generate_series(1, 300) AS i));
SELECT count(DISTINCT partition), count(*) FROM queue_pop('wide', 1000, consumer_group => 'bytes', max_partitions => 1000, max_bytes => 1000000, auto_ack => true);
SELECT count(DISTINCT partition), count(*) FROM generate_series(1, 400) AS i, queue_pop('wide', 1000 + i * 0, consumer_group => 'g', auto_ack => true);
SELECT count(*) FROM queue_pop('wide', consumer_group => 'g');
SELECT count(DISTINCT partition), count(*) FROM generate_series(1, 400) AS i, queue_pop('wide', 1000 + i * 0, consumer_group => 'bytes', auto_ack => true);

-- A pop that is rolled back releases its lease; the group stays, as an automatically created queue does.
BEGIN;
SELECT payload FROM queue_pop('fan', consumer_group => 'rolled back');
ROLLBACK;
SELECT partition, payload, attempt FROM queue_pop('fan', consumer_group => 'rolled back') ORDER BY payload::text LIMIT 1;
SELECT queue_ack(lease_id) > 0 AS acked FROM qlog_leases WHERE queue = 'fan' AND consumer_group = 'rolled back';

-- Waiting makes it, too.
CALL queue_wait('fan', consumer_group => 'waiter');
SELECT count(*) > 0 AS found FROM queue_pop('fan', 100, consumer_group => 'waiter', max_partitions => 100, wait => '1 h');
CALL queue_wait('fan', '10 ms', consumer_group => 'waiter');

-- Not with qlog.auto_create off.
SET qlog.auto_create = off;
SELECT outcome($$SELECT queue_pop('fan', consumer_group => 'missing')$$);
SELECT outcome($$SELECT queue_pop('nowhere', consumer_group => 'missing')$$);
SELECT count(*) FROM queue_pop('fan', consumer_group => 'g');
RESET qlog.auto_create;

-- Names are exact.
SELECT count(*) > 0 AS another FROM queue_pop('fan', consumer_group => 'G');
SELECT count(*) > 0 AS long FROM queue_pop('fan', consumer_group => repeat('ä', 127) || 'x');
SELECT outcome(format('SELECT queue_pop(%L, consumer_group => %L)', 'fan', repeat('x', 256)));
SELECT outcome($$SELECT queue_pop('fan', consumer_group => E'a\tb')$$);

-- 64 of them, the default one included; each gets every message.
SELECT queue_push('many', '0') IS NOT NULL AS pushed;
SELECT count(*) FROM generate_series(1, 63) AS i, queue_pop('many', consumer_group => 'g' || i);
SELECT outcome($$SELECT queue_pop('many', consumer_group => 'g64')$$);
SELECT count(*) FROM queue_push_batch('many', ARRAY['1', '2'], ARRAY['x', NULL]);
SELECT count(*) FROM generate_series(1, 63) AS i, queue_pop('many', 10, consumer_group => 'g' || i, max_partitions => 2);
SELECT count(*), count(DISTINCT consumer_group), sum(messages) FROM qlog_leases WHERE queue = 'many';
SELECT count(queue_ack(lease_id)) FROM qlog_leases WHERE queue = 'many';
SELECT ready, leased FROM depth WHERE queue = 'many';
SELECT count(*) FROM queue_pop('many', 10, max_partitions => 2);

-- A queue that this transaction creates has nothing for any group.
BEGIN;
SELECT queue_create('own groups');
SELECT queue_push('own groups', '1') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('own groups', consumer_group => 'g');
COMMIT;
SELECT count(*) FROM queue_pop('own groups', consumer_group => 'g');
