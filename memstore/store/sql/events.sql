-- events --
-- The outbox, in the order of transactions.
-- One that began earlier may commit later than those seen here, and who reads on would never see it: so what came after
-- the oldest transaction that is still open waits.
SELECT user_id, id, conversation_id, type, body, recorded_at, transaction || '/' || id AS cursor
FROM events
WHERE user_id = %(user_id)s
  AND (transaction, id) > (%(after_transaction)s::bigint, %(after_id)s::uuid)
  AND transaction < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
  AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s::text[]))
ORDER BY transaction, id
LIMIT %(limit)s

-- trim_events --
-- The outbox does not grow for ever.
DELETE FROM events WHERE user_id = %(user_id)s AND recorded_at < %(before)s
