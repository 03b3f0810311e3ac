-- statistics --
-- Types and languages of facts are the words of whoever entered them. Recipes, counters and embedders are those of the
-- file that was restored, and no check of the database says what may stand there. As in 0019, setting a type removes
-- the samples that are kept.
do $$
declare
    place record;
    distributed boolean := false;
begin
    if to_regclass('pg_dist_partition') is not null then
        execute 'select exists (select from pg_dist_partition where logicalrelid = ''messages''::regclass)'
            into distributed;
    end if;
    if distributed then   -- Citus sets no statistics of these
        return;
    end if;
    for place in
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod) as type
        from (values
            ('derivations', '{last_error,recipe}'),
            ('embedding_models', '{name}'),
            ('facts', '{type,language,recipe}'),
            ('invalid_responses', '{recipe}'),
            ('messages', '{counter}'),
            ('summaries', '{counter,recipe}')
        ) as sayings (name, columns)
        join pg_class c on c.oid = sayings.name::regclass
        join pg_attribute a on a.attrelid = c.oid and a.attname = any (sayings.columns::text[])
    loop
        execute format(
            'alter table %1$I alter column %2$I type %3$s, alter column %2$I set statistics 0',
            place.relname, place.attname, place.type
        );
    end loop;
end
$$
