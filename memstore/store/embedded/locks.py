"""Locks on the files of a folder that the kernel drops when their process dies, however it dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakSet

from memstore.store.embedded.os_user import Account

if sys.platform != "win32":
    import fcntl

SHARED, EXCLUSIVE = (fcntl.LOCK_SH, fcntl.LOCK_EX) if sys.platform != "win32" else (0, 0)


def attempts(seconds: float) -> Iterator[None]:
    """Yield at once, and again at growing distances until the time is over."""
    end = time.monotonic() + seconds
    pause = 0.002
    yield
    while time.monotonic() < end:
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
        yield


class FolderLock:
    """A lock of its own on a file: two of them exclude each other even within a process."""

    def __init__(self, path: Path, account: Account) -> None:
        # No link is followed: as root, the folder belongs to an account that is trusted with nothing else.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor: int | None = os.open(path, flags, 0o600)
        _locks.add(self)
        account.own(self._descriptor)

    @property
    def descriptor(self) -> int:
        """The open file, to be handed to a child that shall hold the lock as well."""
        assert self._descriptor is not None
        return self._descriptor

    def take(self, kind: int, *, within: float = 0) -> bool:
        """Take the lock, SHARED or EXCLUSIVE; False if others held it all the time."""
        return any(self._try(kind) for _ in attempts(within))

    def _try(self, kind: int) -> bool:
        if self._descriptor is None:
            return False
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock, for the copies too that a forked child may still hold of it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def forget(self) -> None:
        """Close this process' copy, and leave the lock to the parent or the child that has the other one."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    @property
    def is_open(self) -> bool:
        """Return whether this process still holds the file."""
        return self._descriptor is not None


_locks: WeakSet[FolderLock] = WeakSet()


def _forget_all() -> None:
    for lock in _locks:
        lock.forget()


if hasattr(os, "register_at_fork"):
    # Without this a forked child would keep its dead parent's presence, and with it the server, alive.
    os.register_at_fork(after_in_child=_forget_all)
