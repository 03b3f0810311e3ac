"""The embedded server: a private Postgres in a folder of the user's, given to everybody else as a URL.

Any number of processes may open a folder. Each handle holds the file `clients` with a shared lock, which the kernel
drops however its process ends; the one who finds nobody else there when leaving stops the server. Starting and stopping
happen under an exclusive lock on the file `lock`. Both need a local disk.

A process that is killed cannot stop the server: it goes on, the next one to open the folder joins it, and stops it on
leaving; `stop` does so at once. A forked child that uses its parent's handle is not counted before it calls `ensure`.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from memstore.errors import EmbeddedError
from memstore.store.embedded.data_directory import DATABASE
from memstore.store.embedded.folder import ELSEWHERE, Account, FolderLock
from memstore.store.embedded.postmaster import ORPHAN_SECONDS, PORT, START_SECONDS, STOP_SECONDS, Cluster


class EmbeddedServer:
    """A client's place at the private Postgres of a folder; it runs while anybody has one."""

    def __init__(self, folder: Path, account: Account) -> None:
        self.folder = folder
        self._account = account
        self._cluster = Cluster(folder, account)
        self._presence: FolderLock | None = None
        self._sockets = folder

    @classmethod
    def open(cls, folder: Path) -> EmbeddedServer:
        """Join the Postgres of this folder, which is made and started where needed."""
        folder = _check_path(folder)
        with _explain_errors(folder):
            server = cls(folder, _prepare(folder))
            server._join()
        atexit.register(server.close)
        return server

    @property
    def url(self) -> str:
        """Where the database is, for psycopg and, with its own prefix, for SQLAlchemy."""
        # The port stands here because libpq would take another one from PGPORT.
        return f"postgresql://postgres@/{DATABASE}?host={quote(str(self._sockets))}&port={PORT}"

    def ensure(self) -> None:
        """Start the server again if it died; in a forked child, become a client of it as well."""
        if self._presence is None:
            raise EmbeddedError(f"The embedded Postgres of {self.folder} was closed by this process. Open it again.")
        if not (self._presence.is_open and self._cluster.answers(self._sockets)):
            with _explain_errors(self.folder):
                self._join()

    def close(self) -> None:
        """Leave; the last one to leave stops the server."""
        presence, self._presence = self._presence, None
        atexit.unregister(self.close)
        if presence is None or not presence.is_open:
            return
        with _explain_errors(self.folder):
            try:
                self._leave(presence)
            except FileNotFoundError:
                # The folder was removed, and Postgres stops by itself when its files are gone.
                presence.release()

    def _join(self) -> None:
        with _lock_folder(self.folder, self._account):
            self._sockets = self._cluster.up()
            if self._presence is None or not self._presence.is_open:
                self._presence = FolderLock(self.folder / "clients", self._account)
                self._presence.take(shared=True)

    def _leave(self, presence: FolderLock) -> None:
        with _lock_folder(self.folder, self._account):
            presence.release()
            with FolderLock(self.folder / "clients", self._account) as clients:
                if clients.take():
                    self._cluster.stop()


def stop(folder: Path) -> bool:
    """Stop the Postgres of this folder in an orderly way, even if others use it; False if it was not running."""
    folder = _check_path(folder)
    with _explain_errors(folder):
        if not (folder / "lock").exists():
            return False
        cluster = Cluster(folder, Account.of(folder))
        with _lock_folder(folder, cluster.account):
            if cluster.stop():
                return True
            if cluster.is_free(within=ORPHAN_SECONDS):
                return False
            raise EmbeddedError(
                f"The Postgres of {folder} runs, and its process cannot be found here: another container "
                "runs it, or its postmaster.pid was removed. Stop it where it was started."
            )


def _check_path(folder: Path) -> Path:
    if sys.platform == "win32":
        raise EmbeddedError(f"The embedded Postgres runs on Linux and macOS only. {ELSEWHERE}")
    folder = folder.expanduser().resolve()
    if any(character in "\n\r" or "\ud800" <= character <= "\udfff" for character in str(folder)):
        raise EmbeddedError(f"{str(folder)!r} cannot be the path of a store: choose one without line breaks, in UTF-8.")
    return folder


def _prepare(folder: Path) -> Account:
    folder.parent.mkdir(parents=True, exist_ok=True)
    account = Account.of(folder)
    if folder.exists():
        files = sorted({entry.name for entry in folder.iterdir()} - {".DS_Store", "lost+found"})
        # The lock is looked for last: another process may just begin here.
        if files and not (folder / "lock").exists():
            raise EmbeddedError(
                f"{folder} holds other files ({', '.join(files[:3])}) and will not be made a store. Choose an empty "
                "folder, or one that does not exist yet."
            )
    if folder.is_dir() and folder.stat().st_uid in {account.uid, os.geteuid()}:
        folder.chmod(0o700)
    if not account.make_folder(folder):
        raise EmbeddedError(
            f"{folder} does not belong to the account {account.uid}, which would run its Postgres. Choose a folder of "
            f"your own, or become its owner. {ELSEWHERE}"
        )
    return account


@contextmanager
def _lock_folder(folder: Path, account: Account) -> Iterator[None]:
    with FolderLock(folder / "lock", account) as lock:
        if not lock.take(within=START_SECONDS + STOP_SECONDS):
            raise EmbeddedError(
                f"Another process has been starting or stopping the embedded Postgres of {folder} for minutes. "
                f"See what holds {folder / 'lock'}, end it, and try again."
            )
        yield


@contextmanager
def _explain_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename or folder})"
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        advice = "Free the disk" if is_full else "Choose a folder that is yours to write, on a local disk"
        raise EmbeddedError(
            f"The embedded Postgres of {folder} cannot be used: {reason}. {advice}. {ELSEWHERE}"
        ) from error
