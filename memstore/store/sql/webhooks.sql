-- add --
-- A webhook, with its secret, which is not read again but by what signs.
INSERT INTO webhooks (id, url, events, secret) VALUES (%(id)s, %(url)s, %(events)s, %(secret)s)
RETURNING id, url, events, created_at

-- webhooks --
-- Every webhook but its secret, the latest first.
SELECT id, url, events, created_at, disabled_at, failed_at, last_error FROM webhooks ORDER BY created_at DESC, id

-- remove --
DELETE FROM webhooks WHERE id = %(id)s

-- as_operator --
-- Webhooks and their events are the operator's.
SET LOCAL memstore.operator = 'on'

-- exist --
SELECT EXISTS (SELECT 1 FROM webhooks) AS made

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

-- wanted --
-- Which events webhooks want.
SELECT DISTINCT unnest(events) AS kind FROM webhooks WHERE disabled_at IS NULL

-- add_event --
-- An event, in the transaction in which it happened.
INSERT INTO webhook_events (id, user_id, body) VALUES (%(id)s, %(user)s, %(body)s)

-- forget --
-- Events about facts, these or all, of a user are not sent any more.
DELETE FROM webhook_events
WHERE user_id = %(user)s AND body->>'type' <> 'erasure.done'
  AND (%(facts)s::text[] IS NULL OR body->'data'->>'fact' = ANY(%(facts)s::text[])
       OR body->'data'->>'by' = ANY(%(facts)s::text[]))
