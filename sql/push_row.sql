-- A trigger instead of an outbox table: the row change and its message are one.
CREATE SCHEMA shop;
CREATE TABLE shop."Order" (id int PRIMARY KEY, customer text, amount numeric, note json);
CREATE TRIGGER to_queue AFTER INSERT OR UPDATE OR DELETE ON shop."Order" FOR EACH ROW EXECUTE FUNCTION queue_push_row('orders', 'customer');
INSERT INTO shop."Order" VALUES (1, 'ann', 1.50, '{"a": 1}'), (2, 'bob', 2, NULL), (3, NULL, NULL, NULL);
UPDATE shop."Order" SET amount = amount + 1 WHERE id < 3;
DELETE FROM shop."Order" WHERE id = 2;
UPDATE shop."Order" SET amount = 5 WHERE id = 42;
SELECT partition, "position", payload FROM queue_peek('orders', batch => 100) ORDER BY partition, "position";
-- A rollback, a failed savepoint.
BEGIN;
INSERT INTO shop."Order" VALUES (4, 'ann', 4, NULL);
ROLLBACK;
BEGIN;
INSERT INTO shop."Order" VALUES (5, 'eve', 5, NULL);
SAVEPOINT s;
INSERT INTO shop."Order" VALUES (6, 'eve', 6, NULL);
ROLLBACK TO s;
UPDATE shop."Order" SET customer = 'adam' WHERE id = 5;
COMMIT;
SELECT partition, payload FROM queue_peek('orders', 'eve') UNION ALL SELECT partition, payload::text::json FROM queue_peek('orders', 'adam');
SELECT count(*) FROM queue_peek('orders', 'ann');

-- Names with quotes, dropped and generated columns, no partition column.
CREATE TABLE "a ""table" (a int, b int, c text GENERATED ALWAYS AS ('g' || a) STORED, d int);
ALTER TABLE "a ""table" DROP COLUMN b;
CREATE TRIGGER t AFTER INSERT ON "a ""table" FOR EACH ROW EXECUTE FUNCTION queue_push_row('changes');
INSERT INTO "a ""table" (a, d) VALUES (1, 2);
SELECT payload->>'table' AS "table", payload->'new' AS new, payload->'old' AS old FROM queue_peek('changes');
-- A deferred one, a condition, COPY, a partitioned table.
CREATE TABLE parted (k int, v text) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE TRIGGER t AFTER INSERT OR UPDATE ON parted FOR EACH ROW WHEN (new.v <> 'silent') EXECUTE FUNCTION queue_push_row('parted', 'k');
COPY parted FROM stdin;
1	x
2	silent
2	y
\.
UPDATE parted SET k = 2 WHERE v = 'x';
SELECT partition, payload->>'op' AS op, payload->>'table' AS "table", payload->'new' AS new, payload->'old' AS old FROM queue_peek('parted') ORDER BY partition, "position";
CREATE TABLE late (id int);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION queue_push_row('late');
INSERT INTO late VALUES (1);
SELECT payload->'new' AS new FROM queue_peek('late');

-- The rights are those of whoever changes the row.
CREATE ROLE qlog_clerk;
GRANT USAGE ON SCHEMA shop TO qlog_clerk;
GRANT ALL ON shop."Order" TO qlog_clerk;
SET ROLE qlog_clerk;
SELECT outcome($$INSERT INTO shop."Order" VALUES (7, 'ann', 7, NULL)$$);
RESET ROLE;
SELECT count(*) FROM shop."Order" WHERE id = 7;
-- Wrong use.
SELECT outcome($$SELECT queue_push_row()$$);
CREATE TABLE wrong (id int, p text);
CREATE TRIGGER t BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION queue_push_row('wrong');
SELECT outcome($$INSERT INTO wrong VALUES (1)$$);
DROP TRIGGER t ON wrong;
CREATE TRIGGER t AFTER INSERT ON wrong EXECUTE FUNCTION queue_push_row('wrong');
SELECT outcome($$INSERT INTO wrong VALUES (1)$$);
DROP TRIGGER t ON wrong;
CREATE TRIGGER t AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION queue_push_row();
SELECT outcome($$INSERT INTO wrong VALUES (1)$$);
DROP TRIGGER t ON wrong;
CREATE TRIGGER t AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION queue_push_row('wrong', 'no such column');
SELECT outcome($$INSERT INTO wrong VALUES (1)$$);
DROP TRIGGER t ON wrong;
CREATE TRIGGER t AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION queue_push_row('wrong', 'p');
SELECT outcome($$INSERT INTO wrong VALUES (1, repeat('x', 256))$$);
SELECT outcome($$INSERT INTO wrong VALUES (1, E'a\nb')$$);
SELECT count(*) FROM wrong;
DROP TABLE wrong, late, parted, "a ""table";
DROP SCHEMA shop CASCADE;
DROP ROLE qlog_clerk;
