-- rights --
-- The chunk of a fact moves to a conversation that says it, when its own is erased.
GRANT UPDATE (conversation_id) ON item_text TO memstore_app

-- statistics --
-- The planner keeps samples of columns in pg_statistic, until the next ANALYZE also of rows that were erased. Of columns
-- that hold what people say, and names, it keeps none. Setting a type, though it is the same, removes what is kept of it.
do $$
declare
    place record;
    distributed boolean := false;
begin
    -- Citus sets no statistics of tables that are distributed already; of others it copies the setting to each shard.
    if to_regclass('pg_dist_partition') is not null then
        execute 'select exists (select from pg_dist_partition where logicalrelid = ''messages''::regclass)'
            into distributed;
    end if;
    if distributed then
        return;
    end if;
    for place in
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod) as type
        from (values
            ('api_tokens', '{user_name,name}'),
            ('backfills', '{messages}'),
            ('conversations', '{name,title,channel,settings}'),
            ('document_vectors', '{path,text}'),
            ('documents', '{namespace,key,value}'),
            ('events', '{body}'),
            ('fact_changes', '{before,after,actor}'),
            ('facts', '{subject,attribute,value,text}'),
            ('invalid_responses', '{error,payload}'),
            ('item_text', '{speaker,tags}'),
            ('messages', '{name,text,parts,tool_calls,tool_call_id,tags,meta,external_id}'),
            ('receipts', '{body,texts}'),
            ('setting_changes', '{before}'),
            ('summaries', '{text}'),
            ('users', '{name,settings}')
        ) as sayings (name, columns)
        join pg_class c on c.oid = sayings.name::regclass
        join pg_attribute a on a.attrelid = c.oid and a.attname = any (sayings.columns::text[])
    loop
        execute format(
            'alter table %1$I alter column %2$I type %3$s, alter column %2$I set statistics 0',
            place.relname, place.attname, place.type
        );
    end loop;
    alter index facts_by_value alter column 2 set statistics 0;  -- lower(value)
end
$$
