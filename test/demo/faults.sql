-- One number: faults of any kind, for the exit code.
SELECT abs((SELECT count(*) FROM packages) - (SELECT count(*) FROM sent))
  + abs((SELECT count(*) FROM packages) - (SELECT count(*) FROM received))
  + (SELECT count(*) - count(DISTINCT id) FROM received)
  + (SELECT count(*) FROM (SELECT "position" <= lag("position") OVER (PARTITION BY section ORDER BY n) AS back FROM received) x WHERE back)
  + (SELECT count(*) FROM (SELECT id <= lag(id) OVER (PARTITION BY section, producer ORDER BY n) AS back FROM received) x WHERE back);
