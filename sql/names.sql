-- Names: 1 to 255 bytes of UTF-8 without control characters, case kept.
SELECT outcome($$SELECT queue_create('')$$);
SELECT outcome(format('SELECT queue_create(%L)', repeat('x', 256)));
SELECT outcome(format('SELECT queue_create(%L)', repeat('ä', 128)));
SELECT outcome(format('SELECT queue_create(%L)', repeat('x', 255)));
SELECT outcome(format('SELECT queue_create(%L)', repeat('ä', 127) || 'x'));
SELECT outcome(format('SELECT queue_create(%L)', E'new\nline'));
SELECT outcome(format('SELECT queue_create(%L)', E'del\x7f'));
SELECT outcome($$SELECT queue_create('qlog.internal')$$);
SELECT outcome($$SELECT queue_create('qlog')$$);
SELECT outcome(format('SELECT queue_push(%L, %L)', E'tab\t', '1'));
SELECT outcome(format('SELECT queue_push(%L, %L, %L)', 'names', '1', repeat('p', 256)));
SELECT outcome(format('SELECT queue_push(%L, %L, %L)', 'names', '1', E'\x01'));
SELECT outcome(format('SELECT queue_push(%L, %L, %L)', 'names', '1', repeat('p', 255)));

-- Names of 1, 63, 64 and 255 bytes, of one byte and of more a character, name queues, partitions, groups and letters alike; one byte
-- more never does, and nothing is cut.
CREATE TABLE lengths AS SELECT what, name, octet_length(name) AS bytes FROM (VALUES ('1', 'x'), ('63', repeat('n', 63)), ('64', repeat('n', 64)),
	('255', repeat('n', 255)), ('127 x 2 + 1', repeat('ä', 127) || 'z'), ('85 x 3', repeat('€', 85)), ('63 x 4 + 3', repeat('🐘', 63) || 'abc'), ('256', repeat('n', 256)),
	('128 x 2', repeat('ä', 128)), ('85 x 3 + 1', repeat('€', 85) || 'z'), ('64 x 4', repeat('🐘', 64))) AS n(what, name);
CREATE FUNCTION by_length(statement text) RETURNS TABLE (outcome text, lengths text) LANGUAGE sql AS $$
	SELECT outcome, string_agg(what, ', ' ORDER BY bytes, what COLLATE "C")
	FROM (SELECT outcome(format(statement, name)) AS outcome, what, bytes FROM lengths ORDER BY bytes, what COLLATE "C") AS o
	GROUP BY 1 ORDER BY 1 $$;
SELECT * FROM by_length($$SELECT queue_create(%L)$$);
SELECT * FROM by_length($$SELECT queue_push(%1$L, to_json(%1$L::text), %1$L, headers => to_json(%1$L::text))$$);
SELECT * FROM by_length($$SELECT queue_push_batch(%1$L, ARRAY['1'], ARRAY[%1$L])$$);
SELECT * FROM by_length($$SELECT queue_push_batch_json(%1$L, '[1]', %1$L)$$);
SELECT * FROM by_length($$SELECT queue_transaction(jsonb_build_array(jsonb_build_object('op', 'push', 'queue', %1$L::text, 'payload', 1, 'partition', %1$L::text)))$$);
SELECT * FROM by_length($$SELECT queue_subscribe(%1$L, %1$L, 'oldest')$$);
SELECT * FROM by_length($$SELECT queue_reject(lease_id) FROM queue_pop(%1$L, consumer_group => %1$L, partition => %1$L)$$);
SELECT * FROM by_length($$SELECT queue_redrive(%1$L, %1$L)$$);
SELECT * FROM by_length($$SELECT queue_seek(%1$L, %1$L, %1$L, to_position => 0)$$);
SELECT * FROM by_length($$SELECT queue_rename(%1$L, 'other'), queue_rename('other', %1$L)$$);
-- Each of them is whole, wherever it is shown.
SELECT count(*), bool_and(q.queue = l.name AND g.consumer_group = l.name AND p.partition = l.name AND m.partition = l.name AND m.payload #>> '{}' = l.name
	AND m.headers #>> '{}' = l.name) AS whole
FROM lengths l JOIN qlog_queues q ON q.queue = l.name JOIN qlog_stat_consumer_groups g ON g.queue = l.name AND g.consumer_group = l.name
JOIN qlog_stat_partitions p ON p.queue = l.name AND p.partition = l.name, LATERAL queue_pop(l.name, consumer_group => l.name, partition => l.name) AS m;
SELECT count(*) FROM qlog_leases JOIN lengths ON queue = name AND consumer_group = name AND partition = name;
SELECT * FROM by_length($$SELECT queue_unsubscribe(%1$L, %1$L)$$);
SELECT * FROM by_length($$SELECT queue_drop(%L)$$);
SELECT count(*) FROM qlog_queues JOIN lengths ON queue = name;
DROP FUNCTION by_length;
DROP TABLE lengths;
-- What is no UTF-8 is no name, with PostgreSQL's own error; control characters are refused in every name.
SELECT outcome($$SELECT queue_create(E'\xff')$$);
SELECT outcome($$SELECT queue_create(convert_from('\xeda080', 'UTF8'))$$);
SELECT DISTINCT outcome(format(f, n)) FROM unnest(ARRAY['SELECT queue_create(%L)', 'SELECT queue_push(''names'', ''1'', %L)', 'SELECT queue_subscribe(''names'', %L)',
	'SELECT queue_pop(''names'', partition => %L)', 'SELECT queue_seek(''names'', '''', %L, to_end => true)', 'SELECT queue_rename(''names'', %L)']) AS f,
	unnest(ARRAY[E'\x1f', U&'\0085', E'a\n']) AS n ORDER BY 1;

-- Two names that differ in case, in accents, or only at the end are two queues.
SELECT queue_push(name, to_json(name)) IS NOT NULL AS pushed
FROM unnest(ARRAY['Case', 'case', 'Été', 'été', 'a/../b', 'with space ', 'with space', '🐘', repeat('x', 254) || 'y']) AS name;
SELECT q.payload = to_json(name)::text AS own
FROM unnest(ARRAY['Case', 'case', 'Été', 'été', 'a/../b', 'with space ', 'with space', '🐘', repeat('x', 254) || 'y']) AS name,
     LATERAL (SELECT payload::text FROM queue_peek(name)) AS q;
SELECT count(*) FROM qlog_queues WHERE directory !~ '^qlog/(q[0-9]+|[0-9/]+/q[0-9]+)$';

-- '' and NULL name the default partition in a push; NULL means any partition elsewhere.
SELECT queue_push('names 2', '1', '') IS NOT NULL AS pushed;
SELECT queue_push('names 2', '2', NULL) IS NOT NULL AS pushed;
SELECT queue_push('names 2', '3', 'a') IS NOT NULL AS pushed;
SELECT partition, payload FROM queue_peek('names 2', '');
SELECT partition, payload FROM queue_peek('names 2', NULL);
SELECT partition, payload FROM queue_pop('names 2', 10, partition => '');
SELECT partition, payload FROM queue_pop('names 2', 10);
SELECT count(*) FROM queue_pop('names 2', 10, partition => 'no such partition');
SELECT queue_drop(queue) FROM qlog_queues WHERE queue IN ('Case', 'case', 'Été', 'été', 'a/../b', 'with space ', 'with space', '🐘', 'names', 'names 2', 'qlog') OR queue LIKE 'xxx%' OR queue LIKE 'äää%';
