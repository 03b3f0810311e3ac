-- moved --
-- Whether one embedder took another's place for anybody, or is about to.
SELECT EXISTS (SELECT 1 FROM embedding_models a JOIN embedding_models b ON b.user_id = a.user_id
               WHERE a.id = %(one)s AND b.id = %(other)s) AS found

-- add --
-- An embedder of this user.
INSERT INTO embedding_models (user_id, id, name, dimensions, state)
VALUES (%(user_id)s, %(id)s, %(name)s, %(dimensions)s, %(state)s)
ON CONFLICT (user_id, id) DO UPDATE SET state = excluded.state

-- change --
-- What an embedder is to a user from now on.
UPDATE embedding_models
SET state = %(state)s
WHERE user_id = %(user_id)s AND id = %(id)s

-- renew --
-- Its time says since when no chunk that was there has been given a vector: arrays in every process are read anew.
UPDATE embedding_models SET created_at = now() WHERE user_id = %(user_id)s AND id = %(id)s

-- touch --
-- The user's chunks are another version of them.
UPDATE users SET last_chunk = last_chunk WHERE user_id = %(user_id)s

-- lacking --
-- Chunks after a number that have no vector of an embedder, each with its part of the text.
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

-- counts --
-- How many vectors there are of each embedder of this user.
SELECT m.id, m.name, m.dimensions, m.state, u.chunks,
       (SELECT count(*) FROM item_vectors v WHERE v.user_id = %(user_id)s AND v.model_id = m.id) AS vectors
FROM embedding_models m
JOIN users u ON u.user_id = m.user_id
WHERE m.user_id = %(user_id)s AND u.user_id = %(user_id)s
ORDER BY m.created_at, m.id

-- remove_vectors --
-- The vectors of an embedder that serves no more.
DELETE FROM item_vectors WHERE user_id = %(user_id)s AND model_id = %(model_id)s

-- alone --
-- One migration at a time, for as long as the transaction is open: two would compute everything twice.
SELECT pg_try_advisory_xact_lock(hashtextextended('memstore:embeddings', 0)) AS taken
