-- Times mean the same whatever the session's time zone and styles are: what goes in, what comes out, what is kept.
CREATE TABLE zones AS SELECT z, d, i FROM (VALUES ('UTC', 'ISO, MDY', 'postgres'), ('Asia/Kathmandu', 'SQL, DMY', 'iso_8601'), ('America/St_Johns', 'German', 'sql_standard'),
	('Pacific/Kiritimati', 'Postgres, YMD', 'postgres_verbose'), ('<-12>+12', 'ISO, DMY', 'iso_8601'), ('<+13:37>-13:37', 'SQL, MDY', 'postgres')) AS v(z, d, i);
CREATE FUNCTION in_zone(zone zones, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('TimeZone', zone.z, true), set_config('DateStyle', zone.d, true), set_config('IntervalStyle', zone.i, true);
	EXECUTE statement INTO result;
	RETURN result;
END $$;
-- One row per different result, so one row.
CREATE FUNCTION everywhere(statement text) RETURNS TABLE (result text, zones bigint) LANGUAGE sql AS $$
	SELECT in_zone(zones, statement), count(*) FROM zones GROUP BY 1 ORDER BY 1 $$;
-- An instant as the session would write it, without a zone.
CREATE FUNCTION local_text(t timestamptz) RETURNS text LANGUAGE sql AS $$ SELECT t::timestamp::text $$;

SELECT count(*) FROM queue_push_batch('zones', ARRAY['1', '2']);
SELECT pg_sleep(0.01);
SELECT extract(epoch FROM clock_timestamp()) AS instant \gset
SELECT queue_push('zones', '3') IS NOT NULL AS pushed;
SELECT count(DISTINCT in_zone(zones, $$SELECT string_agg(extract(epoch FROM pushed_at)::text, ' ' ORDER BY "position") FROM queue_peek('zones')$$)) AS pushed_at,
	count(DISTINCT in_zone(zones, $$SELECT extract(epoch FROM created_at) FROM qlog_queues WHERE queue = 'zones'$$)) AS created_at,
	count(DISTINCT in_zone(zones, $$SELECT extract(epoch FROM last_push) FROM qlog_stat_queues WHERE queue = 'zones'$$)) AS last_push,
	count(DISTINCT in_zone(zones, $$SELECT extract(epoch FROM oldest) + extract(epoch FROM newest) FROM qlog_files WHERE file LIKE (SELECT directory || '/%' FROM qlog_queues WHERE queue = 'zones') AND state = 'active'$$)) AS files FROM zones;
SELECT * FROM everywhere(format($$SELECT string_agg(payload::text, ' ') FROM queue_peek('zones', from_time => local_text(to_timestamp(%s))::timestamptz)$$, :'instant'));
SELECT * FROM everywhere($$SELECT oldest_ready_age BETWEEN interval '0' AND interval '1 min' FROM qlog_stat_queues WHERE queue = 'zones'$$);

-- A group that begins at a time, and one that is sent to a time.
SELECT * FROM everywhere(format($$SELECT queue_subscribe('zones', current_setting('TimeZone'), local_text(to_timestamp(%s)))$$, :'instant'));
SELECT * FROM everywhere($$SELECT string_agg(payload::text, ' ') FROM queue_pop('zones', 10, consumer_group => current_setting('TimeZone'), auto_ack => true)$$);
SELECT * FROM everywhere(format($$SELECT queue_seek('zones', current_setting('TimeZone'), to_time => local_text(to_timestamp(%s))::timestamptz)$$, :'instant'));
SELECT * FROM everywhere($$SELECT string_agg(payload::text, ' ') FROM queue_pop('zones', 10, consumer_group => current_setting('TimeZone'), auto_ack => true)$$);

-- Delivered when they are due: an hour ago is due, in an hour is not.
SELECT * FROM everywhere($$SELECT queue_push('zones due', '1', deliver_at => local_text(now() - interval '30 min')::timestamptz) IS NOT NULL$$);
SELECT * FROM everywhere($$SELECT queue_push('zones due', '2', deliver_at => local_text(now() + interval '30 min')::timestamptz) IS NOT NULL$$);
SELECT * FROM everywhere($$SELECT jsonb_array_length(queue_transaction(jsonb_build_array(
	jsonb_build_object('op', 'push', 'queue', 'zones due', 'payload', 3, 'deliver_at', local_text(now() - interval '30 min')),
	jsonb_build_object('op', 'push', 'queue', 'zones due', 'payload', 4, 'deliver_at', local_text(now() + interval '30 min')))))$$);
SELECT payload, count(*) FROM (SELECT payload::text FROM queue_peek('zones due', batch => 100)) AS p GROUP BY 1 ORDER BY 1;
SELECT ready, delayed FROM qlog_stat_queues WHERE queue = 'zones due';

-- Leases, retries, options: lengths of time, in every style; a day has 24 hours and a month 30 days wherever the session is.
SELECT * FROM everywhere($$SELECT (leased_until - pushed_at) BETWEEN interval '1 h' AND interval '61 min' FROM queue_pop('zones due', lease => '1:00:00')$$);
SELECT * FROM everywhere($$SELECT extract(epoch FROM queue_renew(lease_id, '1 mon 1 day') - clock_timestamp())::int / 60 FROM qlog_leases WHERE queue = 'zones due' LIMIT 1$$);
SELECT * FROM everywhere($$SELECT queue_nack(lease_id, retry_after => '1 day') FROM qlog_leases WHERE queue = 'zones due' LIMIT 1$$);
SELECT * FROM everywhere($$SELECT queue_set('zones', 'lease', interval '1 day 90.5 s'::text)$$);
SELECT * FROM everywhere($$SELECT options FROM qlog_queues WHERE queue = 'zones'$$);
SELECT * FROM everywhere($$SELECT queue_create('zones ' || current_setting('TimeZone'), jsonb_build_object('lease', interval '1 day 90.5 s'::text, 'retry_delay', 'PT1M30S'))$$);
SELECT options, count(*) FROM qlog_queues WHERE queue IN (SELECT 'zones ' || z FROM zones) GROUP BY 1;
SELECT * FROM everywhere($$SELECT statement FROM queue_definitions() AS statement WHERE statement LIKE '%create(''zones UTC''%'$$);

-- Limits of the types: neither errors of their own nor times that wrap.
SELECT outcome(statement) FROM unnest(ARRAY[
	$$SELECT queue_push('zones far', '1', deliver_at => '294276-12-31 23:59:59.999999+00')$$, $$SELECT queue_push('zones far', '2', deliver_at => '4714-11-24 00:00:00+00 BC')$$,
	$$SELECT queue_push('zones far', '3', deliver_at => 'infinity')$$, $$SELECT queue_push('zones far', '4', deliver_at => 'epoch')$$, $$SELECT queue_push('zones far', '5', deliver_at => '2262-04-12 00:00:00+00')$$,
	$$SELECT queue_subscribe('zones far', 'a', '294276-12-31 23:59:59.999999+00')$$, $$SELECT queue_subscribe('zones far', 'b', '4714-11-24 00:00:00+00 BC')$$,
	$$SELECT queue_subscribe('zones far', 'c', 'tomorrow')$$, $$SELECT queue_subscribe('zones far', 'd', 'infinity')$$, $$SELECT queue_subscribe('zones far', 'e', '2001-02-30')$$,
	$$SELECT queue_seek('zones far', '', to_time => '4714-11-24 00:00:00+00 BC')$$, $$SELECT queue_seek('zones far', '', to_time => '294276-12-31 23:59:59.999999+00')$$,
	$$SELECT queue_pop('zones far', lease => '178000000 years')$$, $$SELECT queue_pop('zones far', lease => '2147483647 days')$$, $$SELECT queue_pop('zones far', lease => '-178000000 years')$$,
	$$SELECT queue_pop('zones far', wait => '178000000 years')$$, $$SELECT queue_pop('zones far', lease => '365 days')$$, $$SELECT queue_pop('zones far', lease => '12 mons 5 days')$$, $$SELECT queue_pop('zones far', lease => '12 mons 5 days 1 us')$$,
	$$SELECT queue_renew(42, '178000000 years')$$, $$SELECT queue_nack(42, retry_after => '178000000 years')$$, $$SELECT queue_set('zones far', 'lease', '178000000 years')$$,
	$$SELECT queue_set('zones far', 'delay', '178000000 years')$$]) AS statement;
SELECT payload FROM queue_peek('zones far');
SELECT delayed FROM qlog_stat_queues WHERE queue = 'zones far';
-- The far future and the end: nothing that is there; the far past: everything.
SELECT g, count(payload) FROM unnest(ARRAY['a', 'b', 'd', '']) AS g LEFT JOIN LATERAL queue_pop('zones far', 10, consumer_group => g) ON true GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM queue_peek('zones far', from_time => '294276-12-31 23:59:59.999999+00');
SELECT count(*) FROM queue_peek('zones far', from_time => '4714-11-24 00:00:00+00 BC');
SELECT count(queue_drop(queue)) > 0 AS dropped FROM qlog_queues WHERE queue LIKE 'zones%';
DROP FUNCTION everywhere, in_zone, local_text;
DROP TABLE zones;
