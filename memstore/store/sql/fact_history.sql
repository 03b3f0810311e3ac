-- add_change --
-- What was done to a fact, with its columns before and after.
INSERT INTO fact_changes (user_id, id, fact_id, action, other_id, before, after, actor, undoes, recorded_at)
VALUES (%(user_id)s, %(id)s, %(fact_id)s, %(action)s, %(other_id)s, %(before)s, %(after)s, %(actor)s, %(undoes)s,
        coalesce(%(recorded_at)s, clock_timestamp()))
RETURNING recorded_at

-- count_changes --
-- How often a fact was changed: the number in the next change's id.
SELECT count(*) AS changes FROM fact_changes WHERE user_id = %(user_id)s AND fact_id = %(fact_id)s

-- change --
-- One change, and whether it is undone.
SELECT id, fact_id, action, other_id, before, after, actor, undoes, recorded_at AS at
FROM fact_changes
WHERE user_id = %(user_id)s AND id = %(id)s

-- undone --
-- Whether a change was undone, and that was not undone itself.
SELECT u.id
FROM fact_changes u
WHERE u.user_id = %(user_id)s AND u.fact_id = %(fact_id)s AND u.undoes = %(id)s
  AND NOT EXISTS (SELECT 1 FROM fact_changes uu WHERE uu.user_id = %(user_id)s AND uu.undoes = u.id)

-- changes --
-- The life of a fact: what was done to it, from the log, and the edits of others that it came from.
SELECT id, fact_id, action, other_id, before, after, actor, undoes, recorded_at AS at
FROM fact_changes
WHERE user_id = %(user_id)s AND fact_id = %(fact_id)s
UNION ALL
SELECT id, fact_id, action, other_id, before, after, actor, undoes, recorded_at
FROM fact_changes
WHERE user_id = %(user_id)s AND other_id = %(fact_id)s AND action = 'edited'
ORDER BY at, id

-- said --
-- The rest of its life: when it was added, and each message that said it since.
SELECT s.message_id AS source, s.recorded_at AS at
FROM fact_sources s
WHERE s.user_id = %(user_id)s AND s.fact_id = %(fact_id)s
ORDER BY s.recorded_at, s.message_id

-- superseded_by --
-- Whose place a fact took since a moment, the latest first, where that is not undone.
SELECT c.id, c.fact_id, c.action, c.other_id, c.before, c.after, c.actor, c.undoes, c.recorded_at AS at
FROM fact_changes c
WHERE c.user_id = %(user_id)s AND c.other_id = %(other_id)s AND c.action = 'superseded'
  AND (%(since)s::timestamptz IS NULL OR c.recorded_at >= %(since)s)
  AND NOT EXISTS (SELECT 1 FROM fact_changes u WHERE u.user_id = %(user_id)s AND u.undoes = c.id)
ORDER BY c.recorded_at DESC, c.id

-- given_up --
-- What was done at a moment to facts whose place another one had taken.
SELECT c.id, c.fact_id, c.action, c.other_id, c.before, c.after, c.actor, c.undoes, c.recorded_at AS at
FROM fact_changes c
WHERE c.user_id = %(user_id)s AND c.recorded_at = %(at)s
  AND c.fact_id IN (SELECT s.fact_id FROM fact_changes s
                    WHERE s.user_id = %(user_id)s AND s.other_id = %(other_id)s AND s.action = 'superseded')
ORDER BY c.id

-- settled_by_hand --
-- Facts of which somebody decided that this one does not take their place.
SELECT c.fact_id
FROM fact_changes c
JOIN fact_changes u ON u.user_id = c.user_id AND u.undoes = c.id
WHERE c.user_id = %(user_id)s AND u.user_id = %(user_id)s AND c.fact_id = ANY(%(ids)s::uuid[])
  AND c.other_id = %(other_id)s AND u.actor = 'hand'

-- orphaned --
-- Changes for the sake of facts that are gone, those undone left out, the latest first.
SELECT c.id, c.fact_id, c.action, c.other_id, c.before, c.after, c.actor, c.undoes, c.recorded_at AS at
FROM fact_changes c
LEFT JOIN facts o ON o.user_id = c.user_id AND o.id = c.other_id
WHERE c.user_id = %(user_id)s AND c.other_id IS NOT NULL AND o.id IS NULL AND c.undoes IS NULL
  AND c.action IN ('superseded', 'conflicted')
  AND NOT EXISTS (SELECT 1 FROM fact_changes u WHERE u.user_id = %(user_id)s AND u.undoes = c.id)
ORDER BY c.recorded_at DESC, c.id

-- past --
-- How facts begin that do not hold, which one took the place of each with the last that was done to it by a moment, and
-- whether it had expired then. At a past moment a fact was as the first change after it found it.
SELECT f.id, left(f.text, %(most)s) AS text,
       (SELECT CASE WHEN c.action IN ('superseded', 'edited') THEN c.other_id END FROM fact_changes c
        WHERE c.user_id = %(user_id)s AND c.fact_id = f.id
          AND (%(as_of)s::timestamptz IS NULL OR c.recorded_at <= %(as_of)s)
        ORDER BY c.recorded_at DESC, c.id DESC LIMIT 1) AS successor,
       was.state = 'active' AND coalesce(was.expires_at, 'infinity') <= coalesce(%(as_of)s, now()) AS is_expired
FROM facts f
LEFT JOIN LATERAL (SELECT c.before FROM fact_changes c
                   WHERE c.user_id = %(user_id)s AND c.fact_id = f.id AND c.recorded_at > %(as_of)s
                   ORDER BY c.recorded_at, c.id LIMIT 1) AS later ON true
CROSS JOIN LATERAL jsonb_populate_record(f, coalesce(later.before, '{}')) AS was
WHERE f.user_id = %(user_id)s AND f.id = ANY(%(fact_ids)s::uuid[])

-- fragment step --
-- A fact, with the one that took its place, or when it was taken back, by the last that was done to it by a moment.
SELECT f.id AS fact_id, CASE WHEN c.action IN ('superseded', 'edited') THEN c.other_id END AS next_id,
       CASE WHEN c.action = 'retracted' THEN c.recorded_at END AS taken_back
FROM facts f
LEFT JOIN LATERAL (SELECT c.action, c.other_id, c.recorded_at FROM fact_changes c
                   WHERE c.user_id = %(user_id)s AND c.fact_id = f.id
                     AND (%(as_of)s::timestamptz IS NULL OR c.recorded_at <= %(as_of)s)
                   ORDER BY c.recorded_at DESC, c.id DESC LIMIT 1) AS c ON true

-- said_facts --
-- Facts that messages say, and whether they held then; of those that did, a quotation adds nothing to its message.
-- Each is looked up by itself.
SELECT said.message_id, f.id AS fact_id, f.state = 'active' AS holds
FROM unnest(%(message_ids)s::uuid[]) AS message (id)
CROSS JOIN LATERAL (SELECT s.message_id, s.fact_id
                    FROM fact_sources s
                    WHERE s.user_id = %(user_id)s AND s.message_id = message.id
                      AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)
                    OFFSET 0) AS said
CROSS JOIN LATERAL (SELECT f.id, f.type, coalesce(later.before->>'state', f.state) AS state
                    FROM facts f
                    LEFT JOIN LATERAL (SELECT c.before FROM fact_changes c
                                       WHERE c.user_id = %(user_id)s AND c.fact_id = f.id AND c.recorded_at > %(as_of)s
                                       ORDER BY c.recorded_at, c.id LIMIT 1) AS later ON true
                    WHERE f.user_id = %(user_id)s AND f.id = said.fact_id
                      AND (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s)
                    OFFSET 0) AS f
WHERE f.state IN ('superseded', 'retracted') OR f.state = 'active' AND f.type <> 'statement'

-- successors --
-- Facts, and those that took their places, one after the other. Each is looked up by itself.
WITH RECURSIVE line AS (
    SELECT step.*
    FROM unnest(%(fact_ids)s::uuid[]) AS first (id)
    CROSS JOIN LATERAL (<step> WHERE f.user_id = %(user_id)s AND f.id = first.id OFFSET 0) AS step
    UNION
    SELECT step.*
    FROM line
    CROSS JOIN LATERAL (<step> WHERE f.user_id = %(user_id)s AND f.id = line.next_id OFFSET 0) AS step)
SELECT line.fact_id, line.next_id, f.subject, f.attribute, f.value, f.text,
       coalesce(line.taken_back, first.said, f.occurred_at) AS at, line.taken_back IS NOT NULL AS is_taken_back
FROM line
CROSS JOIN LATERAL (SELECT f.subject, f.attribute, f.value, f.text, f.occurred_at FROM facts f
                    WHERE f.user_id = %(user_id)s AND f.id = line.fact_id AND f.state <> 'erased'
                    OFFSET 0) AS f
CROSS JOIN LATERAL (SELECT min(m.occurred_at) AS said
                    FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                    WHERE s.user_id = %(user_id)s AND s.fact_id = line.fact_id
                      AND s.recorded_at <= %(as_of)s) AS first
