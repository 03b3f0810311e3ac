-- Receipts from which a context can be made again, and settings of conversations as they were.

-- What was sent and stands nowhere else: the system prompt, a question that is no message, what strategies wrote. Apart
-- from the body, which has ids, numbers and reasons alone.
alter table receipts add column texts jsonb not null default '{}';

-- No context can be made again from the receipts so far, and their reasons are free text. They are of every user, so the
-- owner steps out of the policy.
alter table receipts no force row level security;
delete from receipts;
alter table receipts force row level security;

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

alter table setting_changes enable row level security;
alter table setting_changes force row level security;
create policy by_user on setting_changes
    using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
    with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid);
grant select, insert, delete on setting_changes to memstore_app;
