-- pending --
-- Whose derivers are behind, a page at a time; needs the operator's scope to see more than one user.
SELECT user_id, conversation_id, deriver, done_seq, last_seq
FROM derivations
WHERE done_seq < last_seq AND (%(only)s::uuid IS NULL OR user_id = %(only)s)
  AND deriver = %(deriver)s AND (user_id, conversation_id) > (%(after_user)s, %(after_conversation)s)
ORDER BY user_id, conversation_id
LIMIT %(limit)s

-- advance --
-- Compare and set: who lost the race changes nothing and rolls back.
UPDATE derivations
SET done_seq = %(to_seq)s, attempts = 0, last_error = NULL, updated_at = now()
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND done_seq = %(from_seq)s

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
