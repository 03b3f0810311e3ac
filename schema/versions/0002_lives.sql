-- Facts with a life, summaries on demand, dead letters, what models cost, and the outbox.

-- A fact may fill a slot: the attribute of its subject and the value that it gives to it. What is known of one slot is
-- looked up when a fact comes in, and walked as edges from an entity to the next.
alter table facts
    add column kind      text not null default 'semantic' check (kind in ('episodic', 'semantic', 'procedural')),
    add column attribute text,
    add column value     text,
    add column language  text not null default 'und';   -- ISO 639; 'und' where nobody knows
alter table facts drop constraint facts_state_check;
alter table facts add constraint facts_state_check check (state in ('active', 'superseded', 'retracted', 'erased'));
create index facts_by_slot on facts (user_id, subject, attribute) where attribute is not null;
create index facts_by_value on facts (user_id, lower(value)) where value is not null;

-- Where in the message, in characters, and how far its speaker is to be trusted with facts about this user: 3 entered by
-- hand, 2 said by a person, 1 by an assistant, 0 what a tool gave.
alter table fact_sources
    add column start bigint,
    add column stop  bigint,
    add column trust smallint not null default 2 check (trust between 0 and 3);

-- The kinds of facts have other names now. Rows of every user are touched, so the owner steps out of the policy.
alter table facts no force row level security;
update facts
set type = case type when 'health' then 'constraint' when 'relation' then 'relationship' when 'skill' then 'strength'
                     when 'habit' then 'interest' when 'possession' then 'identity' when 'work' then 'identity'
                     when 'instruction' then 'procedure' end,
    kind = case type when 'instruction' then 'procedural' else 'semantic' end
where type in ('health', 'relation', 'skill', 'habit', 'possession', 'work', 'instruction');
update facts set kind = 'episodic' where type in ('event', 'plan');
alter table facts force row level security;

-- What was done to facts, the columns before and after, so that each step can be undone exactly and any past moment seen.
create table fact_changes (
    user_id     uuid        not null,
    id          uuid        not null,
    fact_id     uuid        not null,
    action      text        not null check (action in ('superseded', 'retracted', 'edited', 'restored', 'conflicted', 'resolved')),
    other_id    uuid,                                 -- the fact that took its place, or with which it disagrees
    before      jsonb       not null default '{}',
    after       jsonb       not null default '{}',
    actor       text        not null,                 -- a recipe, or 'hand'
    undoes      uuid,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (user_id, id),
    foreign key (user_id, fact_id) references facts (user_id, id) on delete cascade
);
create index fact_changes_by_fact on fact_changes (user_id, fact_id, recorded_at);

-- Level 0 is a summary that somebody asked for, outside of the nest.
alter table summaries drop constraint summaries_level_check;
alter table summaries add constraint summaries_level_check check (level >= 0);
alter table summaries drop constraint summaries_range;
alter table summaries add constraint summaries_range unique (user_id, conversation_id, level, from_seq, to_seq, recipe);

-- By which recipe a conversation was derived up to its watermark.
alter table derivations add column recipe text;

-- What a model answered and nobody could use, kept to be looked at and tried again.
create table dead_letters (
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

-- What models cost, by day of UTC: what a daily cap is held against.
create table model_usage (
    user_id           uuid   not null,
    day               date   not null,
    model             text   not null,
    calls             bigint not null default 0,
    prompt_tokens     bigint not null default 0,
    completion_tokens bigint not null default 0,
    primary key (user_id, day, model),
    foreign key (user_id) references users (user_id) on delete cascade
) with (fillfactor = 70);

-- The outbox: what happened, in the transaction in which it did. Ids, numbers and reasons, never a text.
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

do $$
declare
    name text;
begin
    foreach name in array array['fact_changes', 'dead_letters', 'model_usage', 'events'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy by_user on %I
            using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
            with check (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, delete on %I to memstore_app', name);
    end loop;
end $$;

grant update on dead_letters, model_usage to memstore_app;
create policy for_operator on model_usage for select using (current_setting('memstore.operator', true) = 'on');
create policy for_operator on events for select using (current_setting('memstore.operator', true) = 'on');
