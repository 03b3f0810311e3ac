-- messages_of --
-- The ids of all messages of some conversations.
SELECT id FROM messages WHERE user_id = %(user_id)s AND conversation_id = ANY(%(conversations)s)

-- ids_left --
-- Rows in which ids of what was erased stand, by table.
SELECT place, count(*) AS rows
FROM (
    SELECT 'messages' AS place FROM messages m
    WHERE m.user_id = %(user_id)s AND (m.id = ANY(%(ids)s::uuid[]) OR m.conversation_id = ANY(%(ids)s::uuid[]))
    UNION ALL
    SELECT 'conversations' FROM conversations c WHERE c.user_id = %(user_id)s AND c.id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT 'setting_changes' FROM setting_changes c
    WHERE c.user_id = %(user_id)s AND c.conversation_id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT 'derivations' FROM derivations d
    WHERE d.user_id = %(user_id)s AND d.conversation_id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT 'summaries' FROM summaries s
    WHERE s.user_id = %(user_id)s AND (s.id = ANY(%(ids)s::uuid[]) OR s.conversation_id = ANY(%(ids)s::uuid[]))
    UNION ALL
    SELECT 'facts' FROM facts f WHERE f.user_id = %(user_id)s AND f.id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT 'fact_sources' FROM fact_sources s
    WHERE s.user_id = %(user_id)s AND (s.fact_id = ANY(%(ids)s::uuid[]) OR s.message_id = ANY(%(ids)s::uuid[]))
    UNION ALL
    SELECT 'fact_changes' FROM fact_changes c
    WHERE c.user_id = %(user_id)s AND (c.fact_id = ANY(%(ids)s::uuid[]) OR c.other_id = ANY(%(ids)s::uuid[]))
    UNION ALL
    SELECT 'item_text' FROM item_text t
    WHERE t.user_id = %(user_id)s AND (t.item_id = ANY(%(ids)s::uuid[]) OR t.conversation_id = ANY(%(ids)s::uuid[]))
    UNION ALL
    SELECT 'item_vectors' FROM item_vectors v WHERE v.user_id = %(user_id)s AND v.item_id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT 'dead_letters' FROM dead_letters l
    WHERE l.user_id = %(user_id)s AND l.conversation_id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT 'receipts' FROM receipts r
    WHERE r.user_id = %(user_id)s
      AND (r.conversation_id = ANY(%(ids)s::uuid[])
           OR EXISTS (SELECT FROM jsonb_path_query(r.body, '$.** ? (@.type() == "string")') AS said
                      WHERE said #>> '{}' = ANY(%(texts)s::text[])))
    UNION ALL
    SELECT 'events' FROM events e
    WHERE e.user_id = %(user_id)s
      AND (e.conversation_id = ANY(%(ids)s::uuid[])
           OR e.body->>'fact' = ANY(%(texts)s::text[]) OR e.body->>'by' = ANY(%(texts)s::text[])
           OR e.body->>'receipt' = ANY(%(texts)s::text[]))
) AS left_over
GROUP BY place

-- rows_of_user --
-- How many rows a user has, table by table; those of erasures are to stay.
SELECT 'users' AS place, count(*) AS rows FROM users WHERE user_id = %(user_id)s
UNION ALL
SELECT 'conversations' AS place, count(*) AS rows FROM conversations WHERE user_id = %(user_id)s
UNION ALL
SELECT 'messages' AS place, count(*) AS rows FROM messages WHERE user_id = %(user_id)s
UNION ALL
SELECT 'summaries' AS place, count(*) AS rows FROM summaries WHERE user_id = %(user_id)s
UNION ALL
SELECT 'facts' AS place, count(*) AS rows FROM facts WHERE user_id = %(user_id)s
UNION ALL
SELECT 'fact_sources' AS place, count(*) AS rows FROM fact_sources WHERE user_id = %(user_id)s
UNION ALL
SELECT 'fact_changes' AS place, count(*) AS rows FROM fact_changes WHERE user_id = %(user_id)s
UNION ALL
SELECT 'item_text' AS place, count(*) AS rows FROM item_text WHERE user_id = %(user_id)s
UNION ALL
SELECT 'item_vectors' AS place, count(*) AS rows FROM item_vectors WHERE user_id = %(user_id)s
UNION ALL
SELECT 'term_postings' AS place, count(*) AS rows FROM term_postings WHERE user_id = %(user_id)s
UNION ALL
SELECT 'embedding_models' AS place, count(*) AS rows FROM embedding_models WHERE user_id = %(user_id)s
UNION ALL
SELECT 'derivations' AS place, count(*) AS rows FROM derivations WHERE user_id = %(user_id)s
UNION ALL
SELECT 'receipts' AS place, count(*) AS rows FROM receipts WHERE user_id = %(user_id)s
UNION ALL
SELECT 'setting_changes' AS place, count(*) AS rows FROM setting_changes WHERE user_id = %(user_id)s
UNION ALL
SELECT 'dead_letters' AS place, count(*) AS rows FROM dead_letters WHERE user_id = %(user_id)s
UNION ALL
SELECT 'model_usage' AS place, count(*) AS rows FROM model_usage WHERE user_id = %(user_id)s
UNION ALL
SELECT 'counter_drift' AS place, count(*) AS rows FROM counter_drift WHERE user_id = %(user_id)s
UNION ALL
SELECT 'events' AS place, count(*) AS rows FROM events WHERE user_id = %(user_id)s
UNION ALL
SELECT 'documents' AS place, count(*) AS rows FROM documents WHERE user_id = %(user_id)s
UNION ALL
SELECT 'document_vectors' AS place, count(*) AS rows FROM document_vectors WHERE user_id = %(user_id)s

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
