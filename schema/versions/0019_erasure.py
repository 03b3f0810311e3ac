"""What an erasure leaves: no statistics of what people say, and no fact in a conversation that is gone."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
