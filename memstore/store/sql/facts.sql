-- add_fact --
-- A fact is known by what it says: the same statement meets itself.
-- Its time follows those of earlier steps of the transaction: it and the fact whose place it takes were never both active.
INSERT INTO facts (user_id, id, type, kind, subject, attribute, value, text, language, confidence, state, valid_from,
                   valid_to, importance, expires_at, recipe, occurred_at, recorded_at)
VALUES (%(user_id)s, %(id)s, %(type)s, %(kind)s, %(subject)s, %(attribute)s, %(value)s, %(text)s, %(language)s,
        %(confidence)s, %(state)s, %(valid_from)s, %(valid_to)s, %(importance)s, %(expires_at)s,
        %(recipe)s, %(occurred_at)s,
        coalesce(%(recorded_at)s, clock_timestamp()))
ON CONFLICT (user_id, id) DO NOTHING
RETURNING recorded_at

-- set_fact --
-- The columns that a change may change.
UPDATE facts
SET type = %(type)s, kind = %(kind)s, attribute = %(attribute)s, value = %(value)s, language = %(language)s,
    confidence = %(confidence)s, state = %(state)s, valid_from = %(valid_from)s, valid_to = %(valid_to)s,
    importance = %(importance)s, expires_at = %(expires_at)s, recipe = %(recipe)s
WHERE user_id = %(user_id)s AND id = %(id)s

-- add_source --
-- One more message that says it.
INSERT INTO fact_sources (user_id, fact_id, message_id, start, stop, trust, recorded_at)
VALUES (%(user_id)s, %(fact_id)s, %(message_id)s, %(start)s, %(stop)s, %(trust)s,
        coalesce(%(recorded_at)s, clock_timestamp()))
ON CONFLICT (user_id, fact_id, message_id) DO NOTHING

-- said_at --
-- When it was first said is the earliest time: conversations are not derived in the order in which they took place.
UPDATE facts SET occurred_at = %(occurred_at)s
WHERE user_id = %(user_id)s AND id = %(id)s AND occurred_at > %(occurred_at)s

-- fragment everywhere --
-- Whether a fact holds in every scope: one that is pinned, protects a person, or says who they are and what they like.
was.importance = 'pinned'
OR was.type IN ('constraint', 'identity', 'relationship', 'preference')
   AND coalesce(split_part(was.attribute, '/', 1), '') NOT IN ('instruction', 'answers', 'answer_style')
OR coalesce(split_part(was.attribute, '/', 1), '') IN (
    'address', 'age', 'allergy', 'birthday', 'condition', 'diet', 'education', 'email', 'employer', 'family', 'job',
    'language', 'medication', 'medicine', 'name', 'origin', 'partner', 'phone', 'residence')

-- fragment in_scope --
-- Whether a conversation c that says a fact is of these scopes.
CASE WHEN c.scope IS NULL THEN %(unscoped)s ELSE c.scope = ANY(%(scopes)s::text[]) END

-- out_of_scope --
-- The conversations of other scopes, and the facts that only they say; one that nobody says has no scope.
SELECT ARRAY(SELECT c.id FROM conversations c WHERE c.user_id = %(user_id)s AND NOT <in_scope>) AS conversations,
       ARRAY(SELECT was.id FROM facts was
             WHERE was.user_id = %(user_id)s AND NOT (<everywhere>)
               AND NOT EXISTS (SELECT 1
                               FROM fact_sources s
                               JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                               JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id
                               WHERE s.user_id = %(user_id)s AND s.fact_id = was.id AND <in_scope>
                                 AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s))
               AND (NOT %(unscoped)s
                    OR EXISTS (SELECT 1 FROM fact_sources s WHERE s.user_id = %(user_id)s AND s.fact_id = was.id)))
       AS facts

-- fragment state --
-- The state of a fact as filters have it.
CASE WHEN was.state <> 'active' THEN was.state
     WHEN was.expires_at <= coalesce(%(as_of)s, now()) THEN 'expired'
     WHEN was.valid_to <= coalesce(%(as_of)s, now()) THEN 'ended'
     ELSE 'active' END

-- fragment place --
-- Where a fact stands in a list, before its time decides: by its importance, then by its type, then with a value.
CASE was.importance WHEN 'pinned' THEN 0 WHEN 'normal' THEN 100 ELSE 200 END
+ 2 * coalesce(array_position(%(type_order)s::text[], was.type), array_position(%(type_order)s::text[], NULL))
+ (was.value IS NULL)::int

-- facts --
-- A user's facts with their sources, what matters first.
-- At a past moment those that were said to hold until then have ended.
SELECT was.*,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(s.message_id, s.start, s.stop, s.trust) ORDER BY s.message_id), '[]')
        FROM fact_sources s
        WHERE s.user_id = %(user_id)s AND s.fact_id = f.id
          AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)) AS said_in,
       first.said AS first_said
FROM facts f
<was>
CROSS JOIN LATERAL (SELECT min(m.occurred_at) AS said
                    FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                    WHERE s.user_id = %(user_id)s AND s.fact_id = f.id AND s.recorded_at <= %(as_of)s) AS first
WHERE f.user_id = %(user_id)s
  AND (%(state)s::text IS NULL OR %(state)s = <state>)
  AND (%(type)s::text IS NULL OR was.type = %(type)s)
  AND (%(kind)s::text IS NULL OR was.kind = %(kind)s)
  AND (%(subject)s::text IS NULL OR lower(f.subject) = lower(%(subject)s))
  AND (%(ids)s::uuid[] IS NULL OR f.id = ANY(%(ids)s::uuid[]))
  AND f.id <> ALL(%(hidden)s::uuid[])
  AND (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s)
ORDER BY <place>, coalesce(first.said, was.occurred_at) DESC, f.id

-- naming --
-- Facts of others whose text has a name in it, as a word or as a part of one.
SELECT id, text FROM facts
WHERE user_id = %(user_id)s AND state = 'active' AND coalesce(expires_at, 'infinity') > now()
  AND lower(subject) <> lower(%(name)s)
  AND position(lower(%(name)s) IN lower(text)) > 0

-- standing_facts --
-- Facts that matter whatever is asked: all that are pinned, and so many of the kinds given. Of these first those with the
-- attributes given, in their order, then the kinds in theirs, of each the surest first, then what was said last. An
-- instruction holds in the scopes of the conversations that say it; without scopes in that of the one that asks.
SELECT ranked.id, ranked.subject, ranked.attribute, ranked.value, ranked.text, ranked.importance, ranked.valid_to,
       coalesce((SELECT min(m.occurred_at)
                 FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                 WHERE s.user_id = %(user_id)s AND s.fact_id = ranked.id AND s.recorded_at <= %(as_of)s),
                ranked.occurred_at) AS occurred_at,
       ARRAY(SELECT s.message_id FROM fact_sources s
             WHERE s.user_id = %(user_id)s AND s.fact_id = ranked.id
               AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)
             ORDER BY s.message_id) AS sources
FROM (SELECT was.*, row_number() OVER (
                 PARTITION BY was.importance = 'pinned'
                 ORDER BY array_position(%(first)s::text[], split_part(was.attribute, '/', 1)) NULLS LAST,
                          array_position(%(types)s::text[], was.type), was.confidence DESC,
                          (SELECT max(m.occurred_at)
                           FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                           WHERE s.user_id = %(user_id)s AND s.fact_id = was.id
                             AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)) DESC NULLS LAST,
                          was.occurred_at DESC, was.id) AS place
      FROM (SELECT f.id, f.subject, f.text, f.occurred_at,  -- all facts: to make whole rows of them takes twice as long
                   coalesce(later.before->>'importance', f.importance) AS importance,
                   coalesce(later.before->>'type', f.type) AS type,
                   coalesce((later.before->>'confidence')::real, f.confidence) AS confidence,
                   CASE WHEN later.before IS NULL THEN f.attribute ELSE later.before->>'attribute' END AS attribute,
                   CASE WHEN later.before IS NULL THEN f.value ELSE later.before->>'value' END AS value,
                   CASE WHEN later.before IS NULL THEN f.valid_to
                        ELSE (later.before->>'valid_to')::timestamptz END AS valid_to,
                   CASE WHEN later.before IS NULL THEN f.expires_at
                        ELSE (later.before->>'expires_at')::timestamptz END AS expires_at
            FROM facts f
            <later>
            WHERE f.user_id = %(user_id)s
              AND coalesce(later.before->>'state', f.state) = 'active'
              AND (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s)) AS was
      WHERE CASE was.importance WHEN 'pinned' THEN true WHEN 'unimportant' THEN false
                                 ELSE was.type = ANY(%(types)s::text[]) END
        AND (<everywhere>
             OR coalesce((SELECT bool_or(CASE WHEN c.scope IS NULL THEN %(unscoped)s
                                              ELSE c.scope = ANY(coalesce(
                                                  %(scopes)s::text[],
                                                  array_remove(ARRAY[coalesce((SELECT o.scope FROM conversations o
                                                                               WHERE o.user_id = %(user_id)s
                                                                                 AND o.id = %(conversation_id)s),
                                                                              %(own_scope)s::text)], NULL))) END)
                          FROM fact_sources s
                          JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                          JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id
                          WHERE s.user_id = %(user_id)s AND s.fact_id = was.id
                            AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)), %(unscoped)s))
        AND coalesce(least(was.valid_to, was.expires_at), 'infinity') > coalesce(%(as_of)s, now())) AS ranked
WHERE ranked.importance = 'pinned' OR ranked.place <= %(limit)s
ORDER BY ranked.importance = 'pinned' DESC, ranked.place

-- fragment of_other_scope --
-- Whether a fact is said in another scope, too, than that of the conversation which says the new one: it is not ended.
NOT (<everywhere>)
AND coalesce((SELECT bool_or(c.scope IS DISTINCT FROM o.scope)
              FROM conversations o, fact_sources s
              JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
              JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id
              WHERE o.user_id = %(user_id)s AND o.id = %(conversation_id)s
                AND s.user_id = %(user_id)s AND s.fact_id = f.id), false)

-- known --
-- What a new fact is judged by: the same statement, what fills its slot, what is nearest to it of candidates in any state.
-- And what was taken back or edited by hand and came from the same characters of the message.
WITH near AS (
    SELECT candidate.id  -- OFFSET 0: each one's vector by its key. A join may read those of all chunks
    FROM unnest(%(candidates)s::uuid[]) AS candidate (id)
    CROSS JOIN LATERAL (SELECT embedding <=> %(query)s::vector AS distance FROM item_vectors
                        WHERE user_id = %(user_id)s AND item_id = candidate.id AND model_id = %(model_id)s OFFSET 0) AS v
    ORDER BY v.distance, candidate.id
    LIMIT %(limit)s
), same_words AS (
    SELECT f.id
    FROM fact_sources s
    JOIN facts f ON f.user_id = s.user_id AND f.id = s.fact_id
    WHERE s.user_id = %(user_id)s AND f.user_id = %(user_id)s AND s.message_id = %(message_id)s
      AND f.type = %(type)s AND f.subject = %(subject)s
      AND s.stop IS NOT NULL
      AND least(s.stop, %(stop)s) - greatest(s.start, %(start)s) > 0.5 * greatest(s.stop - s.start, %(stop)s - %(start)s)
      AND EXISTS (SELECT 1 FROM fact_changes c
                  WHERE c.user_id = %(user_id)s AND c.fact_id = f.id AND c.actor = 'hand'
                    AND c.action IN ('retracted', 'edited')
                  OFFSET 0)  -- by the fact: a join may read the changes of all facts
), chosen AS (
    SELECT id FROM near
    UNION SELECT id FROM same_words
    UNION SELECT %(id)s::uuid
    UNION SELECT id FROM facts
          WHERE user_id = %(user_id)s AND subject = ANY(%(own)s::text[]) AND attribute = %(attribute)s
            AND state = 'active'
    UNION SELECT id FROM facts WHERE user_id = %(user_id)s AND id = ANY(%(named)s::uuid[])  -- what it ends, by a model
    UNION SELECT id FROM facts  -- of others who may be the same, by the name
          WHERE user_id = %(user_id)s AND subject = ANY(%(subjects)s::text[]) AND attribute IS NOT NULL
            AND state IN ('active', 'superseded') AND position(%(called)s IN text) > 0
    UNION SELECT id FROM (SELECT id FROM facts  -- of a slot's past what held at that time, and what came next
                          WHERE user_id = %(user_id)s AND subject = ANY(%(own)s::text[])
                            AND attribute = %(attribute)s AND state = 'superseded'
                            AND valid_to > %(occurred_at)s
                          ORDER BY valid_to, id LIMIT 4) AS past
)
SELECT f.*,
       greatest((SELECT max(m.occurred_at)
                 FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                 WHERE s.user_id = %(user_id)s AND s.fact_id = f.id), f.occurred_at) AS last_said,
       done.action AS by_hand, coalesce(done.recorded_at, CASE WHEN f.recipe = 'hand' THEN f.recorded_at END) AS by_hand_at,
       (SELECT 1 - (v.embedding <=> %(query)s::vector) FROM item_vectors v
        WHERE v.user_id = %(user_id)s AND v.item_id = f.id AND v.chunk_index = 0 AND v.model_id = %(model_id)s) AS cosine,
       f.id IN (SELECT id FROM same_words) AS same_words,
       <of_other_scope> AS is_of_other_scope
FROM chosen
CROSS JOIN LATERAL (SELECT * FROM facts  -- in an order that only the key has: else all facts of a new user may be read
                    WHERE user_id = %(user_id)s AND id BETWEEN chosen.id AND chosen.id ORDER BY id OFFSET 0) AS f
CROSS JOIN LATERAL (SELECT f.importance, f.type, f.attribute) AS was
LEFT JOIN LATERAL (SELECT c.action, c.recorded_at FROM fact_changes c
                   WHERE c.user_id = %(user_id)s AND c.fact_id = f.id AND c.actor = 'hand'
                   ORDER BY c.recorded_at DESC, c.id LIMIT 1) AS done ON true
ORDER BY f.id

-- nearest --
-- Of each new fact the stored ones of its person and what is theirs, in any state, that are nearest to it. Their
-- vectors are read once.
WITH stored AS MATERIALIZED (
    SELECT f.id, split_part(f.subject, '''s ', 1) AS person, v.embedding
    FROM facts f
    CROSS JOIN LATERAL (SELECT embedding FROM item_vectors
                        WHERE user_id = %(user_id)s AND item_id = f.id AND model_id = %(model_id)s OFFSET 0) AS v
    WHERE f.user_id = %(user_id)s
      AND split_part(f.subject, '''s ', 1) = ANY(%(subjects)s::text[] || %(aliases)s::text[])
)
SELECT new.place::int, near.id
FROM unnest(%(vectors)s::vector[], %(subjects)s::text[], %(aliases)s::text[])
     WITH ORDINALITY AS new (embedding, person, alias, place)
CROSS JOIN LATERAL (SELECT stored.id FROM stored
                    WHERE stored.person IN (new.person, new.alias) AND new.embedding IS NOT NULL
                    ORDER BY stored.embedding <=> new.embedding, stored.id
                    LIMIT %(limit)s) AS near

-- said_after --
-- When facts were first said after a moment by whom they and a subject are about, to an assistant: not where one of the
-- messages just before is by somebody else.
SELECT s.fact_id, min(greatest(m.occurred_at, f.occurred_at))
FROM facts f
JOIN fact_sources s ON s.user_id = f.user_id AND s.fact_id = f.id
JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
CROSS JOIN LATERAL (SELECT lower(coalesce(m.name, 'The user') || '''s ') AS owner) AS own
WHERE f.user_id = %(user_id)s AND s.user_id = %(user_id)s AND m.user_id = %(user_id)s AND f.id = ANY(%(ids)s::uuid[])
  AND greatest(m.occurred_at, f.occurred_at) > %(moment)s AND m.role = 'user' AND s.trust > 1
  AND starts_with(lower(f.subject || '''s '), own.owner) AND starts_with(lower(%(subject)s || '''s '), own.owner)
  AND NOT EXISTS (SELECT 1 FROM messages b
                  WHERE b.user_id = %(user_id)s AND b.conversation_id = m.conversation_id
                    AND b.seq BETWEEN m.seq - 3 AND m.seq - 1 AND b.role = 'user' AND b.name <> coalesce(m.name, ''))
GROUP BY s.fact_id

-- remembered --
-- Active facts that were said by a moment and hold then, the latest first; when and by whom each was said last.
-- In a redo those of these recipes and of people, that other conversations say.
SELECT f.*, greatest(said.at, f.occurred_at) AS last_said, said.speaker,
       (SELECT vector_send(v.embedding) FROM item_vectors v
        WHERE v.user_id = %(user_id)s AND v.item_id = f.id AND v.chunk_index = 0 AND v.model_id = %(model_id)s) AS vector
FROM facts f
LEFT JOIN LATERAL (SELECT m.occurred_at AS at, CASE WHEN m.role = 'user' THEN m.name END AS speaker
                   FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                   WHERE s.user_id = %(user_id)s AND s.fact_id = f.id
                   ORDER BY m.occurred_at DESC, m.id LIMIT 1) AS said ON true
WHERE f.user_id = %(user_id)s AND f.state = 'active' AND f.occurred_at <= %(until)s
  AND coalesce(f.valid_to, 'infinity') > %(until)s
  AND (%(aside)s::uuid IS NULL OR f.recipe = 'hand'
       OR (f.recipe = ANY(%(recipes)s::text[])
           AND EXISTS (SELECT 1 FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                       WHERE s.user_id = %(user_id)s AND s.fact_id = f.id AND m.conversation_id <> %(aside)s)))
ORDER BY f.occurred_at DESC, f.id
LIMIT %(limit)s

-- types --
-- The types that a user's facts have.
SELECT DISTINCT type FROM facts WHERE user_id = %(user_id)s

-- entity_edges --
-- The relations of an entity to others: from it to its values, and from others that have it as a value.
SELECT subject, attribute, value, id AS fact_id
FROM facts
WHERE user_id = %(user_id)s AND state = 'active' AND attribute IS NOT NULL AND value IS NOT NULL
  AND (lower(subject) = lower(%(entity)s) OR lower(value) = lower(%(entity)s))
  AND coalesce(least(valid_to, expires_at), 'infinity') > now()
ORDER BY lower(subject) <> lower(%(entity)s), subject, attribute, value, id

-- remove_sources --
-- Takes back what a conversation said, but for what is said again at the same place.
-- What people have entered, edited or taken back by hand stays too.
DELETE FROM fact_sources s
USING messages m, facts f
WHERE s.user_id = %(user_id)s AND m.user_id = %(user_id)s AND m.id = s.message_id
  AND f.user_id = %(user_id)s AND f.id = s.fact_id AND f.recipe <> 'hand'
  AND m.conversation_id = %(conversation_id)s
  AND NOT EXISTS (SELECT 1 FROM fact_changes c
                  WHERE c.user_id = %(user_id)s AND c.fact_id = s.fact_id AND c.actor = 'hand')
  AND NOT EXISTS (SELECT 1 FROM unnest(%(facts)s::uuid[], %(messages)s::uuid[], %(starts)s::bigint[], %(stops)s::bigint[])
                              AS again (fact_id, message_id, start, stop)
                  WHERE again.fact_id = s.fact_id AND again.message_id = s.message_id
                    AND (f.state = 'quarantined') = (again.fact_id = ANY(%(waiting)s::uuid[]))
                    AND again.start = s.start AND again.stop = s.stop)
RETURNING s.fact_id, s.message_id, s.recorded_at

-- drop_sources --
-- Takes back all that says a fact.
DELETE FROM fact_sources WHERE user_id = %(user_id)s AND fact_id = %(fact_id)s

-- remove_unsaid --
-- Of these facts those that no message says any more.
DELETE FROM facts f
WHERE f.user_id = %(user_id)s AND f.id = ANY(%(ids)s::uuid[])
  AND NOT EXISTS (SELECT 1 FROM fact_sources s WHERE s.user_id = %(user_id)s AND s.fact_id = f.id)
RETURNING f.id

-- first_said --
-- When what is left of a fact's sources first said it.
UPDATE facts f
SET occurred_at = (SELECT min(m.occurred_at)
                   FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                   WHERE s.user_id = %(user_id)s AND s.fact_id = f.id)
WHERE f.user_id = %(user_id)s AND f.id = ANY(%(ids)s::uuid[])


-- fact_page --
-- Which facts a page has, what matters first; of a state, a type and a subject where these are given.
WITH last AS (
    SELECT <place> AS place, was.occurred_at, was.id FROM facts was
    WHERE was.user_id = %(user_id)s AND was.id = %(before)s::uuid
)
SELECT f.id
FROM (SELECT <place> AS place, was.occurred_at, was.id FROM facts was
      WHERE was.user_id = %(user_id)s
        AND (%(state)s::text IS NULL OR %(state)s = <state>)
        AND (%(type)s::text IS NULL OR was.type = %(type)s)
        AND (%(kind)s::text IS NULL OR was.kind = %(kind)s)
        AND (%(subject)s::text IS NULL OR lower(was.subject) = lower(%(subject)s))
        AND was.id <> ALL(%(hidden)s::uuid[])
      OFFSET 0) AS f  -- the place of each is computed once
LEFT JOIN last ON true
WHERE %(before)s::uuid IS NULL OR f.place > last.place
   OR f.place = last.place AND (f.occurred_at < last.occurred_at OR f.occurred_at = last.occurred_at AND f.id > last.id)
ORDER BY f.place, f.occurred_at DESC, f.id
LIMIT %(limit)s

-- said_by --
-- Which facts these messages say, of whatever state, the latest first.
SELECT DISTINCT f.occurred_at, f.id
FROM fact_sources s JOIN facts f ON f.user_id = s.user_id AND f.id = s.fact_id
WHERE s.user_id = %(user_id)s AND f.user_id = %(user_id)s AND s.message_id = ANY(%(messages)s::uuid[])
ORDER BY f.occurred_at DESC, f.id
LIMIT %(limit)s

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
-- whether it had expired then.
SELECT f.id, left(f.text, %(most)s) AS text,
       (SELECT CASE WHEN c.action IN ('superseded', 'edited') THEN c.other_id END FROM fact_changes c
        WHERE c.user_id = %(user_id)s AND c.fact_id = f.id
          AND (%(as_of)s::timestamptz IS NULL OR c.recorded_at <= %(as_of)s)
        ORDER BY c.recorded_at DESC, c.id DESC LIMIT 1) AS successor,
       was.state = 'active' AND coalesce(was.expires_at, 'infinity') <= coalesce(%(as_of)s, now()) AS is_expired
FROM facts f
<was>
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
CROSS JOIN LATERAL (SELECT f.id, f.type, was.state
                    FROM facts f
                    <was>
                    WHERE f.user_id = %(user_id)s AND f.id = said.fact_id
                      AND (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s)
                    OFFSET 0) AS f
WHERE f.state IN ('superseded', 'retracted') OR f.state = 'active' AND f.type <> 'statement' AND %(holding)s

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
CROSS JOIN LATERAL (SELECT f.subject, f.text, f.occurred_at, was.attribute, was.value
                    FROM facts f
                    <was>
                    WHERE f.user_id = %(user_id)s AND f.id = line.fact_id AND f.state <> 'erased'
                    OFFSET 0) AS f
CROSS JOIN LATERAL (SELECT min(m.occurred_at) AS said
                    FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                    WHERE s.user_id = %(user_id)s AND s.fact_id = line.fact_id
                      AND (%(as_of)s::timestamptz IS NULL OR s.recorded_at <= %(as_of)s)) AS first
