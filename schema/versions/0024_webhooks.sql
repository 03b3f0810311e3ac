-- create --
-- The operator's, and of no user. What is sent is signed with the secret, so it is stored as it is.
CREATE TABLE webhooks (
    id          uuid        PRIMARY KEY,
    url         text        NOT NULL,
    events      text[]      NOT NULL,
    secret      text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz,
    failed_at   timestamptz,
    last_error  text
)

-- secure --
ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY

-- force --
ALTER TABLE webhooks FORCE ROW LEVEL SECURITY

-- operate --
CREATE POLICY for_operator ON webhooks
    USING (current_setting('memstore.operator', true) = 'on')
    WITH CHECK (current_setting('memstore.operator', true) = 'on')

-- rights --
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks TO memstore_app

-- enqueue --
-- Applications may neither see a webhook nor touch the queue: this function enqueues events of the user in whose scope
-- it is called, one job for each webhook that wants one. It belongs to the owner of the tables.
CREATE FUNCTION memstore_enqueue_webhooks(notices jsonb) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    operator text := coalesce(current_setting('memstore.operator', true), '');
BEGIN
    PERFORM set_config('memstore.operator', 'on', true);
    -- The queue's tables are made with the first webhook.
    IF EXISTS (SELECT 1 FROM webhooks w WHERE w.disabled_at IS NULL) THEN
        PERFORM procrastinate_defer_jobs_v1(array_agg(
            ROW('webhooks', 'memstore.webhook', 0, NULL, NULL,
                jsonb_build_object('webhook', w.id, 'user', current_setting('memstore.user_id'), 'event', e.event),
                NULL)::procrastinate_job_to_defer_v1 ORDER BY e.place, w.id))
        FROM webhooks w CROSS JOIN jsonb_array_elements(notices) WITH ORDINALITY AS e (event, place)
        WHERE w.disabled_at IS NULL AND e.event->>'type' = ANY(w.events)
        HAVING count(*) > 0;
    END IF;
    PERFORM set_config('memstore.operator', operator, true);
END $$

-- forget --
-- Empties the jobs that tell of facts, these or all, of the user in whose scope it is called: a job without arguments
-- does nothing, and one that runs may not be removed. What tells of an erasure stays.
CREATE FUNCTION memstore_forget_webhooks(facts text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF to_regclass('procrastinate_jobs') IS NOT NULL THEN
        UPDATE procrastinate_jobs SET args = '{}'
        WHERE task_name = 'memstore.webhook' AND args->>'user' = current_setting('memstore.user_id')
          AND args->'event'->>'type' <> 'erasure.done'
          AND (facts IS NULL OR args->'event'->'data'->>'fact' = ANY(facts)
               OR args->'event'->'data'->>'by' = ANY(facts));
    END IF;
END $$

-- confine --
-- They find memstore's tables, whatever the caller's path or temporary tables are; only applications may call them.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memstore_enqueue_webhooks(jsonb)', 'memstore_forget_webhooks(text[])'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO memstore_app', name);
    END LOOP;
END $$
