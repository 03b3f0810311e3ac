"""LangGraph's PostgresStore: a namespace for each user, its default index, `search` with a query."""

from __future__ import annotations

import os

from known import DATABASE, Known
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from lines import Json
from memories import serve_memory


class Memory:
    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        store.setup()

    def add(self, user: str, chunks: list[Json]) -> None:
        place = ("memories", user.replace(".", "-"))
        self.store.batch([PutOp(place, str(one["row"]), {"text": one["said"]}) for one in chunks])

    def search(self, user: str, question: str, limit: int) -> list[int]:
        found = self.store.search(("memories", user.replace(".", "-")), query=question, limit=limit)
        return [int(one.key) for one in found]


if __name__ == "__main__":
    known = Known()
    index = {"dims": known.dimensions, "embed": known.many, "fields": ["text"]}
    with PostgresStore.from_conn_string(os.environ[DATABASE], index=index) as opened:
        serve_memory(["langgraph-checkpoint-postgres"], Memory(opened))
