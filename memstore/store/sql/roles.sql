-- capabilities --
-- What the server is, where its parts are, and whether this login must and may become one of memstore's roles.
-- A pooler tells its clients a number of its own for the process that serves them.
SELECT server.*,
       current_setting('transaction_read_only') = 'off' AND coalesce(role NOT IN ('memstore_reader', 'memstore_admin'), true) AS writes
FROM (
    SELECT current_setting('server_version_num')::int AS server_version,
           (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS pgvector_available,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
           coalesce((SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user), false) AS ignores_policies,
           (SELECT rolname FROM pg_roles
            WHERE rolname = ANY(%(roles)s)
              AND pg_has_role(current_user, oid, CASE WHEN current_setting('server_version_num')::int < 160000
                                                      THEN 'member' ELSE 'set' END)
            ORDER BY array_position(%(roles)s, rolname::text) LIMIT 1) AS role,
           coalesce(current_schema(), 'public') AS schema,
           coalesce((SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                     WHERE e.extname = 'vector'), 'public') AS vectors,
           pg_backend_pid() <> %(process)s AS pooled,
           to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS citus
) AS server

-- rights --
-- Makes memstore's roles where this login may, and says anew what each may do with the tables that there are.
-- Rows are kept apart by the tables' policies, whatever the role. The admin sees who there is, and nothing that was said.
DO $$
DECLARE
    one text;
    place text;
    may text;
BEGIN
    FOREACH one IN ARRAY ARRAY['memstore_loader', 'memstore_reader', 'memstore_admin'] LOOP
        BEGIN
            IF to_regrole(one) IS NULL THEN
                EXECUTE format('CREATE ROLE %I LOGIN', one);
            END IF;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;   -- another database of this server was quicker
            WHEN insufficient_privilege THEN NULL;                 -- who is to have it says so: db grant
        END;
        CONTINUE WHEN to_regrole(one) IS NULL;
        FOREACH place IN ARRAY ARRAY(SELECT current_schema()::text UNION
                                     SELECT n.nspname::text FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                                     WHERE e.extname = 'vector') LOOP
            IF NOT has_schema_privilege(one, place, 'usage') THEN
                EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', place, one);
            END IF;
        END LOOP;
        EXECUTE format('GRANT SELECT ON memstore_schema TO %I', one);   -- opening a store reads the revision
    END LOOP;
    FOR place, one, may IN VALUES {rights}, ('users', 'memstore_admin', 'SELECT (user_id, name, created_at)') LOOP
        IF to_regrole(one) IS NOT NULL
           AND EXISTS (SELECT 1 FROM pg_class WHERE relname = place AND relnamespace = current_schema()::regnamespace) THEN
            EXECUTE format('GRANT %s ON %I TO %I', may, place, one);
        END IF;
    END LOOP;
END $$

-- login_state --
-- What there is of a login and of a role; whether the one was granted the other, and whether policies hold it at all.
SELECT l.oid IS NOT NULL AS login_exists,
       r.oid IS NOT NULL AS role_exists,
       coalesce(pg_has_role(l.oid, r.oid, 'member'), false) AS is_granted,
       coalesce(l.rolsuper OR l.rolbypassrls, false) AS ignores_policies,
       coalesce(pg_has_role(l.oid, t.relowner, 'member'), false) AS owns_tables
FROM (SELECT to_regclass('messages') AS messages) AS given
LEFT JOIN pg_class t ON t.oid = given.messages
LEFT JOIN pg_roles l ON l.rolname = %(login)s
LEFT JOIN pg_roles r ON r.rolname = %(role)s

-- grant --
-- Lets a login become a role.
GRANT {role} TO {login}
