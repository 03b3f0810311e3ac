-- webhooks --
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

-- webhook_events --
-- Events, from the transaction in which they happened until a worker moves them into the queue: an application may not
-- touch that. No foreign key: the event of a user's erasure is sent when the user is gone.
CREATE TABLE webhook_events (
    id      uuid  PRIMARY KEY,
    user_id uuid  NOT NULL,
    body    jsonb NOT NULL
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

-- secure_events --
ALTER TABLE webhook_events ENABLE ROW LEVEL SECURITY

-- force_events --
ALTER TABLE webhook_events FORCE ROW LEVEL SECURITY

-- operate_events --
CREATE POLICY for_operator ON webhook_events
    USING (current_setting('memstore.operator', true) = 'on')
    WITH CHECK (current_setting('memstore.operator', true) = 'on')

-- rights_of_events --
GRANT SELECT, INSERT, DELETE ON webhook_events TO memstore_app
