"""The memory of a run: this process and every process of its embedded Postgres, shared buffers apart."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

EVERY = 1.0  # seconds
PARTS = re.compile(r"^(Pss_Anon|Pss_File|Pss_Shmem|SwapPss):\s+(\d+) kB", re.MULTILINE)


class Watched:
    """Looks every second, in a thread, while it is entered; `peak` is the most that all had together, in GB.

    Proportional set size: what processes share counts once. Postgres' shared memory is its buffers. Linux only; 0
    elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self.peak = self.own = 0.0
        self._folder = str(folder)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            own = sum(_private(Path("/proc/self")).values()) / 1e6
            servers = sum(sum(_private(one).values()) for one in self._servers()) / 1e6
            self.own, self.peak = max(self.own, own), max(self.peak, own + servers)

    def _servers(self) -> list[Path]:
        """Return the processes that work in the store's folder: the server's and its backends."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if str((process / "cwd").readlink()).startswith(self._folder):
                    found.append(process)
            except OSError:
                continue  # it ended meanwhile, or is another user's
        return found


def _private(process: Path) -> dict[str, int]:
    """Return what a process has, in kB, without memory that it shares as such."""
    try:
        parts = dict(PARTS.findall((process / "smaps_rollup").read_text()))
    except OSError:
        return {}
    return {name: int(size) for name, size in parts.items() if name != "Pss_Shmem"}
