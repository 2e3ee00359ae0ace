-- Only in databases with encoding UTF8: 0A000 elsewhere.
SELECT current_database() AS home \gset
CREATE DATABASE regress_qlog_latin1 ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_qlog_latin1
CREATE EXTENSION qlog;
\echo :LAST_ERROR_SQLSTATE
CREATE FUNCTION queue_push(queue text, payload text, partition text, dedup_id text, headers json, deliver_at timestamptz) RETURNS uuid
AS '$libdir/qlog', 'queue_push_text' LANGUAGE C;
SELECT queue_push('encoding', '1', NULL, NULL, NULL, NULL);
CREATE FUNCTION queue_definitions() RETURNS SETOF text AS '$libdir/qlog' LANGUAGE C;
SELECT queue_definitions();
\c :home
DROP DATABASE regress_qlog_latin1;

-- A client with another encoding sees its own.
SET client_encoding = 'LATIN1';
SELECT queue_push('encoding', convert_from('\x22e422', 'LATIN1')) IS NOT NULL AS pushed;
RESET client_encoding;
SELECT payload, octet_length(payload::text) FROM queue_peek('encoding');
