"""Hindsight without a language model: a bank for each user, each unit a chunk of its own, ranked by its four arms.

Its cross-encoder is its own pass-through ("rrf"): the models that it would load come from the network. Recall with the
largest budget of its graph and as many tokens as its answer may have; the rows come in its order.
"""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import datetime

os.environ |= {
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    "HINDSIGHT_API_LOG_LEVEL": "error",
    "HINDSIGHT_API_DATABASE_URL": "pg0",
}

from hindsight_api import MemoryEngine
from hindsight_api.engine.cross_encoder import RRFPassthroughCrossEncoder
from hindsight_api.engine.embeddings import Embeddings
from hindsight_api.engine.memory_engine import Budget
from hindsight_api.engine.task_backend import SyncTaskBackend
from hindsight_api.models import RequestContext
from known import DATABASE, Known
from lines import Json
from memories import serve_memory

BATCH = 100
PER_HIT = 100  # tokens that a hit may have, about: its recall has no limit of hits


class Looked(Embeddings):
    """Vectors that are known, as Hindsight asks for them."""

    provider_name = "known"

    def __init__(self) -> None:
        self.known = Known()

    @property
    def dimension(self) -> int:
        return self.known.dimensions

    async def initialize(self) -> None: ...

    async def encode(self, texts: list[str]) -> list[list[float]]:
        return self.known.many(texts)


class Memory:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = MemoryEngine(
            db_url="pg0://memstore-benchmark",
            memory_llm_provider="none",
            embeddings=Looked(),
            cross_encoder=RRFPassthroughCrossEncoder(),
            task_backend=SyncTaskBackend(),
        )
        self.context = RequestContext()
        self.loop.run_until_complete(self.engine.initialize())

    def add(self, user: str, units: list[Json]) -> None:
        for start in range(0, len(units), BATCH):
            contents = [
                {
                    "content": one["said"],
                    "event_date": datetime.fromisoformat(one["at"]),
                    "document_id": f"{user}-{one['row']}",
                    "metadata": {"row": str(one["row"])},
                }
                for one in units[start : start + BATCH]
            ]
            self.loop.run_until_complete(
                self.engine.retain_batch_async(user, contents, request_context=self.context)
            )

    def search(self, user: str, question: str, limit: int) -> list[int]:
        found = self.loop.run_until_complete(
            self.engine.recall_async(
                user, question, budget=Budget.HIGH, max_tokens=PER_HIT * limit, request_context=self.context
            )
        )
        return [int(one.metadata["row"]) for one in found.results][:limit]


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    serve_memory(["hindsight-api-slim"], Memory())
