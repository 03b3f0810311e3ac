-- add_user --
-- A user as it was made elsewhere.
INSERT INTO users (user_id, name, settings, created_at) VALUES (%(user_id)s, %(name)s, %(settings)s, %(created_at)s)
ON CONFLICT (user_id) DO NOTHING

-- add_conversation --
-- A conversation as it was; the numbers of its messages are taken.
INSERT INTO conversations (user_id, id, name, title, channel, settings, last_seq, created_at, updated_at)
VALUES (%(user_id)s, %(id)s, %(name)s, %(title)s, %(channel)s, %(settings)s, %(last_seq)s, %(created_at)s,
        %(updated_at)s)
ON CONFLICT (user_id, id) DO NOTHING

-- add_derivation --
-- A watermark where it was. Nothing is pending yet: what is above it comes later.
INSERT INTO derivations (user_id, conversation_id, deriver, done_seq, last_seq, recipe)
VALUES (%(user_id)s, %(conversation_id)s, %(deriver)s, %(done_seq)s, %(done_seq)s, %(recipe)s)
ON CONFLICT (user_id, conversation_id, deriver) DO NOTHING

-- add_setting_change --
-- The settings that a change found, when it did.
INSERT INTO setting_changes (user_id, id, conversation_id, before, recorded_at)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(before)s, %(recorded_at)s)
ON CONFLICT (user_id, id) DO NOTHING

-- reach --
-- No new message is given a number up to this one.
UPDATE conversations SET last_seq = %(last_seq)s
WHERE user_id = %(user_id)s AND id = %(id)s AND last_seq < %(last_seq)s

-- taken --
-- Numbers of a conversation that messages have.
SELECT seq FROM messages
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND seq = ANY(%(seqs)s::bigint[])

-- embedded --
-- How far a conversation's messages are made into units.
SELECT done_seq FROM derivations
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = 'embed'

-- pend --
-- What came in above the watermarks is pending from here on.
UPDATE derivations d
SET last_seq = (SELECT max(m.seq) FROM messages m
                WHERE m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id)
WHERE d.user_id = %(user_id)s
  AND d.last_seq < (SELECT max(m.seq) FROM messages m
                    WHERE m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id)

-- add_summary --
-- A summary as it was.
INSERT INTO summaries (user_id, id, conversation_id, level, from_seq, to_seq, text, tokens, counter, recipe, occurred_at,
                       occurred_until, recorded_at)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(level)s, %(from_seq)s, %(to_seq)s, %(text)s, %(tokens)s, %(counter)s,
        %(recipe)s, %(occurred_at)s, %(occurred_until)s, %(recorded_at)s)
ON CONFLICT (user_id, id) DO NOTHING

-- add_fact --
-- A fact as it was.
INSERT INTO facts (user_id, id, type, kind, subject, attribute, value, text, language, confidence, state, valid_from,
                   valid_to, recipe, occurred_at, recorded_at)
VALUES (%(user_id)s, %(id)s, %(type)s, %(kind)s, %(subject)s, %(attribute)s, %(value)s, %(text)s, %(language)s,
        %(confidence)s, %(state)s, %(valid_from)s, %(valid_to)s, %(recipe)s, %(occurred_at)s, %(recorded_at)s)
ON CONFLICT (user_id, id) DO NOTHING

-- known_facts --
-- Those of some facts that are stored, each with the ids of what was done to it.
SELECT f.*, ARRAY(SELECT c.id FROM fact_changes c WHERE c.user_id = %(user_id)s AND c.fact_id = f.id) AS changes
FROM facts f
WHERE f.user_id = %(user_id)s AND f.id = ANY(%(ids)s::uuid[])

-- places --
-- The conversations of messages, of those that are stored.
SELECT id, conversation_id FROM messages WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- add_text --
-- A unit of recall, recorded when it was.
INSERT INTO item_text (user_id, item_id, chunk, tier, conversation_id, seq, role, speaker, tags, start, stop, length, terms,
                       frequencies, occurred_at, recorded_at, number)
VALUES (%(user_id)s, %(item_id)s, %(chunk)s, %(tier)s, %(conversation_id)s, %(seq)s, %(role)s, %(speaker)s, %(tags)s,
        %(start)s, %(stop)s, %(length)s, %(terms)s, %(frequencies)s, %(occurred_at)s, %(recorded_at)s, %(number)s)

-- add_document --
-- A document as it was.
INSERT INTO documents (user_id, id, namespace, key, value, ttl, expires_at, created_at, updated_at)
VALUES (%(user_id)s, %(id)s, %(namespace)s, %(key)s, %(value)s, %(ttl)s::interval, %(expires_at)s::timestamptz,
        %(created_at)s, %(updated_at)s)
ON CONFLICT (user_id, id) DO NOTHING
