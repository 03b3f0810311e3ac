-- expired --
-- How many messages of each conversation are older than it keeps them: its own rule, else the user's, else the store's.
SELECT m.conversation_id, max(rule.before) AS before, count(*) AS messages
FROM conversations c
CROSS JOIN users u
CROSS JOIN LATERAL (
    SELECT coalesce(CASE jsonb_typeof(c.settings->'message_retention_days')
                    WHEN 'number' THEN (c.settings->>'message_retention_days')::float8 END,
                    CASE jsonb_typeof(u.settings->'message_retention_days')
                    WHEN 'number' THEN (u.settings->>'message_retention_days')::float8 END,
                    %(days)s::float8) AS days
) AS kept
CROSS JOIN LATERAL (SELECT now() - kept.days * interval '1 day' AS before) AS rule
JOIN messages m ON m.user_id = c.user_id AND m.conversation_id = c.id AND m.occurred_at < rule.before
WHERE c.user_id = %(user_id)s AND u.user_id = %(user_id)s AND m.user_id = %(user_id)s AND kept.days > 0
GROUP BY m.conversation_id

-- keep_settings --
-- Settings of a user's own; null takes one away.
UPDATE users SET settings = jsonb_strip_nulls(settings || %(settings)s) WHERE user_id = %(user_id)s

-- settings --
-- Settings of a user's own.
SELECT settings FROM users WHERE user_id = %(user_id)s
