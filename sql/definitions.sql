-- queue_definitions gives statements that make the queues again.
CREATE ROLE "regress qlog ""owner""";
CREATE ROLE regress_qlog_reader;
CREATE ROLE regress_qlog_none;
SELECT queue_create('define'), queue_create('define it''s', '{"lease": "90 s", "ordered": true, "max_bytes": "1 GB", "retry_limit": -1, "dedup_window": "1 day"}'),
	queue_create('define \ "x" ⌘', '{"compression_level": 0}');
SELECT queue_owner('define it''s', '"regress qlog ""owner"""'), queue_grant('define it''s', 'regress_qlog_reader', 'pop,manage'), queue_grant('define it''s', '-', 'push'),
	queue_revoke('define it''s', '"regress qlog ""owner"""', 'push'), queue_pause('define it''s', 'pop'), queue_pause('define \ "x" ⌘');
SELECT queue_push('define', '1') IS NOT NULL AS pushed;
SELECT queue_subscribe('define', g) FROM unnest(ARRAY['z', 'it''s', 'a']) AS g;
CREATE TABLE definitions AS SELECT n, statement FROM queue_definitions() WITH ORDINALITY AS d(statement, n) WHERE statement LIKE '%define%';
SELECT statement FROM definitions ORDER BY n;
CREATE TABLE shown AS SELECT queue, owner, options, acl, paused FROM qlog_queues WHERE queue LIKE 'define%';
SELECT count(queue_drop(queue)) FROM shown;
DO $$ DECLARE statement text; BEGIN
	FOR statement IN SELECT d.statement FROM definitions AS d ORDER BY n LOOP EXECUTE statement; END LOOP;
END $$;
SELECT count(*) FROM (SELECT queue, owner, options, acl::text, paused FROM qlog_queues WHERE queue LIKE 'define%'
	EXCEPT SELECT queue, owner, options, acl::text, paused FROM shown) AS d;
SELECT count(*) FROM (SELECT statement FROM queue_definitions() AS d(statement) WHERE statement LIKE '%define%' EXCEPT SELECT statement FROM definitions) AS d;
-- Who has no privilege on a queue is not shown how to make it.
SELECT queue_revoke('define it''s', '-', 'push');
SET ROLE regress_qlog_none;
SELECT count(*) FROM queue_definitions();
SET ROLE regress_qlog_reader;
SELECT count(*) FROM queue_definitions();
RESET ROLE;
-- With the schema that the functions are in.
CREATE SCHEMA "regress elsewhere";
ALTER EXTENSION qlog SET SCHEMA "regress elsewhere";
SELECT DISTINCT split_part(statement, '(', 1) FROM "regress elsewhere".queue_definitions() AS d(statement) WHERE statement LIKE '%(''define''%' ORDER BY 1;
ALTER EXTENSION qlog SET SCHEMA public;
DROP SCHEMA "regress elsewhere";
SELECT count(queue_drop(queue)) FROM shown;
DROP TABLE definitions, shown;
DROP ROLE "regress qlog ""owner""", regress_qlog_reader, regress_qlog_none;
