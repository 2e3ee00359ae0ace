-- A client that lost the answer to its ack repeats it, and is told the same again.
SELECT count(*) FROM queue_push_batch('again', ARRAY['1', '2', '3', '4', '5', '6', '7', '8', '9']);
SELECT lease_id AS a, array_agg(message_id) AS ids FROM queue_pop('again', 3) GROUP BY lease_id \gset
SELECT queue_ack(:a);
SELECT queue_ack(:a), queue_ack(:a);
SELECT queue_ack(:a, (:'ids'::uuid[])[1:2]), queue_ack(:a, ARRAY[(:'ids'::uuid[])[1], (:'ids'::uuid[])[1]]), queue_ack(:a, '{}');
SELECT ready, leased, acked FROM depth WHERE queue = 'again';
-- From another session, too, and in a transaction that does nothing else.
\c -
BEGIN;
SELECT queue_ack(:a);
SELECT queue_ack(:a);
COMMIT;

-- With other work it would do the other half of that work twice: refused, and nothing of it happens.
CREATE TABLE work (i int);
\set VERBOSITY sqlstate
BEGIN;
SELECT queue_ack(:a);
INSERT INTO work VALUES (1);
COMMIT;
BEGIN;
SELECT queue_push('again', '10') IS NOT NULL AS pushed;
SELECT queue_ack(:a);
COMMIT;
SELECT lease_id AS b FROM queue_pop('again', 2) GROUP BY 1 \gset
BEGIN;
SELECT queue_ack(:b);
SELECT queue_ack(:a);
COMMIT;
SELECT queue_transaction(jsonb_build_array(jsonb_build_object('op', 'ack', 'lease_id', :'a'), jsonb_build_object('op', 'push', 'queue', 'again', 'payload', 1)));
\set VERBOSITY default
SELECT queue_transaction(jsonb_build_array(jsonb_build_object('op', 'ack', 'lease_id', :'a')));
SELECT count(*) FROM work;
SELECT ready, leased, acked FROM depth WHERE queue = 'again';
-- A repetition in a savepoint that was rolled back does not count.
BEGIN;
SAVEPOINT s;
SELECT queue_ack(:a);
ROLLBACK TO s;
SELECT queue_ack(:b);
INSERT INTO work VALUES (2);
COMMIT;
SELECT count(*) FROM work;

-- Acknowledged in parts, by ids, in several transactions: whole in the end.
SELECT lease_id AS c, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('again', 3) GROUP BY lease_id \gset
SELECT queue_ack(:c, (:'ids'::uuid[])[2:2]);
SELECT queue_ack(:c);
SELECT queue_ack(:c);
-- Not whole: a part was given back, or rejected. What was never acknowledged at all.
SELECT count(*) FROM queue_push_batch('again 2', ARRAY['1', '2', '3', '4'], ARRAY['p', 'p', 'p', 'p']);
SELECT lease_id AS d, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('again 2', 2) GROUP BY lease_id \gset
SELECT queue_nack(:d, (:'ids'::uuid[])[2:2]);
SELECT queue_ack(:d);
SELECT queue_ack(:d);
SELECT lease_id AS e FROM queue_pop('again 2', 1) \gset
SELECT queue_nack(:e);
SELECT queue_ack(:e);
SELECT lease_id AS f FROM queue_pop('again 2', 1) \gset
SELECT queue_reject(:f);
SELECT queue_ack(:f);
-- A rolled back ack is none.
SELECT lease_id AS g FROM queue_pop('again 2', 1) \gset
BEGIN;
SELECT queue_ack(:g);
ROLLBACK;
SELECT queue_ack(:g);
SELECT queue_ack(:g);
-- auto_ack.
SELECT lease_id AS h FROM queue_pop('again 2', 1, auto_ack => true) \gset
SELECT queue_ack(:h);

-- Only for those who may use the queue; gone with it.
CREATE ROLE qlog_stranger;
SET ROLE qlog_stranger;
SELECT outcome(format('SELECT queue_ack(%s)', :a));
RESET ROLE;
DROP ROLE qlog_stranger;
SELECT queue_drop('again');
SELECT queue_ack(:a);
DROP TABLE work;
