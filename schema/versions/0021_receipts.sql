-- sent --
-- What was sent: compressed JSON of the messages, the system prompt and the text. Null where the receipt is older.
ALTER TABLE receipts ADD COLUMN sent bytea

-- statistics --
-- The planner keeps no samples of it, as of other columns that hold what people say (0019).
do $$
declare
    distributed boolean := false;
begin
    if to_regclass('pg_dist_partition') is not null then
        execute 'select exists (select from pg_dist_partition where logicalrelid = ''receipts''::regclass)'
            into distributed;
    end if;
    if not distributed then   -- Citus sets no statistics of these
        alter table receipts alter column sent set statistics 0;
    end if;
end
$$

-- question --
-- Of the texts the body keeps how the question begins. Policies hold no rewrite of a column back, as they would an UPDATE.
ALTER TABLE receipts ALTER COLUMN body TYPE jsonb USING
    (body - '{renderer,asked}'::text[]) || jsonb_strip_nulls(jsonb_build_object('question', left(texts->>'query', 160)))

-- texts --
-- A system prompt, and what strategies wrote, are part of what was sent.
ALTER TABLE receipts DROP COLUMN texts
