-- Another embedder in the place of one, while recall goes on.

-- Which of the embedders of a user is asked: one serves, another's vectors may be in the making beside it, and those that
-- served before are kept until they are cleaned away, so that there is a way back.
alter table embedding_models
    add column state       text not null default 'serving' check (state in ('serving', 'building', 'retired')),
    add column predecessor uuid;   -- which one served before, where a rollback may go back to it

-- So far a user had one; where hands have added others, the first one serves. Rows of every user are touched, so the
-- owner steps out of the policy.
alter table embedding_models no force row level security;
update embedding_models m
set state = 'retired'
where exists (select from embedding_models o
              where o.user_id = m.user_id and (o.created_at, o.id) < (m.created_at, m.id));
alter table embedding_models force row level security;

create unique index embedding_models_serving on embedding_models (user_id) where state = 'serving';
grant update on embedding_models to memstore_app;

-- Which embedders took whose place is asked over all users. Names and numbers, nothing that was said.
create policy for_operator on embedding_models for select using (current_setting('memstore.operator', true) = 'on');
