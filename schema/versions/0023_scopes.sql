-- scope --
-- What a conversation belongs to, such as a project; null where it belongs to nothing in particular.
ALTER TABLE conversations ADD COLUMN scope text

-- statistics --
-- The planner keeps no samples of it, as of other columns that hold what people say (0019).
do $$
declare
    distributed boolean := false;
begin
    if to_regclass('pg_dist_partition') is not null then
        execute 'select exists (select from pg_dist_partition where logicalrelid = ''conversations''::regclass)'
            into distributed;
    end if;
    if not distributed then   -- Citus sets no statistics of these
        alter table conversations alter column scope set statistics 0;
    end if;
end
$$

-- folder --
-- Policies hold no rewrite of a column back, as they would an UPDATE.
ALTER TABLE conversations ALTER COLUMN scope TYPE text USING
    CASE WHEN channel IN ('claude-code', 'codex') THEN title END
