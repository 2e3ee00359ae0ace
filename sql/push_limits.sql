-- A message may have qlog.max_message_size, a transaction qlog.max_transaction_bytes, and 4096 partitions.
SET qlog.max_message_size = '8kB';
SELECT outcome($$SELECT queue_push('limits', to_json(repeat('x', 8190)))$$);
SELECT outcome($$SELECT queue_push('limits', to_json(repeat('x', 8191)))$$);
SELECT outcome($$SELECT queue_push('limits', convert_to(repeat('x', 8192), 'UTF8'))$$);
SELECT outcome($$SELECT queue_push('limits', convert_to(repeat('x', 8193), 'UTF8'))$$);
SELECT outcome($$SELECT queue_push('limits', '1', headers => to_json(repeat('x', 8190)))$$);
SELECT outcome($$SELECT * FROM queue_push_batch('limits', ARRAY['1', to_json(repeat('x', 8191))::text])$$);
RESET qlog.max_message_size;
SELECT length(coalesce(payload::text, encode(payload_bytes, 'escape'))) FROM queue_peek('limits');

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
SELECT count(*) FROM queue_peek('limits', batch => 100);

SELECT outcome($$SELECT count(*) FROM queue_push_batch('wide', array_fill('1'::text, ARRAY[4096]), (SELECT array_agg(i::text) FROM generate_series(1, 4096) AS i))$$);
BEGIN;
SELECT count(*) FROM queue_push_batch('wide', array_fill('1'::text, ARRAY[4097]), (SELECT array_agg(i::text) FROM generate_series(1, 4097) AS i));
COMMIT;
SELECT queue, ready FROM depth WHERE queue = 'wide';
SELECT queue_drop('wide');
