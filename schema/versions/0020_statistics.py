"""No statistics of further columns that may hold what people say."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
