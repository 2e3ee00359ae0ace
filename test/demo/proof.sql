-- What the tables say: every record arrived exactly once, and in order within its section.
\pset format aligned
\pset border 1
SELECT count(*) AS records, count(DISTINCT section) AS sections FROM packages;
SELECT check_name, CASE WHEN faults = 0 THEN 'ok' ELSE faults || ' FAULTS' END AS result FROM (
  SELECT 1, 'every record was sent' AS check_name, (SELECT count(*) FROM packages) - (SELECT count(*) FROM sent) AS faults
  UNION ALL
  SELECT 2, 'every record sent has arrived', count(*) FROM sent s WHERE NOT EXISTS (SELECT FROM received r WHERE r.id = s.id)
  UNION ALL
  SELECT 3, 'nothing arrived twice', count(*) - count(DISTINCT id) FROM received
  UNION ALL
  SELECT 4, 'nothing arrived that was not sent', count(*) FROM received r WHERE NOT EXISTS (SELECT FROM sent s WHERE s.id = r.id)
  UNION ALL
  SELECT 5, 'positions ascend in each section', count(*) FROM (
    SELECT "position" <= lag("position") OVER (PARTITION BY section ORDER BY n) AS back FROM received) x WHERE back
  UNION ALL
  SELECT 6, 'each producer''s records stay in order', count(*) FROM (
    SELECT id <= lag(id) OVER (PARTITION BY section, producer ORDER BY n) AS back FROM received) x WHERE back
  UNION ALL
  SELECT 7, 'documents are unchanged', count(*) FROM received r JOIN packages p USING (id)
    WHERE r.section <> p.section OR r.document::jsonb <> p.document::jsonb
) checks(nr, check_name, faults) ORDER BY nr;
SELECT count(*) AS redelivered_after_the_kill, max(attempt) AS most_attempts FROM received WHERE attempt > 1;
