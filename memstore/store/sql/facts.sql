-- add_fact --
-- A fact is known by what it says: the same statement meets itself.
INSERT INTO facts (user_id, id, type, subject, text, confidence, valid_from, recipe, occurred_at)
VALUES (%(user_id)s, %(id)s, %(type)s, %(subject)s, %(text)s, %(confidence)s, %(valid_from)s, %(recipe)s, %(occurred_at)s)
ON CONFLICT (user_id, id) DO NOTHING

-- add_source --
-- One more message that says it.
INSERT INTO fact_sources (user_id, fact_id, message_id)
VALUES (%(user_id)s, %(fact_id)s, %(message_id)s)
ON CONFLICT (user_id, fact_id, message_id) DO NOTHING

-- said_at --
-- When it was first said is the earliest time.
UPDATE facts SET occurred_at = %(occurred_at)s
WHERE user_id = %(user_id)s AND id = %(id)s AND occurred_at > %(occurred_at)s

-- facts --
-- A user's facts with their sources, the latest first.
SELECT f.*, (SELECT coalesce(array_agg(s.message_id ORDER BY s.message_id), '{}') FROM fact_sources s
             WHERE s.user_id = f.user_id AND s.fact_id = f.id
               AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)) AS sources
FROM facts f
WHERE f.user_id = %(user_id)s
  AND (%(state)s::text IS NULL OR f.state = %(state)s)
  AND (%(type)s::text IS NULL OR f.type = %(type)s)
  AND (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s)
ORDER BY f.occurred_at DESC, f.id

-- standing_facts --
-- Facts of kinds that matter whatever is asked, the kinds in the order given, the latest of each first.
SELECT f.id
FROM facts f
WHERE f.user_id = %(user_id)s AND f.state = 'active' AND f.type = ANY(%(types)s::text[])
  AND (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s)
ORDER BY array_position(%(types)s::text[], f.type), f.occurred_at DESC, f.id
LIMIT %(limit)s

-- known_facts --
-- Those of these facts that are stored.
SELECT id FROM facts WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- nearest_fact --
-- The active fact of the same kind that is nearest to a vector.
SELECT f.id, f.text, 1 - (v.embedding <=> %(query)s) AS score
FROM facts f
JOIN item_vectors v ON v.user_id = f.user_id AND v.item_id = f.id
WHERE f.user_id = %(user_id)s AND v.user_id = %(user_id)s AND v.model_id = %(model_id)s AND f.state = 'active'
  AND f.type = %(type)s AND f.subject = %(subject)s
ORDER BY (v.embedding <=> %(query)s) + 0, f.id
LIMIT 1
