"""The cluster of one folder and the server on it: made whole or not at all, started, joined, recognized and stopped.

Callers of `up` and `stop` hold the folder's lock. A pid out of a file says nothing until its command line agrees.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg

from memstore.errors import EmbeddedError
from memstore.store.embedded.data_directory import DATABASE, check_version, make_cluster, write_settings
from memstore.store.embedded.folder import ELSEWHERE, Account, FolderLock, attempts
from memstore.store.embedded.programs import describe_failure, executable, open_privately

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
# sun_path holds 104 on macOS, 108 on Linux.
MAX_SOCKET_PATH_BYTES = 100
# The recovery after a crash replays up to max_wal_size.
START_SECONDS = 120.0
STOP_SECONDS = 120.0
ORPHAN_SECONDS = 3.0
LOG_BYTES = 10_000_000

# Servers that this process started, and must take leave of when they end.
_children: set[int] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_children.clear)


class PidFile(NamedTuple):
    """What the server wrote down about itself in postmaster.pid; its status is "ready" or "stopping" in the end."""

    pid: int
    sockets: Path
    status: str


class Cluster:
    """The data directory of a folder, and the server on it."""

    def __init__(self, folder: Path, account: Account) -> None:
        self.folder = folder
        self.account = account
        self.data = folder / "data"
        self.log = folder / "server.log"

    def up(self) -> Path:
        """Return the folder of the running server's socket; make the cluster and start the server where needed."""
        if not self.data.exists():
            make_cluster(self.folder, self.account)
        check_version(self.data)
        return self._running() or self._start()

    def answers(self, sockets: Path) -> bool:
        """Return whether it is this cluster's server that listens there."""
        if not self.account.keeps_private(sockets):
            return False
        try:
            with psycopg.connect(
                host=str(sockets), port=PORT, user="postgres", dbname=DATABASE, connect_timeout=5, autocommit=True
            ) as connection:
                row = connection.execute("SHOW data_directory").fetchone()
            return row is not None and self.data.samefile(row[0])
        except (psycopg.Error, OSError):
            return False

    def is_free(self, within: float) -> bool:
        """Return whether no process of a server is left, or soon will be; those of another container count as well."""
        with FolderLock(self.folder / "server", self.account) as lock:
            return lock.take(within=within)

    def stop(self) -> bool:
        """Stop the server in an orderly way; False if it was not running."""
        note = self._pid_file()
        if note is None or not self._is_server(note.pid):
            return False
        os.kill(note.pid, signal.SIGINT)
        for _ in attempts(STOP_SECONDS):
            if not self._is_server(note.pid) and note.pid not in _children:
                # A process has no command line any more before it gives up its locks.
                self.is_free(within=ORPHAN_SECONDS)
                if note.sockets.name == self._mark():
                    with suppress(OSError):
                        note.sockets.rmdir()
                return True
        raise EmbeddedError(
            f"The embedded Postgres of {self.folder} (process {note.pid}) was asked to stop and still runs after "
            f"{STOP_SECONDS:.0f} s. Wait for it, or look into {self.log}."
        )

    def _running(self) -> Path | None:
        for _ in attempts(START_SECONDS):
            note = self._pid_file()
            if note is None:
                return None
            if note.status == "ready" and self.answers(note.sockets):
                return note.sockets
            if not self._is_server(note.pid):
                return None
            unreachable = note.status == "ready" and not (note.sockets / SOCKET).exists()
            if unreachable or note.status == "stopping":
                # Somebody cleaned the socket away, or asked for an end that waits for every client to leave.
                self.stop()
                return None
        raise self._not_ready()

    def _start(self) -> Path:
        lock = self._take_over()
        try:
            # As far as a killed initdb, still at work, allows.
            for leftover in self.folder.glob("data.new-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            self._drop_stale_pid_file()
            sockets = self._make_sockets()
            write_settings(self.data, self.account)
            with open(self.log, "ab", opener=open_privately) as log:
                self.account.own(log.fileno())
                if log.tell() > LOG_BYTES:
                    log.truncate(0)
                seen = log.tell()
                server = self._launch(sockets, log.fileno(), lock)
        finally:
            lock.forget()
        self._await(server, sockets, seen)
        return sockets

    def _launch(self, sockets: Path, log: int, lock: FolderLock) -> subprocess.Popen[bytes]:
        listed = str(sockets).replace('"', '""')
        fixed = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": f'"{listed}"',
            "unix_socket_permissions": "0700",
            "cluster_name": self._mark(),
        }
        command = ["postgres", "-D", str(self.data)]
        for name, value in fixed.items():
            command += ["-c", f"{name}={value}"]
        server = self.account.spawn(
            executable(command, self.account),
            self.data,
            sockets,
            stdin=subprocess.DEVNULL,
            output=log,
            keep=(lock.descriptor,),
        )
        _reap_children()
        _children.add(server.pid)
        return server

    def _await(self, server: subprocess.Popen[bytes], sockets: Path, seen: int) -> None:
        try:
            for _ in attempts(START_SECONDS):
                note = self._pid_file()
                if note and note.status == "ready" and self.answers(sockets):
                    return
                if server.poll() is not None:
                    said = self.log.read_bytes()[seen:].decode(errors="replace")
                    raise describe_failure(self.folder, "it ended while it started", said)
            raise self._not_ready()
        except (KeyboardInterrupt, SystemExit):
            server.send_signal(signal.SIGINT)
            server.wait()
            raise
        finally:
            # It may outlive this process on purpose, which Popen would complain about.
            server.returncode = 0

    def _take_over(self) -> FolderLock:
        """Return the lock that only the server's processes hold, once those of a killed server are gone.

        They hold its shared memory, and no new server starts while they run.
        """
        lock = FolderLock(self.folder / "server", self.account)
        for number in (signal.SIGQUIT, signal.SIGKILL, 0):
            if lock.take(within=ORPHAN_SECONDS):
                return lock
            for pid in find_processes(self._mark()):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        lock.release()
        raise EmbeddedError(
            f"{self.data} is in use by a Postgres that does not answer and cannot be seen from here; is it another "
            f"container's? Stop it there, then open it again. {ELSEWHERE}"
        )

    def _drop_stale_pid_file(self) -> None:
        """Remove the pid file of a server that is gone; Postgres stumbles if its pid is a zombie's or a stranger's.

        Its own check for shared memory in use does not need the file.
        """
        note = self._pid_file()
        command = get_cmdline(note.pid) if note else ""
        if note and "postgres" in command and str(self.data) in command:
            raise EmbeddedError(
                f"Another program runs a Postgres on {self.data} (process {note.pid}). Stop it there. {ELSEWHERE}"
            )
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _make_sockets(self) -> Path:
        places = [self.folder / "run"]
        # What is in it must be private, which is checked.
        shared = (Path(tempfile.gettempdir()), Path("/tmp"))  # nosec B108
        places += [folder / self._mark() for folder in shared]
        for place in places:
            # libpq takes a comma for the border between two hosts, and knows no way to write one.
            if len(os.fsencode(place / SOCKET)) > MAX_SOCKET_PATH_BYTES or "," in str(place):
                continue
            if self.account.make_folder(place):
                for leftover in (SOCKET, f"{SOCKET}.lock"):
                    (place / leftover).unlink(missing_ok=True)
                return place
        raise EmbeddedError(
            f"No folder for the socket of {self.folder}: its own path is too long, and {places[-1]} is not private to "
            f"the account {self.account.uid}. Remove that, or choose a folder with a shorter path. {ELSEWHERE}"
        )

    def _mark(self) -> str:
        status = self.data.stat()
        return f"memstore-{status.st_ino:x}-{status.st_dev:x}"

    def _is_server(self, pid: int) -> bool:
        _reap_children()
        return f"cluster_name={self._mark()} " in f"{get_cmdline(pid)} "

    def _pid_file(self) -> PidFile | None:
        try:
            lines = os.fsdecode((self.data / "postmaster.pid").read_bytes()).splitlines()
            note = PidFile(int(lines[0]), Path(lines[4]), "".join(lines[7:8]).strip())
        except (FileNotFoundError, ValueError, IndexError):
            return None
        return note if note.pid > 0 else None

    def _not_ready(self) -> EmbeddedError:
        return EmbeddedError(
            f"The embedded Postgres of {self.folder} runs but does not answer after {START_SECONDS:.0f} s. After a "
            f"crash it may still be recovering: open it again later. {self.log} tells what it does."
        )


def _reap_children() -> None:
    for pid in list(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG) != (0, 0)
        except ChildProcessError:
            ended = True
        if ended:
            _children.discard(pid)


def get_cmdline(pid: int) -> str:
    """Return the command line of a process; empty if it is gone, or dead and not yet taken leave of."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except (psutil.Error, ValueError, OverflowError):
        return ""


def find_processes(mark: str) -> list[int]:
    return [pid for pid in psutil.pids() if mark in get_cmdline(pid)]
