-- owner --
-- A user as it was made, and the active embedding model.
SELECT u.name, u.settings, u.created_at, m.id AS model_id, m.name AS embedder, m.dimensions,
       (SELECT coalesce(sum(c.last_seq), 0)::bigint FROM conversations c WHERE c.user_id = %(user_id)s) AS messages
FROM users u
LEFT JOIN embedding_models m ON m.state = 'serving'
WHERE u.user_id = %(user_id)s

-- fragment lists of each exported list --
'{list.name}', (SELECT coalesce(jsonb_agg(jsonb_build_object({elements}) ORDER BY l.recorded_at, l.{list.columns[0]}), '[]')
                FROM {table} l
                WHERE l.user_id = %(user_id)s AND l.{list.key} = i.id)

-- conversations --
-- Conversations in the order of ids, a page at a time, with their watermarks and what their settings were.
SELECT i.*, jsonb_build_object(<lists_of_conversations>) AS lists,
       (SELECT coalesce(jsonb_object_agg(d.deriver, jsonb_build_array(d.done_seq, d.recipe)), '{}') FROM derivations d
        WHERE d.user_id = %(user_id)s AND d.conversation_id = i.id) AS watermarks
FROM conversations i
WHERE i.user_id = %(user_id)s AND i.id > %(after)s AND (%(only)s::uuid IS NULL OR i.id = %(only)s)
ORDER BY i.id
LIMIT %(limit)s

-- fragment chunks --
-- The chunks of an item, in order; their vectors, one after the other, of those that have one.
-- What a value makes empty Citus must still know to be of this user: so no model is compared to null, and t is tied to i.
SELECT jsonb_agg(jsonb_build_array(t.start, t.stop, CASE WHEN t.tier = 'facts' THEN t.conversation_id END,
                                   t.recorded_at, v.embedding IS NOT NULL) ORDER BY t.chunk_index) AS chunks,
       string_agg(vector_send(v.embedding), '' ORDER BY t.chunk_index) AS vectors
FROM item_text t
LEFT JOIN item_vectors v ON v.user_id = %(user_id)s AND v.item_id = t.item_id AND v.chunk_index = t.chunk_index
                            AND v.model_id = coalesce(%(model_id)s, i.user_id)
WHERE t.user_id = %(user_id)s AND t.user_id = i.user_id AND t.item_id = i.id AND %(with_chunks)s

-- messages --
-- The messages of a conversation, in order, with their chunks.
SELECT i.*, u.*, jsonb_build_object(<lists_of_messages>) AS lists
FROM messages i
CROSS JOIN LATERAL (<chunks>) AS u
WHERE i.user_id = %(user_id)s AND i.conversation_id = %(conversation_id)s
ORDER BY i.seq

-- summaries --
-- The summaries of a conversation, in order, with their chunks.
SELECT i.*, u.*, jsonb_build_object(<lists_of_summaries>) AS lists
FROM summaries i
CROSS JOIN LATERAL (<chunks>) AS u
WHERE i.user_id = %(user_id)s AND i.conversation_id = %(conversation_id)s
ORDER BY i.level, i.from_seq, i.id

-- facts --
-- Facts in the order of ids, with what says them, what was done to them, and their chunks.
-- By hand alone those that people entered.
SELECT i.*, u.*, jsonb_build_object(<lists_of_facts>) AS lists
FROM facts i
CROSS JOIN LATERAL (<chunks>) AS u
WHERE i.user_id = %(user_id)s AND (NOT %(by_hand)s OR i.recipe = 'hand')
ORDER BY i.id

-- documents --
-- Documents in the order of ids, with their vectors as text.
SELECT d.id, d.namespace, d.key, d.value, d.ttl, d.expires_at, d.created_at, d.updated_at,
       (SELECT jsonb_agg(jsonb_build_array(v.path, v.model_id, v.embedding::text, v.text) ORDER BY v.path, v.model_id)
        FROM document_vectors v
        WHERE v.user_id = %(user_id)s AND v.id = d.id) AS vectors
FROM documents d
WHERE d.user_id = %(user_id)s
ORDER BY d.id

-- add_user --
-- A user as it was made elsewhere.
INSERT INTO users (user_id, name, tokenizer, settings, created_at)
VALUES (%(user_id)s, %(name)s, %(tokenizer)s, %(settings)s, %(created_at)s)
ON CONFLICT (user_id) DO NOTHING

-- add_conversation --
-- A conversation as it was; the numbers of its messages are taken.
INSERT INTO conversations (user_id, id, name, title, channel, scope, settings, last_seq, created_at, updated_at)
VALUES (%(user_id)s, %(id)s, %(name)s, %(title)s, %(channel)s, %(scope)s, %(settings)s, %(last_seq)s, %(created_at)s,
        %(updated_at)s)
ON CONFLICT (user_id, id) DO NOTHING

-- add of each exported list --
-- Rows of a list in a line.
INSERT INTO {table} (user_id, {list.key}, {columns})
VALUES (%(user_id)s, %({list.key})s, {values})
ON CONFLICT (user_id, {list.unique}) DO NOTHING

-- add_derivation --
-- A watermark where it was. Nothing is pending yet: what is above it comes later, and that a session is over is seen then.
INSERT INTO derivations (user_id, conversation_id, deriver, done_seq, last_seq, recipe, closes_at)
VALUES (%(user_id)s, %(conversation_id)s, %(deriver)s, %(done_seq)s, %(done_seq)s, %(recipe)s,
        CASE WHEN %(deriver)s = 'summaries' THEN now() END)
ON CONFLICT (user_id, conversation_id, deriver) DO NOTHING

-- reach --
-- No new message is given a number up to this one.
UPDATE conversations SET last_seq = %(last_seq)s
WHERE user_id = %(user_id)s AND id = %(id)s AND last_seq < %(last_seq)s

-- taken --
-- Numbers of a conversation that messages have.
SELECT seq FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq = ANY(%(seqs)s::bigint[])

-- embedded --
-- How far a conversation's messages are made into chunks.
SELECT done_seq FROM derivations
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = 'chunks'

-- pend --
-- What came in above the watermarks is pending from here on.
UPDATE derivations d
SET last_seq = (SELECT max(m.seq) FROM messages m
                WHERE m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id),
    pending_since = (SELECT m.occurred_at FROM messages m
                     WHERE m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id AND m.seq > d.done_seq
                     ORDER BY m.seq LIMIT 1)
WHERE d.user_id = %(user_id)s
  AND d.last_seq < (SELECT max(m.seq) FROM messages m
                    WHERE m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id)

-- places --
-- The conversations of messages, of those that are stored.
SELECT id, conversation_id FROM messages WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- add_document --
-- A document as it was.
INSERT INTO documents (user_id, id, namespace, key, value, ttl, expires_at, created_at, updated_at)
VALUES (%(user_id)s, %(id)s, %(namespace)s, %(key)s, %(value)s, %(ttl)s::interval, %(expires_at)s::timestamptz,
        %(created_at)s, %(updated_at)s)
ON CONFLICT (user_id, id) DO NOTHING
