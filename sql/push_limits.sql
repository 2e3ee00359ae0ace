-- A message may have qlog.max_message_size, a transaction qlog.max_transaction_bytes, and 4096 partitions.
SET qlog.max_message_size = '8kB';
SELECT outcome($$SELECT queue_push('limits', to_json(repeat('x', 8190)))$$);
SELECT outcome($$SELECT queue_push('limits', to_json(repeat('x', 8191)))$$);
SELECT outcome($$SELECT queue_push('limits', convert_to(repeat('x', 8192), 'UTF8'))$$);
SELECT outcome($$SELECT queue_push('limits', convert_to(repeat('x', 8193), 'UTF8'))$$);
SELECT outcome($$SELECT queue_push('limits', '1', headers => to_json(repeat('x', 8190)))$$);
SELECT outcome($$SELECT * FROM queue_push_batch('limits', ARRAY['1', to_json(repeat('x', 8191))::text])$$);
SELECT outcome($$SELECT queue_push_batch_bytea('limits', ARRAY[convert_to(repeat('x', 8193), 'UTF8')])$$);
SELECT outcome($$SELECT queue_push_batch_json('limits', json_build_array(repeat('x', 8191)))$$);
SELECT outcome($$SELECT queue_transaction(jsonb_build_array(jsonb_build_object('op', 'push', 'queue', 'limits', 'payload', repeat('x', 8191))))$$);
RESET qlog.max_message_size;
SELECT length(coalesce(payload::text, encode(payload_bytes, 'escape'))) FROM queue_peek('limits');

-- As it is set: 16 MB, and one byte more; nothing at all; a megabyte.
SHOW qlog.max_message_size;
SELECT bytes, outcome(format('SELECT queue_push(%L, to_json(repeat(%L, %s)))', 'limits 2', 'x', bytes - 2)) AS json, outcome(format('SELECT queue_push(%L, convert_to(repeat(%L, %s), %L))', 'limits 2', 'y', bytes, 'UTF8')) AS bytea
FROM unnest(ARRAY[3, 1048576, 16777216, 16777217]) AS bytes;
SELECT outcome($$SELECT queue_push('limits 2', ''::bytea)$$), outcome($$SELECT queue_push('limits 2', '')$$);
SELECT length(payload::text) AS json, length(payload_bytes) AS bytea, trim('"xy' FROM coalesce(payload::text, encode(payload_bytes, 'escape'))) = '' AS same FROM queue_pop('limits 2', 100);
SELECT queue_drop('limits 2');

SET qlog.max_transaction_bytes = '1MB';
BEGIN;
SELECT count(queue_push('limits', to_json(repeat('x', 100000)))) FROM generate_series(1, 10);
SELECT outcome($$SELECT queue_push('limits', to_json(repeat('x', 100000)))$$);
SELECT outcome($$SELECT queue_push('limits', '"small"')$$);
SAVEPOINT a;
SELECT queue_push('limits', '"smaller"') IS NOT NULL AS pushed;
ROLLBACK TO a;
COMMIT;
-- What a savepoint gave back can be used again.
DO $$
BEGIN
	FOR i IN 1..100 LOOP
		BEGIN
			PERFORM queue_push('limits', to_json(repeat('x', 500000)));
			RAISE EXCEPTION 'undo';
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END $$;
RESET qlog.max_transaction_bytes;
-- The default is the largest value: nothing can be raised.
SELECT outcome($$SELECT queue_push('limits', to_json(repeat('x', 16000000))) FROM generate_series(1, 17)$$);
SELECT count(*) FROM queue_peek('limits', batch => 100);

SELECT outcome($$SELECT count(*) FROM queue_push_batch('wide', array_fill('1'::text, ARRAY[4096]), (SELECT array_agg(i::text) FROM generate_series(1, 4096) AS i))$$);
SELECT outcome($$SELECT count(*) FROM queue_push_batch('wide', array_fill('1'::text, ARRAY[4097]), (SELECT array_agg(i::text) FROM generate_series(1, 4097) AS i))$$);
SELECT queue, ready FROM depth WHERE queue = 'wide';
-- The push that goes beyond is refused, and the transaction goes on with those partitions that it has; what was rolled back does not count.
BEGIN;
SELECT count(*) FROM queue_push_batch('wide', array_fill('2'::text, ARRAY[4000]), (SELECT array_agg(i::text) FROM generate_series(1, 4000) AS i));
SAVEPOINT a;
SELECT count(*) FROM queue_push_batch('wide', array_fill('3'::text, ARRAY[96]), (SELECT array_agg(i::text) FROM generate_series(4001, 4096) AS i));
SELECT outcome($$SELECT queue_push('wide', '4', '4097')$$), outcome($$SELECT queue_push('wide', '4', deliver_at => '3000-01-01')$$), outcome($$SELECT queue_push('wide 2', '4')$$);
SELECT outcome($$SELECT queue_push('wide', '4', i::text) FROM generate_series(1, 4096) AS i$$);
ROLLBACK TO a;
SELECT outcome($$SELECT queue_push('wide', '5', i::text) FROM generate_series(4001, 4097) AS i$$), outcome($$SELECT queue_push('wide', '5', i::text) FROM generate_series(4002, 4097) AS i$$);
SELECT outcome($$SELECT queue_push('wide', '6', '4001')$$), outcome($$SELECT queue_push('wide', '6', '1')$$);
COMMIT;
SELECT queue, ready FROM depth WHERE queue = 'wide';
-- Few partitions again and again, each time undone.
DO $$
BEGIN
	PERFORM queue_push('wide', '7', i::text) FROM generate_series(1, 20) AS i;
	FOR n IN 1..1000 LOOP
		BEGIN
			PERFORM queue_push('wide', '7', ((n * 10 + i) % 4000)::text) FROM generate_series(1, 10) AS i;
			RAISE EXCEPTION 'undo';
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END $$;
SELECT queue, ready FROM depth WHERE queue = 'wide';
SELECT queue_drop('wide');
