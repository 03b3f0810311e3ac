-- pending --
-- Whose derivers are behind, a page at a time; needs the operator's scope to see more than one user.
SELECT user_id, conversation_id, deriver, done_seq, last_seq
FROM derivations
WHERE done_seq < last_seq AND (%(only)s::uuid IS NULL OR user_id = %(only)s)
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND deriver = %(deriver)s AND (user_id, conversation_id) > (%(after_user)s, %(after_conversation)s)
ORDER BY user_id, conversation_id
LIMIT %(limit)s

-- advance --
-- Compare and set: who lost the race changes nothing and rolls back.
-- A conversation that several recipes derived has none: that is one to be made anew.
UPDATE derivations
SET done_seq = %(to_seq)s, attempts = 0, last_error = NULL, updated_at = now(),
    recipe = CASE WHEN done_seq = 0 OR recipe = %(recipe)s THEN %(recipe)s END
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq = %(from_seq)s
RETURNING last_seq

-- watermark --
-- Where a deriver stands in a conversation.
SELECT user_id, conversation_id, deriver, done_seq, last_seq
FROM derivations
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s

-- fail --
-- Keeps the watermark and says why, unless another worker has moved it.
UPDATE derivations
SET attempts = least(attempts + 1, 32767), last_error = %(error)s, updated_at = now()
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq = %(from_seq)s

-- backlog --
-- How many messages wait for each deriver.
SELECT deriver, sum(last_seq - done_seq)::bigint AS messages
FROM derivations
WHERE done_seq < last_seq AND (%(only)s::uuid IS NULL OR user_id = %(only)s)
GROUP BY deriver

-- outdated --
-- What a deriver made by another recipe than this one, a page at a time, for the operator.
SELECT user_id, conversation_id, deriver, done_seq, last_seq, recipe
FROM derivations
WHERE done_seq > 0 AND recipe IS DISTINCT FROM %(recipe)s AND (%(only)s::uuid IS NULL OR user_id = %(only)s)
  AND deriver = %(deriver)s AND (user_id, conversation_id) > (%(after_user)s, %(after_conversation)s)
ORDER BY user_id, conversation_id
LIMIT %(limit)s

-- redone --
-- Compare and set: what was derived up to here is now of this recipe.
UPDATE derivations
SET recipe = %(recipe)s, updated_at = now()
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq = %(done_seq)s AND recipe IS NOT DISTINCT FROM %(old)s

-- behind --
-- Which derivers are behind in one conversation, in which state the backfill is that has the messages.
-- A user's facts are settled with each other: one conversation after the other is in line.
SELECT d.user_id, d.conversation_id, d.deriver, d.done_seq, d.last_seq, b.id AS backfill, b.state,
       b.max_seconds IS NOT NULL AS timed,
       d.deriver <> 'facts' OR d.attempts > 0 OR NOT EXISTS (
           SELECT FROM derivations e
           WHERE e.user_id = d.user_id AND e.conversation_id < d.conversation_id AND e.done_seq < e.last_seq
             AND e.deriver = 'facts' AND e.attempts = 0 AND e.backfill IS NOT DISTINCT FROM d.backfill) AS in_line
FROM derivations d LEFT JOIN backfills b ON b.id = d.backfill
WHERE d.user_id = %(user)s AND d.conversation_id = %(conversation_id)s AND d.done_seq < d.last_seq

-- next_in_line --
-- Whose facts come next, of a user.
SELECT user_id, conversation_id FROM derivations
WHERE user_id = %(user)s AND done_seq < last_seq AND deriver = 'facts' AND attempts = 0
  AND backfill IS NOT DISTINCT FROM %(backfill)s::uuid
ORDER BY conversation_id
LIMIT 1

-- unfinished --
-- Conversations in which a deriver is behind and may work, a page at a time: of one backfill, or of none that is open.
SELECT d.user_id, d.conversation_id
FROM derivations d
WHERE d.done_seq < d.last_seq AND (d.user_id, d.conversation_id) > (%(after_user)s, %(after_conversation)s)
  AND CASE WHEN %(backfill)s::uuid IS NULL THEN d.backfill IS NULL OR NOT d.backfill = ANY(%(open)s::uuid[])
           ELSE d.backfill = %(backfill)s END
  AND (d.deriver <> 'facts' OR d.attempts > 0 OR NOT EXISTS (
           SELECT FROM derivations e
           WHERE e.user_id = d.user_id AND e.conversation_id < d.conversation_id AND e.done_seq < e.last_seq
             AND e.deriver = 'facts' AND e.attempts = 0 AND e.backfill IS NOT DISTINCT FROM d.backfill))
GROUP BY d.user_id, d.conversation_id
ORDER BY d.user_id, d.conversation_id
LIMIT %(limit)s

-- assign --
-- Gives what is pending of a user to a backfill, but what another one has.
UPDATE derivations SET backfill = %(backfill)s
WHERE user_id = %(user_id)s AND done_seq < last_seq AND deriver = ANY(%(derivers)s::text[])
  AND (backfill IS NULL OR NOT backfill = ANY(%(unlike)s::uuid[]))

-- pending_messages --
-- What waits for each deriver of a user, in tokens and in segments too: those end at a silence and where they are full.
WITH pending AS (
    SELECT d.deriver, m.conversation_id, m.seq, m.tokens,
           abs(extract(epoch FROM m.occurred_at - lag(m.occurred_at) OVER ordered)) > %(gap_seconds)s::float8 AS after_gap
    FROM derivations d
    JOIN messages m ON m.user_id = d.user_id AND m.conversation_id = d.conversation_id
                   AND m.seq > d.done_seq AND m.seq <= d.last_seq
    WHERE d.user_id = %(user_id)s AND d.done_seq < d.last_seq
    WINDOW ordered AS (PARTITION BY d.deriver, m.conversation_id ORDER BY m.seq)
), numbered AS (
    SELECT deriver, conversation_id, tokens,
           count(*) FILTER (WHERE after_gap) OVER (PARTITION BY deriver, conversation_id ORDER BY seq) AS session
    FROM pending
), sessions AS (
    SELECT deriver, conversation_id, count(*) AS messages, sum(tokens) AS tokens
    FROM numbered GROUP BY deriver, conversation_id, session
)
SELECT deriver, count(DISTINCT conversation_id) AS conversations, sum(messages)::bigint AS messages,
       coalesce(sum(tokens), 0)::bigint AS tokens,
       sum(greatest(1, ceil(tokens::float8 / %(segment_tokens)s)))::bigint AS segments
FROM sessions GROUP BY deriver

-- backfill_backlog --
-- How much of a backfill is left, deriver by deriver, and in how many conversations it went wrong so far.
SELECT deriver, sum(last_seq - done_seq)::bigint AS messages, count(*) AS conversations,
       count(*) FILTER (WHERE last_error IS NOT NULL) AS failing
FROM derivations
WHERE done_seq < last_seq AND backfill = %(backfill)s
GROUP BY deriver
