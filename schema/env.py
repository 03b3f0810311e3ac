"""Alembic's entry: runs the revisions on the connection that memstore hands over, or prints them (`db sql`)."""

from __future__ import annotations

from alembic import context
from sqlalchemy import func, select

from memstore.store import roles

VERSION_TABLE = "memstore_schema"

options = {"version_table": VERSION_TABLE, "transactional_ddl": True}

if context.is_offline_mode():
    # "named", because for the driver's own style every % would be printed twice
    context.configure(dialect_name="postgresql", dialect_opts={"paramstyle": "named"}, literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
        context.execute(roles.rights().as_string())  # of the tables that there are now
else:
    connection = context.config.attributes["connection"]
    schema = connection.scalar(select(func.current_schema()))  # not a store's in a later schema of search_path
    context.configure(connection=connection, version_table_schema=schema, **options)
    context.run_migrations()
    context.execute(roles.rights().as_string())
