-- open_plans --
-- Active facts of these types without an end, and when each was said last. Not those that a person pinned, edited or
-- decided about since they were last said.
SELECT f.id, coalesce(said.at, f.occurred_at)
FROM facts f
LEFT JOIN LATERAL (SELECT max(m.occurred_at) AS at, max(s.recorded_at) AS recorded_at
                   FROM fact_sources s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
                   WHERE s.user_id = %(user_id)s AND m.user_id = %(user_id)s AND s.fact_id = f.id) AS said ON true
WHERE f.user_id = %(user_id)s AND f.state = 'active' AND f.valid_to IS NULL AND f.importance <> 'pinned'
  AND f.type = ANY(%(types)s::text[])
  AND NOT EXISTS (SELECT 1 FROM fact_changes c
                  WHERE c.user_id = %(user_id)s AND c.fact_id = f.id
                    AND (c.actor = 'tidy' OR c.actor = 'hand' AND c.action = 'edited')
                    AND c.recorded_at >= coalesce(said.recorded_at, f.recorded_at))

-- ended_with --
-- The changes that ended facts in the same transaction as this one did.
SELECT c.id, c.fact_id, c.action, c.other_id, c.before, c.after, c.actor, c.undoes, c.recorded_at AS at
FROM fact_changes c
WHERE c.user_id = %(user_id)s AND c.action = 'edited' AND c.actor = 'hand' AND c.before <> c.after
  AND c.recorded_at = (SELECT recorded_at FROM fact_changes WHERE user_id = %(user_id)s AND id = %(id)s)
ORDER BY c.id
