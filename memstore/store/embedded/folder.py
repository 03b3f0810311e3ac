"""A store's folder: the account that it belongs to and that runs the private Postgres, and the locks on its files.

Postgres refuses to run as root. Where root opens a store, the server runs as the owner of the folder if that is an
ordinary account, else as `nobody`, and everything it needs is handed to that account. Where root cannot become another
account, as in a user namespace with one id, the server gets a namespace of its own in which it is not root.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self
from weakref import WeakSet

from memstore.errors import EmbeddedError

if sys.platform != "win32":
    import fcntl
    import pwd

ELSEWHERE = "Or give the URL of a Postgres that runs already: postgresql://…"


class Account(NamedTuple):
    """The account that owns the folder and runs the server."""

    uid: int
    gid: int

    @classmethod
    def of(cls, folder: Path) -> Account:
        """Return the account for a folder, whether the folder exists yet or not."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        with suppress(FileNotFoundError):
            owner = folder.stat()
            if owner.st_uid != 0:
                return cls(owner.st_uid, owner.st_gid)
        nobody = pwd.getpwnam("nobody")
        if _may_become(nobody.pw_uid, nobody.pw_gid):
            return cls(nobody.pw_uid, nobody.pw_gid)
        return cls(os.geteuid(), os.getegid())

    @property
    def is_lent(self) -> bool:
        """Return whether this process is root and lends the server another account."""
        return self.uid != os.geteuid()

    def own(self, descriptor: int) -> None:
        """Hand an open file to the account, unless it has a second name: then it may be anybody's."""
        status = os.fstat(descriptor)
        if self.is_lent and status.st_uid != self.uid and status.st_nlink == 1:
            os.fchown(descriptor, self.uid, self.gid)

    def make_folder(self, path: Path) -> bool:
        """Make a folder that only this account enters; False if something else has the name already.

        A link or another account's folder is never accepted: in a temporary folder anybody could have prepared it.
        """
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in {self.uid, os.geteuid()}:
            return False
        if status.st_uid != self.uid:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return self.keeps_private(path)

    def keeps_private(self, path: Path) -> bool:
        """Return whether this is a folder of the account that nobody else enters."""
        try:
            status = path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and status.st_uid == self.uid and not status.st_mode & 0o077

    def spawn(
        self, command: list[str], *needed: Path, stdin: int, output: int, keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a command as this account, apart from this process' terminal, environment and files (but `keep`)."""
        prefix = self._passage(Path(command[0]), *needed) if self.is_lent else []
        switched = self.is_lent and not prefix
        if self.uid == 0:
            prefix = _namespace()
        # The account must not read this process' environment out of the child's: keys may be in it.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        return subprocess.Popen(
            [*prefix, *command],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment,
            umask=0o077,
            pass_fds=keep,
            start_new_session=True,
            user=self.uid if switched else None,
            group=self.gid if switched else None,
            extra_groups=[] if switched else None,
        )

    def _passage(self, *needed: Path) -> list[str]:
        closed = next((barrier for path in needed if (barrier := self.find_barrier(path))), None)
        if closed is None:
            return []
        setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
        capability = _reading_capability()
        if not setpriv or not capability:
            raise EmbeddedError(
                f"{closed} is closed to the account {self.uid}, as which the embedded Postgres must run because this "
                "process is root. Choose a folder that this account can reach, install setpriv (util-linux), or run "
                f"memstore as an ordinary user. {ELSEWHERE}"
            )
        # A barrier such as a 0700 /root is never opened for everybody: this one process may pass, to read only.
        identity = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        return [setpriv, *identity, f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}"]

    def find_barrier(self, path: Path) -> Path | None:
        """Return the first folder on the way to a path that this account cannot enter, or the path itself."""
        path = path.resolve()
        return next((part for part in (*reversed(path.parents), path) if not self._may_pass(part)), None)

    def _may_pass(self, part: Path) -> bool:
        status = part.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        return bool(status.st_mode & (stat.S_IXGRP if status.st_gid == self.gid else stat.S_IXOTH))


def _reading_capability() -> str | None:
    """Return the least capability that passes closed folders and that this process can hand on.

    Containers usually hold dac_override and not dac_read_search, which is the smaller one.
    """
    held = _capabilities()
    return next((name for name in ("dac_read_search", "dac_override") if held >> CAPABILITIES[name] & 1), None)


# Bits of CapEff in /proc/self/status.
CAPABILITIES = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "kill": 5, "setgid": 6, "setuid": 7}
LENDING = ("chown", "dac_override", "fowner", "kill", "setgid", "setuid")


def _capabilities() -> int:
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("CapEff:")[2].split()[0], 16)
    return 0


def _may_become(uid: int, gid: int) -> bool:
    """Return whether root can run the server as this account, and look after its files and processes."""
    if sys.platform != "linux":
        return True
    held = _capabilities()
    return all(held >> CAPABILITIES[name] & 1 for name in LENDING) and _is_mapped("uid", uid) and _is_mapped("gid", gid)


def _is_mapped(kind: str, number: int) -> bool:
    ranges = (map(int, line.split()) for line in Path(f"/proc/self/{kind}_map").read_text("ascii").splitlines())
    return any(first <= number < first + count for first, _, count in ranges)


def _namespace() -> list[str]:
    """Return the command that starts another one in a user namespace of its own, where root's id is another."""
    unshare = shutil.which("unshare")
    if unshare:
        prefix = [unshare, "--user", "--map-user=65534", "--map-group=65534", "--"]
        attempt = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
        if attempt.returncode == 0:
            return prefix
        reason = attempt.stderr.strip()
    else:
        reason = "unshare (util-linux) is not installed"
    raise EmbeddedError(
        "The embedded Postgres refuses to run as root, and this root can neither become another account (its user "
        f"namespace has only one, or it lacks capabilities: {', '.join(LENDING)}) nor make a user namespace "
        f"({reason}). Run memstore as an ordinary user, or give the container more ids or capabilities. {ELSEWHERE}"
    )


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
    """A lock on a file that ends with its process. Two exclude each other even within one process."""

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

    def take(self, *, shared: bool = False, within: float = 0) -> bool:
        """Take the lock, alone or `shared`; False if others held it all the time."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        for _ in attempts(within):
            with suppress(BlockingIOError):
                fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
                return True
        return False

    def release(self) -> None:
        """Release the lock, for the copies too that a forked child may still hold of it."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close this process' copy, and leave the lock to the parent or the child that has the other one."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    @property
    def is_open(self) -> bool:
        return self._descriptor is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_locks: WeakSet[FolderLock] = WeakSet()


def _forget_all() -> None:
    for lock in _locks:
        lock.forget()


if hasattr(os, "register_at_fork"):
    # Without this a forked child would keep its dead parent's presence, and with it the server, alive.
    os.register_at_fork(after_in_child=_forget_all)
