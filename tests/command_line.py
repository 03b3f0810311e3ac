"""The command line as a process of its own, and what a command gives back."""

import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SCRIPT = Path(sys.executable).parent / "memstore"
EMBEDDER = "hashing:256"


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


def variables(settings: dict[str, str]) -> dict[str, str]:
    return {f"MEMSTORE_{name.upper()}": value for name, value in settings.items()}


def environment(**more: str) -> dict[str, str]:
    """Give the variables of a process that has no settings but these, and an embedder without weights."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MEMSTORE_")}
    given = {"MEMSTORE_CONFIG": "", "MEMSTORE_EMBEDDER": EMBEDDER, "COLUMNS": "100"}
    return own | given | more


def script(*args: str, **settings: str) -> Ended:
    env = environment(**variables(settings))
    ran = subprocess.run([SCRIPT, *args], env=env, capture_output=True, text=True, timeout=120)
    return Ended(ran.returncode, ran.stdout, ran.stderr)


class Terminal:
    """What a person sees of a process on a terminal, where stdout and stderr are one, and what they type."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self._end = end
        self._seen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while more := os.read(self._end, 65536):
                self._seen += more
        except OSError:  # what Linux gives when the other end is closed
            pass

    @property
    def shown(self) -> str:
        return self._seen.decode().replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def expect(self, text: str, times: int = 1) -> None:
        until = time.monotonic() + 30
        while self.shown.count(text) < times:
            assert time.monotonic() < until, self.shown
            time.sleep(0.02)

    def ended(self) -> int:
        code = self.process.wait(timeout=30)
        self._reader.join(5)
        return code


@contextmanager
def terminal(*args: str, **more: str) -> Iterator[Terminal]:
    """Run the script on a terminal of 100 columns."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    env = {name: value for name, value in environment(**more).items() if name != "COLUMNS"}
    with subprocess.Popen([SCRIPT, *args], env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
    os.close(ours)
