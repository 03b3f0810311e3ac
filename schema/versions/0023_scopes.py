"""A conversation may have a scope, such as a project. Sessions of coding agents have their folder."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
