-- add --
-- A backfill; it runs as soon as it has what is pending.
INSERT INTO backfills (id, state, only_user, derivers, max_tokens)
VALUES (%(id)s, 'paused', %(only_user)s, %(derivers)s, %(max_tokens)s)

-- set_messages --
-- How many messages each deriver of a backfill is to derive.
UPDATE backfills SET messages = %(messages)s::jsonb WHERE id = %(id)s

-- backfills --
-- The backfills, the latest first.
SELECT id, state, reason, only_user, derivers, messages, max_tokens, calls, call_seconds, spent_tokens, answer_tokens,
       taken_tokens, worked_seconds, created_at, resumed_at, finished_at
FROM backfills WHERE (%(id)s::uuid IS NULL OR id = %(id)s) ORDER BY created_at DESC, id LIMIT %(limit)s

-- open --
-- Those that hold what is pending: it is theirs, or waits until they are resumed.
SELECT id, state FROM backfills WHERE state IN ('running', 'paused', 'cancelled') ORDER BY created_at, id

-- halt --
-- Ends or pauses one that runs, or one that is paused.
UPDATE backfills
SET state = %(state)s, reason = %(reason)s,
    worked_seconds = worked_seconds
                     + CASE state WHEN 'running' THEN extract(epoch FROM clock_timestamp() - resumed_at) ELSE 0 END,
    finished_at = CASE %(state)s WHEN 'paused' THEN NULL ELSE now() END
WHERE id = %(id)s AND (state = 'running' OR state = 'paused' AND %(state)s <> 'paused')

-- resume --
-- Goes on with one that is paused, with another cap where it is given.
UPDATE backfills
SET state = 'running', reason = NULL, resumed_at = clock_timestamp(),
    max_tokens = coalesce(%(max_tokens)s, max_tokens)
WHERE id = %(id)s AND state = 'paused'

-- reserve --
-- Takes tokens for a call before it is made; several workers together never take more than the cap.
UPDATE backfills SET taken_tokens = taken_tokens + %(tokens)s
WHERE id = %(id)s AND state = 'running'
  AND (max_tokens IS NULL OR spent_tokens + taken_tokens + %(tokens)s <= max_tokens)

-- settle --
-- What a call has cost, in the place of what was taken for it.
UPDATE backfills
SET taken_tokens = taken_tokens - %(taken)s, calls = calls + %(calls)s, call_seconds = call_seconds + %(seconds)s,
    spent_tokens = spent_tokens + %(prompt_tokens)s + %(completion_tokens)s,
    answer_tokens = answer_tokens + %(completion_tokens)s
WHERE id = %(id)s
