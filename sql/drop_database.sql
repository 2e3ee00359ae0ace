-- Queues belong to their database: DROP EXTENSION and DROP DATABASE take them along, a template's copy starts without any.
CREATE DATABASE regress_qlog_a;
SELECT current_database() AS home \gset
\c regress_qlog_a
SET client_min_messages = warning;
CREATE EXTENSION qlog;
SELECT queue_push('same name', '"a"') IS NOT NULL AS pushed;
SELECT queue_push('same name', '"a"', 'lane') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('same name', partition => '') \gset
\c :home
SELECT queue_push('same name', '"home"') IS NOT NULL AS pushed;
SELECT payload FROM queue_peek('same name');
-- A lease of another database is none.
SELECT queue_ack(:lease_id), queue_nack(:lease_id), queue_reject(:lease_id), queue_renew(:lease_id);
SELECT count(*) FROM qlog_leases WHERE queue = 'same name';
CREATE DATABASE regress_qlog_b TEMPLATE regress_qlog_a;
\c regress_qlog_b
SELECT count(*) FROM qlog_queues;
SELECT queue_push('same name', '"b"') IS NOT NULL AS pushed;
SELECT payload FROM queue_peek('same name');

-- DROP EXTENSION, taken back and for good; the same name afterwards is a new queue.
BEGIN;
DROP EXTENSION qlog;
ROLLBACK;
SELECT payload FROM queue_peek('same name');
BEGIN;
SAVEPOINT a;
DROP EXTENSION qlog;
ROLLBACK TO a;
SELECT queue_push('same name', '"b2"') IS NOT NULL AS pushed;
COMMIT;
SELECT payload FROM queue_peek('same name');
DROP EXTENSION qlog;
CREATE EXTENSION qlog;
SELECT count(*) FROM qlog_queues;
SELECT queue_push('same name', '"b3"') IS NOT NULL AS pushed;
SELECT partition, "position", payload FROM queue_peek('same name');

\c regress_qlog_a
SELECT payload, attempt FROM queue_peek('same name');
\c :home
DROP DATABASE regress_qlog_a;
DROP DATABASE regress_qlog_b;
SELECT payload FROM queue_peek('same name');
SELECT queue_drop('same name');
