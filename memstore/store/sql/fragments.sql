-- fragment was --
-- Facts f as they were at a moment, or as they are now.
<later>
CROSS JOIN LATERAL jsonb_populate_record(f, later.before) AS was

-- fragment later --
-- The first change of a fact after a moment, which knows how it found that; none without a moment.
LEFT JOIN LATERAL (SELECT c.before FROM fact_changes c
                   WHERE c.user_id = %(user_id)s AND c.fact_id = f.id AND c.recorded_at > %(as_of)s
                   ORDER BY c.recorded_at, c.id LIMIT 1) AS later ON true
