-- Tokens of the servers: who may ask over a network, and for whom.

-- The operator's, and of no user: who opens one has to be found before it is known whose it is. It holds the SHA-256 of a
-- token (32 random bytes), never the token.
create table api_tokens (
    id         uuid        not null primary key,
    hash       bytea       not null constraint api_tokens_hash unique check (octet_length(hash) = 32),
    user_id    uuid,                                    -- whose memory it opens; null: the operator's, everybody's
    user_name  text,
    name       text,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    check ((user_id is null) = (user_name is null))
);

alter table api_tokens enable row level security;
alter table api_tokens force row level security;
create policy for_operator on api_tokens
    using (current_setting('memstore.operator', true) = 'on')
    with check (current_setting('memstore.operator', true) = 'on');
grant select, insert, update on api_tokens to memstore_app;
