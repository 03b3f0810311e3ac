"""${message}"""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    # One by one, `-- name --` before each: a Citus sends its nodes the whole message that a change of a table is in.
    # There the foreign keys of a new table stand in its CREATE TABLE.
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
