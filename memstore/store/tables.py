"""The tables, a declaration each: erasure and its scan, the rights of roles and the tests read them here.

A revision makes a table, with its keys and policies. Which tables a Citus distributes follows from the policies, and
which columns hold what people say from their types; tests hold the migrated schema against the declarations.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

ADD, ADD_AND_CHANGE, EVERYTHING = "SELECT, INSERT", "SELECT, INSERT, UPDATE", "SELECT, INSERT, UPDATE, DELETE"


class Table(NamedTuple):
    """A table, and whose its rows are: a user's, a user's but kept by an erasure, the operator's, or the store's.

    With its `conversation` a row is erased. `ids` and `json` are further columns with ids of messages, facts, summaries
    and conversations; `closed` are those of text and bytes in which nothing stands that people say. `app` and `loader`
    are what these roles may do. `exported` rows are in an export.
    """

    name: str
    owner: Literal["user", "kept", "operator", "store"] = "user"
    user_column: str = "user_id"
    conversation: str = ""
    ids: tuple[str, ...] = ()
    json: str = ""
    closed: tuple[str, ...] = ()
    app: str = "SELECT, INSERT, DELETE"
    loader: str = ""
    exported: bool = True

    @property
    def names(self) -> str:
        """The condition that a column has one of `%(ids)s`; "" where there is no such column."""
        return " OR ".join(column + " = ANY(%(ids)s::uuid[])" for column in (self.conversation, *self.ids) if column)


TABLES = (
    Table("users", app=EVERYTHING, loader=ADD_AND_CHANGE),
    Table("conversations", conversation="id", app=EVERYTHING, loader=ADD_AND_CHANGE),
    Table("messages", conversation="conversation_id", ids=("id",), loader=ADD),
    Table("summaries", conversation="conversation_id", ids=("id",)),
    Table("facts", ids=("id",), app=EVERYTHING),
    Table("fact_sources", ids=("fact_id", "message_id")),
    Table("fact_changes", ids=("fact_id", "other_id")),
    Table("item_text", ids=("item_id", "conversation_id"), closed=("role",)),
    Table("item_vectors", ids=("item_id",)),
    Table("term_postings", closed=("chunks",), exported=False),
    Table("derivations", conversation="conversation_id", closed=("deriver",), app=EVERYTHING, loader=ADD_AND_CHANGE),
    Table("receipts", conversation="conversation_id", json="body", exported=False),
    Table("setting_changes", conversation="conversation_id", loader=ADD),
    Table("invalid_responses", conversation="conversation_id", closed=("deriver",), app=EVERYTHING, exported=False),
    Table("model_usage", closed=("deriver", "model"), app=EVERYTHING, exported=False),
    Table("events", conversation="conversation_id", json="body", closed=("type",), loader=ADD, exported=False),
    Table("documents", app=EVERYTHING),
    Table("document_vectors"),
    Table("tombstones", "kept", closed=("digests",), app=ADD, loader="SELECT", exported=False),
    Table("erasures", "kept", closed=("body",), app=ADD, exported=False),
    Table("backfills", "operator", "only_user", closed=("derivers",), app=EVERYTHING, exported=False),
    Table("api_tokens", "operator", closed=("hash",), app=ADD_AND_CHANGE, exported=False),
    Table("store_keys", "store", closed=("name", "key"), app="SELECT", loader="SELECT", exported=False),
    Table("embedding_models", "store", app=ADD_AND_CHANGE, exported=False),
)


def tables_of(*owners: str) -> list[str]:
    return [table.name for table in TABLES if table.owner in owners]


def of_each(statement: str, group: str) -> str:
    """Return the union of a statement of each table of an owner, or of each with an attribute of this name."""
    select = "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
    chosen = [table for table in TABLES if table.owner == group or getattr(table, group, None)]
    return "\nUNION ALL\n".join(select.format(table=table) for table in chosen)
