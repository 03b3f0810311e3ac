-- pending --
-- Messages that wait for a deriver, each one's counted.
SELECT coalesce(sum(last_seq - done_seq), 0)::bigint AS found
FROM derivations
WHERE user_id = %(user_id)s AND done_seq < last_seq

-- watermarks --
-- Watermarks that are missing, or that do not know of the last message.
SELECT count(*) AS found
FROM conversations c
CROSS JOIN unnest(%(derivers)s::text[]) AS wanted (deriver)
LEFT JOIN derivations d ON d.user_id = %(user_id)s AND d.conversation_id = c.id AND d.deriver = wanted.deriver
WHERE c.user_id = %(user_id)s AND (d.last_seq IS DISTINCT FROM c.last_seq OR d.done_seq > d.last_seq)

-- unembedded --
-- Messages with words under the watermark of `embed` that have no unit of recall.
SELECT count(*) AS found
FROM derivations d
JOIN messages m ON m.user_id = %(user_id)s AND m.conversation_id = d.conversation_id AND m.seq <= d.done_seq
WHERE d.user_id = %(user_id)s AND d.deriver = 'embed' AND m.text ~ '[[:alnum:]]'
  AND NOT EXISTS (SELECT FROM item_text t WHERE t.user_id = %(user_id)s AND t.item_id = m.id)

-- orphans --
-- Units of recall whose message, summary or fact is not there.
SELECT count(*) AS found
FROM item_text t
WHERE t.user_id = %(user_id)s
  AND NOT EXISTS (SELECT FROM messages m WHERE m.user_id = %(user_id)s AND m.id = t.item_id)
  AND NOT EXISTS (SELECT FROM summaries s WHERE s.user_id = %(user_id)s AND s.id = t.item_id)
  AND NOT EXISTS (SELECT FROM facts f WHERE f.user_id = %(user_id)s AND f.id = t.item_id)

-- without_vectors --
-- Units without a vector of the embedder that serves.
SELECT count(*) AS found
FROM embedding_models e
JOIN item_text t ON t.user_id = e.user_id
WHERE e.user_id = %(user_id)s AND t.user_id = %(user_id)s AND e.state = 'serving'
  AND NOT EXISTS (SELECT FROM item_vectors v
                  WHERE v.user_id = %(user_id)s AND v.item_id = t.item_id AND v.chunk = t.chunk AND v.model_id = e.id)

-- unsourced_facts --
-- Facts that no message says, but those that people entered.
SELECT count(*) AS found
FROM facts f
WHERE f.user_id = %(user_id)s AND f.recipe <> %(hand)s
  AND NOT EXISTS (SELECT FROM fact_sources s WHERE s.user_id = %(user_id)s AND s.fact_id = f.id)

-- unsourced_summaries --
-- Summaries of messages that are not there, or are beyond the watermark of `summarize`.
SELECT count(*) AS found
FROM summaries s
LEFT JOIN derivations d ON d.user_id = %(user_id)s AND d.conversation_id = s.conversation_id AND d.deriver = 'summarize'
WHERE s.user_id = %(user_id)s AND s.level > 0
  AND (s.to_seq > coalesce(d.done_seq, 0)
       OR NOT EXISTS (SELECT FROM messages m WHERE m.user_id = %(user_id)s AND m.conversation_id = s.conversation_id
                                              AND m.seq BETWEEN s.from_seq AND s.to_seq))

-- miscounted --
-- Whether a user's own counts of units are not those of the units.
SELECT (u.units <> t.units OR u.unit_length <> t.length OR u.last_unit < t.last)::int AS found
FROM users u
CROSS JOIN (SELECT count(*) AS units, coalesce(sum(length), 0) AS length, coalesce(max(number), 0) AS last
            FROM item_text WHERE user_id = %(user_id)s) AS t
WHERE u.user_id = %(user_id)s

-- misposted --
-- Whether the postings of a large user do not hold what its posted units have.
SELECT (p.terms <> t.terms)::int AS found
FROM users u
CROSS JOIN (SELECT coalesce(sum(holding), 0) AS terms FROM term_postings WHERE user_id = %(user_id)s) AS p
CROSS JOIN (SELECT coalesce(sum(cardinality(i.terms)), 0) AS terms FROM item_text i JOIN users o USING (user_id)
            WHERE i.user_id = %(user_id)s AND i.number <= o.posted) AS t
WHERE u.user_id = %(user_id)s
