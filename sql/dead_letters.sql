-- Dead letters: seen, moved back, removed.
SELECT queue_create('dead', '{"retry_limit": 0}');
SELECT queue_push('dead', ' {"a" : 1} ', 'eu', headers => '{"h": 1}') AS id \gset
SELECT queue_push('dead', '\x00ff01'::bytea) IS NOT NULL AS pushed;
SELECT count(*) FROM queue_push_batch('dead', ARRAY['3', '4', '5'], ARRAY['eu', 'us', 'eu']);
CREATE PROCEDURE kill_all(name text, why text) LANGUAGE plpgsql AS $$
DECLARE
	l bigint;
BEGIN
	LOOP
		SELECT lease_id INTO l FROM queue_pop(name, 10, max_partitions => 10) LIMIT 1;
		EXIT WHEN l IS NULL;
		PERFORM queue_reject(l, reason => why);
	END LOOP;
END $$;
CALL kill_all('dead', 'of no use');
SELECT queue, consumer_group, partition, "position", attempts, reason, payload, payload_bytes, headers,
	message_id = :'id' AS first, now() - died_at < '1 min' AS just_now FROM qlog_dead_letters WHERE queue = 'dead'
ORDER BY partition, "position";
SELECT ready, leased, delayed, dead FROM depth WHERE queue = 'dead';

-- Back, oldest first, to the end of where they come from; undone by a rollback.
BEGIN;
SELECT queue_redrive('dead', batch => 2), queue_redrive('dead', batch => 2), queue_redrive('dead'), queue_redrive('dead');
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'dead';
ROLLBACK;
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'dead';
SELECT ready, dead FROM depth WHERE queue = 'dead';
BEGIN;
SELECT queue_redrive('dead', batch => 1);
SAVEPOINT s;
SELECT queue_redrive('dead');
ROLLBACK TO s;
SELECT queue_push('dead', '6', 'eu') IS NOT NULL AS pushed;
COMMIT;
SELECT ready, dead FROM depth WHERE queue = 'dead';
SELECT queue_redrive('dead');
SELECT ready, dead FROM depth WHERE queue = 'dead';
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'dead';
SELECT partition, "position", payload, payload_bytes, headers, message_id = :'id' AS first FROM queue_peek('dead', 'eu');
SELECT partition, "position", payload, payload_bytes FROM queue_peek('dead', '');
SELECT attempt, payload FROM queue_pop('dead', 10, partition => 'eu');
SELECT queue_redrive('dead'), queue_purge_dead('dead');

-- With a table, and an acknowledgement of its own.
SELECT queue_push('dead 2', '1') IS NOT NULL AS pushed FROM generate_series(1, 3);
SELECT queue_reject(lease_id) FROM queue_pop('dead 2');
SELECT queue_reject(lease_id) FROM queue_pop('dead 2');
CREATE TABLE redriven (n bigint);
BEGIN;
INSERT INTO redriven SELECT queue_redrive('dead 2', batch => 1);
SELECT queue_ack(lease_id) FROM queue_pop('dead 2');
COMMIT;
SELECT n FROM redriven;
SELECT ready, leased, dead, acked FROM depth WHERE queue = 'dead 2';
DROP TABLE redriven;

-- A message that dies again, with another reason; its dedup id is not asked for again, and still counts for pushes.
SELECT queue_push('dead 3', '1', dedup_id => 'd') AS id \gset
SELECT queue_reject(lease_id, reason => 'once') FROM queue_pop('dead 3');
SELECT queue_redrive('dead 3');
SELECT queue_reject(lease_id, reason => 'twice') FROM queue_pop('dead 3');
SELECT attempts, reason, message_id = :'id' AS same FROM qlog_dead_letters WHERE queue = 'dead 3';
SELECT queue_redrive('dead 3');
SELECT dedup_id, message_id = :'id' AS same FROM queue_peek('dead 3');
SELECT queue_push('dead 3', '2', dedup_id => 'd') = :'id' AS answered;
SELECT ready, dead FROM depth WHERE queue = 'dead 3';

-- Every group of the queue gets what is moved back, the group whose letter it was among them.
SELECT queue_push('dead groups', '1') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('dead groups', consumer_group => 'g', auto_ack => true);
SELECT queue_reject(lease_id) FROM queue_pop('dead groups');
SELECT outcome($$SELECT queue_redrive('dead groups', 'nobody')$$);
SELECT outcome($$SELECT queue_purge_dead('dead groups', 'nobody')$$);
SELECT queue_redrive('dead groups', 'g'), queue_purge_dead('dead groups', 'g');
SELECT queue_redrive('dead groups', '');
SELECT consumer_group, payload FROM unnest(ARRAY['', 'g']) AS consumer_group, queue_pop('dead groups', consumer_group => consumer_group);

-- Neither a pause nor max_bytes hold it up.
SELECT queue_push('dead full', '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"') IS NOT NULL AS pushed;
SELECT queue_reject(lease_id) FROM queue_pop('dead full');
SELECT queue_set('dead full', 'max_bytes', '10');
SELECT queue_pause('dead full');
SELECT queue_redrive('dead full');
SELECT ready, dead FROM depth WHERE queue = 'dead full';

-- Removed for good.
SELECT count(*) FROM queue_push_batch('dead purge', ARRAY['1', '2', '3']);
SELECT queue_reject(lease_id) FROM queue_pop('dead purge');
SELECT queue_reject(lease_id) FROM queue_pop('dead purge');
BEGIN;
SELECT queue_purge_dead('dead purge');
SELECT queue_purge_dead('dead purge'), queue_redrive('dead purge');
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'dead purge';
ROLLBACK;
SELECT dead FROM depth WHERE queue = 'dead purge';
BEGIN;
SELECT queue_redrive('dead purge', batch => 1);
SELECT queue_purge_dead('dead purge');
COMMIT;
SELECT ready, dead FROM depth WHERE queue = 'dead purge';
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'dead purge';

-- A dropped queue takes them along.
SELECT queue_reject(lease_id) FROM queue_pop('dead purge');
SELECT queue_drop('dead purge');
SELECT count(*) FROM qlog_dead_letters WHERE queue = 'dead purge';

-- Many, in several steps.
SELECT count(*) FROM queue_push_batch('dead many', (SELECT array_agg(i::text) FROM generate_series(1, 1000) i));
SELECT queue_reject(lease_id, reason => 'many') FROM queue_pop('dead many', 1000) LIMIT 1;
SELECT count(*), sum((payload #>> '{}')::int), min(reason) FROM qlog_dead_letters WHERE queue = 'dead many';
SELECT queue_redrive('dead many', batch => 700);
SELECT ready, dead FROM depth WHERE queue = 'dead many';
SELECT queue_purge_dead('dead many');
SELECT ready, dead FROM depth WHERE queue = 'dead many';

-- Arguments.
SELECT outcome(s) FROM unnest(ARRAY[$$SELECT queue_redrive(NULL)$$, $$SELECT queue_redrive('no such')$$,
	$$SELECT queue_redrive('dead', batch => 0)$$, $$SELECT queue_redrive('dead', repeat('g', 256))$$,
	$$SELECT queue_purge_dead(NULL)$$, $$SELECT queue_purge_dead('no such')$$]) AS s;
SELECT queue_redrive('dead', NULL, NULL);

-- Who may.
CREATE ROLE dead_manager;
CREATE ROLE dead_consumer;
CREATE ROLE dead_stranger;
CREATE ROLE dead_monitor IN ROLE pg_monitor;
SELECT queue_push('dead acl', '{"secret": 1}') IS NOT NULL AS pushed;
SELECT queue_reject(lease_id, reason => 'acl') FROM queue_pop('dead acl');
SELECT queue_grant('dead acl', 'dead_manager', 'manage'), queue_grant('dead acl', 'dead_consumer', 'pop');
SET ROLE dead_stranger;
SELECT count(*) FROM qlog_dead_letters;
SELECT outcome($$SELECT queue_redrive('dead acl')$$), outcome($$SELECT queue_purge_dead('dead acl')$$);
SET ROLE dead_monitor;
SELECT queue, reason, payload FROM qlog_dead_letters WHERE queue = 'dead acl';
SELECT outcome($$SELECT queue_redrive('dead acl')$$);
SET ROLE dead_consumer;
SELECT queue, reason, payload FROM qlog_dead_letters;
SELECT outcome($$SELECT queue_redrive('dead acl')$$), outcome($$SELECT queue_purge_dead('dead acl')$$);
SET ROLE dead_manager;
SELECT queue, reason, payload FROM qlog_dead_letters;
SELECT queue_redrive('dead acl');
RESET ROLE;
SELECT queue_drop('dead acl');
DROP ROLE dead_manager, dead_consumer, dead_stranger, dead_monitor;
