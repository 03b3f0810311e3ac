-- in_turn --
-- Citus changes the shards of a table one after the other: several tables in one transaction need that.
DO $$
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        SET LOCAL citus.multi_shard_modify_mode = 'sequential';
    END IF;
END $$

-- unforced --
-- The owner reads the rows of all users.
ALTER TABLE embedding_models NO FORCE ROW LEVEL SECURITY

-- keep --
-- The embedding models of users, until the transaction ends; the one that serves most of them goes on, or the first that
-- was in the making where none served.
SELECT set_config('memstore.models', coalesce((
    SELECT jsonb_agg(jsonb_build_object('id', m.id, 'name', m.name, 'dimensions', m.dimensions, 'created_at', m.created_at,
                                        'state', CASE WHEN m.place = 1 THEN 'serving' ELSE 'retired' END))
    FROM (SELECT c.*, row_number() OVER (ORDER BY c.users DESC, c.created_at, c.id) AS place
          FROM (SELECT e.id, e.name, e.dimensions, min(e.created_at) AS created_at,
                       count(*) FILTER (WHERE e.state = 'serving') AS users
                FROM embedding_models e
                GROUP BY e.id, e.name, e.dimensions) AS c) AS m)::text, '[]'), true)

-- drop --
DROP TABLE embedding_models

-- fills --
-- How often chunks of before were given vectors of the active model: arrays in a process are read anew then.
ALTER TABLE users ADD COLUMN vector_fills bigint NOT NULL DEFAULT 0

-- create --
-- One model is active; another's vectors may be in the making beside it, and those of models that were active before are
-- kept until they are cleaned away, so that there is a way back.
CREATE TABLE embedding_models (
    id         uuid        PRIMARY KEY,
    name       text        NOT NULL,
    dimensions bigint      NOT NULL,
    state      text        NOT NULL CHECK (state IN ('serving', 'building', 'retired')),
    created_at timestamptz NOT NULL DEFAULT now()
)

-- one_active --
CREATE UNIQUE INDEX embedding_models_serving ON embedding_models (state) WHERE state = 'serving'

-- statistics --
ALTER TABLE embedding_models ALTER COLUMN name SET STATISTICS 0

-- secure --
ALTER TABLE embedding_models ENABLE ROW LEVEL SECURITY

-- read --
CREATE POLICY for_everybody ON embedding_models FOR SELECT USING (true)

-- add_first --
-- Whoever writes the first vectors of a store makes their model the active one; another one there cannot be.
CREATE POLICY of_the_first ON embedding_models FOR INSERT WITH CHECK (state = 'serving')

-- operate --
CREATE POLICY for_operator ON embedding_models
    USING (current_setting('memstore.operator', true) = 'on')
    WITH CHECK (current_setting('memstore.operator', true) = 'on')

-- rights --
GRANT SELECT, INSERT, UPDATE ON embedding_models TO memstore_app

-- add --
INSERT INTO embedding_models (id, name, dimensions, state, created_at)
SELECT m.id, m.name, m.dimensions, m.state, m.created_at
FROM jsonb_to_recordset(current_setting('memstore.models')::jsonb)
     AS m (id uuid, name text, dimensions bigint, state text, created_at timestamptz)

-- refer --
-- Each node of a Citus has the table, as each query reads it.
DO $$
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
            PERFORM create_reference_table('embedding_models');
        END IF;
    END IF;
END $$

-- forced --
ALTER TABLE embedding_models FORCE ROW LEVEL SECURITY
