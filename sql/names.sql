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
