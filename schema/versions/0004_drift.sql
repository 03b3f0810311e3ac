-- How far token counts are from what models' servers say: sums over calls, and the largest miss of one call.
create table counter_drift (
    user_id       uuid             not null,
    model         text             not null,
    counter       text             not null,
    calls         bigint           not null default 0,
    predicted     bigint           not null default 0,
    observed      bigint           not null default 0,
    largest_miss  bigint           not null default 0,   -- in tokens, whichever of the two was more
    largest_share double precision not null default 0,   -- of the tokens that the server told
    last_seen     timestamptz      not null default now(),
    primary key (user_id, model, counter),
    foreign key (user_id) references users (user_id) on delete cascade
) with (fillfactor = 70);

alter table counter_drift enable row level security;
alter table counter_drift force row level security;
create policy by_user on counter_drift
    using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
    with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid);
grant select, insert, update, delete on counter_drift to memstore_app;
