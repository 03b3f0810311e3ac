-- epoch --
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
SELECT units, posted FROM users WHERE user_id = %(user_id)s FOR UPDATE

-- count_erasure --
-- Whoever has read before this is not to write.
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
  AND (scope = 'user' OR scope = 'conversation' AND body->>'conversation_id' = %(conversation_id)s::text)

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

-- rows_of_operator --
-- How many of the operator's rows are of this user alone, by table.
SELECT 'backfills' AS place, count(*) AS rows FROM backfills WHERE only_user = %(user)s
UNION ALL
SELECT 'api_tokens', count(*) FROM api_tokens WHERE user_id = %(user)s
