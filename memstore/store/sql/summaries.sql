-- add_summary --
-- A range is summarized once by a recipe.
INSERT INTO summaries (user_id, id, conversation_id, level, from_seq, to_seq, text, tokens, counter, recipe, occurred_at,
                       occurred_until, recorded_at)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(level)s, %(from_seq)s, %(to_seq)s, %(text)s, %(tokens)s, %(counter)s,
        %(recipe)s, %(occurred_at)s, %(occurred_until)s, coalesce(%(recorded_at)s, now()))
ON CONFLICT (user_id, id) DO NOTHING

-- summaries --
-- A conversation's summaries, in order.
SELECT * FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s
  AND (%(level)s::smallint IS NULL OR level = %(level)s)
  AND (%(as_of)s::timestamptz IS NULL OR recorded_at <= %(as_of)s)
ORDER BY level, from_seq, id

-- outlines --
-- What a cover is made from: the summaries of a nest without their texts.
SELECT id, level, from_seq, to_seq, tokens FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND level > 0
  AND (%(as_of)s::timestamptz IS NULL OR recorded_at <= %(as_of)s)

-- by_ids --
-- Given summaries, the newest first.
SELECT * FROM summaries WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])
ORDER BY from_seq DESC, id

-- after --
-- The summaries of a level that begin after a message and end before another.
SELECT * FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND level = %(level)s
  AND from_seq > %(seq)s AND to_seq < %(before)s
ORDER BY from_seq, id

-- last --
-- The last summary of a level that ends before a message, whatever recipe made it: it is read from the index.
SELECT from_seq, to_seq, occurred_until FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND level = %(level)s
  AND to_seq < %(before)s
ORDER BY from_seq DESC, to_seq DESC
LIMIT 1

-- hole --
-- Messages between two summaries of the lowest level that are under none: an erasure has taken that out.
SELECT s.before + 1 AS from_seq, s.from_seq - 1 AS to_seq
FROM (SELECT from_seq, coalesce(lag(to_seq) OVER (ORDER BY from_seq), 0) AS before
      FROM summaries
      WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND level = 1) AS s
WHERE s.from_seq > s.before + 1 AND s.from_seq > %(done_seq)s + 1
  AND EXISTS (SELECT 1 FROM messages m
              WHERE m.user_id = %(user_id)s AND m.conversation_id = %(conversation_id)s
                AND m.seq BETWEEN s.before + 1 AND s.from_seq - 1)
ORDER BY s.from_seq
LIMIT 1

-- remove_summaries --
-- Forgets what was derived from a message on; what somebody asked for (level 0) stays.
DELETE FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND level > 0 AND to_seq >= %(from_seq)s
RETURNING id

-- summaries_over --
-- The summaries that stand for some of these messages, the lowest level first; those that were asked for come last.
SELECT * FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s
  AND from_seq <= %(to_seq)s AND to_seq >= %(from_seq)s
ORDER BY level = 0, level, from_seq, id
LIMIT %(limit)s
