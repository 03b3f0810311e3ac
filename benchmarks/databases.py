"""Databases of a server, each with memstore's tables or a copy of another: several runs begin with the same rows."""

from __future__ import annotations

import psycopg

import memstore


def made(url: str, name: str, *, of: str = "template1") -> str:
    """Give the URL of a database of this name beside that of `url`, made where it is not there: of another, a copy."""
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone():
            connection.execute(f"create database {name} template {of}")
    parts = psycopg.conninfo.conninfo_to_dict(url) | {"dbname": name}
    found = f"postgresql://{parts['user']}@/{name}?host={parts['host']}&port={parts.get('port', 5432)}"
    memstore.open(found, settings={"embedder": "none"}).close()
    return found
