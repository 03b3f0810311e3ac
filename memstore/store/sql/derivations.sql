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
