-- state --
-- Whether an index is there, and whether it is whole: one whose building was cut off stays behind, invalid.
SELECT i.indisvalid AS valid
FROM pg_index i
WHERE i.indexrelid = to_regclass(%(name)s) AND i.indrelid = to_regclass('item_vectors')

-- nearest --
-- Approximate kNN by the user's own index, of half precision: ranking computes exact cosines of what is found.
-- Without sorts the planner has no other plan, whatever it believes about the table.
SET LOCAL hnsw.ef_search = %(effort)s;
SET LOCAL enable_sort = off;
SELECT v.item_id, v.chunk_index
FROM item_vectors v
WHERE v.user_id = %(user_id)s AND v.model_id = %(model_id)s
ORDER BY (v.embedding::halfvec(%(dimensions)s)) <=> %(query)s::halfvec(%(dimensions)s)
LIMIT %(limit)s;
SET LOCAL enable_sort = on

-- owner --
-- Whether this login may make and drop indexes on the vectors.
SELECT pg_has_role(current_user, c.relowner, 'USAGE') AS may FROM pg_class c WHERE c.oid = to_regclass('item_vectors')

-- building_lock --
-- One builder of an index at a time, for as long as the transaction is open.
SELECT pg_try_advisory_xact_lock(hashtextextended('memstore:' || %(name)s, 0)) AS taken

-- building_memory --
-- For the builder's session only, so not behind a pooler: a graph that outgrows this memory is built on disk, several times slower.
SELECT set_config('maintenance_work_mem', %(kilobytes)s || 'kB', false)

-- build --
-- The index of one user and one embedder, made while reads and writes go on.
CREATE INDEX CONCURRENTLY {name} ON {schema}.item_vectors
USING hnsw ((embedding::{vectors}.halfvec({dimensions})) {vectors}.halfvec_cosine_ops)
WHERE user_id = {user_id} AND model_id = {model_id}

-- drop --
-- The index of a user who needs it no more, or one that was left invalid.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}
