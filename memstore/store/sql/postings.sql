-- holding --
-- How many of the chunks in postings have each term: what it costs to read who they are, and what BM25 weighs it by.
SELECT p.term, sum(p.holding)::bigint AS holding
FROM term_postings p
WHERE p.user_id = %(user_id)s AND p.term = ANY(%(terms)s::bigint[])
GROUP BY p.term

-- postings --
-- Who has given terms.
SELECT p.term, p.chunks
FROM term_postings p
WHERE p.user_id = %(user_id)s AND p.term = ANY(%(terms)s::bigint[])

-- matching --
-- Chunks that came after a number and have a term, with how often they have each of the terms.
SELECT t.number, t.length,
       ARRAY(SELECT coalesce(t.frequencies[array_position(t.terms, q.term)], 0)
             FROM unnest(%(terms)s::bigint[]) WITH ORDINALITY AS q(term, n) ORDER BY q.n) AS frequencies
FROM item_text t
WHERE t.user_id = %(user_id)s AND t.number > %(after)s AND t.terms && %(terms)s::bigint[]
  AND (%(as_of)s::timestamptz IS NULL OR t.recorded_at <= %(as_of)s)

-- large --
-- Users with more than so many chunks, for the operator.
SELECT user_id AS id, name, chunks, last_chunk - posted AS unposted
FROM users
WHERE chunks > %(most)s
ORDER BY user_id

-- unposted --
-- The next chunks that no postings tell of.
SELECT t.number, t.length, t.terms, t.frequencies
FROM item_text t
WHERE t.user_id = %(user_id)s AND t.number > %(after)s
ORDER BY t.number
LIMIT %(limit)s

-- add_posting --
-- Who has a term, in a run of chunks.
INSERT INTO term_postings (user_id, term, first, holding, chunks)
VALUES (%(user_id)s, %(term)s, %(first)s, %(holding)s, %(chunks)s)
ON CONFLICT (user_id, term, first) DO NOTHING

-- posted --
-- How far postings reach: where they reached when the run was read.
UPDATE users SET posted = %(last)s WHERE user_id = %(user_id)s AND posted = %(after)s

-- forget_postings --
-- All postings of a user; to be made again, or no longer needed.
DELETE FROM term_postings WHERE user_id = %(user_id)s

-- reach --
-- How many chunks a user has, the highest number of one, and how far postings reach.
SELECT chunks, last_chunk, posted FROM users WHERE user_id = %(user_id)s
