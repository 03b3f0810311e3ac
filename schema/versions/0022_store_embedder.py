"""One active embedding model for the whole store, which each user had by itself before.

The model that most users had is the active one. Users of another have no vectors of it yet, and are found by words
until `memstore embeddings migrate --to` the active one makes them; `doctor` and `embeddings status` say how many lack.
Vectors of the others stay, as after a migration. One that was not finished goes on with the same command.
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

from memstore.store.sql import parse_statements

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    for statement in parse_statements(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).values():
        op.execute(statement)
