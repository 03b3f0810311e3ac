-- add_text --
-- Stores a chunk.
INSERT INTO item_text (user_id, item_id, chunk_index, tier, conversation_id, seq, role, speaker, tags, start, stop, length, terms,
                       frequencies, occurred_at, recorded_at, number)
VALUES (%(user_id)s, %(item_id)s, %(chunk_index)s, %(tier)s, %(conversation_id)s, %(seq)s, %(role)s, %(speaker)s, %(tags)s,
        %(start)s, %(stop)s, %(length)s, %(terms)s, %(frequencies)s, %(occurred_at)s,
        coalesce(%(recorded_at)s, now()), %(number)s)
ON CONFLICT (user_id, item_id, chunk_index) DO NOTHING

-- has_chunks --
-- Whether an item can be found.
SELECT chunk_index FROM item_text WHERE user_id = %(user_id)s AND item_id = %(item_id)s LIMIT 1

-- count_chunks --
-- The counters that BM25 needs, and the numbers of new chunks; the row is locked until the transaction ends.
UPDATE users
SET chunks = chunks + %(chunks)s, chunk_length = chunk_length + %(length)s, last_chunk = last_chunk + greatest(%(chunks)s, 0)
WHERE user_id = %(user_id)s
RETURNING last_chunk

-- corpus_as_of --
-- The same at a past moment, so that scores of then come out as they did.
SELECT count(*) AS chunks, coalesce(sum(length), 0)::bigint AS chunk_length
FROM item_text
WHERE user_id = %(user_id)s AND recorded_at <= %(as_of)s

-- fragment version_text --
-- To add or remove chunks updates the user's row, and a switch to another embedding model the model's. A server that was
-- restored from a backup counts its transactions from there again, and has been started since.
u.xmin || '/' || u.tokenizer || '/' || u.vector_fills || '/' || pg_postmaster_start_time() || '/'
    || coalesce((SELECT m.created_at::text FROM embedding_models m WHERE m.id = %(model_id)s), '') AS version

-- version --
-- The version that arrays in a process must agree with, and the active embedding model.
SELECT <version_text>, u.chunks, u.chunk_length, u.posted AS posted_up_to,
       (SELECT m.id FROM embedding_models m WHERE m.state = 'serving') AS active_model
FROM users u
WHERE u.user_id = %(user_id)s

-- fragment packed --
-- Chunks t with their vectors v, packed into few values in Postgres' binary format.
string_agg(
    uuid_send(t.item_id) || int4send(t.chunk_index)
    || coalesce(uuid_send(t.conversation_id), decode(repeat('00', 16), 'hex')) || int8send(coalesce(t.seq, -1))
    || int8send(t.start) || int8send(t.stop) || int8send(t.length) || timestamptz_send(t.occurred_at)
    || int8send(hash_record_extended((t.item_id, t.chunk_index, t.recorded_at), 0))
    || int2send(array_position(%(tiers)s::text[], t.tier)::smallint)
    || int2send(coalesce(array_position(%(roles)s::text[], t.role), 0)::smallint)
    || int4send(cardinality(t.terms)) || int4send((v.embedding IS NOT NULL)::int)
    || timestamptz_send(t.recorded_at), '') AS records,
array_agg(t.speaker) AS speakers,
string_agg(array_send(t.terms), '') AS terms,
string_agg(array_send(t.frequencies), '') AS frequencies,
string_agg(vector_send(v.embedding), '') AS vectors

-- arrays --
-- Chunks that came since a moment; count and digest are of all chunks.
-- Into the digest goes when each was recorded: what was made anew has the name that it had before.
SELECT <version_text>,
       total.chunks, total.digest, total.newest, fresh.*
FROM users u,
     (SELECT count(*) AS chunks, bit_xor(hash_record_extended((item_id, chunk_index, recorded_at), 0)) AS digest, max(recorded_at) AS newest
      FROM item_text WHERE user_id = %(user_id)s) AS total,
     (SELECT <packed>
      FROM item_text t
      LEFT JOIN item_vectors v ON v.user_id = t.user_id AND v.item_id = t.item_id AND v.chunk_index = t.chunk_index
                                  AND v.model_id = %(model_id)s
      WHERE t.user_id = %(user_id)s AND t.recorded_at >= %(since)s) AS fresh
WHERE u.user_id = %(user_id)s

-- neighbourhood --
-- Chunks by name or by number, packed as by `arrays`, and some of the same role on either side of each.
-- Each is looked up by itself, so that nothing is left to how many of them the planner expects.
WITH found AS MATERIALIZED (
    SELECT c.number, c.conversation_id, c.tier, c.role, c.seq, c.chunk_index
    FROM unnest(%(item_ids)s::uuid[], %(chunks)s::integer[]) AS k (item_id, chunk_index)
    CROSS JOIN LATERAL (SELECT t.number, t.conversation_id, t.tier, t.role, t.seq, t.chunk_index
                        FROM item_text t
                        WHERE t.user_id = %(user_id)s AND t.item_id = k.item_id AND t.chunk_index = k.chunk_index
                        OFFSET 0) AS c
    UNION
    SELECT c.number, c.conversation_id, c.tier, c.role, c.seq, c.chunk_index
    FROM unnest(%(numbers)s::bigint[]) AS k (number)
    CROSS JOIN LATERAL (SELECT t.number, t.conversation_id, t.tier, t.role, t.seq, t.chunk_index
                        FROM item_text t
                        WHERE t.user_id = %(user_id)s AND t.number = k.number
                        OFFSET 0) AS c
),
neighbours AS MATERIALIZED (
    SELECT b.number, b.step
    FROM found f
    CROSS JOIN LATERAL ((SELECT t.number, row_number() OVER (ORDER BY t.seq DESC, t.chunk_index DESC) AS step
                         FROM item_text t
                         WHERE t.user_id = %(user_id)s AND t.conversation_id = f.conversation_id AND t.role = f.role
                           AND (t.seq, t.chunk_index) < (f.seq, f.chunk_index)
                           AND (%(as_of)s::timestamptz IS NULL OR t.recorded_at <= %(as_of)s)
                         ORDER BY t.seq DESC, t.chunk_index DESC
                         LIMIT %(far)s)
                        UNION ALL
                        (SELECT t.number, row_number() OVER (ORDER BY t.seq, t.chunk_index) AS step
                         FROM item_text t
                         WHERE t.user_id = %(user_id)s AND t.conversation_id = f.conversation_id AND t.role = f.role
                           AND (t.seq, t.chunk_index) > (f.seq, f.chunk_index)
                           AND (%(as_of)s::timestamptz IS NULL OR t.recorded_at <= %(as_of)s)
                         ORDER BY t.seq, t.chunk_index
                         LIMIT %(far)s)) AS b
    WHERE f.tier = 'messages'
),
wanted AS MATERIALIZED (
    SELECT w.number, min(w.step)::smallint AS step
    FROM (SELECT number, 0 AS step FROM found UNION ALL SELECT number, step FROM neighbours) AS w
    GROUP BY w.number
    ORDER BY w.number
)
SELECT count(*) AS chunks, max(t.recorded_at) AS newest,
       <packed>,
       string_agg(int2send(w.step), '') AS steps
FROM wanted w
CROSS JOIN LATERAL (SELECT t.* FROM item_text t WHERE t.user_id = %(user_id)s AND t.number = w.number OFFSET 0) AS t
LEFT JOIN LATERAL (SELECT v.embedding
                   FROM item_vectors v
                   WHERE v.user_id = %(user_id)s AND v.item_id = t.item_id AND v.chunk_index = t.chunk_index
                     AND v.model_id = %(model_id)s
                   OFFSET 0) AS v ON true

-- nearest --
-- Exact kNN. "+ 0" keeps any index out: behind a filter by user, a shared HNSW has a recall of 0.08.
SELECT v.item_id, v.chunk_index, 1 - (v.embedding <=> %(query)s) AS score
FROM item_vectors v
WHERE v.user_id = %(user_id)s AND v.model_id = %(model_id)s
ORDER BY (v.embedding <=> %(query)s) + 0, v.item_id, v.chunk_index
LIMIT %(limit)s

-- fragment let_through --
-- Chunks t that a filter lets through.
t.tier = ANY(%(tiers)s::text[])
  AND (%(conversation_id)s::uuid IS NULL OR t.conversation_id = %(conversation_id)s)
  AND (%(roles)s::text[] IS NULL OR t.role = ANY(%(roles)s::text[]))
  AND (%(tags)s::text[] IS NULL OR t.tags @> %(tags)s::text[])
  AND (%(since)s::timestamptz IS NULL OR t.occurred_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR t.occurred_at < %(until)s)
  AND (%(as_of)s::timestamptz IS NULL OR t.recorded_at <= %(as_of)s)
  AND CASE t.tier WHEN 'facts' THEN t.item_id <> ALL(%(hidden_facts)s::uuid[])
                  ELSE t.conversation_id <> ALL(%(hidden_conversations)s::uuid[]) END

-- nearest_filtered --
-- The same among the chunks that a filter lets through.
SELECT v.item_id, v.chunk_index, 1 - (v.embedding <=> %(query)s) AS score
FROM item_text t
JOIN item_vectors v USING (user_id, item_id, chunk_index)
WHERE t.user_id = %(user_id)s AND v.user_id = %(user_id)s AND v.model_id = %(model_id)s
  AND <let_through>
ORDER BY (v.embedding <=> %(query)s) + 0, v.item_id, v.chunk_index
LIMIT %(limit)s

-- shown --
-- Those of some chunks that a filter lets through; each is looked up by itself.
SELECT t.number, t.item_id, t.chunk_index
FROM unnest(%(item_ids)s::uuid[], %(chunks)s::integer[], %(numbers)s::bigint[]) AS k (item_id, chunk_index, number)
CROSS JOIN LATERAL (SELECT t.*
                    FROM item_text t
                    WHERE t.user_id = %(user_id)s AND t.item_id = k.item_id AND t.chunk_index = k.chunk_index
                    UNION ALL
                    SELECT t.*
                    FROM item_text t
                    WHERE t.user_id = %(user_id)s AND t.number = k.number) AS t
WHERE <let_through>

-- tagged --
-- Items that have all of some tags.
SELECT t.item_id FROM item_text t WHERE t.user_id = %(user_id)s AND t.chunk_index = 0 AND t.tags @> %(tags)s::text[]

-- latest --
-- The chunks said last, for questions that match nothing.
SELECT t.item_id, t.chunk_index
FROM item_text t
WHERE t.user_id = %(user_id)s
  AND <let_through>
ORDER BY t.occurred_at DESC, t.seq DESC NULLS LAST, t.item_id, t.chunk_index
LIMIT %(limit)s

-- remove_chunks --
-- Forgets chunks of items that are gone; their vectors go with them.
DELETE FROM item_text WHERE user_id = %(user_id)s AND item_id = ANY(%(item_ids)s::uuid[]) RETURNING length

-- fragment outdated --
-- Whether a fact that is superseded was made from one of the messages from_seq to to_seq of a conversation.
EXISTS (SELECT 1 FROM messages p
        JOIN fact_sources fs ON fs.user_id = p.user_id AND fs.message_id = p.id
        JOIN facts f ON f.user_id = fs.user_id AND f.id = fs.fact_id
        <was>
        WHERE p.user_id = %(user_id)s AND p.conversation_id = s.conversation_id
          AND p.seq BETWEEN s.from_seq AND s.to_seq
          AND was.state = 'superseded') AS is_outdated

-- fragment summaries --
-- The texts of summaries, with the messages under each.
SELECT s.id, s.text,
       ARRAY(SELECT m.id FROM messages m
             WHERE m.user_id = %(user_id)s AND m.conversation_id = s.conversation_id
               AND m.seq BETWEEN s.from_seq AND s.to_seq
             ORDER BY m.seq) AS sources

-- messages_said --
-- The texts of messages.
SELECT id, text FROM messages WHERE user_id = %(user_id)s AND id = ANY(%(item_ids)s::uuid[])

-- summaries_said --
-- What summaries say.
<summaries>
FROM summaries s
WHERE s.user_id = %(user_id)s AND s.id = ANY(%(item_ids)s::uuid[])

-- summaries_marked --
-- The same, and whether each is outdated.
<summaries>,
<outdated>
FROM summaries s
WHERE s.user_id = %(user_id)s AND s.id = ANY(%(item_ids)s::uuid[])

-- vector_of --
-- The vector of an item's first chunk, and whose it is.
SELECT model_id, vector_send(embedding) FROM item_vectors
WHERE user_id = %(user_id)s AND item_id = %(item_id)s AND chunk_index = 0
ORDER BY model_id LIMIT 1

-- facts_said --
-- The texts of those facts that were active and had not expired, with the messages that say each, and when each ends.
-- Each is looked up by itself.
SELECT fact.id, fact.text,
       ARRAY(SELECT s.message_id FROM fact_sources s
             WHERE s.user_id = %(user_id)s AND s.fact_id = fact.id
               AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)
             ORDER BY s.message_id) AS sources,
       fact.valid_to, fact.importance, fact.subject, fact.attribute, fact.value
FROM unnest(%(item_ids)s::uuid[]) AS item (id)
CROSS JOIN LATERAL (SELECT was.*
                    FROM facts f
                    <was>
                    WHERE f.user_id = %(user_id)s AND f.id = item.id
                    OFFSET 0) AS fact
WHERE (%(as_of)s::timestamptz IS NULL OR fact.recorded_at <= %(as_of)s)
  AND fact.state = 'active' AND coalesce(fact.expires_at, 'infinity') > coalesce(%(as_of)s, now())

-- summary_sources --
-- The messages under given summaries.
SELECT s.id, array_agg(m.id ORDER BY m.seq) AS sources
FROM summaries s
JOIN messages m ON m.user_id = s.user_id AND m.conversation_id = s.conversation_id AND m.seq BETWEEN s.from_seq AND s.to_seq
WHERE s.user_id = %(user_id)s AND m.user_id = %(user_id)s AND s.id = ANY(%(item_ids)s::uuid[])
GROUP BY s.id

-- fact_sources --
-- The messages that say given facts.
SELECT fact_id AS id, array_agg(message_id ORDER BY message_id) AS sources
FROM fact_sources
WHERE user_id = %(user_id)s AND fact_id = ANY(%(item_ids)s::uuid[])
GROUP BY fact_id

-- lock --
-- One writer of a user's chunks or facts at a time; the row is locked until the end.
SELECT chunks FROM users WHERE user_id = %(user_id)s FOR NO KEY UPDATE

-- add_vector --
-- A chunk's vector.
INSERT INTO item_vectors (user_id, item_id, chunk_index, model_id, embedding)
VALUES (%(user_id)s, %(item_id)s, %(chunk_index)s, %(model_id)s, %(embedding)s)
ON CONFLICT (user_id, item_id, chunk_index, model_id) DO NOTHING

-- other_tokenizer --
-- Whose chunks have terms by an earlier tokenizer; needs the operator's scope to see more than one user.
SELECT user_id FROM users WHERE tokenizer < %(tokenizer)s AND (%(only)s::uuid IS NULL OR user_id = %(only)s)

-- terms_to_renew --
-- Chunks after a number with their terms, each with its part of the text, if another tokenizer made them.
SELECT t.number, t.tier, t.speaker, t.length, t.terms,
       substr(coalesce(m.text, s.text, f.text, ''), (t.start + 1)::int, (t.stop - t.start)::int) AS text
FROM users u
JOIN item_text t ON t.user_id = u.user_id
LEFT JOIN messages m ON m.user_id = t.user_id AND m.id = t.item_id
LEFT JOIN summaries s ON s.user_id = t.user_id AND s.id = t.item_id
LEFT JOIN facts f ON f.user_id = t.user_id AND f.id = t.item_id
WHERE u.user_id = %(user_id)s AND t.user_id = %(user_id)s AND u.tokenizer < %(tokenizer)s AND t.number > %(after)s
ORDER BY t.number
LIMIT %(limit)s

-- renew_terms --
-- Other terms of a chunk that is stored.
UPDATE item_text
SET terms = %(terms)s, frequencies = %(frequencies)s, length = %(length)s
WHERE user_id = %(user_id)s AND number = %(number)s

-- terms_renewed --
-- All of the user's chunks have terms by this tokenizer.
UPDATE users SET tokenizer = %(tokenizer)s WHERE user_id = %(user_id)s AND tokenizer < %(tokenizer)s
