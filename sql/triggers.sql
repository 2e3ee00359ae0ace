-- Pushes out of triggers, deferred ones among them, and out of procedures that commit.
CREATE TABLE orders (id int PRIMARY KEY);
CREATE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM queue_push(TG_ARGV[0], to_json(new.id));
	RETURN new;
END $$;
CREATE TRIGGER at_once AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION announce('trigger at once');
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION announce('trigger deferred');
INSERT INTO orders SELECT generate_series(1, 3);
BEGIN;
INSERT INTO orders VALUES (4);
ROLLBACK;
BEGIN;
INSERT INTO orders VALUES (5);
SAVEPOINT a;
INSERT INTO orders VALUES (6);
ROLLBACK TO a;
COMMIT;
INSERT INTO orders VALUES (7), (7);
SELECT array_agg(payload::text ORDER BY "position") FROM queue_peek('trigger at once');
SELECT array_agg(payload::text ORDER BY "position") FROM queue_peek('trigger deferred');

-- A deferred trigger that fails takes everything with it.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.id = 8) EXECUTE FUNCTION refuse();
INSERT INTO orders VALUES (8);
SELECT count(*) FROM queue_peek('trigger at once', batch => 100);

CREATE PROCEDURE in_parts() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..4 LOOP
		PERFORM queue_push('procedure', i::text);
		IF i % 2 = 0 THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
	PERFORM queue_push('procedure', '5');
END $$;
CALL in_parts();
SELECT payload FROM queue_peek('procedure');
DROP PROCEDURE in_parts;
DROP TABLE orders;
DROP FUNCTION announce, refuse;
