-- Options of queue_create.
SELECT queue_create('options', '{"lease": "90 s", "ordered": true, "compression_level": 3, "retry_limit": -1}');
SELECT options FROM qlog_queues WHERE queue = 'options';
SELECT queue_create('options null', '{"lease": null, "ordered": false}');
SELECT options FROM qlog_queues WHERE queue = 'options null';
SELECT outcome($$SELECT queue_create('o', '{"colour": "red"}')$$);
SELECT outcome($$SELECT queue_create('o', '[]')$$);
SELECT outcome($$SELECT queue_create('o', '1')$$);
SELECT outcome($$SELECT queue_create('o', '{"lease": 60}')$$);
SELECT outcome($$SELECT queue_create('o', '{"lease": "soon"}')$$);
SELECT outcome($$SELECT queue_create('o', '{"lease": "0 s"}')$$);
SELECT outcome($$SELECT queue_create('o', '{"lease": "366 days"}')$$);
SELECT outcome($$SELECT queue_create('o', '{"lease": "-1 s"}')$$);
SELECT outcome($$SELECT queue_create('o', '{"ordered": "yes"}')$$);
SELECT outcome($$SELECT queue_create('o', '{"ordered": 1}')$$);
SELECT outcome($$SELECT queue_create('o', '{"compression_level": 20}')$$);
SELECT outcome($$SELECT queue_create('o', '{"compression_level": 1.5}')$$);
SELECT outcome($$SELECT queue_create('o', '{"compression_level": 1e30}')$$);
SELECT outcome($$SELECT queue_create('o', '{"compression_level": {"a": 1}}')$$);

SELECT count(*) FROM qlog_queues WHERE queue = 'o';

-- The lease of a pop is the queue's, or its own.
SELECT queue_push('options', '1') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('options') \gset
SELECT leased_until - leased_at BETWEEN '89 s' AND '95 s' AS ninety_seconds FROM qlog_leases WHERE queue = 'options';
SELECT queue_nack(:lease_id);
SELECT lease_id FROM queue_pop('options', lease => '10 min') \gset
SELECT leased_until - leased_at BETWEEN '9 min' AND '11 min' AS ten_minutes FROM qlog_leases WHERE queue = 'options';
SELECT outcome($$SELECT queue_pop('options', lease => '0')$$);
SELECT outcome($$SELECT queue_pop('options', lease => '400 days')$$);
SELECT outcome($$SELECT queue_pop('options', lease => '-1 s')$$);

-- ordered: one lease at a time in the default partition.
SELECT queue_push('options', '2') IS NOT NULL AS pushed;
SELECT count(*) FROM queue_pop('options');
SELECT queue_ack(:lease_id);
SELECT payload FROM queue_pop('options', 10);

-- compression_level: 0 is off, -1 is qlog.compression_level.
SELECT queue_create('options plain', '{"compression_level": 0}'), queue_create('options packed', '{"compression_level": 3}'), queue_create('options setting', '{"compression_level": -1}');
SELECT count(queue_push(q, to_json(repeat('x', 100000)))) FROM unnest(ARRAY['options plain', 'options packed', 'options setting']) AS q;
SET qlog.compression_level = 0;
SELECT queue_push('options setting', to_json(repeat('x', 100000))) IS NOT NULL AS pushed;
RESET qlog.compression_level;
SELECT queue, bytes / 10000 AS bytes FROM qlog_stat_queues WHERE queue IN ('options plain', 'options packed', 'options setting') ORDER BY queue;
SELECT bool_and(payload::text = to_json(repeat('x', 100000))::text) AS same FROM unnest(ARRAY['options plain', 'options packed', 'options setting']) AS q, queue_peek(q);
