-- put --
-- A document, new or in place of the one of its name.
INSERT INTO documents (user_id, id, namespace, key, value, ttl, expires_at, updated_at)
VALUES (%(user_id)s, %(id)s, %(namespace)s, %(key)s, %(value)s, %(ttl)s::interval, now() + %(ttl)s::interval,
        clock_timestamp())
ON CONFLICT (user_id, id) DO UPDATE
SET value = excluded.value, ttl = excluded.ttl, expires_at = excluded.expires_at, updated_at = excluded.updated_at

-- add_vector --
-- The vector of a text in a document.
INSERT INTO document_vectors (user_id, id, path, model_id, embedding, text)
VALUES (%(user_id)s, %(id)s, %(path)s, %(model_id)s, %(embedding)s, %(text)s)
ON CONFLICT (user_id, id, path, model_id) DO NOTHING

-- fragment of_others --
-- Vectors v by other models of the store, with documents d, of which this model has none of the same text.
FROM document_vectors v
JOIN documents d ON d.user_id = v.user_id AND d.id = v.id
WHERE v.user_id = %(user_id)s AND d.user_id = %(user_id)s
  AND v.model_id IN (SELECT m.id FROM embedding_models m WHERE m.id <> %(model_id)s)
  AND (v.text IS NOT NULL OR v.path = '$')
  AND NOT EXISTS (SELECT 1 FROM document_vectors o
                  WHERE o.user_id = %(user_id)s AND o.id = v.id AND o.path = v.path AND o.model_id = %(model_id)s)

-- lacking --
-- Texts of documents that a model has no vector of, and another one has.
SELECT DISTINCT ON (v.id, v.path) v.id, v.path, v.text, CASE WHEN v.text IS NULL THEN d.value END AS value
<of_others>
ORDER BY v.id, v.path
LIMIT %(limit)s

-- still_lacking --
-- The same of some documents.
SELECT DISTINCT ON (v.id, v.path) v.id, v.path, v.text, CASE WHEN v.text IS NULL THEN d.value END AS value
<of_others> AND v.id = ANY(%(ids)s::uuid[])

-- count_lacking --
-- How many there are.
SELECT count(DISTINCT (v.id, v.path)) AS lacking
<of_others>

-- remove_model --
-- The vectors of a model that is active no more. Some texts stand nowhere else: those without a vector of the active
-- model stay.
DELETE FROM document_vectors v
WHERE v.user_id = %(user_id)s AND v.model_id = %(model_id)s
  AND EXISTS (SELECT 1 FROM document_vectors o
              WHERE o.user_id = %(user_id)s AND o.id = v.id AND o.path = v.path
                AND o.model_id = (SELECT m.id FROM embedding_models m WHERE m.state = 'serving'))

-- remove --
-- Documents.
DELETE FROM documents WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- remove_vectors --
-- All vectors of documents, by whatever embedder.
DELETE FROM document_vectors WHERE user_id = %(user_id)s AND id = ANY(%(ids)s::uuid[])

-- expire --
-- Documents whose time is over.
DELETE FROM documents WHERE user_id = %(user_id)s AND expires_at <= now()

-- refresh --
-- Those that were read live on; what is over stays over, unless it is still shown.
-- One that somebody writes meanwhile begins anew by that: nobody waits here, so that readers and writers never deadlock.
UPDATE documents SET expires_at = shown.until
FROM (SELECT d.id, now() + d.ttl AS until FROM documents d
      WHERE d.user_id = %(user_id)s AND d.id = ANY(%(ids)s::uuid[]) AND d.ttl IS NOT NULL AND <alive>
      FOR UPDATE SKIP LOCKED) AS shown
WHERE documents.user_id = %(user_id)s AND documents.id = shown.id

-- fragment alive --
(%(expired)s OR d.expires_at IS NULL OR d.expires_at > now())

-- fragment shown --
d.namespace, d.key, d.value, d.created_at, d.updated_at, d.expires_at

-- lock --
-- Documents that are to be written or removed, in one order for everybody: so nobody deadlocks.
SELECT <shown> FROM documents d
WHERE d.user_id = %(user_id)s AND d.id = ANY(%(ids)s::uuid[])
ORDER BY d.id
FOR UPDATE

-- documents --
-- Documents by their ids.
SELECT <shown> FROM documents d
WHERE d.user_id = %(user_id)s AND d.id = ANY(%(ids)s::uuid[]) AND <alive>

-- fragment wanted --
-- Below a namespace, as conditions on what values hold have it: each on a path, compared as JSON, a number as a number.
d.namespace[1:cardinality(%(prefix)s::text[])] = %(prefix)s::text[] AND <alive>
AND NOT EXISTS (
    SELECT
    FROM jsonb_array_elements(%(conditions)s::jsonb->'all') AS c (asked),
         LATERAL (SELECT coalesce(d.value #> ARRAY(SELECT jsonb_array_elements_text(c.asked->'path')), 'null') AS found,
                         c.asked->'operand' AS operand) AS both_sides
    WHERE NOT CASE c.asked->>'operator'
              WHEN 'eq' THEN found = operand
              WHEN 'ne' THEN found <> operand
              ELSE jsonb_typeof(found) = jsonb_typeof(operand)
                   AND CASE c.asked->>'operator' WHEN 'gt' THEN found > operand WHEN 'gte' THEN found >= operand
                                                 WHEN 'lt' THEN found < operand ELSE found <= operand END
              END)

-- latest --
-- Documents, the latest change first.
SELECT <shown>
FROM documents d
WHERE d.user_id = %(user_id)s AND <wanted>
ORDER BY d.updated_at DESC, d.id
LIMIT %(limit)s OFFSET %(offset)s

-- nearest --
-- Documents by what of them is nearest to a question: all that are wanted are compared, so that none is missed.
-- A vector of another length, which a damaged export may bring, would make every search fail.
SELECT <shown>, near.score
FROM documents d
CROSS JOIN LATERAL (
    SELECT max(CASE %(distance)s::text
               WHEN 'l2' THEN -(v.embedding <-> %(question)s::vector)
               WHEN 'inner_product' THEN -(v.embedding <#> %(question)s::vector)
               ELSE coalesce(nullif(1 - (v.embedding <=> %(question)s::vector), 'NaN'), 0) END) AS score
    FROM document_vectors v
    WHERE v.user_id = %(user_id)s AND v.id = d.id AND v.model_id = %(model_id)s
      AND vector_dims(v.embedding) = vector_dims(%(question)s::vector)) AS near
WHERE d.user_id = %(user_id)s AND near.score IS NOT NULL AND <wanted>
ORDER BY near.score DESC, d.updated_at DESC, d.id
LIMIT %(limit)s OFFSET %(offset)s

-- namespaces --
-- The namespaces that there are, cut to a depth: those that begin or end with certain labels, '*' for any one.
SELECT DISTINCT d.namespace[1:coalesce(%(depth)s::int, cardinality(d.namespace))] AS namespace
FROM documents d
WHERE d.user_id = %(user_id)s AND <alive>
  AND NOT EXISTS (
      SELECT
      FROM jsonb_array_elements(%(matches)s::jsonb->'all') AS m (asked)
      WHERE jsonb_array_length(m.asked->'path') > cardinality(d.namespace)
         OR EXISTS (SELECT
                    FROM jsonb_array_elements_text(m.asked->'path') WITH ORDINALITY AS l (label, place)
                    WHERE l.label <> '*'
                      AND l.label IS DISTINCT FROM d.namespace[
                          l.place::int + CASE WHEN (m.asked->>'at_end')::boolean
                                         THEN cardinality(d.namespace) - jsonb_array_length(m.asked->'path') ELSE 0 END]))
ORDER BY 1
LIMIT %(limit)s OFFSET %(offset)s
