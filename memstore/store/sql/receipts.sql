-- add_receipt --
-- The record of one context, with what was sent.
INSERT INTO receipts (user_id, id, conversation_id, budget, tokens, body, sent)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(budget)s, %(tokens)s, %(body)s, %(sent)s)

-- receipt --
-- One receipt, with what was sent.
SELECT id, conversation_id, body, sent, recorded_at FROM receipts WHERE user_id = %(user_id)s AND id = %(id)s

-- says --
-- How items begin, each from a character on, and who says it.
WITH wanted AS (SELECT * FROM unnest(%(ids)s::uuid[], %(starts)s::int[]) AS wanted (id, start))
SELECT w.id, w.start, coalesce(m.name, m.role) AS speaker, left(substr(m.text, w.start + 1), %(most)s) AS text
FROM wanted w JOIN messages m ON m.id = w.id
WHERE m.user_id = %(user_id)s
UNION ALL
SELECT w.id, w.start, NULL, left(substr(s.text, w.start + 1), %(most)s)
FROM wanted w JOIN summaries s ON s.id = w.id
WHERE s.user_id = %(user_id)s
UNION ALL
SELECT w.id, w.start, NULL, left(substr(f.text, w.start + 1), %(most)s)
FROM wanted w JOIN facts f ON f.id = w.id
WHERE f.user_id = %(user_id)s

-- receipt_page --
-- A page of receipts, of all conversations or of one, the latest first: their ids begin with their time.
SELECT id, conversation_id, body, recorded_at FROM receipts
WHERE user_id = %(user_id)s
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND (%(before)s::uuid IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s

-- horizon --
-- The oldest transaction that is still open. Asked by itself: Citus would answer with that of a node, which counts its own.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest

-- events --
-- The outbox, in the order of transactions.
-- One that began earlier may commit later than those seen here, and who reads on would never see it: so what came after
-- the oldest transaction that is still open waits.
SELECT user_id, id, conversation_id, type, body, recorded_at, transaction || '/' || id AS cursor
FROM events
WHERE user_id = %(user_id)s
  AND (transaction, id) > (%(after_transaction)s::bigint, %(after_id)s::uuid)
  AND transaction < %(oldest)s
  AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s::text[]))
ORDER BY transaction, id
LIMIT %(limit)s
