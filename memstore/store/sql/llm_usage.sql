-- add_invalid_response --
-- What a model answered and nobody could use; the same stretch by the same recipe is the same one.
INSERT INTO invalid_responses (user_id, id, conversation_id, deriver, from_seq, to_seq, recipe, error, payload,
                               recorded_at)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(deriver)s, %(from_seq)s, %(to_seq)s, %(recipe)s, %(error)s, %(payload)s,
        now())
ON CONFLICT (user_id, id) DO UPDATE
SET error = excluded.error, payload = excluded.payload, attempts = least(invalid_responses.attempts + 1, 32767),
    recorded_at = excluded.recorded_at

-- invalid_responses --
-- A user's invalid responses, the oldest first.
SELECT * FROM invalid_responses WHERE user_id = %(user_id)s ORDER BY recorded_at, id LIMIT %(limit)s

-- remove_invalid_responses --
-- What was asked again, but what could not be used again.
DELETE FROM invalid_responses
WHERE user_id = %(user_id)s AND conversation_id = %(conversation_id)s AND deriver = %(deriver)s
  AND NOT id = ANY(%(again)s::uuid[])

-- answered --
-- One that was asked again, and answered.
DELETE FROM invalid_responses WHERE user_id = %(user_id)s AND id = %(id)s

-- add_usage --
-- What calls of a model cost, added to the day's sum.
INSERT INTO model_usage (user_id, day, model, calls, prompt_tokens, completion_tokens, seconds)
VALUES (%(user_id)s, %(day)s, %(model)s, %(calls)s, %(prompt_tokens)s, %(completion_tokens)s, %(seconds)s)
ON CONFLICT (user_id, day, model) DO UPDATE
SET calls = model_usage.calls + excluded.calls,
    prompt_tokens = model_usage.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = model_usage.completion_tokens + excluded.completion_tokens,
    seconds = model_usage.seconds + excluded.seconds

-- spent --
-- What all users' calls cost on a day; needs the operator's scope.
SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS tokens FROM model_usage WHERE day = %(day)s

-- mean_costs --
-- What a call of each model took and gave so far, on average, in tokens; needs the operator's scope.
SELECT model, sum(prompt_tokens)::float8 / sum(calls) AS prompt_tokens,
       sum(completion_tokens)::float8 / sum(calls) AS answer_tokens
FROM model_usage GROUP BY model HAVING sum(calls) > 0
