-- queue_renew: the lease runs for this time from now on, at once.
SELECT queue_create('renew', '{"lease": "1 h"}');
SELECT queue_push('renew', '1') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('renew', lease => '2 min') \gset
SELECT queue_renew(:lease_id, '10 min') - now() BETWEEN '9 min' AND '11 min' AS ten_minutes;
SELECT leased_until - now() BETWEEN '9 min' AND '11 min' AS ten_minutes FROM qlog_leases WHERE queue = 'renew';
-- NULL is the option of the queue.
SELECT queue_renew(:lease_id) - now() BETWEEN '59 min' AND '61 min' AS an_hour;
BEGIN;
SELECT queue_renew(:lease_id, '5 min') IS NOT NULL AS renewed;
ROLLBACK;
SELECT leased_until - now() BETWEEN '4 min' AND '6 min' AS stays FROM qlog_leases WHERE queue = 'renew';
-- While the transaction of the pop is open it cannot expire anyway; the time counts from COMMIT.
SELECT queue_ack(:lease_id);
SELECT queue_push('renew', '2') IS NOT NULL AS pushed;
BEGIN;
SELECT lease_id FROM queue_pop('renew') \gset
SELECT queue_renew(:lease_id, '30 min') IS NOT NULL AS renewed;
COMMIT;
SELECT leased_until - now() BETWEEN '29 min' AND '31 min' AS half_an_hour FROM qlog_leases WHERE queue = 'renew';
-- A lost one: NULL.
SELECT queue_ack(:lease_id);
SELECT queue_renew(:lease_id), queue_renew(0), queue_renew(42, '1 min');
SELECT outcome($$SELECT queue_renew(42, '1 min')$$);
SELECT queue_push('renew', '3') IS NOT NULL AS pushed;
SELECT lease_id FROM queue_pop('renew') \gset
SELECT outcome(format('SELECT queue_renew(%s, %L)', :lease_id, '0 s'));
SELECT outcome(format('SELECT queue_renew(%s, %L)', :lease_id, '400 days'));
