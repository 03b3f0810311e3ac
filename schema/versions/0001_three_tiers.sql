-- The three tiers, what recall scans, the watermarks and the receipts.
--
-- user_id comes first in every primary, unique and foreign key: rows of one user lie together, and the tables can be
-- distributed by it. No triggers, no sequences, no ON DELETE SET NULL: a distributed table refuses them.

create extension if not exists vector;
-- It may live in a schema that search_path leaves out: in public, or with another store of this database.
select set_config('search_path', concat_ws(', ', current_setting('search_path'), quote_ident(n.nspname)), true)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector' and to_regtype('vector') is null;

create table users (
    user_id     uuid        not null primary key,
    name        text        not null,
    units       bigint      not null default 0,   -- rows in item_text: BM25's N
    unit_length bigint      not null default 0,   -- sum of item_text.length: BM25's average length
    settings    jsonb       not null default '{}',
    created_at  timestamptz not null default now()
) with (fillfactor = 70);

create table conversations (
    user_id    uuid        not null,
    id         uuid        not null,
    name       text        not null,
    title      text,
    channel    text,
    settings   jsonb       not null default '{}',
    last_seq   bigint      not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade
) with (fillfactor = 70);

create table messages (
    user_id         uuid        not null,
    conversation_id uuid        not null,
    seq             bigint      not null,
    id              uuid        not null,
    role            text        not null check (role in ('system', 'developer', 'user', 'assistant', 'tool')),
    name            text,
    text            text,
    parts           jsonb,
    tool_calls      jsonb,
    tool_call_id    text,
    tokens          bigint      not null check (tokens >= 0),
    counter         text        not null,
    tags            text[]      not null default '{}',
    meta            jsonb       not null default '{}',
    external_id     text,
    occurred_at     timestamptz not null,
    recorded_at     timestamptz not null default now(),
    primary key (user_id, conversation_id, seq),
    constraint messages_id unique (user_id, id),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);

create table summaries (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid        not null,
    level           smallint    not null check (level >= 1),
    from_seq        bigint      not null,
    to_seq          bigint      not null check (to_seq >= from_seq),
    text            text        not null,
    tokens          bigint      not null,
    counter         text        not null,
    recipe          text        not null,
    occurred_at     timestamptz not null,
    occurred_until  timestamptz not null,
    recorded_at     timestamptz not null default now(),
    primary key (user_id, id),
    constraint summaries_range unique (user_id, conversation_id, level, from_seq, recipe),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);

create table facts (
    user_id     uuid        not null,
    id          uuid        not null,
    type        text        not null,
    subject     text        not null,
    text        text        not null,
    confidence  real        not null check (confidence between 0 and 1),
    state       text        not null default 'active' check (state in ('active', 'superseded', 'retracted')),
    valid_from  timestamptz,
    valid_to    timestamptz,
    recipe      text        not null,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade
);
create index facts_by_state on facts (user_id, state, occurred_at);

create table fact_sources (
    user_id     uuid        not null,
    fact_id     uuid        not null,
    message_id  uuid        not null,
    recorded_at timestamptz not null default now(),
    primary key (user_id, fact_id, message_id),
    foreign key (user_id, fact_id) references facts (user_id, id) on delete cascade,
    foreign key (user_id, message_id) references messages (user_id, id) on delete cascade
);
create index fact_sources_by_message on fact_sources (user_id, message_id);

create table item_text (
    user_id         uuid        not null,
    item_id         uuid        not null,
    chunk           integer     not null,
    tier            text        not null check (tier in ('messages', 'summaries', 'facts')),
    conversation_id uuid,
    seq             bigint,
    role            text,
    speaker         text,
    tags            text[]      not null default '{}',
    start           bigint      not null,
    stop            bigint      not null,
    length          bigint      not null,
    terms           bigint[]    not null,
    frequencies     smallint[]  not null,
    occurred_at     timestamptz not null,
    recorded_at     timestamptz not null default now(),
    primary key (user_id, item_id, chunk),
    foreign key (user_id) references users (user_id) on delete cascade
);
create index item_text_recent on item_text (user_id, occurred_at);

create table embedding_models (
    user_id    uuid        not null,
    id         uuid        not null,
    name       text        not null,
    dimensions bigint      not null,
    created_at timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade
);

create table item_vectors (
    user_id   uuid     not null,
    item_id   uuid     not null,
    chunk     integer not null,
    model_id  uuid     not null,
    embedding vector   storage plain not null,
    primary key (user_id, item_id, chunk, model_id),
    foreign key (user_id, item_id, chunk) references item_text (user_id, item_id, chunk) on delete cascade
);

create table derivations (
    user_id         uuid        not null,
    conversation_id uuid        not null,
    deriver         text        not null,
    done_seq        bigint      not null default 0,
    last_seq        bigint      not null default 0,
    attempts        smallint    not null default 0,
    last_error      text,
    updated_at      timestamptz not null default now(),
    primary key (user_id, conversation_id, deriver),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
) with (fillfactor = 70);
create index derivations_pending on derivations (user_id, conversation_id) where done_seq < last_seq;

create table receipts (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid        not null,
    budget          bigint      not null,
    tokens          bigint      not null,
    body            jsonb       not null,
    recorded_at     timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);
create index receipts_by_conversation on receipts (user_id, conversation_id, recorded_at);

-- The app role owns nothing and sees the rows of one user: the one that the transaction has named with
-- SET LOCAL memstore.user_id. After a transaction the setting reads '' and not null, hence nullif.
do $$
begin
    if not exists (select from pg_roles where rolname = 'memstore_app') then
        create role memstore_app login;
    end if;
exception
    when duplicate_object or unique_violation then null;   -- another database of this server was quicker
    when insufficient_privilege then
        raise exception 'the role memstore_app is missing and % may not create roles', current_user
            using hint = format('As an administrator: CREATE ROLE memstore_app LOGIN; GRANT memstore_app TO %I;', current_user);
end $$;

-- Since Postgres 16 a role's maker is its member and still may not become it, hence 'set'.
do $$
begin
    if not pg_has_role(current_user, 'memstore_app',
                       case when current_setting('server_version_num')::int < 160000 then 'member' else 'set' end) then
        execute format('grant memstore_app to %I', current_user);
    end if;
exception
    when insufficient_privilege then
        raise exception '% may not become the role memstore_app', current_user
            using hint = format('As an administrator: GRANT memstore_app TO %I;', current_user);
end $$;

do $$
declare
    name text;
begin
    foreach name in array array(select current_schema()::text union
                                select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                                where e.extname = 'vector') loop
        if not has_schema_privilege('memstore_app', name, 'usage') then
            execute format('grant usage on schema %I to memstore_app', name);
        end if;
    end loop;
    grant select on memstore_schema to memstore_app;   -- a store that logs in as the app role asks for the revision
    foreach name in array array['users', 'conversations', 'messages', 'summaries', 'facts', 'fact_sources', 'item_text',
                                'embedding_models', 'item_vectors', 'derivations', 'receipts'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy by_user on %I
            using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
            with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, delete on %I to memstore_app', name);
    end loop;
end $$;

-- What was said is never changed: messages, summaries, sources, units and receipts take no UPDATE.
grant update on users, conversations, facts, derivations to memstore_app;

-- The operator's view: who there is, and whose derivation is behind. Names and numbers, nothing that was said.
create policy for_operator on users for select using (current_setting('memstore.operator', true) = 'on');
create policy for_operator on derivations for select using (current_setting('memstore.operator', true) = 'on');
