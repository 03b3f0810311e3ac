"""Workers forked from a process that has imported this: they begin at once, where a fresh one takes seconds."""

import asyncio
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import tests.working  # noqa: F401  # its workers sweep often
from memstore.client.worker import work
from memstore.derive.facts.note_facts import Utterance, extract
from memstore.testing import HashingEmbedder

CONTEXT = multiprocessing.get_context("forkserver")

HashingEmbedder().embed_query("warm")
extract(
    Utterance("I live in Leeds, and my sister is a nurse since May.", "user", None, datetime.now(UTC)), []
)  # compiled


@contextmanager
def forked_worker(url: str, log: Path, settings: dict[str, Any]) -> Iterator[BaseProcess]:
    """A worker with a concurrency of 2, killed in the end where it still runs; what it logs is added to a file."""
    CONTEXT.set_forkserver_preload([__name__])
    process = CONTEXT.Process(target=_work, args=(url, log, settings))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _work(url: str, log: Path, settings: dict[str, Any]) -> None:
    with log.open("ab") as told:
        os.dup2(told.fileno(), 1)
        os.dup2(told.fileno(), 2)
    asyncio.run(work(url, settings=settings, concurrency=2))
