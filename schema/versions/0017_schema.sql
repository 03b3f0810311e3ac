-- The tables of memstore.
--
-- user_id comes first in every primary, unique and foreign key: rows of one user lie together, and the tables can be
-- distributed by it. No triggers, no sequences, no ON DELETE SET NULL: a distributed table refuses them.

do $$   -- where there is one, Citus would still send this to its nodes, and ask there who owns it
begin
    if not exists (select from pg_extension where extname = 'vector') then
        create extension vector;
    end if;
end $$;
-- It may live in a schema that search_path leaves out: in public, or with another store of this database.
select set_config('search_path', concat_ws(', ', current_setting('search_path'), quote_ident(n.nspname)), true)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector' and to_regtype('vector') is null;


-- Recent: users, conversations, messages

create table users (
    user_id     uuid        not null primary key,
    name        text        not null,
    chunks       bigint      not null default 0,   -- rows in item_text: BM25's N
    chunk_length bigint      not null default 0,   -- sum of item_text.length: BM25's average length
    last_chunk   bigint      not null default 0,   -- the highest item_text.number given so far
    posted      bigint      not null default 0,   -- chunks up to this number are in term_postings
    erasures    bigint      not null default 0,   -- who read before an erasure must not write after it
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
create index conversations_by_age on conversations (user_id, created_at);

-- Strategies are kept among the settings, so a context as of a past moment needs those of then. `before` are the
-- settings that a change found.
create table setting_changes (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid        not null,
    before          jsonb       not null,
    recorded_at     timestamptz not null default clock_timestamp(),
    primary key (user_id, id),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);
create index setting_changes_in_order on setting_changes (user_id, conversation_id, recorded_at);

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


-- Mid-term: summaries; level 0 is one that somebody asked for, outside of the hierarchy

create table summaries (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid        not null,
    level           smallint    not null check (level >= 0),
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
    constraint summaries_range unique (user_id, conversation_id, level, from_seq, to_seq, recipe),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);


-- Long-term: facts, where they were said, and what was done to them

-- A fact may fill a slot: the attribute of its subject and the value that it gives to it. What is known of one slot is
-- looked up when a fact comes in, and walked as edges from an entity to the next.
create table facts (
    user_id     uuid        not null,
    id          uuid        not null,
    type        text        not null,
    kind        text        not null default 'semantic' check (kind in ('episodic', 'semantic', 'procedural')),
    subject     text        not null,
    attribute   text,
    value       text,
    text        text        not null,
    language    text        not null default 'und',   -- ISO 639; 'und' where nobody knows
    confidence  real        not null check (confidence between 0 and 1),
    state       text        not null default 'active'
                            check (state in ('active', 'quarantined', 'superseded', 'retracted', 'erased')),
    valid_from  timestamptz,
    valid_to    timestamptz,
    importance  text        not null default 'normal' check (importance in ('pinned', 'normal', 'unimportant')),
    expires_at  timestamptz,                         -- from then on it is shown nowhere but in facts()
    recipe      text        not null,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade
);
create index facts_by_state on facts (user_id, state, occurred_at);
create index facts_by_slot on facts (user_id, subject, attribute) where attribute is not null;
create index facts_by_value on facts (user_id, lower(value)) where value is not null;

create table fact_sources (
    user_id     uuid        not null,
    fact_id     uuid        not null,
    message_id  uuid        not null,
    start       bigint,                              -- where in the message, in characters
    stop        bigint,
    trust       smallint    not null default 2       -- 3 by hand, 2 said by a person, 1 by an assistant, 0 by a tool
                            check (trust between 0 and 3),
    recorded_at timestamptz not null default now(),
    primary key (user_id, fact_id, message_id),
    foreign key (user_id, fact_id) references facts (user_id, id) on delete cascade,
    foreign key (user_id, message_id) references messages (user_id, id) on delete cascade
);
create index fact_sources_by_message on fact_sources (user_id, message_id);

-- The columns before and after each change, so that it can be undone exactly and any past moment seen.
create table fact_changes (
    user_id     uuid        not null,
    id          uuid        not null,
    fact_id     uuid        not null,
    action      text        not null
                            check (action in ('superseded', 'retracted', 'edited', 'restored', 'conflicted', 'resolved',
                                              'confirmed', 'quarantined')),
    other_id    uuid,                                -- the fact that took its place, or with which it disagrees
    before      jsonb       not null default '{}',
    after       jsonb       not null default '{}',
    actor       text        not null,                -- a recipe, or 'hand'
    undoes      uuid,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (user_id, id),
    foreign key (user_id, fact_id) references facts (user_id, id) on delete cascade
);
create index fact_changes_by_fact on fact_changes (user_id, fact_id, recorded_at);
create index fact_changes_by_other on fact_changes (user_id, other_id) where other_id is not null;


-- What recall searches

-- A chunk of a message, summary or fact. Its number was given under a lock of its user's row that is held until the
-- transaction ends: whoever sees a number sees every lower one that there is.
create table item_text (
    user_id         uuid        not null,
    item_id         uuid        not null,
    chunk_index           integer     not null,
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
    number          bigint      not null,
    occurred_at     timestamptz not null,
    recorded_at     timestamptz not null default now(),
    primary key (user_id, item_id, chunk_index),
    foreign key (user_id) references users (user_id) on delete cascade
);
create index item_text_recent on item_text (user_id, occurred_at);
create index item_text_by_number on item_text (user_id, number);
create index item_text_in_conversation on item_text (user_id, conversation_id, role, seq, chunk_index);

-- One embedder of a user is active; another's vectors may be in the making beside it, and those that were active before
-- are kept until they are cleaned away, so that there is a way back.
create table embedding_models (
    user_id     uuid        not null,
    id          uuid        not null,
    name        text        not null,
    dimensions  bigint      not null,
    state       text        not null default 'serving' check (state in ('serving', 'building', 'retired')),
    created_at  timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade
);
create unique index embedding_models_serving on embedding_models (user_id) where state = 'serving';

create table item_vectors (
    user_id   uuid    not null,
    item_id   uuid    not null,
    chunk_index     integer not null,
    model_id  uuid    not null,
    embedding vector  not null,
    primary key (user_id, item_id, chunk_index, model_id),
    foreign key (user_id, item_id, chunk_index) references item_text (user_id, item_id, chunk_index) on delete cascade
);
alter table item_vectors alter embedding set storage plain;   -- `storage` in `create table` came with Postgres 16

-- Of users with very many chunks: which ones have a term, and how often. A row for each term and each run of numbers;
-- `chunks` is packed, for each chunk 4 bytes of number, 2 of frequency, 2 of the chunk's length.
create table term_postings (
    user_id uuid    not null,
    term    bigint  not null,
    first   bigint  not null,                          -- the lowest number of the run
    holding integer not null,                          -- how many chunks of the run have the term
    chunks   bytea   not null,
    primary key (user_id, term, first),
    foreign key (user_id) references users (user_id) on delete cascade
);
alter table term_postings alter chunks set storage external;   -- what is common is long, and random to compression


-- Derivation: watermarks, backfills, calls of chat models

create table derivations (
    user_id         uuid        not null,
    conversation_id uuid        not null,
    deriver         text        not null,
    done_seq        bigint      not null default 0,
    last_seq        bigint      not null default 0,
    pending_since   timestamptz,                     -- when the first of the pending messages was said
    attempts        smallint    not null default 0,
    last_error      text,
    recipe          text,                            -- by which the messages up to done_seq were derived
    closes_at       timestamptz,                     -- when the open session will be over, and its summary is due
    backfill        uuid,                            -- whose the pending messages are; foreign keys begin with the user
    updated_at      timestamptz not null default now(),
    primary key (user_id, conversation_id, deriver),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
) with (fillfactor = 70);
create index derivations_pending on derivations (user_id, conversation_id) where done_seq < last_seq;
create index derivations_in_line on derivations (user_id, pending_since, conversation_id)
    where done_seq < last_seq and deriver = 'facts' and attempts = 0;
create index derivations_closing on derivations (user_id, closes_at) where closes_at is not null;

-- History that is derived under a plan. The operator's, and of no user: one backfill is over all of them. It holds ids
-- and numbers, nothing that was said.
create table backfills (
    id             uuid             not null primary key,
    state          text             not null default 'running'
                                    check (state in ('running', 'paused', 'cancelled', 'done')),
    reason         text             check (reason in ('by hand', 'tokens')),   -- why it does not run
    only_user      uuid,
    derivers       text[]           not null,
    messages       jsonb            not null default '{}', -- that each deriver was to derive
    max_tokens     bigint,
    calls          bigint           not null default 0,    -- of chat models
    call_seconds   double precision not null default 0,
    spent_tokens   bigint           not null default 0,    -- in these calls
    answer_tokens  bigint           not null default 0,    -- of which answers had so many
    taken_tokens   bigint           not null default 0,    -- for calls that are under way, or were when they were killed
    worked_seconds double precision not null default 0,    -- until it was paused last
    created_at     timestamptz      not null default now(),
    resumed_at     timestamptz      not null default now(),
    finished_at    timestamptz
) with (fillfactor = 70);

-- What a model answered and nobody could use, kept to be looked at and tried again.
create table invalid_responses (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid        not null,
    deriver         text        not null,
    from_seq        bigint      not null,
    to_seq          bigint      not null,
    recipe          text        not null,
    error           text        not null,
    payload         text        not null,
    attempts        smallint    not null default 1,
    recorded_at     timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);
create index invalid_responses_by_conversation on invalid_responses (user_id, conversation_id);

-- What models cost, by day of UTC: what a daily cap is held against. `cost` is money, of the calls that had a price.
create table model_usage (
    user_id           uuid             not null,
    day               date             not null,
    deriver           text             not null,
    model             text             not null,
    calls             bigint           not null default 0,
    prompt_tokens     bigint           not null default 0,
    completion_tokens bigint           not null default 0,
    seconds           double precision not null default 0,
    cost              double precision,
    primary key (user_id, day, deriver, model),
    foreign key (user_id) references users (user_id) on delete cascade
) with (fillfactor = 70);




-- Receipts of contexts, and the outbox

-- The body has ids, numbers and reasons alone; `texts` is what was sent and stands nowhere else: the system prompt, a
-- question that is no message, what strategies wrote.
create table receipts (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid        not null,
    budget          bigint      not null,
    tokens          bigint      not null,
    body            jsonb       not null,
    texts           jsonb       not null default '{}',
    recorded_at     timestamptz not null default now(),
    primary key (user_id, id),
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);
create index receipts_by_conversation on receipts (user_id, conversation_id, recorded_at);

-- What happened, in the transaction in which it did. Ids, numbers and reasons, never a text.
create table events (
    user_id         uuid        not null,
    id              uuid        not null,
    conversation_id uuid,
    type            text        not null,
    body            jsonb       not null default '{}',
    transaction     bigint      not null default (pg_current_xact_id()::text::bigint),   -- readers go by its order
    recorded_at     timestamptz not null default clock_timestamp(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade,
    foreign key (user_id, conversation_id) references conversations (user_id, id) on delete cascade
);
create index events_in_order on events (user_id, transaction, id);
create index events_by_conversation on events (user_id, conversation_id);


-- Documents: what an application keeps for a user under names of its own, and changes. No derivation reads them.

-- The id follows from namespace and key, which may be longer than an index entry.
create table documents (
    user_id    uuid        not null,
    id         uuid        not null,
    namespace  text[]      not null check (cardinality(namespace) > 0),
    key        text        not null,
    value      jsonb       not null,
    ttl        interval,                                   -- for how long after it was written, or read
    expires_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (user_id, id),
    foreign key (user_id) references users (user_id) on delete cascade
);
create index documents_recent on documents (user_id, updated_at);
create index documents_expiring on documents (user_id, expires_at) where expires_at is not null;

create table document_vectors (
    user_id   uuid   not null,
    id        uuid   not null,
    path      text   not null,                             -- of the document's value, whose text it is of
    text      text,                                        -- that it is of; null for all of the value
    model_id  uuid   not null,
    embedding vector not null,
    primary key (user_id, id, path, model_id),
    foreign key (user_id, id) references documents (user_id, id) on delete cascade
);
alter table document_vectors alter embedding set storage main;   -- in the row, but for what is longer than a page


-- Erasure: what is kept of what was erased, which is no content. No foreign keys to users: it outlives them.

-- What must not come back, as keyed hashes of 16 bytes, one after the other in `digests`. A bucket is the first 12 bits
-- of a hash, so that a user of 100,000 messages leaves 4,096 rows, and one is looked up by reading one.
create table tombstones (
    user_id    uuid     not null,
    bucket     smallint not null,
    erasure_id uuid     not null,
    digests    bytea    not null,
    primary key (user_id, bucket, erasure_id)
);

-- The certificates: ids, counts and times.
create table erasures (
    user_id     uuid        not null,
    id          uuid        not null,
    scope       text        not null check (scope in ('user', 'conversation', 'message', 'fact', 'retention')),
    body        jsonb       not null,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (user_id, id)
);

-- The store's own keys. Of no user: the hash of an id tells nothing to whoever has not this store's key.
create table store_keys (
    name text  not null primary key,
    key  bytea not null
);
insert into store_keys (name, key)   -- 244 bits of chance: a v4 UUID has 122
values ('tombstones', sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));


-- Tokens of the servers: who may ask over a network, and for whom. The operator's, and of no user: who opens one has to
-- be found before it is known whose it is. It holds the SHA-256 of a token (32 random bytes), never the token.

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


-- Rights. The app role owns nothing and sees the rows of one user: the one that the transaction has named with
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
    outliving constant text[] := array['tombstones', 'erasures'];
    of_operator constant text[] := array['backfills', 'api_tokens'];
    of_user constant text[] := outliving || array[
        'users', 'conversations', 'setting_changes', 'messages', 'summaries', 'facts', 'fact_sources', 'fact_changes',
        'item_text', 'embedding_models', 'item_vectors', 'term_postings', 'derivations', 'invalid_responses', 'model_usage',
        'receipts', 'events', 'documents', 'document_vectors'];
begin
    foreach name in array array(select current_schema()::text union
                                select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                                where e.extname = 'vector') loop
        if not has_schema_privilege('memstore_app', name, 'usage') then
            execute format('grant usage on schema %I to memstore_app', name);
        end if;
    end loop;
    foreach name in array of_user || of_operator || array['store_keys'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
    end loop;
    foreach name in array of_user loop
        execute format($p$create policy by_user on %I
            using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
            with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert on %I to memstore_app', name);
        if name <> all (outliving) then
            execute format('grant delete on %I to memstore_app', name);
        end if;
    end loop;
    foreach name in array of_operator loop
        execute format($p$create policy for_operator on %I
            using (current_setting('memstore.operator', true) = 'on')
            with check (current_setting('memstore.operator', true) = 'on')$p$, name);
    end loop;
    -- The operator's view: who there is, and whose derivation is behind. Names and numbers, nothing that was said.
    foreach name in array array['users', 'derivations', 'embedding_models', 'model_usage', 'events'] loop
        execute format($p$create policy for_operator on %I
            for select using (current_setting('memstore.operator', true) = 'on')$p$, name);
    end loop;
end $$;
create policy for_everybody on store_keys for select using (true);

-- What was said is never changed: messages, summaries, sources, chunks and receipts take no UPDATE. The log of a fact
-- names others, and forgets those that were erased.
grant update on users, conversations, facts, derivations, embedding_models, invalid_responses, model_usage, documents
    to memstore_app;
grant update (other_id) on fact_changes to memstore_app;
grant select, insert, update on api_tokens to memstore_app;
grant select, insert, update, delete on backfills to memstore_app;   -- that of a user alone goes with the user
grant select on store_keys to memstore_app;
grant select on memstore_schema to memstore_app;   -- a store that logs in as the app role asks for the revision
