-- add --
-- A webhook, with its secret, which is not read again but by what signs.
INSERT INTO webhooks (id, url, events, secret) VALUES (%(id)s, %(url)s, %(events)s, %(secret)s)
RETURNING id, url, events, created_at

-- webhooks --
-- Every webhook but its secret, the latest first.
SELECT id, url, events, created_at, disabled_at, failed_at, last_error FROM webhooks ORDER BY created_at DESC, id

-- remove --
DELETE FROM webhooks WHERE id = %(id)s

-- target --
-- Where a webhook's events go, and what signs them; none where it is disabled.
SELECT url, secret FROM webhooks WHERE id = %(id)s AND disabled_at IS NULL

-- user_name --
SELECT name FROM users WHERE user_id = %(user)s

-- note_failure --
-- That a delivery has failed, and whether nothing more is to be sent.
UPDATE webhooks
SET failed_at = now(), last_error = %(error)s, disabled_at = CASE WHEN %(disable)s THEN now() END
WHERE id = %(id)s AND disabled_at IS NULL

-- forget --
-- What waits to be told of facts, these or all, is told no more.
SELECT memstore_forget_webhooks(%(facts)s::text[])
