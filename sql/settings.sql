-- Every setting has a description, and no other one can be made up.
SELECT name, vartype, unit, boot_val, coalesce(min_val || ' .. ' || max_val, enumvals::text) AS range, context FROM pg_settings WHERE name LIKE 'qlog.%' ORDER BY name COLLATE "C";
SELECT name AS without_description FROM pg_settings WHERE name LIKE 'qlog.%' AND (short_desc = '' OR short_desc !~ '\.$');
SELECT outcome('SET qlog.no_such_setting = 1');
