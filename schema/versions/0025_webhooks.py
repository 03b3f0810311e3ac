"""Webhooks of the operator, and the events that are still to be sent to them."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
