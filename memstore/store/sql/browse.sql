-- fact_page --
-- Which facts a page has, the latest first; of a state, a type and a subject where these are given.
SELECT id FROM facts
WHERE user_id = %(user_id)s
  AND (%(state)s::text IS NULL
       OR %(state)s = CASE WHEN state = 'active' AND valid_to <= now() THEN 'ended' ELSE state END)
  AND (%(type)s::text IS NULL OR type = %(type)s)
  AND (%(subject)s::text IS NULL OR lower(subject) = lower(%(subject)s))
  AND (%(before)s::timestamptz IS NULL
       OR occurred_at <= %(before)s AND (occurred_at < %(before)s OR id > %(id)s::uuid))
ORDER BY occurred_at DESC, id
LIMIT %(limit)s

-- said_by --
-- Which facts these messages say, of whatever state, the latest first.
SELECT DISTINCT f.occurred_at, f.id
FROM fact_sources s JOIN facts f ON f.user_id = s.user_id AND f.id = s.fact_id
WHERE s.user_id = %(user_id)s AND f.user_id = %(user_id)s AND s.message_id = ANY(%(messages)s::uuid[])
ORDER BY f.occurred_at DESC, f.id
LIMIT %(limit)s OFFSET %(offset)s

-- summaries_over --
-- The summaries that stand for some of these messages, the lowest level first; those that were asked for come last.
SELECT * FROM summaries
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s
  AND from_seq <= %(to_seq)s AND to_seq >= %(from_seq)s
ORDER BY level = 0, level, from_seq, id
LIMIT %(limit)s OFFSET %(offset)s

-- receipt_page --
-- A page of receipts, of all conversations or of one, the latest first: their ids begin with their time.
SELECT id, conversation_id, body, texts, recorded_at FROM receipts
WHERE user_id = %(user_id)s
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND (%(before)s::uuid IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s

-- timeline --
-- How many items of each tier there are in each of so many parts of the time from the first message to the last.
WITH span AS (SELECT min(occurred_at) AS since, max(occurred_at) AS until FROM messages WHERE user_id = %(user_id)s),
     item AS (SELECT 'messages' AS tier, occurred_at FROM messages WHERE user_id = %(user_id)s
              UNION ALL
              SELECT 'summaries', occurred_at FROM summaries WHERE user_id = %(user_id)s
              UNION ALL
              SELECT 'facts', occurred_at FROM facts WHERE user_id = %(user_id)s AND state = 'active')
SELECT i.tier, s.since, s.until, count(*) AS items,
       greatest(0, least(%(parts)s - 1, floor(%(parts)s * extract(epoch FROM i.occurred_at - s.since)
                                        / greatest(1, extract(epoch FROM s.until - s.since)))))::int AS part
FROM item i CROSS JOIN span s
WHERE s.since IS NOT NULL
GROUP BY 1, 2, 3, 5
ORDER BY 1, 5
