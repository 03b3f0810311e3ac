"""The socket of the resident encoder: where it is, whose it may be, and how two processes talk over it.

It lies in a folder that nobody but this account enters, and is named after all that decides what stands behind it: the
installation, the embedder, and what of the environment changes numbers or places. Nothing goes over a network. Whoever
answers holds the lock beside the socket, which the kernel drops however the process ends.

A message is its length, an object of JSON and, where that says so ("bytes"), as many bytes behind it.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any

if sys.platform != "win32":
    import fcntl

SUPPORTED = hasattr(socket, "AF_UNIX") and sys.platform != "win32"
PATH_BYTES = 100  # sun_path holds 104 on macOS, 108 on Linux
LONGEST = 1 << 30  # bytes of a message
SECONDS_TO_CONNECT = 5.0
# What of the environment decides what a model gives, bit for bit, and in which folders things lie.
DECIDING = (
    "HOME", "HF_HOME", "HF_HUB_CACHE", "LD_LIBRARY_PATH", "PYTHONPATH", "SENTENCE_TRANSFORMERS_HOME", "TMPDIR",
    "XDG_DATA_HOME",
)  # fmt: skip
_LENGTH = struct.Struct(">I")

Message = dict[str, Any]


class Unanswered(Exception):
    """Nobody answers there, or not any more; whoever asked goes another way."""


def socket_path(embedder: str) -> Path | None:
    """Give where the encoder of this embedder listens, or would; None where there is no place that is private."""
    if not SUPPORTED:
        return None
    package = Path(__file__).parent
    decided = [embedder, str(package), *(f"{name}={os.environ.get(name)}" for name in DECIDING)]
    # Another installation is another encoder: installing touches both folders.
    decided += [str(folder.stat().st_mtime_ns) for folder in (package, package.parent)]
    name = blake2b("\0".join(decided).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    for folder in _folders():
        path = folder / f"{name}.sock"
        if len(os.fsencode(path)) <= PATH_BYTES and _is_private(folder, make=True):
            return path
    return None


def running() -> list[Path]:
    """Give the sockets of every encoder of this account that runs here, of other installations and embedders too."""
    if not SUPPORTED:
        return []
    found = [path for folder in _folders() if _is_private(folder) for path in sorted(folder.glob("*.sock"))]
    return [path for path in found if is_held(path)]


def _folders() -> list[Path]:
    own = f"memstore-{os.geteuid()}"
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
    found = [runtime / "memstore"] if _is_private(runtime) else []
    return list(dict.fromkeys([*found, Path(tempfile.gettempdir()) / own, Path("/tmp") / own]))


def _is_private(folder: Path, *, make: bool = False) -> bool:
    """Whether nobody else enters: in a temporary folder, anybody could have made one of this name, or a link."""
    with suppress(OSError):
        if make:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return False


def take(path: Path) -> int | None:
    """Take the place of the one who answers at this path, as long as the process lives; None where somebody has it."""
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_held(path: Path) -> bool:
    """Whether a process answers at this path, or is about to."""
    with suppress(OSError):
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


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
    """A connection between two processes of one account."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def to(cls, path: Path) -> Line:
        """Connect to who listens at this path; raise `Unanswered` where nobody of this account does."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
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
        return cls(connected)

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
        """Send a message and give the answer; raise `Unanswered` where none comes, or not in time."""
        try:
            self._socket.settimeout(seconds)
            self.send(message)
            answer = self.receive()
        except (OSError, ValueError) as error:
            raise Unanswered(str(error)) from error
        if answer is None:
            raise Unanswered("hung up")
        return answer

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
