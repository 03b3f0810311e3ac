-- searched --
-- Every table of the store, with the columns in which a text or an id may stand; those of erasures hold no content.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT c.relname = ANY(%(without)s::text[])
  AND (t.typname IN ('text', 'varchar', 'bpchar', 'name', 'json', 'jsonb', 'uuid')
       OR e.typname IN ('text', 'varchar', 'json', 'jsonb', 'uuid'))
GROUP BY c.relname
ORDER BY c.relname

-- rows_with --
-- In how many rows of a table a text stands in one of these forms, in capital or small letters.
SELECT count(*) FROM {table}
WHERE EXISTS (SELECT FROM unnest(%(forms)s::text[]) AS one WHERE strpos(lower(concat_ws(' ', {columns})), lower(one)) > 0)

-- as_user --
-- For a login that policies hold for: whose rows it is to see.
SELECT set_config('memstore.user_id', %(user)s, true)
