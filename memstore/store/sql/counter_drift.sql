-- add --
-- One call more: what was counted for its prompt, and what the server told.
INSERT INTO counter_drift (user_id, model, counter, calls, predicted, observed, largest_miss, largest_share)
VALUES (%(user_id)s, %(model)s, %(counter)s, 1, %(predicted)s, %(observed)s, %(miss)s, %(share)s)
ON CONFLICT (user_id, model, counter) DO UPDATE
SET calls = counter_drift.calls + 1,
    predicted = counter_drift.predicted + excluded.predicted,
    observed = counter_drift.observed + excluded.observed,
    largest_miss = greatest(counter_drift.largest_miss, excluded.largest_miss),
    largest_share = greatest(counter_drift.largest_share, excluded.largest_share),
    last_seen = now()

-- drift --
-- All models and counters of a user.
SELECT * FROM counter_drift WHERE user_id = %(user_id)s ORDER BY model, counter
