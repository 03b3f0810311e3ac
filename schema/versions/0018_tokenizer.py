"""Which tokenizer made the terms of a user's chunks: after a change they are made anew, user by user."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    # One by one, `-- name --` before each: a Citus sends its nodes the whole message that a change of a table is in.
    # There the foreign keys of a new table stand in its CREATE TABLE.
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
