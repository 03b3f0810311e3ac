"""The tables, a declaration each: erasure and its scan, the export, the rights of roles and the tests read them here.

A revision makes a table, with its keys and policies. Which tables a Citus distributes follows from the policies, and
which columns hold what people say from their types; tests hold the migrated schema against the declarations.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

ADD, ADD_AND_CHANGE, EVERYTHING = "SELECT, INSERT", "SELECT, INSERT, UPDATE", "SELECT, INSERT, UPDATE, DELETE"


class ExportedList(NamedTuple):
    """A list in the lines of an export: the rows that belong to a row of the table `parent` by the column `key`.

    `columns` are the keys of each element; the list is in the order of `recorded_at`, then of the first of them.
    `unique` are the columns of the table's primary key behind the user's id. The class of the line, in
    memstore/export/schema.py, has a field of the list's name.
    """

    name: str
    parent: str
    key: str
    columns: tuple[str, ...]
    unique: str = "id"


class Table(NamedTuple):
    """A table, and whose its rows are: a user's, a user's but kept by an erasure, the operator's, or the store's.

    A row is erased with the conversation, or the message, of which it has the id in the column `conversation` or
    `message`. `id_columns` and `json` are further columns with ids of messages, facts, summaries and conversations.
    `harmless` are columns of text and bytes in which nothing stands that people say. `app` and `loader` are what these
    roles may do. `exported` rows are in an export: as lines, or in lists of the lines of another table.
    """

    name: str
    owner: Literal["user", "kept", "operator", "store"] = "user"
    user_column: str = "user_id"
    conversation: str = ""
    message: str = ""
    id_columns: tuple[str, ...] = ()
    json: str = ""
    harmless: tuple[str, ...] = ()
    app: str = "SELECT, INSERT, DELETE"
    loader: str = ""
    exported: ExportedList | bool = True

    @property
    def names(self) -> str:
        """The condition that a column has one of `%(ids)s`; "" where there is no such column."""
        columns = (self.conversation, self.message, *self.id_columns)
        return " OR ".join(column + " = ANY(%(ids)s::uuid[])" for column in columns if column)


TABLES = (
    Table("users", app=EVERYTHING, loader=ADD_AND_CHANGE),
    Table("conversations", conversation="id", app=EVERYTHING, loader=ADD_AND_CHANGE),
    Table("messages", conversation="conversation_id", message="id", loader=ADD),
    Table("summaries", conversation="conversation_id", id_columns=("id",)),
    Table("facts", id_columns=("id",), app=EVERYTHING),
    Table(
        "fact_sources",
        message="message_id",
        id_columns=("fact_id",),
        exported=ExportedList(
            "sources",
            "facts",
            "fact_id",
            ("message_id", "start", "stop", "trust", "recorded_at"),
            unique="fact_id, message_id",
        ),
    ),
    Table(
        "fact_changes",
        id_columns=("fact_id", "other_id"),
        exported=ExportedList(
            "history",
            "facts",
            "fact_id",
            ("id", "action", "other_id", "before", "after", "actor", "undoes", "recorded_at"),
        ),
    ),
    Table("item_text", id_columns=("item_id", "conversation_id"), harmless=("role",)),
    Table("item_vectors", id_columns=("item_id",)),
    Table("term_postings", harmless=("chunks",), exported=False),
    Table("derivations", conversation="conversation_id", harmless=("deriver",), app=EVERYTHING, loader=ADD_AND_CHANGE),
    Table("receipts", conversation="conversation_id", json="body", exported=False),
    Table(
        "setting_changes",
        conversation="conversation_id",
        loader=ADD,
        exported=ExportedList("setting_changes", "conversations", "conversation_id", ("id", "before", "recorded_at")),
    ),
    Table("invalid_responses", conversation="conversation_id", harmless=("deriver",), app=EVERYTHING, exported=False),
    Table("model_usage", harmless=("deriver", "model"), app=EVERYTHING, exported=False),
    Table("events", conversation="conversation_id", json="body", harmless=("type",), loader=ADD, exported=False),
    Table("documents", app=EVERYTHING),
    Table("document_vectors"),
    Table("tombstones", "kept", harmless=("digests",), app=ADD, loader="SELECT", exported=False),
    Table("erasures", "kept", harmless=("body",), app=ADD, exported=False),
    Table("backfills", "operator", "only_user", harmless=("derivers",), app=EVERYTHING, exported=False),
    Table("api_tokens", "operator", harmless=("hash",), app=ADD_AND_CHANGE, exported=False),
    Table("grants", "store", harmless=("access",), app=EVERYTHING, loader="SELECT", exported=False),
    Table(
        "webhooks",
        "operator",
        user_column="",
        harmless=("url", "events", "secret", "last_error"),
        app=EVERYTHING,
        exported=False,
    ),
    Table("webhook_events", "operator", user_column="", harmless=("body",), exported=False),
    Table("store_keys", "store", harmless=("name", "key"), app="SELECT", loader="SELECT", exported=False),
    Table("embedding_models", "store", app=ADD_AND_CHANGE, exported=False),
)


def tables_of(*owners: str) -> list[str]:
    return [table.name for table in TABLES if table.owner in owners]


@cache
def exported_lists(parent: str) -> dict[str, ExportedList]:
    """Return the lists in the lines of this table, by the table whose rows they hold."""
    lists = {table.name: table.exported for table in TABLES if isinstance(table.exported, ExportedList)}
    return {table: rows for table, rows in lists.items() if rows.parent == parent}


def of_each(statement: str, group: str) -> str:
    """Return the union of a statement of each table of an owner with users' ids, or with an attribute of this name."""
    chosen = [table for table in TABLES if (table.owner == group and table.user_column) or getattr(table, group, None)]
    return "\nUNION ALL\n".join(_without_comments(statement).format(table=table) for table in chosen)


def of_each_list(name: str, statement: str, *, is_fragment: bool) -> dict[str, str]:
    """Return a statement of each table whose rows are lists in an export, as NAME_TABLE.

    A fragment becomes NAME_of_PARENT: those of the lists of each parent, with commas; "" where it has none.
    """
    template = _without_comments(statement)
    rendered = {
        parent.name: {
            table: template.format(
                table=table,
                list=rows,
                columns=", ".join(rows.columns),
                values=", ".join(f"%({column})s" for column in rows.columns),
                elements=", ".join(f"'{column}', l.{column}" for column in rows.columns),
            )
            for table, rows in exported_lists(parent.name).items()
        }
        for parent in TABLES
    }
    if is_fragment:
        return {f"{name}_of_{parent}": ",\n".join(by_table.values()) for parent, by_table in rendered.items()}
    return {f"{name}_{table}": text for by_table in rendered.values() for table, text in by_table.items()}


def _without_comments(statement: str) -> str:
    return "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
