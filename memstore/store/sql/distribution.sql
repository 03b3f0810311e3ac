-- citus --
-- Whether this database has Citus.
SELECT to_regclass('pg_dist_partition') IS NOT NULL AS has_citus

-- distributed --
-- Which tables are distributed, or copied to each node.
SELECT c.relname AS name
FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace

-- tables --
-- memstore's tables but the operator's: those with rows of users, the root first, and those of nobody.
SELECT c.relname AS name,
       EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'by_user') AS by_user
FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
  AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname IN ('by_user', 'for_everybody', 'for_members'))
ORDER BY c.relname <> 'users', c.relname

-- foreign_keys --
-- The foreign keys between memstore's tables; in which order they come back is all the same, once all are distributed.
SELECT c.relname AS table, k.conname AS name, pg_get_constraintdef(k.oid) AS definition
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace
  AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid)
ORDER BY c.relname, k.conname

-- in_turn --
-- Citus changes the shards of a table one after the other: many tables in one transaction need that.
SET LOCAL citus.multi_shard_modify_mode = 'sequential'

-- drop_key --
-- A table cannot be distributed while others refer to it.
ALTER TABLE {table} DROP CONSTRAINT {name}

-- add_key --
-- The same foreign key again, between distributed tables.
ALTER TABLE {table} ADD CONSTRAINT {name} {definition}

-- unforced --
-- The rows that are there are copied as the owner, whom the policies do not stop meanwhile.
ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY

-- forced --
-- The policies bind the owner again.
ALTER TABLE {table} FORCE ROW LEVEL SECURITY

-- distribute --
-- Puts each user's rows on one shard, and what is of one user on the same node.
SELECT create_distributed_table(%(table)s::regclass, 'user_id', colocate_with => %(with)s)

-- refer --
-- Has a table of nobody's on each node.
SELECT create_reference_table(%(table)s::regclass)

-- nested --
-- The policies of spaces read the grants of their own node, in the midst of a statement on the space's rows.
ALTER FUNCTION memstore_space SET citus.allow_nested_distributed_execution = on

-- propagate --
-- A transaction says whose rows it is for with SET LOCAL: without this the other nodes do not hear of it.
ALTER DATABASE {database} SET citus.propagate_set_commands = 'local'
