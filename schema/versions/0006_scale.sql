-- What recall over hundreds of thousands of units of one user stands on.

-- The number that a unit was given when it came, under a lock of its user's row that is held until the transaction ends:
-- whoever sees a number sees every lower one that there is.
alter table users
    add column last_unit bigint not null default 0,   -- the highest number given so far
    add column posted    bigint not null default 0;   -- units up to this one are in term_postings
alter table item_text add column number bigint;

-- Rows of every user are touched, so the owner steps out of the policy.
alter table item_text no force row level security;
alter table users no force row level security;
update item_text t
set number = n.number
from (select user_id, item_id, chunk,
             row_number() over (partition by user_id order by recorded_at, item_id, chunk) as number
      from item_text) n
where t.user_id = n.user_id and t.item_id = n.item_id and t.chunk = n.chunk;
update users u
set last_unit = n.last_unit
from (select user_id, max(number) as last_unit from item_text group by user_id) n
where u.user_id = n.user_id;
alter table users force row level security;
alter table item_text force row level security;

alter table item_text alter column number set not null;
create index item_text_by_number on item_text (user_id, number);
create index item_text_in_conversation on item_text (user_id, conversation_id, role, seq, chunk);

-- The lexical leg of users with very many units: which ones have a term, and how often. A row for each term and each run
-- of numbers; `units` is packed, for each unit 4 bytes of number, 2 of frequency, 2 of the unit's length.
create table term_postings (
    user_id uuid    not null,
    term    bigint  not null,
    first   bigint  not null,                          -- the lowest number of the run
    holding integer not null,                          -- how many units of the run have the term
    units   bytea   storage external not null,         -- what is common is long, and random to compression
    primary key (user_id, term, first),
    foreign key (user_id) references users (user_id) on delete cascade
);
alter table term_postings enable row level security;
alter table term_postings force row level security;
create policy by_user on term_postings
    using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
    with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid);
grant select, insert, delete on term_postings to memstore_app;
