-- Pushes and acks follow subtransactions; ten thousand savepoints are nothing special.
BEGIN;
SELECT queue_push('save', '1') IS NOT NULL AS pushed;
SAVEPOINT a;
SELECT queue_push('save', '2') IS NOT NULL AS pushed;
SAVEPOINT b;
SELECT queue_push('save', '3') IS NOT NULL AS pushed;
RELEASE b;
SELECT queue_push('save', '4') IS NOT NULL AS pushed;
ROLLBACK TO a;
SELECT queue_push('save', '5') IS NOT NULL AS pushed;
SAVEPOINT c;
SELECT queue_push('save', '6', 'lane') IS NOT NULL AS pushed;
ROLLBACK TO c;
SELECT queue_push('save', '7', 'lane') IS NOT NULL AS pushed;
RELEASE c;
COMMIT;
SELECT partition, "position", payload FROM queue_peek('save');

-- Exception blocks.
DO $$
BEGIN
	PERFORM queue_push('save block', '1');
	BEGIN
		PERFORM queue_push('save block', '2');
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
		PERFORM queue_push('save block', '3');
	END;
	BEGIN
		PERFORM queue_push('save block', '4');
	END;
END $$;
SELECT payload FROM queue_peek('save block');

-- One after the other, half of them undone.
DO $$
BEGIN
	FOR i IN 1..10000 LOOP
		BEGIN
			PERFORM queue_push('save many', i::text);
			IF i % 2 = 0 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END $$;
SELECT count(*), bool_and(payload::text::int = 2 * "position" + 1) AS right FROM queue_peek('save many', batch => 20000);

-- Inside each other: kept, and undone from the middle; by exception blocks, then ten thousand savepoints.
CREATE FUNCTION nest(depth int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM queue_push('save deep', depth::text);
	IF depth < 300 THEN
		PERFORM nest(depth + 1);
	END IF;
	IF depth = 200 THEN
		RAISE EXCEPTION 'undo';
	END IF;
EXCEPTION WHEN raise_exception THEN
END $$;
SELECT nest(1);
SELECT count(*), max(payload::text::int) FROM queue_peek('save deep', batch => 20000);
DROP FUNCTION nest;
\set ECHO none
\o /dev/null
BEGIN;
SELECT format('SAVEPOINT s%s; SELECT queue_push(''save open'', ''%s'')', i, i) FROM generate_series(1, 10000) AS i \gexec
ROLLBACK TO s5001;
COMMIT;
\o
\set ECHO all
SELECT count(*), max(payload::text::int) FROM queue_peek('save open', batch => 20000);

-- Leases and acks in them.
SELECT count(*) FROM queue_push_batch('save ack', (SELECT array_agg(i::text ORDER BY i) FROM generate_series(1, 1000) AS i));
SELECT lease_id, array_agg(message_id ORDER BY "position") AS ids FROM queue_pop('save ack', 1000) GROUP BY lease_id \gset
CREATE TEMP TABLE popped AS SELECT :lease_id AS lease, u.id, u.n FROM unnest(:'ids'::uuid[]) WITH ORDINALITY AS u(id, n);
DO $$
DECLARE
	p record;
	acked bigint;
BEGIN
	FOR p IN SELECT * FROM popped ORDER BY n LOOP
		BEGIN
			acked := queue_ack(p.lease, ARRAY[p.id]);
			IF acked <> 1 THEN
				RAISE WARNING 'acked %', acked;
			END IF;
			IF p.n % 2 = 0 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END $$;
SELECT leased, acked FROM depth WHERE queue = 'save ack';
SELECT queue_ack(:lease_id);
