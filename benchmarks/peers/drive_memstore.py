"""memstore itself: stored and derived in a private Postgres, and `context()` with the newest user message as question.

Recall is by words (`embedder` "none"), so that no model takes part on any side.
"""

from __future__ import annotations

import tempfile

from lines import Json, serve

import memstore


def assembled(store: memstore.MemoryStore, case: Json) -> list[Json]:
    user = store.user(case["id"])
    conversation = user.conversation("talk")
    conversation.add_many(case["messages"])
    for fact in case["facts"]:
        user.add_fact(fact, type="preference")
    store.derive(user=case["id"])
    return conversation.context(budget=case["budget"], system=case["system"]).messages


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as folder,
        memstore.open(f"embedded:{folder}", settings={"embedder": "none"}) as store,
    ):
        serve(["memstore-llm"], lambda case: assembled(store, case))
