"""The schema of the first release. Revisions before it were never published: their stores are exported and imported."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = None


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
