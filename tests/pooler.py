"""A pgbouncer in transaction mode: each transaction of a client may get another of the server's sessions."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer: apt-get install pgbouncer")
PORT = 6432  # of a socket in a folder of its own
SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = {listen}
auth_type = trust
auth_file = {folder}/users.txt
admin_users = admin
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
client_login_timeout = 10
server_login_retry = 1
logfile = {folder}/log
"""


@contextmanager
def pooled(url: str, size: int) -> Iterator[str]:
    """Run a pooler that holds at most so many sessions of each login; give the URL of the same database through it."""
    given = conninfo_to_dict(url)
    place = {"host": given.get("host", "localhost"), "port": given.get("port", 5432)}
    with tempfile.TemporaryDirectory(prefix="memstore-pooler-") as name:
        folder = Path(name)
        users = {str(given["user"]): str(given.get("password", "")), "memstore_app": "", "admin": ""}
        (folder / "users.txt").write_text("".join(f'"{user}" "{secret}"\n' for user, secret in users.items()))
        (folder / "ini").write_text(SETTINGS.format(**place, folder=folder, listen=PORT, size=size))
        assert PGBOUNCER is not None
        process = subprocess.Popen([PGBOUNCER, "-q", folder / "ini"], **_as_owner_of(folder, str(place["host"])))
        try:
            through = _through(url, folder)
            _wait_for(through, process)
            yield through
        finally:
            process.kill()
            process.wait()


def _as_owner_of(folder: Path, socket: str) -> dict[str, Any]:
    """Give the folder, and the process, to whoever may reach the server's socket: pgbouncer refuses to be root."""
    if os.geteuid() != 0:
        return {}
    owner = 65534
    if socket.startswith("/"):
        owner = Path(socket).stat().st_uid
        for parent in Path(socket).parents:  # a test's own folder is its maker's alone
            closed = parent.stat().st_uid == 0 and not parent.stat().st_mode & stat.S_IXOTH
            if closed and parent.is_relative_to(tempfile.gettempdir()):
                parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner, -1)
    return {"user": owner, "group": 65534, "extra_groups": []}


def _through(url: str, folder: Path) -> str:
    parts = urlsplit(url)
    user = f"{quote(str(conninfo_to_dict(url)['user']))}@"
    return parts._replace(netloc=user, query=f"host={quote(str(folder))}&port={PORT}").geturl()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    late = time.monotonic() + 20
    while True:
        assert process.poll() is None, "pgbouncer has ended"
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < late, "pgbouncer does not answer"
            time.sleep(0.05)
