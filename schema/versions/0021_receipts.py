"""A receipt keeps what was sent, so that a replay is a read; the texts that a replay needed go."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
