"""How two processes of one account talk over the socket of the resident encoder. Nothing goes over a network.

A message is its length, an object of JSON and, where that says so ("bytes"), as many bytes behind it. Whoever waits for
an answer longer than a moment asks for a sign of life on a second line: a process that is stopped, or starved of
memory, listens and never says anything.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from memstore.socket_place import is_starting

LONGEST = 1 << 30  # bytes of a message
SECONDS_TO_CONNECT = 5.0
SECONDS_TO_PASS = 10.0  # a part of a message, from one living process to another
SECONDS_OF_PATIENCE = 2.0  # a sign of life needs no model and takes a millisecond
_LENGTH = struct.Struct(">I")

Message = dict[str, Any]


class Unanswered(Exception):
    """Nobody answers there, or not any more; whoever asked goes another way."""


def listen(path: Path) -> socket.socket:
    """Give the listening socket, for this account alone; what a killed process left there is removed.

    Only for whoever holds the place (`take`).
    """
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(64)
    return listening


class Line:
    """A connection between two processes of one account; `path` is where the other one listens."""

    def __init__(self, connected: socket.socket, path: Path | None = None) -> None:
        self._socket = connected
        self._path = path

    @classmethod
    def to(cls, path: Path) -> Line:
        """Connect to who listens at this path; raise `Unanswered` where nobody of this account does."""
        try:
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:  # too many open files
            raise Unanswered(str(error)) from error
        try:
            found = path.lstat()
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
                raise Unanswered(f"{path} is no socket of this account")
            connected.settimeout(SECONDS_TO_CONNECT)
            connected.connect(str(path))
            check_peer(connected)
        except OSError as error:
            connected.close()
            raise Unanswered(str(error)) from error
        except Unanswered:
            connected.close()
            raise
        return cls(connected, path)

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def ask(self, message: Mapping[str, Any], *, seconds: float) -> tuple[Message, bytes]:
        """Send a message and give the answer; raise `Unanswered` where none comes, or no sign of life meanwhile."""
        try:
            self._socket.settimeout(SECONDS_TO_PASS)
            self.send(message)
            self._await(seconds)
            self._socket.settimeout(SECONDS_TO_PASS)
            answer = self.receive()
        except (OSError, ValueError) as error:
            raise Unanswered(str(error)) from error
        if answer is None:
            raise Unanswered("hung up")
        return answer

    def _await(self, seconds: float) -> None:
        """Wait until an answer begins, or the other side has hung up."""
        while True:
            self._socket.settimeout(min(seconds, SECONDS_OF_PATIENCE))
            with suppress(TimeoutError):
                self._socket.recv(1, socket.MSG_PEEK)
                return
            seconds -= SECONDS_OF_PATIENCE
            if seconds <= 0 or (self._path is not None and not is_alive(self._path)):
                raise Unanswered("it does not answer")

    def send(self, message: Mapping[str, Any], data: bytes = b"") -> None:
        """Send a message; raises OSError where the other side has gone."""
        text = json.dumps({**message, "bytes": len(data)}).encode()  # ASCII, so that lone surrogates come through
        self._socket.sendall(_LENGTH.pack(len(text)) + text + data)

    def receive(self) -> tuple[Message, bytes] | None:
        """Give the next message, None where the other side has hung up; raises OSError or ValueError for a torn one."""
        start = self._exactly(_LENGTH.size, whole=False)
        if not start:
            return None
        message = json.loads(self._exactly(_checked(_LENGTH.unpack(start)[0])))
        if not isinstance(message, dict):
            raise ValueError("no message")
        return message, self._exactly(_checked(int(message.pop("bytes", 0))))

    def _exactly(self, size: int, *, whole: bool = True) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                if data or whole:
                    raise ConnectionError("hung up in the middle of a message")
                break
            data += part
        return bytes(data)


def is_alive(path: Path) -> bool:
    """Whether who listens at this path gives a sign of life, or is still starting."""
    if is_starting(path):
        return True
    with suppress(Unanswered), Line.to(path) as line:
        line.ask({"ask": "status"}, seconds=SECONDS_OF_PATIENCE)
        return True
    return False


def check_peer(connected: socket.socket) -> None:
    """Raise `Unanswered` unless the other side is of this account, where the system tells; the folder is private."""
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        _, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if uid != os.geteuid():
            raise Unanswered(f"account {uid} is on the other side")


def _checked(size: int) -> int:
    if not 0 <= size <= LONGEST:
        raise ValueError(f"a message of {size} bytes")
    return size
