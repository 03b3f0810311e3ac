-- Erasure: what is kept of what was erased, which is no content, and what makes erasing quick.

-- How often something of a user was erased: whoever read before that and writes after it would bring it back.
alter table users add column erasures bigint not null default 0;

-- The store's own keys. Of no user: the hash of an id tells nothing to whoever has not this store's key.
create table store_keys (
    name text  not null primary key,
    key  bytea not null
);
alter table store_keys enable row level security;
alter table store_keys force row level security;
create policy for_everybody on store_keys for select using (true);
grant select on store_keys to memstore_app;
alter table store_keys no force row level security;
insert into store_keys (name, key)   -- 244 bits of chance: a v4 UUID has 122
values ('tombstones', sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
alter table store_keys force row level security;

-- What must not come back, as keyed hashes of 16 bytes, one after the other in `digests`. A bucket is the first 12 bits
-- of a hash, so that a user of 100,000 messages leaves 4,096 rows, and one is looked up by reading one.
--
-- No foreign key to users, here and below: these rows are what is left when the user is gone.
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

do $$
declare
    name text;
begin
    foreach name in array array['tombstones', 'erasures'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy by_user on %I
            using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
            with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert on %I to memstore_app', name);
    end loop;
end $$;

-- Without these a conversation that is erased reads all events and letters of its user, for the foreign key.
create index events_by_conversation on events (user_id, conversation_id);
create index dead_letters_by_conversation on dead_letters (user_id, conversation_id);

-- The log of a fact names others, and forgets those that were erased. A backfill of a user alone goes with the user.
grant update (other_id) on fact_changes to memstore_app;
grant delete on backfills to memstore_app;
