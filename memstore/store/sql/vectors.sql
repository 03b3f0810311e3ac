-- reach --
-- Every user and the number of the last chunk, for the operator.
SELECT user_id AS id, name, last_chunk FROM users
WHERE name > %(after)s OR user_id = %(user_id)s
ORDER BY name LIMIT %(limit)s

-- lacking --
-- Chunks after a number that have no vector of a model, each with its part of the text.
SELECT t.number, t.item_id, t.chunk_index, t.tier, t.speaker,
       substr(coalesce(m.text, s.text, f.text, ''), (t.start + 1)::int, (t.stop - t.start)::int) AS text
FROM item_text t
LEFT JOIN messages m ON m.user_id = t.user_id AND m.id = t.item_id
LEFT JOIN summaries s ON s.user_id = t.user_id AND s.id = t.item_id
LEFT JOIN facts f ON f.user_id = t.user_id AND f.id = t.item_id
WHERE t.user_id = %(user_id)s AND t.number > %(after)s
  AND NOT EXISTS (SELECT 1 FROM item_vectors v WHERE v.user_id = %(user_id)s AND v.item_id = t.item_id
                                               AND v.chunk_index = t.chunk_index AND v.model_id = %(model_id)s)
ORDER BY t.number
LIMIT %(limit)s

-- count_fill --
-- Chunks that were there are given vectors: arrays in every process are read anew.
UPDATE users SET vector_fills = vector_fills + 1 WHERE user_id = %(user_id)s

-- counts --
-- How many vectors there are of each model.
SELECT m.id, m.name, m.dimensions, m.state, u.chunks,
       (SELECT count(*) FROM item_vectors v WHERE v.user_id = %(user_id)s AND v.model_id = m.id) AS vectors
FROM users u, embedding_models m
WHERE u.user_id = %(user_id)s
ORDER BY array_position(ARRAY['serving', 'building', 'retired'], m.state), m.name, m.dimensions

-- remove --
-- The vectors of a model that is active no more.
DELETE FROM item_vectors WHERE user_id = %(user_id)s AND model_id = %(model_id)s
