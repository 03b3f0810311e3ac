-- begin --
-- Sent with what confines the transaction. Of a process that was suspended no lock stays for good.
BEGIN;
SET LOCAL idle_in_transaction_session_timeout = '10min'

-- commit --
-- Sent behind the reads of a transaction that does nothing else.
COMMIT

-- snapshot --
-- What is read page by page is of one moment; sent before anything is read.
SET LOCAL transaction_isolation = 'repeatable read'

-- async_commit --
-- What may be lost with the last half second before a crash does not wait for the disk.
SET LOCAL synchronous_commit = off

-- role --
-- Steps down to the role that the login was granted.
SET LOCAL ROLE %(role)s

-- path --
-- Where names are looked for: temporary tables last, as a pooler may give a session that has some.
SET LOCAL search_path = %(schema)s, %(vectors)s, pg_temp

-- scope --
-- Confines the transaction to one user's rows. Sent as text (client-side binding), all in one round trip.
SET LOCAL memstore.user_id = %(user_id)s;
SET LOCAL TimeZone = 'UTC';
SET LOCAL DateStyle = 'ISO, MDY';
SET LOCAL plan_cache_mode = force_custom_plan

-- member_scope --
-- Confines the transaction to the rows of a space, on behalf of a member: the policies look for a grant.
SET LOCAL memstore.user_id = '';
SET LOCAL memstore.space_id = %(user_id)s;
SET LOCAL memstore.member_id = %(member_id)s;
SET LOCAL TimeZone = 'UTC';
SET LOCAL DateStyle = 'ISO, MDY';
SET LOCAL plan_cache_mode = force_custom_plan

-- access --
-- What the member on whose behalf the transaction is may do in its space; no row without a grant.
SELECT access FROM grants
WHERE user_id = %(user_id)s AND ended_at IS NULL
  AND member_id = nullif(current_setting('memstore.member_id', true), '')::uuid

-- operator --
-- Shows who there is and whose derivations are behind, and no row of anything that was said.
SET LOCAL memstore.operator = 'on'

-- schema_revision --
-- The revision of the tables, where there are any.
SELECT version_num FROM memstore_schema

-- schema_exists --
-- Whether memstore's tables were ever made here: in the first schema of search_path, whatever the others have.
SELECT to_regclass(quote_ident(current_schema()) || '.memstore_schema') IS NOT NULL AS made,
       to_regclass(quote_ident(current_schema()) || '.messages') IS NOT NULL AS foreign_tables

-- reach_pgvector --
-- Puts pgvector's schema last where search_path leaves it out, until the transaction ends.
SELECT set_config('search_path', concat_ws(', ', current_setting('search_path'), quote_ident(n.nspname)), true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector' AND to_regtype('vector') IS NULL

-- migration_lock --
-- One migration at a time; released with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('memstore:migrate', 0))

-- add_event --
-- What happened, in the transaction in which it did.
INSERT INTO events (user_id, id, conversation_id, type, body, recorded_at)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(type)s, %(body)s, %(recorded_at)s)

-- own_tables --
-- The tables of the store's schema that are this login's.
SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND pg_has_role(tableowner, 'usage')
ORDER BY tablename

-- vacuum --
-- Write a table anew without dead rows.
VACUUM (FULL, ANALYZE) {table}
