-- key --
-- The store's key.
SELECT key FROM store_keys WHERE name = 'tombstones'

-- key_if_needed --
-- The store's key, for a user whose messages were erased.
SELECT k.key
FROM store_keys k
WHERE k.name = 'tombstones' AND EXISTS (SELECT 1 FROM tombstones t WHERE t.user_id = %(user_id)s)

-- add_tombstones --
-- Hashes of one erasure, those of a bucket together.
INSERT INTO tombstones (user_id, bucket, erasure_id, digests)
VALUES (%(user_id)s, %(bucket)s, %(erasure_id)s, %(digests)s)

-- tombstones --
-- The hashes in some buckets.
SELECT digests FROM tombstones WHERE user_id = %(user_id)s AND bucket = ANY(%(buckets)s::smallint[])
