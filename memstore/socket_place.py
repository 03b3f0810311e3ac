"""The place of the resident encoder: where its socket is, and who has the lock beside it.

It lies in a folder that nobody but this account enters, and is named after all that decides what stands behind it: the
installation, the embedder, what of the environment changes numbers or places, and where addresses lead from here:
containers that share a folder of sockets mean different databases by the same words. Whoever answers holds the lock,
which the kernel drops however the process ends; what stands in the lock's file says of which installation it is, which
no name tells. Who ends takes the files along, and what was killed leaves them until somebody looks after them.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

if sys.platform != "win32":
    import fcntl

SUPPORTED = hasattr(socket, "AF_UNIX") and sys.platform != "win32"
PACKAGE = Path(__file__).parent
PATH_BYTES = 100  # sun_path holds 104 on macOS, 108 on Linux
SECONDS_TO_START = 120.0  # torch from a cold disk, on a busy machine
# What of the environment decides what a model gives, bit for bit, and in which folders things lie.
DECIDING = (
    "HOME", "HF_HOME", "HF_HUB_CACHE", "LD_LIBRARY_PATH", "PYTHONPATH", "SENTENCE_TRANSFORMERS_HOME", "TMPDIR",
    "XDG_DATA_HOME",
)  # fmt: skip
LEFT = (".sock", ".log", ".lock")  # what stands under a name
SECONDS_OF_A_LOG = 86_400.0
NAMESPACES = ("mnt", "net", "user")  # folders, servers and accounts are found in these
READY = b"ready\n"  # stands at the end of the lock's file once the model is loaded


def socket_path(embedder: str) -> Path | None:
    """Give where the encoder of this embedder listens, or would; None where there is no place that is private."""
    if not SUPPORTED:
        return None
    decided = [embedder, *(f"{name}={os.environ.get(name)}" for name in DECIDING), *_surroundings(), *_installation()]
    name = blake2b("\0".join(decided).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    for folder in _folders():
        path = folder / f"{name}.sock"
        if len(os.fsencode(path)) <= PATH_BYTES and _is_private(folder, make=True):
            return path
    return None


def _surroundings() -> Iterator[str]:
    """Give what tells containers apart that share a folder: the same path and host lead elsewhere in each."""
    root = Path("/").stat()
    yield f"{root.st_dev}:{root.st_ino}"
    for name in NAMESPACES:
        with suppress(OSError):  # macOS has none
            yield str(Path(f"/proc/self/ns/{name}").readlink())


def _installation() -> Iterator[str]:
    """Give what changes with the code, memstore's and that of the libraries; 1 ms for its 330 files."""
    found = list(_times(PACKAGE))
    yield f"{PACKAGE} {len(found)} {sum(found)}"
    libraries = [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
    for place in dict.fromkeys([str(PACKAGE.parent), *libraries]):
        with suppress(OSError):
            yield f"{place} {Path(place).stat().st_mtime_ns}"  # installing touches the folder


def _times(folder: str | Path) -> Iterator[int]:
    """Give when each file was changed; what Python compiles beside them tells nothing."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _times(entry.path)
            elif entry.is_file():
                yield entry.stat().st_mtime_ns


def running() -> list[Path]:
    """Give the sockets of every encoder of this account that runs here, of other installations and embedders too."""
    if not SUPPORTED:
        return []
    found = [path for folder in _folders() if _is_private(folder) for path in sorted(folder.glob("*.sock"))]
    return [path for path in found if is_held(path)]


def _folders() -> list[Path]:
    own = f"memstore-{os.geteuid()}"
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent")  # of no meaning where it is relative
    found = [runtime / "memstore"] if runtime.is_absolute() and _is_private(runtime) else []
    shared = (Path(tempfile.gettempdir()), Path("/tmp"))  # nosec B108  # `own` in it must be private, which is checked
    return list(dict.fromkeys([*found, *(folder / own for folder in shared)]))


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
    lock = path.with_suffix(".lock")
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_file_of(lock, descriptor):
            break
        os.close(descriptor)  # it was removed before it was locked: another one may have the place by now
    os.ftruncate(descriptor, 0)
    with suppress(OSError):  # on a full disk nobody can tell whose it is
        os.pwrite(descriptor, _owner().encode() + b"\n", 0)
    os.utime(descriptor)
    return descriptor


def _is_file_of(path: Path, descriptor: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def leave(path: Path, place: int) -> None:
    """Remove what stands under a name, for whoever has the place and ends; where another one has it by now, nothing."""
    with suppress(OSError):
        if _is_file_of(path.with_suffix(".lock"), place):
            _remove(path)


def clean() -> None:
    """Remove what encoders of this account have left that were killed; logs that say something stay for a day."""
    folders = [folder for folder in _folders() if _is_private(folder)] if SUPPORTED else []
    left = {path.with_suffix(".sock") for folder in folders for path in folder.iterdir() if path.suffix in LEFT}
    for path in left:
        with suppress(OSError):
            place = take(path)
            if place is None:
                continue
            try:
                _remove(path)
            finally:
                os.close(place)


def _remove(path: Path) -> None:
    log = path.with_suffix(".log")
    kept = False
    with suppress(OSError):
        kept = log.stat().st_size > 0 and time.time() - log.stat().st_mtime < SECONDS_OF_A_LOG
    for one in (path, *(() if kept else (log,)), path.with_suffix(".lock")):
        one.unlink(missing_ok=True)


def _owner() -> str:
    """Give what says of which installation this is: its folder, and what tells its container from others."""
    return json.dumps([str(PACKAGE.resolve()), *_surroundings()])


def installation_at(path: Path) -> str | None:
    """Give the folder of the installation whose encoder has the place at this path; None where nothing tells."""
    with suppress(OSError, ValueError, LookupError):
        return str(json.loads(_written(path).partition(b"\n")[0])[0])
    return None


def is_of_this_installation(path: Path) -> bool:
    """Whether the encoder that has the place at this path was started by the package in this folder, and from here."""
    with suppress(OSError):
        return _written(path).partition(b"\n")[0] == _owner().encode()
    return False


def _written(path: Path) -> bytes:
    return path.with_suffix(".lock").read_bytes()


def say_ready(place: int) -> None:
    """Tell others that whoever has this place answers at once from now on, and is stuck where it does not."""
    with suppress(OSError):  # on a full disk it seems to start for a while
        os.pwrite(place, READY, os.fstat(place).st_size)


def is_starting(path: Path) -> bool:
    """Whether who has the place at this path is still loading, and may be silent."""
    with suppress(OSError):
        changed = path.with_suffix(".lock").stat().st_mtime
        return not _written(path).endswith(READY) and time.time() - changed < SECONDS_TO_START
    return False


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
