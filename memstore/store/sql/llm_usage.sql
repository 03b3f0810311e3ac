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
INSERT INTO model_usage (user_id, day, deriver, model, calls, prompt_tokens, completion_tokens, seconds, cost)
VALUES (%(user_id)s, %(day)s, %(deriver)s, %(model)s, %(calls)s, %(prompt_tokens)s, %(completion_tokens)s, %(seconds)s,
        %(cost)s::float8)
ON CONFLICT (user_id, day, deriver, model) DO UPDATE
SET calls = model_usage.calls + excluded.calls,
    prompt_tokens = model_usage.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = model_usage.completion_tokens + excluded.completion_tokens,
    seconds = model_usage.seconds + excluded.seconds,
    cost = coalesce(model_usage.cost + excluded.cost, model_usage.cost, excluded.cost)

-- spent --
-- What all users' calls cost on a day; needs the operator's scope.
SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS tokens FROM model_usage WHERE day = %(day)s

-- fragment sums --
SELECT deriver, model, sum(calls)::bigint AS calls, sum(prompt_tokens)::bigint AS prompt_tokens,
       sum(completion_tokens)::bigint AS completion_tokens, sum(seconds) AS seconds, sum(cost) AS cost

-- usage --
-- What a user's calls cost so far, by deriver and model.
<sums> FROM model_usage WHERE user_id = %(user_id)s GROUP BY deriver, model ORDER BY deriver, model

-- total_usage --
-- The same of all users together; needs the operator's scope.
<sums> FROM model_usage GROUP BY deriver, model ORDER BY deriver, model
