"""Alembic's entry: runs the revisions on the connection that memstore hands over, or prints them (`db sql`)."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

from memstore.store import tables  # noqa: F401  (fills SQLModel.metadata)

VERSION_TABLE = "memstore_schema"

options = {"target_metadata": SQLModel.metadata, "version_table": VERSION_TABLE, "transactional_ddl": True}

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    context.configure(connection=context.config.attributes["connection"], **options)
    context.run_migrations()
