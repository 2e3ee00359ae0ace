-- Prints doc/reference.md: functions, views and settings of the extension, out of their COMMENTs and descriptions. Run by
-- "make reference" and by the test that compares; psql with -XAt, in a database with the extension and a fixed path.
\pset format unaligned
\pset tuples_only on
SET search_path = public;
\qecho # Reference
\qecho
\qecho 'Made by "make reference" from the COMMENTs of the extension and the descriptions of its settings; do not edit.'
\qecho
\qecho ## Functions
\qecho
SELECT format(E'### %s\n\n```\n%s(%s)%s\n```\n\n%s\n', p.proname || CASE WHEN count(*) OVER same > 1 THEN format(' (%s)', split_part(oidvectortypes(p.proargtypes), ', ', 2)) ELSE '' END,
	p.proname, pg_get_function_arguments(p.oid),
	CASE p.prokind WHEN 'p' THEN '   -- a procedure: CALL' ELSE ' -> ' || pg_get_function_result(p.oid) END,
	obj_description(p.oid, 'pg_proc'))
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'qlog')
WHERE obj_description(p.oid, 'pg_proc') NOT LIKE 'Rows of the view %' AND obj_description(p.oid, 'pg_proc') NOT LIKE 'The row of the view %'
WINDOW same AS (PARTITION BY p.proname)
ORDER BY p.proname COLLATE "C", p.oid;
\qecho ## Views
\qecho
SELECT format(E'### %s\n\n%s\n\n| column | type |\n|---|---|\n%s\n', c.relname, obj_description(c.oid, 'pg_class'),
	(SELECT string_agg(format('| %s | %s |', a.attname, format_type(a.atttypid, a.atttypmod)), E'\n' ORDER BY a.attnum)
	 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))
FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'qlog')
WHERE c.relkind = 'v'
ORDER BY c.relname COLLATE "C";
\qecho ## Settings
\qecho
\qecho | setting | default | range | takes effect | |
\qecho |---|---|---|---|---|
SELECT format('| %s | %s | %s | %s | %s |', name,
	coalesce(nullif(boot_val, ''), '-') || CASE WHEN unit IS NULL THEN '' ELSE ' ' || unit END,
	CASE WHEN enumvals IS NOT NULL THEN array_to_string(enumvals, ', ') WHEN vartype IN ('integer', 'real') THEN min_val || ' .. ' || max_val ELSE vartype END,
	CASE context WHEN 'postmaster' THEN 'at start' WHEN 'sighup' THEN 'on reload' WHEN 'superuser' THEN 'per session, superuser' WHEN 'user' THEN 'per session' ELSE context END,
	short_desc)
FROM pg_settings WHERE name LIKE 'qlog.%' AND name NOT LIKE 'qlog.debug%'
ORDER BY name COLLATE "C";
