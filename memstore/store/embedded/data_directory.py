"""The data directory of an embedded Postgres: made from a template, checked, and its settings written."""

from __future__ import annotations

import os
import secrets
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memstore.errors import EmbeddedError
from memstore.store.embedded.folder import ELSEWHERE, Account
from memstore.store.embedded.programs import MAJOR, open_privately, run

DATABASE = "memstore"

# What `run_initdb` makes, written by tools/cluster.py. initdb itself takes longer, and refuses to run
# for an account without an entry in passwd.
TEMPLATE = Path(__file__).with_name(f"cluster-{MAJOR}.tar.xz")
NONCE_OFFSET, CRC_OFFSET = 257, 292

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
    try:
        _make(folder, account, copy_template)
    except (EmbeddedError, tarfile.CompressionError):
        # The template is of a Postgres built in another way, or this Python has no lzma.
        _make(folder, account, run_initdb)


def _make(folder: Path, account: Account, method: Callable[[Path, Account], None]) -> None:
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=folder))
    try:
        account.make_folder(fresh)
        method(fresh, account)
        fresh.rename(folder / "data")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def run_initdb(data: Path, account: Account) -> None:
    """Make a cluster as Postgres does, which asks for the name of the account and so needs it in passwd."""
    options = (
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        "--no-instructions",
    )
    run(["initdb", *options, f"--pgdata={data}"], data, account)
    with open(data / "postgresql.conf", "a", opener=open_privately) as file:
        file.write("\ninclude 'memstore.conf'\n")
    write_settings(data, account)
    single = ["postgres", "--single", "-D", str(data), "-c", "exit_on_error=on", "postgres"]
    run(single, data, account, f"CREATE DATABASE {DATABASE}\n")


def copy_template(data: Path, account: Account) -> None:
    """Make a cluster from the one that memstore brings; raise `EmbeddedError` where this Postgres cannot use it."""
    _unpack(data, account)
    write_settings(data, account)
    # Asked for this, Postgres compares the versions and sizes in pg_control with its own.
    run(["postgres", "-D", str(data), "-C", "data_checksums"], data, account)
    # A log that begins with the new identifier.
    run(["pg_resetwal", "-D", str(data)], data, account)
    run(["initdb", "--sync-only", "-D", str(data)], data, account)


def _unpack(data: Path, account: Account) -> None:
    # The server's account could put links in root's way, so each file is opened by one name in an open folder.
    folder_flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    file_flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    folders = {"": os.open(data, folder_flags)}
    try:
        with tarfile.open(TEMPLATE) as archive:
            for member in archive:
                parent, _, name = member.name.rpartition("/")
                if member.isdir():
                    os.mkdir(name, 0o700, dir_fd=folders[parent])
                    descriptor = folders[member.name] = os.open(name, folder_flags, dir_fd=folders[parent])
                    os.fchown(descriptor, account.uid, account.gid)
                elif content := archive.extractfile(member):
                    descriptor = os.open(name, file_flags, 0o600, dir_fd=folders[parent])
                    with os.fdopen(descriptor, "wb") as file:
                        account.own(descriptor)
                        file.write(_identify(content.read()) if name == "pg_control" else content.read())
    finally:
        for descriptor in folders.values():
            os.close(descriptor)


def _identify(control: bytes) -> bytes:
    """Return the content of a pg_control with an identifier and a nonce of its own."""
    # It begins with the time, as Postgres' own.
    identifier = int(time.time()) << 32 | secrets.randbits(32)
    body = (
        identifier.to_bytes(8, "little")
        + control[8:NONCE_OFFSET]
        + secrets.token_bytes(32)
        + control[NONCE_OFFSET + 32 : CRC_OFFSET]
    )
    crc = 0xFFFFFFFF
    for byte in body:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)  # CRC-32C
    return body + (crc ^ 0xFFFFFFFF).to_bytes(4, "little") + control[CRC_OFFSET + 4 :]


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
