-- models --
-- The models that make or made vectors of this store.
SELECT id, name, dimensions, state FROM embedding_models ORDER BY created_at, id

-- share --
-- Whoever writes vectors takes this lock with others, so that no other model becomes active until the end.
SELECT pg_advisory_xact_lock_shared(hashtextextended('memstore:active-embedder', 0)) AS taken

-- exclude --
-- Waits for whoever writes vectors, and keeps others waiting until the end.
SELECT pg_advisory_xact_lock(hashtextextended('memstore:active-embedder', 0)) AS taken

-- add_first --
-- The model of a store that has none; of two that come at once one is.
INSERT INTO embedding_models (id, name, dimensions, state)
VALUES (%(id)s, %(name)s, %(dimensions)s, 'serving')
ON CONFLICT DO NOTHING

-- change --
-- The state of a model from now on; its time says since when.
INSERT INTO embedding_models (id, name, dimensions, state, created_at)
VALUES (%(id)s, %(name)s, %(dimensions)s, %(state)s, now())
ON CONFLICT (id) DO UPDATE SET state = excluded.state, created_at = excluded.created_at

-- skip_number --
-- A number that no chunk gets: so a migration sees whose documents it has to look at again.
UPDATE users SET last_chunk = last_chunk + 1 WHERE user_id = %(user_id)s

-- alone --
-- One migration at a time, for as long as the transaction is open: two would compute everything twice.
SELECT pg_try_advisory_xact_lock(hashtextextended('memstore:embeddings', 0)) AS taken

-- for_hours --
-- A migration idles in its transaction for as long as it embeds, whatever the server allows others.
SET LOCAL idle_in_transaction_session_timeout = 0

-- for_minutes --
-- A process that is stopped while writers wait for it lets go of them.
SET LOCAL idle_in_transaction_session_timeout = '2min'
