-- create --
-- Who may use the memory of a space, whose rows have its id as the user's. A row stays when its member has left: an erasure finds by it what they said.
CREATE TABLE grants (
    user_id     uuid        NOT NULL,
    member_id   uuid        NOT NULL,
    space_name  text        NOT NULL,
    member_name text        NOT NULL,
    access      text        NOT NULL CHECK (access IN ('read', 'write', 'admin')),
    granted_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    PRIMARY KEY (user_id, member_id)
)

-- of_member --
CREATE INDEX grants_member ON grants (member_id)

-- statistics --
-- The planner keeps no samples of names (0019).
ALTER TABLE grants ALTER COLUMN space_name SET STATISTICS 0, ALTER COLUMN member_name SET STATISTICS 0

-- secure --
ALTER TABLE grants ENABLE ROW LEVEL SECURITY

-- see --
-- Members see their own grants, and a space its members'.
CREATE POLICY for_members ON grants FOR SELECT
    USING (member_id = coalesce(nullif(current_setting('memstore.user_id', true), ''),
                                nullif(current_setting('memstore.member_id', true), ''))::uuid)

-- change --
-- They are changed for the space itself alone.
CREATE POLICY by_space ON grants
    USING (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
    WITH CHECK (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)

-- rights --
GRANT SELECT, INSERT, UPDATE, DELETE ON grants TO memstore_app

-- refer --
-- Each node of a Citus has the grants, as policies read them there.
DO $$
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
            PERFORM create_reference_table('grants');
        END IF;
    END IF;
END $$

-- forced --
ALTER TABLE grants FORCE ROW LEVEL SECURITY

-- check --
-- The space that a transaction on behalf of a member names, if the member has a grant; else null.
DO $do$
BEGIN
    EXECUTE format($f$
        CREATE FUNCTION memstore_space(needed text) RETURNS uuid LANGUAGE plpgsql STABLE COST 0.01
        SET plan_cache_mode = force_generic_plan AS $$
        DECLARE
            space uuid := nullif(current_setting('memstore.space_id', true), '')::uuid;
            member uuid := nullif(current_setting('memstore.member_id', true), '')::uuid;
        BEGIN
            IF space IS NULL THEN   -- Citus calls it for users, too
                RETURN NULL;
            END IF;
            RETURN (SELECT g.user_id FROM %I.grants g
                    WHERE g.user_id = space AND g.member_id = member AND g.ended_at IS NULL
                      AND (needed = 'read' OR g.access <> 'read'));
        END $$ $f$, current_schema());
END $do$

-- nested --
-- On a Citus the function reads the grants of its own node, in the midst of a statement on the space's rows.
DO $$
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
            ALTER FUNCTION memstore_space SET citus.allow_nested_distributed_execution = on;
        END IF;
    END IF;
END $$

-- confine --
-- A transaction is for a user, for a space itself, or on behalf of a member of a space; who only reads changes nothing.
-- Each command has a policy, since Citus does not keep a restrictive one.
DO $do$
DECLARE
    name text;
    owner constant text := $$user_id = coalesce(nullif(current_setting('memstore.user_id', true), '')::uuid, memstore_space(%L))$$;
    reader constant text := format(owner, 'read');
    writer constant text := format(owner, 'write');
BEGIN
    FOR name IN SELECT tablename FROM pg_policies
                WHERE schemaname = current_schema() AND policyname = 'by_user' ORDER BY tablename
    LOOP
        EXECUTE format('DROP POLICY by_user ON %I', name);
        EXECUTE format('CREATE POLICY by_user ON %I FOR SELECT USING (', name) || reader || ')';
        EXECUTE format('CREATE POLICY by_user_add ON %I FOR INSERT WITH CHECK (', name) || writer || ')';
        EXECUTE format('CREATE POLICY by_user_change ON %I FOR UPDATE USING (', name) || writer || ')';
        EXECUTE format('CREATE POLICY by_user_remove ON %I FOR DELETE USING (', name) || writer || ')';
    END LOOP;
END $do$
