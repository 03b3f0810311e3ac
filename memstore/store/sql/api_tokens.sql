-- add --
-- A token, by its hash.
INSERT INTO api_tokens (id, hash, user_id, user_name, name, expires_at)
VALUES (%(id)s, %(hash)s, %(owner)s, %(user_name)s, %(name)s, now() + make_interval(secs => %(seconds)s))
RETURNING id, user_name AS "user", name, created_at, expires_at, revoked_at

-- holder --
-- Whom a token opens the memory of, where it holds now.
SELECT id, user_id AS owner, user_name FROM api_tokens
WHERE hash = %(hash)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())

-- exist --
-- Whether a token was ever made: who takes back the last one does not open the door.
SELECT EXISTS (SELECT 1 FROM api_tokens) AS made

-- tokens --
-- Every token but itself, the latest first.
SELECT id, user_name AS "user", name, created_at, expires_at, revoked_at FROM api_tokens ORDER BY created_at DESC, id

-- revoke --
-- Takes a token back; when that was done first stays.
UPDATE api_tokens SET revoked_at = coalesce(revoked_at, now()) WHERE id = %(id)s
RETURNING id, user_name AS "user", name, created_at, expires_at, revoked_at
