-- add_user --
-- A user is made on first use.
INSERT INTO users (user_id, name, tokenizer) VALUES (%(user_id)s, %(name)s, %(tokenizer)s)
ON CONFLICT (user_id) DO NOTHING

-- share_user --
-- Nobody erases the user until the transaction ends.
SELECT user_id FROM users WHERE user_id = %(user_id)s FOR KEY SHARE

-- add_conversation --
-- So is a conversation.
INSERT INTO conversations (user_id, id, name, title, channel, scope, settings)
VALUES (%(user_id)s, %(id)s, %(name)s, %(title)s, %(channel)s, %(scope)s, %(settings)s)
ON CONFLICT (user_id, id) DO NOTHING

-- for_a_session --
-- Conversations that are kept for a session alone: nothing is derived of them.
SELECT id FROM conversations
WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[]) AND settings->>'keep' = 'session'

-- add_derivation --
-- A watermark for each deriver of a new conversation.
INSERT INTO derivations (user_id, conversation_id, deriver)
VALUES (%(user_id)s, %(conversation_id)s, %(deriver)s)
ON CONFLICT (user_id, conversation_id, deriver) DO NOTHING

-- update_conversation --
-- Sets what was given and leaves the rest.
UPDATE conversations
SET title = coalesce(%(title)s, title),
    channel = coalesce(%(channel)s, channel),
    scope = coalesce(%(scope)s, scope),
    settings = settings || %(settings)s,
    updated_at = now()
WHERE user_id = %(user_id)s AND id = %(id)s

-- add_setting_change --
-- The settings that a change found.
INSERT INTO setting_changes (user_id, id, conversation_id, before, recorded_at)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(before)s, coalesce(%(recorded_at)s, clock_timestamp()))
ON CONFLICT (user_id, id) DO NOTHING

-- settings_as_of --
-- At a past moment the settings were as the first change after it found them.
SELECT before FROM setting_changes
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND recorded_at > %(as_of)s
ORDER BY recorded_at, id
LIMIT 1

-- fact_settings --
-- What a user, and each conversation or one alone, has set for facts.
SELECT DISTINCT u.settings->'fact_instructions', u.settings->'fact_types',
                c.settings->'fact_instructions', c.settings->'fact_types'
FROM users u
LEFT JOIN conversations c ON c.user_id = %(user_id)s AND (%(conversation_id)s::uuid IS NULL OR c.id = %(conversation_id)s)
WHERE u.user_id = %(user_id)s

-- reviews_facts --
-- Whether the user reviews facts of a conversation, by its own setting or theirs.
SELECT (coalesce(c.settings->'review_facts', u.settings->'review_facts'))::boolean
FROM users u
LEFT JOIN conversations c ON c.user_id = %(user_id)s AND c.id = %(conversation_id)s
WHERE u.user_id = %(user_id)s

-- said_by --
-- What a member has said in a space.
SELECT id FROM messages WHERE user_id = %(user_id)s AND name = %(name)s ORDER BY id

-- conversation --
-- One conversation.
SELECT * FROM conversations WHERE user_id = %(user_id)s AND id = %(id)s

-- conversations --
-- A user's conversations, the latest first.
SELECT * FROM conversations
WHERE user_id = %(user_id)s AND (%(channel)s::text IS NULL OR channel = %(channel)s)
  AND (%(before)s::timestamptz IS NULL
       OR updated_at <= %(before)s AND (updated_at < %(before)s OR id > %(id)s::uuid))
ORDER BY updated_at DESC, id
LIMIT %(limit)s

-- conversation_names --
-- What these conversations are called.
SELECT id, name FROM conversations WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- lock_conversations --
-- Writers of one conversation come one after the other, so that known messages are seen before numbers are given.
-- NO KEY: derivers whose rows refer to the conversation must not wait for a writer that waits for their watermark.
-- In one order, so that of two that write to the same conversations one waits, and not each for the other.
SELECT id, last_seq FROM conversations
WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])
ORDER BY id
FOR NO KEY UPDATE

-- last_numbers --
-- How far these conversations are.
SELECT id, last_seq FROM conversations WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- take_numbers --
-- The counter row keeps seq gapless: it is given back when the transaction is.
-- The time is taken with the row locked, so that it follows seq. Citus takes no clock in RETURNING.
-- Conversations are as old as their messages: those of now and of before.
WITH taken AS (
    UPDATE conversations c
    SET last_seq = c.last_seq + wanted.count,
        created_at = CASE WHEN c.last_seq = 0 THEN wanted.since ELSE least(c.created_at, wanted.since) END,
        updated_at = CASE WHEN c.last_seq = 0 THEN wanted.until ELSE greatest(c.updated_at, wanted.until) END
    FROM unnest(%(ids)s::uuid[], %(counts)s::bigint[], %(since)s::timestamptz[], %(until)s::timestamptz[])
         AS wanted (id, count, since, until)
    WHERE c.user_id = %(user_id)s AND c.id = wanted.id
    RETURNING c.last_seq, c.id
)
SELECT last_seq, clock_timestamp() AS recorded_at, id FROM taken

-- raise_watermarks --
-- Tells the derivers of conversations that there is more to do.
UPDATE derivations d
SET last_seq = raised.last_seq,
    pending_since = CASE WHEN d.done_seq < d.last_seq THEN d.pending_since ELSE raised.said_at END
FROM unnest(%(ids)s::uuid[], %(last_seqs)s::bigint[], %(said_at)s::timestamptz[]) AS raised (id, last_seq, said_at)
WHERE d.user_id = %(user_id)s AND d.conversation_id = raised.id AND d.last_seq < raised.last_seq

-- add_message --
-- Messages are only ever inserted. None is recorded later than now, whatever an export says: an erasure takes the receipts
-- since.
INSERT INTO messages (user_id, conversation_id, seq, id, role, name, text, parts, tool_calls, tool_call_id, tokens, counter,
                      tags, meta, external_id, occurred_at, recorded_at)
VALUES (%(user_id)s, %(conversation_id)s, %(seq)s, %(id)s, %(role)s, %(name)s, %(text)s, %(parts)s, %(tool_calls)s,
        %(tool_call_id)s, %(tokens)s, %(counter)s, %(tags)s, %(meta)s, %(external_id)s, %(occurred_at)s,
        least(%(recorded_at)s, clock_timestamp()))

-- known_messages --
-- Those of these ids that are stored.
SELECT * FROM messages WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- messages --
-- A stretch of a conversation, in order.
SELECT * FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq BETWEEN %(from_seq)s AND %(to_seq)s
  AND (%(roles)s::text[] IS NULL OR role = ANY(%(roles)s::text[]))
  AND (%(tags)s::text[] IS NULL OR tags @> %(tags)s::text[])
  AND (%(meta)s::jsonb IS NULL OR meta @> %(meta)s::jsonb)
  AND (%(since)s::timestamptz IS NULL OR occurred_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR occurred_at < %(until)s)
ORDER BY seq
LIMIT %(limit)s

-- how_many --
-- How many of a range of a conversation's messages are there.
SELECT count(*) AS messages FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq BETWEEN %(from_seq)s AND %(to_seq)s

-- within --
-- The last message of a stretch that is to have about so many tokens, and at least one message.
-- Where all of it fits, that is its end, whether that message is still there or not.
SELECT CASE WHEN bool_or(before >= %(tokens)s) THEN max(seq) FILTER (WHERE before < %(tokens)s)
            ELSE %(to_seq)s END AS to_seq
FROM (SELECT seq, sum(tokens) OVER (ORDER BY seq) - tokens AS before
      FROM messages
      WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq BETWEEN %(from_seq)s AND %(to_seq)s
     ) AS stretch

-- newest_messages --
-- The newest messages before a number, of all roles or of one, the newest first.
SELECT * FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq < %(before)s
  AND (%(role)s::text IS NULL OR role = %(role)s)
  AND (%(as_of)s::timestamptz IS NULL OR recorded_at <= %(as_of)s)
ORDER BY seq DESC
LIMIT %(limit)s

-- time_before --
-- The latest time of the messages before a number, where each takes a microsecond.
SELECT max(occurred_at - seq * interval '1 microsecond') AS time FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq < %(before)s

-- sayings --
-- What decides who sees a message: it itself, or of a tool's result the call that it answers.
-- By the call's id if there is one. Results stand close after their calls; nobody looks further back than that.
SELECT m.id AS of_id, m.role = 'tool' AS is_result, c.*
FROM messages m
CROSS JOIN LATERAL (
    SELECT said.* FROM messages said
    WHERE said.user_id = %(user_id)s AND said.conversation_id = m.conversation_id
      AND said.seq BETWEEN m.seq - 200 AND m.seq
      AND CASE WHEN m.role <> 'tool' THEN said.seq = m.seq
               WHEN m.tool_call_id IS NULL THEN said.role <> 'tool'
               ELSE said.tool_calls @> jsonb_build_array(jsonb_build_object('id', m.tool_call_id)) END
    ORDER BY said.seq DESC
    LIMIT 1
) AS c
WHERE m.user_id = %(user_id)s AND m.id = ANY(%(ids)s::uuid[])

-- said_at --
-- What a person or an assistant said at these places in conversations. Each is looked up by itself.
SELECT m.*
FROM unnest(%(conversation_ids)s::uuid[], %(seqs)s::bigint[]) AS place (conversation_id, seq)
CROSS JOIN LATERAL (SELECT m.* FROM messages m
                    WHERE m.user_id = %(user_id)s AND m.conversation_id = place.conversation_id AND m.seq = place.seq
                    OFFSET 0) AS m
WHERE m.role IN ('user', 'assistant')

-- roles --
-- How many messages of each role a stretch has, and their tokens.
SELECT role, count(*) AS messages, coalesce(sum(tokens), 0)::bigint AS tokens
FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq > %(after)s
GROUP BY role
ORDER BY role

-- users --
-- Every user's name, for the operator.
SELECT user_id AS id, name FROM users WHERE name > %(after)s OR user_id = %(user_id)s ORDER BY name LIMIT %(limit)s

-- counts --
-- How much a user has stored.
SELECT (SELECT count(*) FROM conversations WHERE user_id = %(user_id)s) AS conversations,
       (SELECT count(*) FROM messages WHERE user_id = %(user_id)s) AS messages,
       (SELECT coalesce(sum(tokens), 0)::bigint FROM messages WHERE user_id = %(user_id)s) AS tokens,
       (SELECT count(*) FROM summaries WHERE user_id = %(user_id)s) AS summaries,
       (SELECT count(*) FROM facts
        WHERE user_id = %(user_id)s AND state = 'active'
          AND coalesce(least(valid_to, expires_at), 'infinity') > now()) AS facts,
       (SELECT count(*) FROM item_text WHERE user_id = %(user_id)s) AS chunks,
       (SELECT count(*)
        FROM item_vectors v
        WHERE v.user_id = %(user_id)s
          AND v.model_id = (SELECT m.id FROM embedding_models m WHERE m.state = 'serving')) AS vectors,
       (SELECT count(*) FROM receipts WHERE user_id = %(user_id)s) AS receipts,
       (SELECT count(*) FROM derivations WHERE user_id = %(user_id)s AND done_seq < last_seq) AS pending,
       (SELECT count(*) FROM derivations WHERE user_id = %(user_id)s AND done_seq < last_seq AND last_error IS NOT NULL) AS failed,
       (SELECT count(*) FROM invalid_responses
        WHERE user_id = %(user_id)s AND NOT starts_with(error, 'Not believed: ')) AS invalid_responses,
       (SELECT coalesce(sum(facts[1]::bigint), 0)::bigint
        FROM invalid_responses CROSS JOIN LATERAL regexp_matches(error, '(\d+) because ', 'g') AS facts
        WHERE user_id = %(user_id)s AND starts_with(error, 'Not believed: ')) AS refused

-- ids_between --
-- Which items of a kind have ids from one to another: a few, to tell whether it is one.
SELECT id
FROM (SELECT id FROM facts WHERE user_id = %(user_id)s AND id BETWEEN %(first)s AND %(last)s AND %(kind)s = 'fact'
      UNION ALL
      SELECT id FROM summaries WHERE user_id = %(user_id)s AND id BETWEEN %(first)s AND %(last)s AND %(kind)s = 'summary'
      UNION ALL
      SELECT id FROM fact_changes WHERE user_id = %(user_id)s AND id BETWEEN %(first)s AND %(last)s AND %(kind)s = 'change'
      UNION ALL
      SELECT id FROM receipts WHERE user_id = %(user_id)s AND id BETWEEN %(first)s AND %(last)s AND %(kind)s = 'receipt') AS found
ORDER BY id
LIMIT 3

-- tombstone_key --
-- The store's key.
SELECT key FROM store_keys WHERE name = 'tombstones'

-- tombstone_key_if_needed --
-- The store's key, for a user whose messages were erased.
SELECT k.key
FROM store_keys k
WHERE k.name = 'tombstones' AND EXISTS (SELECT 1 FROM tombstones t WHERE t.user_id = %(user_id)s)

-- add_tombstones --
-- Hashes of one erasure, those of a bucket together.
INSERT INTO tombstones (user_id, bucket, erasure_id, digests)
VALUES (%(user_id)s, %(bucket)s, %(erasure_id)s, %(digests)s)

-- tombstones --
-- The hashes in some buckets.
SELECT digests FROM tombstones WHERE user_id = %(user_id)s AND bucket = ANY(%(buckets)s::smallint[])
