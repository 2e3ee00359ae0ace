-- Rows and messages in one transaction: both or neither, with small work in the WAL and large work beside it.
CREATE TABLE joint_rows (i int PRIMARY KEY, filler text);
BEGIN;
INSERT INTO joint_rows VALUES (1);
SELECT queue_push('joint', '1') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_peek('joint');
COMMIT;
BEGIN;
INSERT INTO joint_rows VALUES (2);
SELECT queue_push('joint', '2') IS NOT NULL AS pushed;
ROLLBACK;
-- An error that only COMMIT finds.
ALTER TABLE joint_rows ADD CONSTRAINT deferred UNIQUE (filler) DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO joint_rows VALUES (3, 'x'), (4, 'x');
SELECT queue_push('joint', '3') IS NOT NULL AS pushed;
COMMIT;
SELECT i FROM joint_rows ORDER BY i;
SELECT "position", payload FROM queue_peek('joint');

-- Larger than qlog.wal_payload_limit.
BEGIN;
INSERT INTO joint_rows VALUES (5);
SELECT count(*) FROM queue_push_batch('joint large', (SELECT array_agg(to_json(i || repeat('.', 1000))::text ORDER BY i) FROM generate_series(0, 99) AS i));
COMMIT;
SELECT count(*) FROM queue_peek('joint large', batch => 1000);

-- Several queues, an ack and a table.
BEGIN;
SELECT lease_id FROM queue_pop('joint') \gset
INSERT INTO joint_rows VALUES (6);
SELECT count(queue_push('joint ' || i, i::text)) FROM generate_series(1, 10) AS i;
SELECT queue_ack(:lease_id);
COMMIT;
SELECT sum(ready) AS ready FROM depth WHERE queue ~ '^joint \d+$';
SELECT ready, leased, acked FROM depth WHERE queue = 'joint';

-- The other settings.
SET qlog.wal_payload_limit = 0;
BEGIN;
INSERT INTO joint_rows VALUES (7);
SELECT queue_push('joint', '7') IS NOT NULL AS pushed;
COMMIT;
RESET qlog.wal_payload_limit;
SET qlog.wal_carry = 'all';
SELECT queue_push('joint', '8') IS NOT NULL AS pushed;
SELECT txid_current_if_assigned() IS NULL AS none;
RESET qlog.wal_carry;
SET synchronous_commit = off;
SELECT queue_push('joint', '9') IS NOT NULL AS pushed;
BEGIN;
INSERT INTO joint_rows VALUES (10);
SELECT queue_push('joint', '10') IS NOT NULL AS pushed;
COMMIT;
RESET synchronous_commit;
SELECT payload FROM queue_peek('joint');
DROP TABLE joint_rows;
