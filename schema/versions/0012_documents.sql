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
    model_id  uuid   not null,
    embedding vector storage main not null,                -- in the row, but for what is longer than a page
    primary key (user_id, id, path, model_id),
    foreign key (user_id, id) references documents (user_id, id) on delete cascade
);

do $$
declare
    name text;
begin
    foreach name in array array['documents', 'document_vectors'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy by_user on %I
            using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
            with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, delete on %I to memstore_app', name);
    end loop;
end $$;
grant update on documents to memstore_app;
