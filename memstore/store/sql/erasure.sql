-- version --
-- Since when there is a user, and how often something of the user was erased.
SELECT created_at, erasures FROM users WHERE user_id = %(user_id)s

-- hold --
-- The same; nothing of the user is erased until the transaction ends, and nothing else is derived.
SELECT created_at, erasures FROM users WHERE user_id = %(user_id)s FOR NO KEY UPDATE

-- share --
-- The same; nothing of the user is erased until the transaction ends.
SELECT created_at, erasures FROM users WHERE user_id = %(user_id)s FOR KEY SHARE

-- impatiently --
-- Who erases is the one that gives way: sooner than the server looks for a deadlock, which is after a second.
SET LOCAL lock_timeout = '400ms'

-- lock_conversations --
-- Lets nobody add to conversations, or say anything of them.
SELECT id FROM conversations
WHERE user_id = %(user_id)s AND (%(ids)s::uuid[] IS NULL OR id = ANY(%(ids)s::uuid[]))
ORDER BY id
FOR UPDATE

-- lock_user --
-- Lets nobody write anything that belongs to the user.
SELECT posted FROM users WHERE user_id = %(user_id)s FOR UPDATE

-- count_erasure --
-- A process that has read before this must not write.
UPDATE users SET erasures = erasures + 1 WHERE user_id = %(user_id)s

-- add_erasure --
-- The certificate.
INSERT INTO erasures (user_id, id, scope, body) VALUES (%(user_id)s, %(id)s, %(scope)s, %(body)s)
RETURNING recorded_at

-- erasures --
-- A user's certificates, the latest first.
SELECT id, body, recorded_at FROM erasures
WHERE user_id = %(user_id)s AND (%(id)s::uuid IS NULL OR id = %(id)s)
ORDER BY recorded_at DESC, id
LIMIT %(limit)s

-- latest --
-- When everything of the user, or of a conversation, was erased last.
SELECT max(recorded_at) AS recorded_at FROM erasures
WHERE user_id = %(user_id)s
  AND (scope = 'user' OR scope = 'conversation' AND body->>'conversation_id' = %(conversation_id)s::uuid::text)

-- as_operator --
-- Backfills and tokens are the operator's.
SET LOCAL memstore.operator = 'on'

-- remove_backfills --
-- Backfills of this user alone.
DELETE FROM backfills WHERE only_user = %(user)s

-- take_back_tokens --
-- Tokens of this user, who is not named by them any more.
UPDATE api_tokens SET user_id = NULL, user_name = NULL, name = NULL, revoked_at = coalesce(revoked_at, now())
WHERE user_id = %(user)s

-- rows_of_operator of each operator table --
-- How many of the operator's rows are of this user alone, by table.
SELECT '{table.name}' AS place, count(*) AS rows FROM {table.name} WHERE {table.user_column} = %(user)s

-- doomed --
-- The messages that an erasure is of, in the order of their conversations.
SELECT id, conversation_id, seq, recorded_at, external_id IS NULL AS unnamed
FROM messages
WHERE user_id = %(user_id)s
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND (%(ids)s::uuid[] IS NULL OR id = ANY(%(ids)s::uuid[]))
  AND (%(before)s::timestamptz IS NULL OR occurred_at < %(before)s)
ORDER BY conversation_id, seq

-- contents --
-- What messages without an external id say: that is what they are known by.
SELECT conversation_id, role, name, text, parts, tool_calls, tool_call_id, occurred_at
FROM messages
WHERE user_id = %(user_id)s AND external_id IS NULL AND id = ANY(%(ids)s::uuid[])

-- texts --
-- The texts of messages.
SELECT concat_ws(' ', name, text, parts::text, tool_calls::text, meta::text) AS text
FROM messages
WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- summaries_over --
-- Removes the summaries of ranges that messages are in.
DELETE FROM summaries s
WHERE s.user_id = %(user_id)s AND s.conversation_id = %(conversation_id)s
  AND EXISTS (SELECT 1 FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS run (first, last)
              WHERE run.first <= s.to_seq AND run.last >= s.from_seq)
RETURNING s.id, s.level, s.from_seq

-- back_to --
-- Takes a deriver back to a message, where it is beyond it.
UPDATE derivations
SET done_seq = %(to_seq)s, attempts = 0, last_error = NULL, updated_at = now()
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq > %(to_seq)s

-- pending_since --
-- When the first of the pending messages of conversations was said, after some were removed or derivers taken back.
UPDATE derivations d
SET pending_since = (SELECT m.occurred_at FROM messages m
                     WHERE m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id AND m.seq > d.done_seq
                     ORDER BY m.seq LIMIT 1)
WHERE d.user_id = %(user_id)s AND d.conversation_id = ANY(%(ids)s::uuid[]) AND d.done_seq < d.last_seq

-- resting_facts --
-- Facts that messages say which go, and others that are named.
-- Whether messages say them that stay, whether the words are of one that goes, whether one that goes said them last and
-- others have ended for their sake, whether somebody entered them by hand or has taken them back.
WITH doomed AS MATERIALIZED (SELECT DISTINCT unnest(%(messages)s::uuid[]) AS id)
SELECT f.id, bool_or(s.message_id IS NOT NULL AND doomed.id IS NULL) AS said_elsewhere,
       bool_or(doomed.id IS NOT NULL AND s.recorded_at <= f.recorded_at) AS born_here,
       coalesce(max(m.occurred_at) FILTER (WHERE doomed.id IS NOT NULL)
                > max(m.occurred_at) FILTER (WHERE doomed.id IS NULL), false)
       AND EXISTS (SELECT 1 FROM fact_changes c
                   JOIN facts o ON o.user_id = c.user_id AND o.id = c.fact_id
                   WHERE c.user_id = %(user_id)s AND o.user_id = %(user_id)s AND c.other_id = f.id
                     AND c.action = 'superseded' AND o.state = 'superseded') AS ended_others,
       coalesce((SELECT c.before->>'recipe' FROM fact_changes c
                 WHERE c.user_id = %(user_id)s AND c.fact_id = f.id
                 ORDER BY c.recorded_at, c.id LIMIT 1), f.recipe) = 'hand' AS entered,
       f.state = 'retracted' AS retracted, f.subject, f.text,
       coalesce(string_agg(concat_ws(' ', m.name, m.text), ' ') FILTER (WHERE doomed.id IS NULL), '') AS said
FROM facts f
LEFT JOIN fact_sources s ON s.user_id = f.user_id AND s.fact_id = f.id AND s.user_id = %(user_id)s
LEFT JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id AND m.user_id = %(user_id)s
LEFT JOIN doomed ON doomed.id = s.message_id
WHERE f.user_id = %(user_id)s
  AND (f.id = ANY(%(facts)s::uuid[])
       OR f.id IN (SELECT t.fact_id FROM fact_sources t
                   WHERE t.user_id = %(user_id)s AND t.message_id = ANY(%(messages)s::uuid[])))
GROUP BY f.user_id, f.id, f.recipe, f.state, f.subject, f.text

-- move_chunks --
-- The chunks of facts that their conversation no longer says go to the first one that does.
UPDATE item_text t
SET conversation_id = (SELECT m.conversation_id
                       FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                       WHERE s.user_id = %(user_id)s AND s.fact_id = t.item_id AND m.user_id = %(user_id)s
                       ORDER BY m.occurred_at, m.id LIMIT 1)
WHERE t.user_id = %(user_id)s AND t.item_id = ANY(%(facts)s::uuid[])
  AND NOT EXISTS (SELECT 1 FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                  WHERE s.user_id = %(user_id)s AND s.fact_id = t.item_id AND m.user_id = %(user_id)s
                    AND m.conversation_id = t.conversation_id)

-- successions --
-- Which facts took the place of others, where these are the ones or the others, in the order in which they did.
SELECT c.fact_id, c.other_id FROM fact_changes c
WHERE c.user_id = %(user_id)s AND c.action = 'superseded' AND c.other_id IS NOT NULL
  AND (c.other_id = ANY(%(facts)s::uuid[]) OR c.fact_id = ANY(%(facts)s::uuid[]))
  AND NOT EXISTS (SELECT 1 FROM fact_changes u WHERE u.user_id = %(user_id)s AND u.undoes = c.id)
ORDER BY c.recorded_at, c.id

-- facts_after --
-- The facts that messages say which follow others.
SELECT DISTINCT f.id, concat_ws(' ', f.subject, f.value, f.text) AS text
FROM unnest(%(lasts)s::bigint[]) AS last (seq)
JOIN messages m ON m.conversation_id = %(conversation_id)s AND m.seq > last.seq AND m.seq <= last.seq + %(within)s
JOIN fact_sources s ON s.user_id = m.user_id AND s.message_id = m.id AND s.user_id = %(user_id)s
JOIN facts f ON f.user_id = s.user_id AND f.id = s.fact_id AND f.user_id = %(user_id)s
WHERE m.user_id = %(user_id)s

-- facts_by_models --
-- The facts that chat models made, which are shown facts of all conversations.
SELECT id, concat_ws(' ', subject, value, text) AS text FROM facts
WHERE user_id = %(user_id)s AND recipe LIKE 'llm-facts/%%'

-- texts_of_facts --
-- What the messages say that say facts, but for those that go.
SELECT s.fact_id, string_agg(concat_ws(' ', m.name, m.text), ' ') AS said
FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
WHERE s.user_id = %(user_id)s AND m.user_id = %(user_id)s AND s.fact_id = ANY(%(facts)s::uuid[])
  AND NOT s.message_id = ANY(%(messages)s::uuid[])
GROUP BY s.fact_id

-- edited_into --
-- Facts that people have edited to be these.
SELECT DISTINCT c.fact_id
FROM fact_changes c
WHERE c.user_id = %(user_id)s AND c.other_id = ANY(%(facts)s::uuid[]) AND c.action = 'edited'
  AND NOT c.fact_id = ANY(%(facts)s::uuid[])

-- known_facts --
-- Those of these facts that there are.
SELECT id FROM facts WHERE user_id = %(user_id)s AND id = ANY(%(facts)s::uuid[])

-- edits_of --
-- Facts that people put in the place of others, and that no message says but these.
SELECT f.id
FROM fact_changes c
JOIN facts f ON f.user_id = c.user_id AND f.id = c.other_id
WHERE c.user_id = %(user_id)s AND f.user_id = %(user_id)s AND c.fact_id = ANY(%(facts)s::uuid[])
  AND c.action = 'edited' AND NOT f.id = ANY(%(facts)s::uuid[])
  AND NOT EXISTS (SELECT 1 FROM fact_sources s WHERE s.user_id = %(user_id)s AND s.fact_id = f.id
                                               AND NOT s.message_id = ANY(%(messages)s::uuid[]))

-- sources_of --
-- Where else facts are said that are to be derived again: the first message of each conversation.
SELECT m.conversation_id, min(m.seq) AS seq
FROM fact_sources s
JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
WHERE s.user_id = %(user_id)s AND m.user_id = %(user_id)s AND s.fact_id = ANY(%(facts)s::uuid[])
  AND NOT s.message_id = ANY(%(messages)s::uuid[])
GROUP BY m.conversation_id

-- remove_facts --
-- Facts, with what was done to them.
DELETE FROM facts WHERE user_id = %(user_id)s AND id = ANY(%(facts)s::uuid[])

-- remove_fact_sources --
-- That messages say facts.
DELETE FROM fact_sources
WHERE user_id = %(user_id)s AND (message_id = ANY(%(messages)s::uuid[]) OR fact_id = ANY(%(facts)s::uuid[]))

-- remove_fact_changes --
-- What was done to facts.
DELETE FROM fact_changes WHERE user_id = %(user_id)s AND fact_id = ANY(%(facts)s::uuid[])

-- forget_others --
-- The log of other facts names them no more.
UPDATE fact_changes SET other_id = NULL WHERE user_id = %(user_id)s AND other_id = ANY(%(facts)s::uuid[])

-- remove_vectors --
-- The vectors of items.
DELETE FROM item_vectors WHERE user_id = %(user_id)s AND item_id = ANY(%(items)s::uuid[])

-- remove_invalid_responses --
-- What a model answered about a conversation since its first message that goes: it was shown that one, or may have been.
DELETE FROM invalid_responses
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND to_seq >= %(from_seq)s

-- remove_answers_about_facts --
-- What a model answered about any conversation when it was shown facts that go, or facts of messages that go.
DELETE FROM invalid_responses
WHERE user_id = %(user_id)s AND deriver = 'facts'
  AND recorded_at >= least(%(since)s::timestamptz, (SELECT min(f.recorded_at) FROM facts f
                                                    WHERE f.user_id = %(user_id)s AND f.id = ANY(%(facts)s::uuid[])))

-- remove_receipts_of --
-- Receipts of a conversation since its first message that goes was stored: each may quote it.
DELETE FROM receipts
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND recorded_at >= %(since)s
RETURNING id

-- remove_receipts --
-- Receipts of any conversation that name what goes, and those with what a strategy wrote, which may quote any fact.
-- Where messages go, also those that name a fact or a summary which is no longer there: it was derived anew, and nobody
-- knows from what. Both only since the first message that goes was stored.
WITH decisions AS MATERIALIZED (
    SELECT r.id AS receipt_id, coalesce(r.recorded_at >= %(since)s::timestamptz, true) AS is_since,
           decision->>'kind' AS kind, decision->>'id' AS id, decision->'others' AS others
    FROM receipts r
    CROSS JOIN jsonb_array_elements((r.body->'included') || coalesce(r.body->'left_out', '[]')) AS decision
    WHERE r.user_id = %(user_id)s
), named AS MATERIALIZED (
    SELECT receipt_id, is_since, id, kind IN ('fact', 'facts', 'summary', 'summaries') AS is_derived FROM decisions
    WHERE id IS NOT NULL
    UNION ALL
    SELECT receipt_id, is_since, jsonb_array_elements_text(others), kind <> 'turn' FROM decisions
    WHERE others IS NOT NULL
), gone AS MATERIALIZED (
    SELECT derived.id
    FROM (SELECT DISTINCT id FROM named WHERE is_derived AND is_since AND %(since)s::timestamptz IS NOT NULL) AS derived
    WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.user_id = %(user_id)s AND f.id = derived.id::uuid)
      AND NOT EXISTS (SELECT 1 FROM summaries s WHERE s.user_id = %(user_id)s AND s.id = derived.id::uuid)
)
DELETE FROM receipts r
WHERE r.user_id = %(user_id)s
  AND (r.id::text = ANY(%(ids)s::text[])
       OR r.id IN (SELECT receipt_id FROM decisions WHERE is_since AND kind = 'block')
       OR r.id IN (SELECT receipt_id FROM named WHERE id = ANY(%(ids)s::text[]))
       OR r.id IN (SELECT receipt_id FROM named WHERE is_since AND is_derived AND id IN (SELECT id FROM gone)))
RETURNING r.id

-- remove_events --
-- Events that name what goes.
DELETE FROM events
WHERE user_id = %(user_id)s
  AND (body->>'fact' = ANY(%(ids)s::text[]) OR body->>'by' = ANY(%(ids)s::text[]) OR body->>'receipt' = ANY(%(ids)s::text[]))

-- rows_of_messages of each message table --
-- How many rows messages have, table by table.
SELECT '{table.name}' AS place, count(*) AS rows FROM {table.name}
WHERE user_id = %(user_id)s AND {table.message} = ANY(%(ids)s::uuid[])

-- remove_messages --
-- Messages, with all rows, which go by foreign key.
DELETE FROM messages WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- rows_of_conversation of each conversation table --
-- How many rows a conversation has, table by table, when its messages are gone.
SELECT '{table.name}' AS place, count(*) AS rows FROM {table.name}
WHERE user_id = %(user_id)s AND {table.conversation} = %(conversation_id)s

-- remove_conversation --
-- A conversation, with all rows, which go by foreign key.
DELETE FROM conversations WHERE user_id = %(user_id)s AND id = %(conversation_id)s

-- remove_user --
-- A user, with all rows, which go by foreign key.
DELETE FROM users WHERE user_id = %(user_id)s

-- expired --
-- Which conversations have messages that are older than they are kept: its own rule, else the user's, else the store's.
SELECT m.conversation_id, max(rule.before) AS before
FROM conversations c
CROSS JOIN users u
CROSS JOIN LATERAL (
    SELECT coalesce(CASE jsonb_typeof(c.settings->'message_retention_days')
                    WHEN 'number' THEN (c.settings->>'message_retention_days')::float8 END,
                    CASE jsonb_typeof(u.settings->'message_retention_days')
                    WHEN 'number' THEN (u.settings->>'message_retention_days')::float8 END,
                    %(days)s::float8) AS days
) AS kept
CROSS JOIN LATERAL (SELECT now() - kept.days * interval '1 day' AS before) AS rule
JOIN messages m ON m.user_id = c.user_id AND m.conversation_id = c.id AND m.occurred_at < rule.before
WHERE c.user_id = %(user_id)s AND u.user_id = %(user_id)s AND m.user_id = %(user_id)s AND kept.days > 0
GROUP BY m.conversation_id

-- trim_events --
-- The outbox does not grow for ever.
DELETE FROM events WHERE user_id = %(user_id)s AND recorded_at < %(before)s

-- trim_receipts --
-- Receipts are kept for a time.
DELETE FROM receipts WHERE user_id = %(user_id)s AND recorded_at < %(before)s

-- keep_settings --
-- Settings of a user's own; null takes one away.
UPDATE users SET settings = jsonb_strip_nulls(settings || %(settings)s) WHERE user_id = %(user_id)s

-- ids_left of each names table --
-- Rows of which a column has an id of what was erased, by table.
SELECT '{table.name}' AS place, count(*) AS rows FROM {table.name} WHERE user_id = %(user_id)s AND ({table.names})

-- ids_left_in_json of each json table --
-- The same of JSON, but for those rows.
SELECT '{table.name}' AS place, count(*) AS rows FROM {table.name}
WHERE user_id = %(user_id)s AND ({table.names}) IS NOT TRUE
  AND EXISTS (SELECT 1 FROM jsonb_path_query({table.json}, '$.** ? (@.type() == "string")') AS said
              WHERE said #>> '{{}}' = ANY(%(texts)s::text[]))

-- rows_of_user of each user table --
-- How many rows a user has, table by table; those that an erasure keeps are not among them.
SELECT '{table.name}' AS place, count(*) AS rows FROM {table.name} WHERE user_id = %(user_id)s

-- searched --
-- Every table of the store that this login may read, with the columns in which an id may stand; those of erasures hold
-- no content.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND has_table_privilege(c.oid, 'select')
  AND NOT c.relname = ANY(%(without)s::text[])
  AND (t.typname IN ('text', 'varchar', 'bpchar', 'name', 'json', 'jsonb', 'uuid')
       OR e.typname IN ('text', 'varchar', 'json', 'jsonb', 'uuid'))
GROUP BY c.relname
ORDER BY c.relname

-- statistics_of_texts --
-- Of how many columns that hold what people say, and names, the planner has samples: of none, as their target is 0. A
-- target that somebody has raised is found out. They are the columns of text and of bytes, also those that an index computes,
-- that no check of the database closes and no declaration calls harmless.
SELECT count(*)
FROM pg_stats s
JOIN pg_class c ON c.relnamespace = current_schema()::regnamespace AND c.relname = s.tablename
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
LEFT JOIN pg_index i ON i.indexrelid = c.oid
JOIN pg_class t ON t.oid = coalesce(i.indrelid, c.oid)
WHERE s.schemaname = current_schema() AND t.relname = ANY(%(tables)s::text[])
  AND a.atttypid = ANY('{text,text[],jsonb,bytea}'::regtype[]) AND NOT c.relname || '.' || a.attname = ANY(%(harmless)s::text[])
  AND NOT EXISTS (SELECT 1 FROM pg_constraint k
                  WHERE k.conrelid = c.oid AND k.contype = 'c' AND a.attnum = ANY(k.conkey)
                    AND pg_get_constraintdef(k.oid) LIKE '%%= ANY (ARRAY%%')

-- rows_with --
-- In how many rows of a table an id stands.
SELECT count(*) FROM {table} WHERE strpos(lower(concat_ws(' ', {columns})), %(id)s) > 0

-- events_with --
-- The same of a table with events for webhooks, but for the erasure: it has a user's id, as the certificate has.
SELECT count(*) FROM {table}
WHERE strpos(lower(concat_ws(' ', {columns})), %(id)s) > 0 AND {event}->>'type' IS DISTINCT FROM 'erasure.done'

-- as_user --
-- For a login that policies hold for: whose rows it is to see. Nodes of a Citus hear of SET LOCAL only.
SET LOCAL memstore.user_id = %(user)s
