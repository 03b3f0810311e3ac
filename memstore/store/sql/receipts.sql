-- add_receipt --
-- The record of one assembly.
INSERT INTO receipts (user_id, id, conversation_id, budget, tokens, body, texts)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(budget)s, %(tokens)s, %(body)s, %(texts)s)

-- receipt --
-- One receipt.
SELECT id, conversation_id, body, texts, recorded_at FROM receipts WHERE user_id = %(user_id)s AND id = %(id)s


-- trim_receipts --
-- Receipts are kept for a time.
DELETE FROM receipts WHERE user_id = %(user_id)s AND recorded_at < %(before)s

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
SELECT id, conversation_id, body, texts, recorded_at FROM receipts
WHERE user_id = %(user_id)s
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND (%(before)s::uuid IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s
