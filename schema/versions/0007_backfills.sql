-- Backfills: history that is derived under a plan, which can be paused, and has caps.

-- The operator's, and of no user: one backfill is over all of them. It holds ids and numbers, nothing that was said.
create table backfills (
    id             uuid             not null primary key,
    state          text             not null default 'running'
                                    check (state in ('running', 'paused', 'cancelled', 'done')),
    reason         text             check (reason in ('by hand', 'tokens', 'seconds')),   -- why it does not run
    only_user      uuid,
    derivers       text[]           not null,
    messages       bigint           not null default 0,    -- that it was to derive, each deriver's counted
    max_tokens     bigint,
    max_seconds    double precision,
    spent_tokens   bigint           not null default 0,    -- in calls of chat models
    taken_tokens   bigint           not null default 0,    -- for calls that are under way, or were when they were killed
    worked_seconds double precision not null default 0,    -- until it was paused last
    plan           jsonb            not null default '{}',
    created_at     timestamptz      not null default now(),
    resumed_at     timestamptz      not null default now(),
    finished_at    timestamptz
) with (fillfactor = 70);

alter table backfills enable row level security;
alter table backfills force row level security;
create policy for_operator on backfills
    using (current_setting('memstore.operator', true) = 'on')
    with check (current_setting('memstore.operator', true) = 'on');
grant select, insert, update on backfills to memstore_app;

-- Whose the pending messages are. Not a foreign key: those begin with the user.
alter table derivations add column backfill uuid;
