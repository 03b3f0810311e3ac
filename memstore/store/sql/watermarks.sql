-- pending --
-- Whose derivers are behind, a page at a time; needs the operator's scope to see more than one user.
SELECT user_id, conversation_id, deriver, done_seq, last_seq
FROM derivations
WHERE done_seq < last_seq AND (%(only)s::uuid IS NULL OR user_id = %(only)s)
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND deriver = %(deriver)s AND (user_id, conversation_id) > (%(after_user)s, %(after_conversation)s)
ORDER BY user_id, conversation_id
LIMIT %(limit)s

-- next_said --
-- When the next message was said that a deriver has to read, of some conversations of a user.
SELECT k.conversation_id, m.occurred_at
FROM unnest(%(conversations)s::uuid[], %(done)s::bigint[]) AS k (conversation_id, done_seq)
CROSS JOIN LATERAL (SELECT occurred_at FROM messages
                    WHERE user_id = %(user_id)s AND conversation_id = k.conversation_id AND seq > k.done_seq
                    ORDER BY seq LIMIT 1) AS m

-- advance --
-- Compare and set: who lost the race changes nothing and rolls back.
-- A conversation that several recipes derived has none: that is one to be made anew.
UPDATE derivations
SET done_seq = %(to_seq)s, attempts = 0, last_error = NULL, updated_at = now(),
    pending_since = CASE WHEN %(to_seq)s < last_seq
                         THEN coalesce((SELECT m.occurred_at FROM messages m  -- none: it came in at this moment
                                        WHERE m.user_id = %(user_id)s AND m.conversation_id = %(conversation_id)s
                                          AND m.seq > %(to_seq)s
                                        ORDER BY m.seq LIMIT 1), pending_since) END,
    recipe = CASE WHEN done_seq = 0 OR recipe = %(recipe)s THEN %(recipe)s END,
    closes_at = %(closes_at)s
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq = %(from_seq)s

-- ending --
-- Users with a session that is over, by the clock or as another conversation begins, and waits for its summary.
SELECT DISTINCT d.user_id FROM derivations d
WHERE (%(only)s::uuid IS NULL OR d.user_id = %(only)s) AND d.closes_at IS NOT NULL AND d.done_seq = d.last_seq
  AND (d.closes_at <= now()
       OR EXISTS (SELECT 1 FROM derivations n
                  WHERE n.user_id = d.user_id AND n.done_seq = 0 AND n.done_seq < n.last_seq
                    AND n.deriver = 'summaries'))

-- reopen --
-- Has the deriver read the last message of these sessions once more.
UPDATE derivations SET done_seq = done_seq - 1
WHERE user_id = %(user_id)s AND closes_at IS NOT NULL AND done_seq = last_seq AND done_seq > 0
  AND (closes_at <= now()
       OR EXISTS (SELECT 1 FROM derivations n
                  WHERE n.user_id = %(user_id)s AND n.done_seq = 0 AND n.done_seq < n.last_seq
                    AND n.deriver = 'summaries'))

-- is_over --
-- Whether a session is over whose last message was stored then: the silence is over, or another conversation has begun.
SELECT %(closes_at)s <= now()
       OR EXISTS (SELECT 1 FROM conversations
                  WHERE user_id = %(user_id)s AND created_at > %(recorded_at)s AND last_seq > 0)

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

-- user_sizes --
-- How many conversations some users have, and how many messages these have got; in the operator's scope.
SELECT user_id, count(*) AS conversations, sum(last_seq)::bigint AS messages
FROM derivations
WHERE user_id = ANY(%(users)s::uuid[]) AND deriver = 'chunks'
GROUP BY user_id

-- backlog --
-- How many messages wait for each deriver.
SELECT deriver, sum(last_seq - done_seq)::bigint AS messages
FROM derivations
WHERE done_seq < last_seq AND (%(only)s::uuid IS NULL OR user_id = %(only)s)
GROUP BY deriver

-- outdated --
-- What of a user's a deriver made by another recipe than this one, or where settings of one's own may ask for another.
SELECT d.user_id, d.conversation_id, d.deriver, d.done_seq, d.last_seq, d.recipe
FROM derivations d
JOIN users u ON u.user_id = d.user_id
JOIN conversations c ON c.user_id = d.user_id AND c.id = d.conversation_id
WHERE d.user_id = %(user_id)s AND d.deriver = %(deriver)s AND d.done_seq > 0
  AND (d.recipe IS DISTINCT FROM %(recipe)s OR (u.settings || c.settings) ?| array['fact_instructions', 'fact_types'])
ORDER BY d.conversation_id

-- redone --
-- Compare and set: what was derived up to here is now of this recipe.
UPDATE derivations
SET recipe = %(recipe)s, closes_at = %(closes_at)s, updated_at = now()
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq = %(done_seq)s AND recipe IS NOT DISTINCT FROM %(old)s

-- fragment its_turn --
d.deriver <> 'facts' OR d.attempts > 0 OR NOT EXISTS (
           SELECT 1 FROM derivations e
           WHERE e.user_id = d.user_id AND e.done_seq < e.last_seq
             AND (e.pending_since, e.conversation_id) < (d.pending_since, d.conversation_id)
             AND e.deriver = 'facts' AND e.attempts = 0 AND e.backfill IS NOT DISTINCT FROM d.backfill)

-- behind --
-- Which derivers are behind in one conversation, in which state the backfill is that has the messages.
-- A user's facts are settled with each other: one conversation after the other is in line, as they were said.
SELECT d.user_id, d.conversation_id, d.deriver, d.done_seq, d.last_seq, b.id AS backfill, b.state,
       <its_turn> AS in_line
FROM derivations d LEFT JOIN backfills b ON b.id = d.backfill
WHERE d.user_id = %(user)s AND d.conversation_id = %(conversation_id)s AND d.done_seq < d.last_seq

-- next_in_line --
-- Whose facts come next, of a user.
SELECT user_id, conversation_id FROM derivations
WHERE user_id = %(user)s AND done_seq < last_seq AND deriver = 'facts' AND attempts = 0
  AND backfill IS NOT DISTINCT FROM %(backfill)s::uuid
ORDER BY pending_since, conversation_id
LIMIT 1

-- unfinished --
-- Conversations in which a deriver is behind and may work, a page at a time: of one backfill, or of none that is open.
SELECT d.user_id, d.conversation_id
FROM derivations d
WHERE d.done_seq < d.last_seq AND (d.user_id, d.conversation_id) > (%(after_user)s, %(after_conversation)s)
  AND CASE WHEN %(backfill)s::uuid IS NULL THEN d.backfill IS NULL OR NOT d.backfill = ANY(%(open)s::uuid[])
           ELSE d.backfill = %(backfill)s END
  AND (<its_turn>)
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

-- waiting --
-- Messages that wait for a deriver, each counted once.
SELECT coalesce(sum(wait), 0)::bigint AS found
FROM (SELECT max(last_seq - done_seq) AS wait FROM derivations
      WHERE user_id = %(user_id)s AND done_seq < last_seq GROUP BY conversation_id) AS waiting

-- watermarks --
-- Watermarks that are missing, or that do not know of the last message.
SELECT count(*) AS found
FROM conversations c
CROSS JOIN unnest(%(derivers)s::text[]) AS wanted (deriver)
LEFT JOIN derivations d ON d.user_id = %(user_id)s AND d.conversation_id = c.id AND d.deriver = wanted.deriver
WHERE c.user_id = %(user_id)s AND (d.last_seq IS DISTINCT FROM c.last_seq OR d.done_seq > d.last_seq)

-- unembedded --
-- Messages with words under the watermark of `chunks` that have no chunk.
SELECT count(*) AS found
FROM derivations d
JOIN messages m ON m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id AND m.seq <= d.done_seq
WHERE d.user_id = %(user_id)s AND d.deriver = 'chunks' AND m.text ~ '[[:alnum:]]'
  AND NOT EXISTS (SELECT 1 FROM item_text t WHERE t.user_id = %(user_id)s AND t.item_id = m.id)

-- orphans --
-- Chunks whose message, summary or fact is not there.
SELECT count(*) AS found
FROM item_text t
WHERE t.user_id = %(user_id)s
  AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.user_id = %(user_id)s AND m.id = t.item_id)
  AND NOT EXISTS (SELECT 1 FROM summaries s WHERE s.user_id = %(user_id)s AND s.id = t.item_id)
  AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.user_id = %(user_id)s AND f.id = t.item_id)

-- without_vectors --
-- Chunks without a vector of the active embedding model.
SELECT count(*) AS found
FROM item_text t, embedding_models m
WHERE t.user_id = %(user_id)s AND m.state = 'serving'
  AND NOT EXISTS (SELECT 1 FROM item_vectors v
                  WHERE v.user_id = %(user_id)s AND v.item_id = t.item_id AND v.chunk_index = t.chunk_index AND v.model_id = m.id)

-- unsourced_facts --
-- Facts that no message says, but those that people entered.
SELECT count(*) AS found
FROM facts f
WHERE f.user_id = %(user_id)s AND f.recipe <> %(hand)s
  AND NOT EXISTS (SELECT 1 FROM fact_sources s WHERE s.user_id = %(user_id)s AND s.fact_id = f.id)

-- unsourced_summaries --
-- Summaries of messages that are not there, or are beyond the watermark of `summarize`.
SELECT count(*) AS found
FROM summaries s
LEFT JOIN derivations d ON d.user_id = %(user_id)s AND d.conversation_id = s.conversation_id AND d.deriver = 'summaries'
WHERE s.user_id = %(user_id)s AND s.level > 0
  AND (s.to_seq > coalesce(d.done_seq, 0)
       OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.user_id = %(user_id)s AND m.conversation_id = s.conversation_id
                                              AND m.seq BETWEEN s.from_seq AND s.to_seq))

-- miscounted --
-- Whether a user's own counts of chunks are not those of the chunks.
SELECT (u.chunks <> t.chunks OR u.chunk_length <> t.length OR u.last_chunk < t.last)::int AS found
FROM users u
CROSS JOIN (SELECT count(*) AS chunks, coalesce(sum(length), 0) AS length, coalesce(max(number), 0) AS last
            FROM item_text WHERE user_id = %(user_id)s) AS t
WHERE u.user_id = %(user_id)s

-- misposted --
-- Whether the postings of a large user do not hold what its posted chunks have.
SELECT (p.terms <> t.terms)::int AS found
FROM users u
CROSS JOIN (SELECT coalesce(sum(holding), 0) AS terms FROM term_postings WHERE user_id = %(user_id)s) AS p
CROSS JOIN (SELECT coalesce(sum(cardinality(i.terms)), 0) AS terms FROM item_text i JOIN users o USING (user_id)
            WHERE i.user_id = %(user_id)s AND i.number <= o.posted) AS t
WHERE u.user_id = %(user_id)s
