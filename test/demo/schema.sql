-- What the demo works on: the records to send, what was sent and what arrived.
CREATE EXTENSION qlog;
CREATE TABLE packages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, section text NOT NULL, document text NOT NULL);
CREATE TABLE sent (id bigint PRIMARY KEY, producer int NOT NULL, message_id uuid NOT NULL);
CREATE TABLE received (n bigint GENERATED ALWAYS AS IDENTITY, id bigint NOT NULL, producer int NOT NULL, consumer int NOT NULL,
                       section text NOT NULL, "position" bigint NOT NULL, attempt int NOT NULL, document json NOT NULL);

-- One producer: each record in a transaction of its own that also inserts a row. What an earlier run has sent is
-- skipped, so it can simply be called again after the server was killed.
CREATE PROCEDURE produce(me int, producers int) LANGUAGE plpgsql AS $$
DECLARE
  next record;
BEGIN
  FOR next IN SELECT p.id, p.section, p.document FROM packages p
    WHERE p.id % producers = me AND NOT EXISTS (SELECT FROM sent s WHERE s.id = p.id) ORDER BY p.id
  LOOP
    INSERT INTO sent VALUES (next.id, me, queue_push('packages',
      json_build_object('id', next.id, 'producer', me, 'record', next.document::json)::text, partition => next.section));
    COMMIT;
  END LOOP;
END $$;

-- One consumer: pop, write the result, acknowledge, all in one transaction, until everything has arrived.
CREATE PROCEDURE consume(me int) LANGUAGE plpgsql AS $$
DECLARE
  taken bigint;
  lease bigint;
BEGIN
  LOOP
    WITH popped AS MATERIALIZED (SELECT * FROM queue_pop('packages', 25)),
    written AS (
      INSERT INTO received(id, producer, consumer, section, "position", attempt, document)
      SELECT (payload->>'id')::bigint, (payload->>'producer')::int, me, partition, "position", attempt, payload->'record'
      FROM popped ORDER BY "position" RETURNING 1)
    SELECT (SELECT count(*) FROM written), (SELECT max(lease_id) FROM popped) INTO taken, lease;
    IF taken > 0 THEN
      PERFORM queue_ack(lease);
      COMMIT;
      PERFORM pg_sleep(0.002);
    ELSE
      ROLLBACK;
      EXIT WHEN (SELECT count(*) FROM received) >= (SELECT count(*) FROM packages);
      PERFORM pg_sleep(0.05);
    END IF;
  END LOOP;
END $$;
