"""The place of the resident encoder: where its socket is, and who has the lock beside it.

It lies in a folder that nobody but this account enters, and is named after all that decides what stands behind it: the
installation, the embedder, what of the environment changes numbers or places, and where addresses lead from here:
containers that share a folder of sockets mean different databases by the same words. Whoever answers holds the lock,
which the kernel drops however the process ends.
"""

from __future__ import annotations

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
PATH_BYTES = 100  # sun_path holds 104 on macOS, 108 on Linux
SECONDS_TO_START = 120.0  # torch from a cold disk, on a busy machine
# What of the environment decides what a model gives, bit for bit, and in which folders things lie.
DECIDING = (
    "HOME", "HF_HOME", "HF_HUB_CACHE", "LD_LIBRARY_PATH", "PYTHONPATH", "SENTENCE_TRANSFORMERS_HOME", "TMPDIR",
    "XDG_DATA_HOME",
)  # fmt: skip
NAMESPACES = ("mnt", "net", "user")  # folders, servers and accounts are found in these
READY = b"ready\n"  # stands in the lock's file once the model is loaded


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
    package = Path(__file__).parent
    found = list(_times(package))
    yield f"{package} {len(found)} {sum(found)}"
    libraries = [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
    for place in dict.fromkeys([str(package.parent), *libraries]):
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
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    os.utime(descriptor)
    return descriptor


def say_ready(place: int) -> None:
    """Tell others that whoever has this place answers at once from now on, and is stuck where it does not."""
    with suppress(OSError):  # on a full disk it seems to start for a while
        os.pwrite(place, READY, 0)


def is_starting(path: Path) -> bool:
    """Whether who has the place at this path is still loading, and may be silent."""
    with suppress(OSError):
        found = path.with_suffix(".lock").stat()
        return not found.st_size and time.time() - found.st_mtime < SECONDS_TO_START
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
