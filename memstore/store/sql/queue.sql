-- state --
-- The store's schema, whether the queue's tables are in it, and of which version (null: not made by memstore).
-- Read from the catalog itself: to_regclass would tell from memory, after a wait for another process that has made them.
SELECT current_schema()::text, c.oid IS NOT NULL, obj_description(c.oid, 'pg_class')
FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'procrastinate_jobs'
WHERE n.nspname = current_schema()

-- note_version --
-- Which of the library's scripts were run here.
COMMENT ON TABLE procrastinate_jobs IS {version}

-- defer --
-- Jobs for conversations, with one priority.
SELECT procrastinate_defer_jobs_v1(array_agg(
           ROW('derive', 'memstore.derive', %(priority)s::int, conversation::text, NULL,
               jsonb_build_object('user', owner, 'conversation', conversation),
               NULL::timestamptz)::procrastinate_job_to_defer_v1 ORDER BY place))
FROM unnest(%(users)s::uuid[], %(conversations)s::uuid[]) WITH ORDINALITY AS given (owner, conversation, place)

-- statuses --
-- What jobs there are for these conversations: waiting or running ones, and failed ones.
SELECT lock::uuid AS conversation_id, bool_or(status IN ('todo', 'doing')) AS open
FROM procrastinate_jobs
WHERE lock = ANY(%(conversations)s::text[]) AND status IN ('todo', 'doing', 'failed')
GROUP BY lock

-- other_jobs --
-- Other jobs of a conversation: they wait, or were given up.
SELECT id FROM procrastinate_jobs
WHERE lock = %(conversation)s AND id <> %(id)s AND status IN ('todo', 'doing', 'failed')
LIMIT 1

-- counts --
-- How many jobs wait, run and have failed; of the waiting ones those of backfills too.
SELECT count(*) FILTER (WHERE status = 'todo') AS waiting,
       count(*) FILTER (WHERE status = 'todo' AND priority <= 1) AS backfilling,
       count(*) FILTER (WHERE status = 'todo' AND scheduled_at > now()) AS later,
       count(*) FILTER (WHERE status = 'doing') AS running,
       count(*) FILTER (WHERE status = 'failed') AS failed,
       (SELECT count(*) FROM procrastinate_workers) AS workers
FROM procrastinate_jobs
WHERE task_name = 'memstore.derive' AND status IN ('todo', 'doing', 'failed')

-- jobs --
-- Jobs by their number.
SELECT j.id, (j.args ->> 'user')::uuid AS user_id, (j.args ->> 'conversation')::uuid AS conversation_id,
       j.status::text AS status, j.priority, j.attempts, j.scheduled_at
FROM procrastinate_jobs j
WHERE j.task_name = 'memstore.derive' AND j.status::text = ANY(%(statuses)s::text[])
ORDER BY j.id
LIMIT %(limit)s

-- errors --
-- What went wrong in conversations. Asked by itself: Citus has the queue on the coordinator alone.
SELECT user_id, conversation_id, string_agg(deriver || ': ' || last_error, ', ' ORDER BY deriver) AS error
FROM derivations
WHERE user_id = ANY(%(users)s::uuid[]) AND conversation_id = ANY(%(conversations)s::uuid[]) AND last_error IS NOT NULL
GROUP BY user_id, conversation_id

-- take_failed --
-- Failed jobs, these or all, taken out of the queue.
DELETE FROM procrastinate_jobs
WHERE task_name = 'memstore.derive' AND status = 'failed' AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[]))
RETURNING (args ->> 'user')::uuid AS user_id, (args ->> 'conversation')::uuid AS conversation_id

-- forget --
-- Jobs of a user, or of one conversation; a worker that is at one takes that out itself.
DELETE FROM procrastinate_jobs
WHERE task_name = 'memstore.derive' AND status <> 'doing' AND args ->> 'user' = %(user)s
  AND (%(conversation)s::text IS NULL OR args ->> 'conversation' = %(conversation)s)
RETURNING id

-- enqueue_events --
-- A job for each webhook that wants an event. All events leave the table in which applications have put them.
WITH taken AS (DELETE FROM webhook_events RETURNING id, user_id, body)
SELECT procrastinate_defer_jobs_v1(array_agg(
           ROW('webhooks', 'memstore.webhook', 0, NULL, NULL,
               jsonb_build_object('webhook', w.id, 'user', t.user_id, 'event', t.body),
               NULL::timestamptz)::procrastinate_job_to_defer_v1 ORDER BY t.id, w.id))
FROM taken t JOIN webhooks w ON w.disabled_at IS NULL AND t.body->>'type' = ANY(w.events)

-- clear_deliveries --
-- Deliveries to a webhook, or about a user's facts, these or all, do nothing any more. A job that runs may not be removed.
UPDATE procrastinate_jobs SET args = '{}'
WHERE task_name = 'memstore.webhook'
  AND (args->>'webhook' = %(webhook)s
       OR args->>'user' = %(user)s AND args->'event'->>'type' <> 'erasure.done'
          AND (%(facts)s::text[] IS NULL OR args->'event'->'data'->>'fact' = ANY(%(facts)s::text[])
               OR args->'event'->'data'->>'by' = ANY(%(facts)s::text[])))
RETURNING id

-- scheduler_lock --
-- One scheduler at a time; released with the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('memstore:sweep:' || current_schema(), 0))
