-- PGVector --
-- As its own calls store them: what the table `staged` holds, by the example of the user's first row.
INSERT INTO langchain_pg_embedding (id, collection_id, embedding, document, cmetadata)
SELECT %(user)s || ' ' || s.row, t.collection_id, s.embedding, s.said, jsonb_set(t.cmetadata, '{row}', to_jsonb(s.row))
FROM staged s, (SELECT * FROM langchain_pg_embedding WHERE id = %(user)s || ' 0') AS t

-- LangGraph --
WITH values AS (
    INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)
    SELECT t.prefix, s.row::text, jsonb_build_object('text', s.said), t.created_at, t.updated_at, t.expires_at, t.ttl_minutes
    FROM staged s, (SELECT * FROM store WHERE prefix = 'memories.' || %(user)s AND key = '0') AS t
    RETURNING key
)
INSERT INTO store_vectors (prefix, key, field_name, embedding, created_at, updated_at)
SELECT t.prefix, s.row::text, t.field_name, s.embedding, t.created_at, t.updated_at
FROM staged s, (SELECT * FROM store_vectors WHERE prefix = 'memories.' || %(user)s AND key = '0') AS t

-- mem0 --
INSERT INTO memories (id, vector, payload)
SELECT gen_random_uuid(), s.embedding,
       t.payload || jsonb_build_object('data', s.said, 'hash', md5(s.said), 'text_lemmatized', lower(s.said), 'row', s.row)
FROM staged s,
     (SELECT payload FROM memories WHERE payload->>'user_id' = %(user)s AND payload->>'row' = '0') AS t
