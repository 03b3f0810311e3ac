"""Backups and what comes back of them: the commands of the page are run as they stand there."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

import memstore
from memstore.store.embedded.folder import Account, attempts
from memstore.store.embedded.programs import executable
from memstore.store.embedded.server import EmbeddedServer, stop
from tests.command_line import environment, variables
from tests.helpers.user_rows import rows
from tests.working import HASHING, said

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up-and-restore.md"
EXPORT, DUMP, RESTORE, ARCHIVE, BASE, RECOVER, LOOK = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)

pytestmark = pytest.mark.slow


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Folders of stores, whose servers are stopped in the end."""
    yield lambda name: tmp_path / name
    for data in tmp_path.glob("*/data"):
        stop(data.parent)


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., str]:
    """Run commands of the page in a folder of the test's own, with the embedded server's programs; give the output."""
    programs = [str(Path(executable(["psql"], Account.of(tmp_path))[0]).parent), str(Path(sys.executable).parent)]

    def run(commands: str, **given: object) -> str:
        env = environment(**variables(HASHING)) | {name: str(value) for name, value in given.items()}
        env["PATH"] = os.pathsep.join([*programs, os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def talked(store: memstore.MemoryStore) -> list[Any]:
    """Have two users say something, derive some of it; give what recall then finds."""
    for user in ("alice", "bob"):
        store.user(user).conversation("lisbon").add_many(said("lisbon", 40))
    store.derive()
    store.user("alice").conversation("lisbon").add_many(said("lisbon", 3, start=40))
    return recalled(store)


def recalled(store: memstore.MemoryStore) -> list[Any]:
    talk = store.user("alice").conversation("lisbon")
    return [talk.user.recall("Where do I live?"), talk.context("Where do I live?", budget=800).messages]


def test_a_dump_and_an_export_come_back_in_another_server(
    url: str, twin: str, folders: Callable[[str], Path], shell: Callable[..., str]
) -> None:
    with memstore.open(url, settings=HASHING) as store:
        known, before = talked(store), rows(store.url, "alice", "bob")
        with memstore.open(twin, settings=HASHING) as other:
            shell(EXPORT, MEMSTORE_DATABASE_URL=store.url, ELSEWHERE=other.url)
            assert rows(other.url, "alice", "bob") == before
            assert recalled(other) == known
        shell(DUMP, MEMSTORE_DATABASE_URL=store.url)
        server = EmbeddedServer.open(folders("new"))
        try:
            # Some messages are pending: of that alone `verify` tells, and ends with 1.
            shell(RESTORE.replace("memstore backfill", "! memstore backfill"), RESTORED=server.url)
            with memstore.open(server.url, settings=HASHING) as restored:
                assert rows(restored.url, "alice", "bob") == before
                assert recalled(restored) == known
                restored.derive()
                assert restored.backfills.verify() == []
        finally:
            server.close()


def test_any_moment_comes_back_from_a_base_backup_and_the_log(
    folders: Callable[[str], Path], shell: Callable[..., str]
) -> None:
    folder, archive = folders("here"), folders("archive")
    archive.mkdir(mode=0o777)
    archive.chmod(0o777)
    archive.parent.chmod(0o755)
    with memstore.open(f"embedded:{folder}", settings=HASHING) as store:
        shell(ARCHIVE, MEMSTORE_DATABASE_URL=store.url, ARCHIVE=archive)
    stop(folder)
    with memstore.open(f"embedded:{folder}", settings=HASHING) as store:
        store.user("bob").conversation("rome").add_many(said("rome", 5))
        shell(BASE, MEMSTORE_DATABASE_URL=store.url)
        talked(store)
        store.derive()
        known = recalled(store)
        before, moment = rows(store.url, "alice", "bob"), datetime.now(UTC)
        store.user("alice").erase()
        with psycopg.connect(store.url, autocommit=True) as connection:
            connection.execute("SELECT pg_switch_wal()")
            written = "SELECT last_archived_wal IS NOT NULL FROM pg_stat_archiver"
            assert any(connection.execute(written).fetchone() == (True,) for _ in attempts(60))
    shell(RECOVER, ARCHIVE=archive, MOMENT=moment)
    if os.geteuid() == 0:
        shell('chown -R --reference="$FOLDER/data" restored', FOLDER=folder)
    assert "messages" in shell(LOOK)
    log = (folders("restored") / "server.log").read_text("utf-8")
    assert "in recovery" not in log, "who looks in and leaves does not end the server in the midst of its recovery"
    with memstore.open(f"embedded:{folders('restored')}", settings=HASHING) as restored:
        assert rows(restored.url, "alice", "bob") == before
        assert [hit.text for hit in recalled(restored)[0]] == [hit.text for hit in known[0]]
        restored.user("alice").conversation("lisbon").add("user", "It goes on.")
