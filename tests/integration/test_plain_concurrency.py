"""Plain calls by many threads and many tasks at once: nothing is lost, and every reading is of one moment."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import memstore

WRITERS, EACH = 8, 12


def test_threads_add_read_clear_and_prune_at_once(url: str) -> None:
    with memstore.open(url, settings={"embedder": "none"}) as store:
        room = store.user("world").conversation("room")

        def work(writer: int) -> None:
            for number in range(EACH):
                room.add("user", f"{writer}:{number}")
                seqs = [one.seq for one in room.get_all()]
                assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) if seqs else True
                assert room.count() >= 0
                assert len(room.get_recent(3)) <= 3
                assert store.counter.count_messages(room.prune(60)) <= 60
                if writer == 0 and number % 4 == 3:
                    room.clear()

        with ThreadPoolExecutor(WRITERS) as threads:
            for done in [threads.submit(work, writer) for writer in range(WRITERS)]:
                done.result()
        said = [one.text for one in room.messages()]
        assert sorted(said) == sorted(f"{writer}:{number}" for writer in range(WRITERS) for number in range(EACH))
        assert len(room.get_all()) == room.count() < len(said)


async def test_tasks_do_the_same(url: str) -> None:
    async with await memstore.open_async(url, settings={"embedder": "none"}) as store:
        room = store.user("world").conversation("room")

        async def work(writer: int) -> None:
            for number in range(EACH):
                await room.add("user", f"{writer}:{number}")
                seqs = [one.seq for one in await room.get_all()]
                assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) if seqs else True
                assert store.counter.count_messages(await room.prune(60)) <= 60
                if writer == 0 and number % 4 == 3:
                    await room.clear()

        await asyncio.gather(*(work(writer) for writer in range(WRITERS)))
        said = [one.text for one in await room.messages()]
        assert sorted(said) == sorted(f"{writer}:{number}" for writer in range(WRITERS) for number in range(EACH))
        assert len(await room.get_all()) == await room.count() < len(said)
