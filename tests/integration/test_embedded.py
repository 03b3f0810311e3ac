"""The private Postgres of a folder: shared, counted, recovered, stopped; and no harm to anybody else."""

import asyncio
import contextlib
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import memstore
from memstore.errors import EmbeddedError
from memstore.store.embedded import (
    data_directory,
    folder as folder_module,
    postmaster,
    programs,
    server as server_module,
)
from memstore.store.embedded.server import EmbeddedServer, stop

IS_ROOT = os.geteuid() == 0
IS_LINUX = sys.platform == "linux"
NOBODY = 65534

as_root = [pytest.mark.root, pytest.mark.skipif(not (IS_ROOT and IS_LINUX), reason="needs root on Linux")]
on_linux = pytest.mark.skipif(not IS_LINUX, reason="reads /proc")

CLIENT = """
import pathlib, sys
from memstore.store.embedded.server import EmbeddedServer
server = EmbeddedServer.open(pathlib.Path(sys.argv[1]))
print(server.url, flush=True)
sys.stdin.read()
"""


class Client:
    """Another process that has the folder open, until its input ends or it is killed."""

    def __init__(self, folder: Path, script: str = CLIENT, prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-W", "error", "-c", script, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"},
            start_new_session=True,
        )

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip() or pytest.fail(self.leave())

    def leave(self) -> str:
        """Let it end; give what it complained about."""
        _, errors = self.process.communicate(timeout=60)
        return errors

    def kill(self) -> None:
        self.process.kill()
        self.leave()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that fails shall fail within seconds."""
    monkeypatch.setattr(postmaster, "START_SECONDS", 30.0)
    monkeypatch.setattr(postmaster, "STOP_SECONDS", 30.0)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    for data in list(tmp_path.glob("**/data")):
        end(data.parent)


@pytest.fixture
def new_folder(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "store"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster: to copy it is faster than to make one."""
    folder = tmp_path_factory.mktemp("cluster") / "store"
    EmbeddedServer.open(folder).close()
    return folder


@pytest.fixture
def folder(cluster: Path) -> Iterator[Path]:
    """A folder with a cluster that no server runs on; the next test has it too."""
    yield cluster
    end(cluster)


@pytest.fixture
def own_folder(cluster: Path, tmp_path: Path) -> Path:
    """A folder with a cluster of this test alone."""
    return copied(cluster, tmp_path / "store")


def copied(cluster: Path, folder: Path) -> Path:
    subprocess.run(["cp", "-pR", cluster, folder], check=True)  # with its owner, who runs the server
    (folder / "server.log").unlink(missing_ok=True)
    return folder


@pytest.fixture
def open_client() -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def make(*args: object, **kwargs: object) -> Client:
        clients.append(Client(*args, **kwargs))  # type: ignore[arg-type]
        return clients[-1]

    yield make
    for client in clients:
        if not client.process.stdout or not client.process.stdout.closed:
            client.kill()


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that any account can reach, unlike pytest's own."""
    parent = Path(tempfile.mkdtemp(prefix="memstore-test-"))
    parent.chmod(0o755)
    yield parent / "store"
    end(parent / "store")
    shutil.rmtree(parent)


def end(folder: Path) -> None:
    """Leave no server behind, and none of its processes."""
    if (folder / "data").is_dir():
        stop(folder)
        assert processes_on(folder) == []


def processes_on(folder: Path) -> list[int]:
    return postmaster.find_processes(cluster_of(folder)._mark())


def cluster_of(folder: Path) -> postmaster.Cluster:
    return postmaster.Cluster(folder, folder_module.Account.of(folder))


def postmaster_pid(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def is_gone(pid: int) -> bool:
    """Whether nothing is left of a process, not even a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
        return row[0] if row else None


def tell(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    assert any(condition() for _ in folder_module.attempts(seconds))


@pytest.fixture
def sleeper(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the server's own account that has nothing to do with it."""
    user = NOBODY if IS_ROOT else None
    with subprocess.Popen(["sleep", "120"], user=user) as process:
        yield process
        assert process.poll() is None, "somebody ended a process that is not ours"
        process.kill()


# -- what one gets


def test_a_new_folder_becomes_a_database_with_the_right_settings(new_folder: Path) -> None:
    server = EmbeddedServer.open(new_folder)
    assert server.folder == new_folder.resolve()
    assert ask(server.url, "SELECT current_database()") == "memstore"
    assert ask(server.url, "SELECT to_tsvector('simple', 'Ärger ÜBER')::text") == "'ärger':1 'über':2"
    assert ask(server.url, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    expected = {
        "server_encoding": "UTF8",
        "data_checksums": "on",
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "jit": "off",
        "random_page_cost": "1.1",
        "max_wal_size": "2GB",
        "max_connections": "200",
        "log_statement": "none",
        "TimeZone": "UTC",
    }
    assert {name: ask(server.url, f"SHOW {name}") for name in expected} == expected
    buffers = ask(server.url, "SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'")
    assert 128 * 2**20 <= int(str(buffers)) <= 1024 * 2**20
    # Nobody else gets in.
    assert [mode(path) for path in (new_folder, new_folder / "data", new_folder / "run")] == [0o700] * 3
    assert mode(new_folder / "run" / ".s.PGSQL.5432") == 0o700
    assert {mode(new_folder / name) for name in ("lock", "clients", "server", "server.log")} == {0o600}
    assert len({path.lstat().st_uid for path in new_folder.iterdir()}) == 1
    server.close()


def test_a_folder_that_is_opened_again(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an operator set stays; libpq's environment, an open own_folder, a long log and old sockets do no harm."""
    for name, value in {"PGPORT": "1", "PGHOST": "nowhere", "PGDATABASE": "x", "PGUSER": "y", "PGDATA": "/z"}.items():
        monkeypatch.setenv(name, value)
    own_folder.chmod(0o777)
    server = EmbeddedServer.open(own_folder)
    tell(server.url, "ALTER SYSTEM SET max_connections = 123")
    server.close()
    assert mode(own_folder) == 0o700
    with (own_folder / "server.log").open("ab") as log:
        log.write(b"x" * (postmaster.LOG_BYTES + 1))
    for name in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
        (own_folder / "run" / name).touch()
    server = EmbeddedServer.open(own_folder)
    assert ask(server.url, "SELECT current_user || ' ' || current_database()") == "postgres memstore"
    assert ask(server.url, "SHOW max_connections") == "123"
    server.close()
    assert 0 < (own_folder / "server.log").stat().st_size < 100_000


# Sizes and transaction ids, samples of values, and what this machine's libc has.
NOT_COMPARED = ["pg_class", "pg_database", "pg_statistic", "pg_collation"]


def describe_cluster(folder: Path) -> tuple[object, ...]:
    server = EmbeddedServer.open(folder)
    with psycopg.connect(server.url) as connection:
        find = "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"
        catalogs = {
            name: sorted(str(row) for (row,) in connection.execute(f"SELECT t::text FROM {name} t"))
            for (name,) in connection.execute(find).fetchall()
            if name not in NOT_COMPARED
        }
        databases = connection.execute(
            "SELECT datname, encoding, datlocprovider, datlocale, datcollate, datctype, datistemplate, datallowconn "
            "FROM pg_database ORDER BY 1"
        ).fetchall()
        tables = connection.execute("SELECT oid, relname, relkind, relacl::text FROM pg_class ORDER BY 1").fetchall()
        settings = connection.execute("SELECT name, setting FROM pg_file_settings ORDER BY seqno").fetchall()
    server.close()
    return catalogs, databases, tables, settings


def has_entry_in_passwd() -> bool:
    try:
        return bool(pwd.getpwuid(os.geteuid()))
    except KeyError:
        return False


by_initdb = pytest.mark.skipif(not has_entry_in_passwd(), reason="initdb asks for the account's name in passwd")


@by_initdb
def test_the_template_is_what_initdb_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = describe_cluster(tmp_path / "template")
    monkeypatch.setattr(data_directory, "copy_template", data_directory.run_initdb)
    assert describe_cluster(tmp_path / "initdb") == template


@by_initdb
def test_initdb_takes_the_place_of_a_template_that_does_not_fit(
    new_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identify = data_directory._identify

    def of_another_catalog_version(control: bytes) -> bytes:
        return identify(control[:12] + bytes(4) + control[16:])

    monkeypatch.setattr(data_directory, "_identify", of_another_catalog_version)
    server = EmbeddedServer.open(new_folder)
    assert ask(server.url, "SELECT current_database()") == "memstore"
    server.close()
    assert list(new_folder.glob("data.new-*")) == []


def test_clusters_have_identifiers_of_their_own(folder: Path, new_folder: Path) -> None:
    """Else a standby or an archive would take another store's log for its own."""
    identities = set()
    for path in (folder, new_folder):
        server = EmbeddedServer.open(path)
        identities.add(ask(server.url, "SELECT system_identifier FROM pg_control_system()"))
        assert Path(path / "data/global/pg_control").stat().st_size == 8192
        server.close()
    assert len(identities) == 2
    assert all(int(str(identity)) > 0 for identity in identities)


# -- private


def test_a_folder_with_other_things_is_left_alone(new_folder: Path) -> None:
    new_folder.mkdir(mode=0o755)
    (new_folder / "thesis.tex").touch()
    with pytest.raises(EmbeddedError, match=r"holds other files \(thesis.tex\).*empty folder"):
        EmbeddedServer.open(new_folder)
    assert mode(new_folder) == 0o755
    assert [path.name for path in new_folder.iterdir()] == ["thesis.tex"]


def test_a_folder_that_another_process_has_just_begun_with_is_joined(
    new_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_folder.mkdir(mode=0o700)
    look, clients = Path.iterdir, list[Client]()

    def look_late(path: Path) -> Iterator[Path]:
        if path == new_folder and not clients:
            clients.append(Client(new_folder))
            clients[0].line()
        return look(path)

    monkeypatch.setattr(Path, "iterdir", look_late)
    EmbeddedServer.open(new_folder).close()
    assert clients[0].leave() == ""


async def test_a_server_that_a_cancelled_opening_has_started_is_stopped(folder: Path) -> None:
    for seconds in (0, 0.01, 0.05, 0.2, 0.8):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async with await memstore.open_async(f"embedded:{folder}", settings={"embedder": "hashing:8"}):
                    await asyncio.sleep(9)
        for thread in threading.enumerate():
            if thread.name == "memstore-open":
                thread.join()
        assert stop(folder) is False, f"it runs, cancelled after {seconds} s"


SECRET = "my-password-is-plum-tree"


def test_users_words_do_not_reach_the_log(own_folder: Path) -> None:
    server = EmbeddedServer.open(own_folder)
    tell(server.url, "CREATE TABLE t (a text PRIMARY KEY, CHECK (a <> 'x'))")
    tell(server.url, f"INSERT INTO t VALUES ('{SECRET}')")
    for statement in (f"INSERT INTO t VALUES ('{SECRET}')", f"SELECT '{SECRET}'::int", f"SELECT {SECRET!r} {SECRET}"):
        with pytest.raises(psycopg.Error):
            tell(server.url, statement)
    with psycopg.connect(server.url) as victim, pytest.raises(psycopg.OperationalError):
        tell(server.url, f"DO $$ BEGIN RAISE LOG 'a mark'; END $$ -- {SECRET}")
        victim.execute("SET application_name = 'x'")
        query = f"SELECT pg_sleep(60), '{SECRET}'"
        victim.pgconn.send_query(query.encode())
        find = f"SELECT pid FROM pg_stat_activity WHERE query = $${query}$$ AND wait_event = 'PgSleep'"
        wait_for(lambda: ask(server.url, find) is not None)
        os.kill(int(str(ask(server.url, find))), signal.SIGKILL)
        while result := victim.pgconn.get_result():
            del result
        victim.execute("SELECT 1")
    server.ensure()
    server.close()
    log = (own_folder / "server.log").read_text()
    assert "was terminated by signal 9" in log
    assert "a mark" in log
    assert SECRET not in log


@on_linux
def test_the_server_inherits_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    with (tmp_path / "mine").open("w") as mine:
        os.set_inheritable(mine.fileno(), True)
        server = EmbeddedServer.open(folder)
        process = Path("/proc") / str(postmaster_pid(folder))
        files = {str(path.readlink()) for path in (process / "fd").iterdir()}
        assert str(mine.name) not in files
        assert {str(folder / "server"), str(folder / "server.log"), "/dev/null"} <= files
        assert SECRET.encode() not in (process / "environ").read_bytes()
        server.close()


# -- counted


def test_the_last_handle_stops_the_server(folder: Path) -> None:
    first, second = EmbeddedServer.open(folder), EmbeddedServer.open(folder)
    pid = postmaster_pid(folder)
    assert first.url == second.url
    first.close()
    first.close()
    assert ask(second.url, "SELECT 1") == 1
    second.close()
    assert is_gone(pid)
    assert not (folder / "data" / "postmaster.pid").exists()
    assert "database system is shut down" in (folder / "server.log").read_text()
    with pytest.raises(EmbeddedError, match="was closed"):
        second.ensure()


def test_a_killed_client_leaves_the_server_to_the_next(folder: Path, open_client: Callable[..., Client]) -> None:
    client = open_client(folder)
    client.line()
    pid = postmaster_pid(folder)
    client.kill()
    server = EmbeddedServer.open(folder)
    assert postmaster_pid(folder) == pid
    server.close()
    wait_for(lambda: is_gone(pid))


def test_ctrl_c_at_one_client_does_not_reach_the_server(folder: Path, open_client: Callable[..., Client]) -> None:
    starter = open_client(folder)
    starter.line()
    server = EmbeddedServer.open(folder)
    pid = postmaster_pid(folder)
    os.killpg(starter.process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in starter.leave()
    assert ask(server.url, "SELECT 1") == 1
    assert postmaster_pid(folder) == pid
    server.close()


def run_in_child(step: Callable[[], object]) -> int:
    """Fork, take the step, and end like an interpreter that was left: give the exit status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(Exception):
            step()
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_does_not_stop_its_parents_server(folder: Path) -> None:
    server = EmbeddedServer.open(folder)
    assert run_in_child(server.close) == 0
    assert run_in_child(lambda: ask(server.url, "SELECT 1")) == 0
    assert ask(server.url, "SELECT 1") == 1
    other = EmbeddedServer.open(folder)
    pid = postmaster_pid(folder)
    other.close()
    assert not is_gone(pid), "the child's closing must not have taken the parent's presence away"
    server.close()
    assert is_gone(pid)


def test_stop_ends_the_server_under_its_clients(new_folder: Path) -> None:
    assert stop(new_folder) is False
    assert not new_folder.exists()
    server = EmbeddedServer.open(new_folder)
    pid = postmaster_pid(new_folder)
    assert stop(new_folder) is True
    assert is_gone(pid)
    assert stop(new_folder) is False
    server.ensure()
    assert ask(server.url, "SELECT 1") == 1
    server.close()


# -- recovered


def test_a_killed_postmaster_that_its_starter_has_not_buried(folder: Path, open_client: Callable[..., Client]) -> None:
    """The starter has it as a zombie, whose pid still exists."""
    client = open_client(folder)
    client.line()
    pid = postmaster_pid(folder)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: postmaster.get_cmdline(pid) == "")
    server = EmbeddedServer.open(folder)
    assert not is_gone(pid)
    assert ask(server.url, "SELECT 1") == 1
    server.close()
    assert client.leave() == ""


@pytest.mark.slow
def test_orphans_of_a_killed_postmaster_do_not_stand_in_the_way(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend at work notices the death of its postmaster late, and holds the shared memory until then."""
    monkeypatch.setattr(postmaster, "ORPHAN_SECONDS", 0.5)
    server = EmbeddedServer.open(own_folder)
    tell(server.url, "CREATE TABLE t AS SELECT 1 AS n")
    with psycopg.connect(server.url) as busy:
        busy.pgconn.send_query(b"SELECT sum(sqrt(n)) FROM generate_series(1, 2000000000) AS n")
        wait_for(lambda: ask(server.url, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sqrt%'") == 2)
        orphan = busy.info.backend_pid
        os.kill(postmaster_pid(own_folder), signal.SIGKILL)
        time.sleep(0.2)
        assert not is_gone(orphan)
        server.ensure()
        wait_for(lambda: is_gone(orphan))
        busy.pgconn.finish()
    assert ask(server.url, "SELECT count(*) FROM t") == 1
    server.close()


@pytest.mark.slow
def test_kills_at_any_moment_lose_nothing(own_folder: Path, open_client: Callable[..., Client]) -> None:
    """Clients and postmasters are killed while others join, write and leave."""
    server = EmbeddedServer.open(own_folder)
    tell(server.url, "CREATE TABLE t (n int)")
    for number in range(12):
        client = open_client(own_folder)
        time.sleep(0.03 * number)
        if number % 3 == 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster_pid(own_folder), signal.SIGKILL)
        client.kill()
        server.ensure()
        tell(server.url, f"INSERT INTO t VALUES ({number})")
    assert ask(server.url, "SELECT count(DISTINCT n) FROM t") == 12
    server.close()
    assert processes_on(own_folder) == []


@pytest.mark.slow
def test_a_creation_that_was_killed_is_begun_anew(new_folder: Path, open_client: Callable[..., Client]) -> None:
    client = open_client(new_folder)
    wait_for(lambda: new_folder.is_dir() and any(new_folder.glob("data.new-*")))
    time.sleep(0.2)
    client.kill()
    server = EmbeddedServer.open(new_folder)
    assert ask(server.url, "SELECT current_database()") == "memstore"
    server.close()
    wait_for(lambda: not postmaster.find_processes(f"{new_folder}/data.new-"))
    EmbeddedServer.open(new_folder).close()
    assert list(new_folder.glob("data.new-*")) == []


def test_a_cleaned_socket_folder_is_mended(folder: Path) -> None:
    server = EmbeddedServer.open(folder)
    shutil.rmtree(folder / "run")
    other = EmbeddedServer.open(folder)
    assert ask(other.url, "SELECT 1") == 1
    server.ensure()
    server.close()
    other.close()


def test_a_server_that_waits_for_its_clients_to_leave_is_renewed(folder: Path) -> None:
    server = EmbeddedServer.open(folder)
    pid = postmaster_pid(folder)
    with psycopg.connect(server.url):
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: "stopping" in (folder / "data" / "postmaster.pid").read_text())
        server.ensure()
    assert postmaster_pid(folder) != pid
    assert ask(server.url, "SELECT 1") == 1
    server.close()


def test_an_interrupted_start_leaves_no_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    EmbeddedServer.open(folder).close()

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(postmaster.Cluster, "answers", interrupt)
        EmbeddedServer.open(folder)
    assert processes_on(folder) == []
    EmbeddedServer.open(folder).close()


# -- no harm to others


def stale(sleeper: int, folder: Path) -> str:
    """What a postmaster.pid of ours looks like whose pid went to another process."""
    lines = [str(sleeper), str(folder / "data"), "1700000000", "5432", str(folder / "run"), "", "  123  45", "ready   "]
    return "\n".join(lines) + "\n"


PID_FILES: dict[str, Callable[[int, Path], str]] = {
    "another process": stale,
    "half written, another process": lambda pid, folder: f"{pid}\n{folder / 'dat'}",
    "garbage": lambda pid, folder: "\x00\x01no number\n\n\n\n\n\n\n",
    "everybody": lambda pid, folder: stale(-1, folder),
}


def test_a_stale_pid_file_harms_nobody(folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
    EmbeddedServer.open(folder).close()
    for name, content in PID_FILES.items():
        (folder / "data" / "postmaster.pid").write_text(content(sleeper.pid, folder))
        assert stop(folder) is False, name
        server = EmbeddedServer.open(folder)
        assert ask(server.url, "SELECT 1") == 1, name
        assert postmaster_pid(folder) != sleeper.pid, name
        server.close()


def test_a_pid_file_that_went_stale_under_an_open_handle_harms_nobody(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    server = EmbeddedServer.open(folder)
    os.kill(postmaster_pid(folder), signal.SIGKILL)
    (folder / "data" / "postmaster.pid").write_text(stale(sleeper.pid, folder))
    server.close()
    assert sleeper.poll() is None


def test_another_folders_server_is_not_taken_for_ours(folder: Path, tmp_path: Path) -> None:
    """As in a copy that was made while the server ran."""
    server = EmbeddedServer.open(folder)
    pid = postmaster_pid(folder)
    copy = tmp_path / "copy"
    other = EmbeddedServer.open(copy)
    other.close()
    shutil.copy(folder / "data" / "postmaster.pid", copy / "data" / "postmaster.pid")
    assert stop(copy) is False
    other = EmbeddedServer.open(copy)
    assert ask(other.url, "SHOW data_directory") == str(copy / "data")
    other.close()
    assert postmaster_pid(folder) == pid
    assert ask(server.url, "SELECT 1") == 1
    server.close()


def test_a_server_that_cannot_be_seen_from_here_keeps_its_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another container's: its processes are invisible, its lock is not."""
    EmbeddedServer.open(folder).close()
    monkeypatch.setattr(postmaster, "ORPHAN_SECONDS", 0.1)
    monkeypatch.setattr(server_module, "ORPHAN_SECONDS", 0.1)
    unseen = folder_module.FolderLock(folder / "server", folder_module.Account.of(folder))
    assert unseen.take()
    with pytest.raises(EmbeddedError, match="another container"):
        EmbeddedServer.open(folder)
    with pytest.raises(EmbeddedError, match="another container"):
        stop(folder)
    unseen.release()
    EmbeddedServer.open(folder).close()


# -- paths

NAME = 'with space ünï-çödé-文 it\'s "quoted" 100%20+x&y=z?#;@ $HOME `x` \\n *'


@pytest.mark.parametrize("name", [NAME, "-a,b"])
def test_any_name_will_do(cluster: Path, reachable: Path, name: str) -> None:
    server = EmbeddedServer.open(copied(cluster, reachable.with_name(name)))
    assert ask(server.url, "SHOW data_directory") == str(reachable.with_name(name) / "data")
    server.close()


def sockets_of(server: EmbeddedServer) -> Path:
    return Path(str(ask(server.url, "SELECT trim('\"' FROM current_setting('unix_socket_directories'))")))


def long(tmp_path: Path) -> Path:
    return tmp_path / ("long-" * 12) / ("ü" * 40) / "store"


def test_a_long_path_gets_a_short_private_socket(tmp_path: Path) -> None:
    folder = long(tmp_path)
    server = EmbeddedServer.open(folder)
    sockets = sockets_of(server)
    assert len(os.fsencode(sockets / ".s.PGSQL.5432")) <= 100
    assert not sockets.is_relative_to(folder)
    assert mode(sockets) == 0o700
    assert sockets.stat().st_uid == folder.stat().st_uid
    second = EmbeddedServer.open(folder)
    assert second.url == server.url
    second.close()
    server.close()
    assert not sockets.exists()


PREPARED: dict[str, Callable[[Path], None]] = {
    "open to all": lambda path: (path.mkdir(), path.chmod(0o777))[0],  # type: ignore[func-returns-value]
    "link": lambda path: path.symlink_to(tempfile.gettempdir()),
    "file": Path.touch,
}


def test_what_others_prepared_for_the_socket_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = long(tmp_path)
    EmbeddedServer.open(folder).close()
    for name, prepare in PREPARED.items():
        place = Path(tempfile.mkdtemp(dir="/tmp"))
        place.chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        prepare(place / cluster_of(folder)._mark())
        server = EmbeddedServer.open(folder)
        assert sockets_of(server).parent == Path("/tmp"), name
        server.close()
        shutil.rmtree(place)


# -- what cannot be


@pytest.mark.parametrize(
    ("content", "message"), [("16\n", "made by Postgres 16.*brings Postgres 18"), (None, "no Postgres")]
)
def test_a_data_directory_that_is_not_ours_to_read(new_folder: Path, content: str | None, message: str) -> None:
    new_folder.mkdir()
    (new_folder / "lock").touch()
    (new_folder / "data").mkdir()
    if content:
        (new_folder / "data" / "PG_VERSION").write_text(content)
    with pytest.raises(EmbeddedError, match=message):
        EmbeddedServer.open(new_folder)


def test_a_server_that_does_not_start_says_why_at_once(own_folder: Path) -> None:
    EmbeddedServer.open(own_folder).close()
    with (own_folder / "data" / "postgresql.auto.conf").open("a") as file:
        file.write("shared_buffers = 'plenty'\n")
    begin = time.monotonic()
    with pytest.raises(EmbeddedError, match=r"(?s)MB are free.*invalid value for parameter \"shared_buffers\""):
        EmbeddedServer.open(own_folder)
    assert time.monotonic() - begin < 10
    assert processes_on(own_folder) == []


@pytest.fixture
def groups() -> Iterator[None]:
    """Groups of root's, of which the server must get nothing."""
    before = os.getgroups()
    os.setgroups([1, 4])
    yield
    os.setgroups(before)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the wheel in a folder whose mode a test may choose, on a way that is open otherwise."""
    parent = Path(tempfile.mkdtemp(prefix="memstore-venv-"))
    installed = Path(programs.executable(["postgres"], folder_module.Account(os.geteuid(), os.getegid()))[0]).parents[2]
    for part in (installed / f"pginstall{programs.MAJOR}", installed.with_name(f"{programs.WHEEL}.libs")):
        if part.is_dir():
            shutil.copytree(part, parent / part.relative_to(installed.parent))
    (parent / programs.WHEEL / "__init__.py").touch()
    monkeypatch.syspath_prepend(parent)
    yield parent / programs.WHEEL
    shutil.rmtree(parent)


@pytest.fixture
def cache(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place for copies of the programs, which is not there yet."""
    place = reachable.with_name("cache")
    monkeypatch.setattr(programs.platformdirs, "site_cache_path", lambda *_, **__: place)
    return place


class TestAsRoot:
    pytestmark = as_root

    def test_a_closed_parent_stays_closed(self, new_folder: Path) -> None:
        before = [(path, mode(path), path.stat().st_uid) for path in new_folder.parents]
        assert any(not modes & 0o001 for _, modes, _ in before), "the test needs a parent that is closed"
        server = EmbeddedServer.open(new_folder)
        assert [(path, mode(path), path.stat().st_uid) for path in new_folder.parents] == before
        owner = Path(f"/proc/{postmaster_pid(new_folder)}").stat().st_uid
        assert owner == NOBODY == new_folder.stat().st_uid == (new_folder / "data").stat().st_uid
        assert capabilities(new_folder) == 1 << 2, "to read only, and nothing else"
        server.close()

    def test_no_capability_where_none_is_needed(self, cluster: Path, reachable: Path, groups: None) -> None:
        server = EmbeddedServer.open(copied(cluster, reachable))
        assert ask(server.url, "SELECT 1") == 1
        assert capabilities(reachable) == 0
        status = Path(f"/proc/{postmaster_pid(reachable)}/status").read_text()
        assert status.split("Groups:")[1].splitlines()[0].strip() == ""
        server.close()

    def test_a_closed_parent_is_told_where_it_cannot_be_passed(
        self, new_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shutil, "which", lambda name: None)
        with pytest.raises(EmbeddedError, match=f"is closed to the account {NOBODY}.*ordinary user.*postgresql://"):
            EmbeddedServer.open(new_folder)

    @pytest.mark.parametrize(("closed", "is_copied"), [(0o700, True), (0o750, True), (0o711, False)])
    def test_programs_in_a_closed_folder(
        self, reachable: Path, wheel: Path, cache: Path, closed: int, is_copied: bool
    ) -> None:
        """The folder stays as it is, and the server needs no capability to read files of root's."""
        wheel.parent.chmod(closed)
        before = os.umask(0o077)
        try:
            server = EmbeddedServer.open(reachable)
        finally:
            os.umask(before)
        assert ask(server.url, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
        tell(server.url, "CREATE EXTENSION vector")
        assert capabilities(reachable) == 0
        assert mode(wheel.parent) == closed
        assert cache.exists() == is_copied
        running = Path(f"/proc/{postmaster_pid(reachable)}/exe").readlink()
        assert running.is_relative_to(cache if is_copied else wheel)
        server.close()
        for path in cache.rglob("*"):
            assert (path.stat().st_uid, mode(path) & 0o022) == (0, 0)
        copies = [(path, path.stat().st_ino) for path in cache.glob("*/*/*")]
        EmbeddedServer.open(reachable).close()
        assert [(path, path.stat().st_ino) for path in cache.glob("*/*/*")] == copies

    @pytest.mark.parametrize(
        ("prepare", "reason"),
        [
            (lambda cache: (cache.mkdir(), cache.chmod(0o777)), "others than root may write"),
            (lambda cache: cache.symlink_to("/tmp"), "others than root may write"),
            (Path.touch, "cannot be copied"),
            (lambda cache: cache.parent.chmod(0o700), "so is"),
        ],
    )
    def test_a_place_for_programs_that_others_prepared_is_not_used(
        self, cluster: Path, reachable: Path, wheel: Path, cache: Path, prepare: Callable[[Path], object], reason: str
    ) -> None:
        wheel.parent.chmod(0o700)
        folder = copied(cluster, reachable)
        prepare(cache)
        with pytest.raises(EmbeddedError, match=f"closed to the account {NOBODY}.*{reason}.*ordinary user"):
            EmbeddedServer.open(folder)

    def test_roots_files_are_not_given_away(self, own_folder: Path, tmp_path: Path) -> None:
        """The server's account could put links into its own_folder, and wait for root to follow."""
        precious = tmp_path / "precious"
        precious.write_text("root's")
        EmbeddedServer.open(own_folder).close()
        for name in ("server.log", "clients", "server"):
            (own_folder / name).unlink()
            (own_folder / name).symlink_to(precious)
            with pytest.raises(EmbeddedError, match="cannot be used"):
                EmbeddedServer.open(own_folder)
            (own_folder / name).unlink()
            end(own_folder)
        os.link(precious, own_folder / "clients")
        EmbeddedServer.open(own_folder).close()
        assert precious.stat().st_uid == 0
        assert precious.read_text() == "root's"

    def test_a_folder_is_its_users_whoever_opens_it(
        self, reachable: Path, wheel: Path, open_client: Callable[..., Client]
    ) -> None:
        user = pwd.getpwnam("daemon").pw_uid
        wheel.parent.chmod(0o755)
        reachable.mkdir(mode=0o700)
        os.chown(reachable, user, user)
        server = EmbeddedServer.open(reachable)
        assert {path.lstat().st_uid for path in reachable.rglob("*")} == {user}
        server.close()
        shutil.chown(reachable.parent, user)
        client = open_client(reachable, ORDINARY, prefix=become(user))
        assert client.line().startswith("postgresql://"), "what root made must be of use to the user"
        assert capabilities(reachable) == 0
        status = Path(f"/proc/{postmaster_pid(reachable)}/status").read_text()
        assert status.split("Uid:")[1].split()[:4] == [str(user)] * 4
        server = EmbeddedServer.open(reachable)
        assert ask(server.url, "SELECT 1") == 1, "root may join"
        server.close()
        assert client.leave() == ""
        assert processes_on(reachable) == []

    def test_a_folder_of_somebody_else(
        self, cluster: Path, reachable: Path, open_client: Callable[..., Client]
    ) -> None:
        server = EmbeddedServer.open(copied(cluster, reachable))
        for step in ("EmbeddedServer.open(", "stop("):
            script = ORDINARY.replace("EmbeddedServer.open(", step)
            client = open_client(reachable, script, prefix=become(pwd.getpwnam("daemon").pw_uid))
            line = client.line()
            assert "does not belong to the account" in line or "Permission denied" in line
            assert client.leave() == ""
        server.close()


# Python's own files may be out of the user's reach here, so this process may read all, and its children may not.
ALONE = """
import ctypes, os, pathlib, sys
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
assert ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0
from memstore.errors import EmbeddedError
from memstore.store.embedded.server import EmbeddedServer, stop
"""
ORDINARY = f"""
{ALONE}
assert os.geteuid() != 0
try:
    server = EmbeddedServer.open(pathlib.Path(sys.argv[1]))
    print(server.url, flush=True)
except EmbeddedError as error:
    print(error, flush=True)
sys.stdin.read()
"""
VISIT = f"""
{ALONE}
import psycopg
from memstore.settings import load
from memstore.store.embedded import embedded_folder
load({{}})
try:
    server = EmbeddedServer.open(embedded_folder(sys.argv[1]))
    with psycopg.connect(server.url) as connection:
        print(*connection.execute("SELECT current_database()").fetchone())
    server.close()
except EmbeddedError as error:
    print(error)
"""


def become(user: int) -> tuple[str, ...]:
    """Return the prefix for a command of another user, with an entry in passwd or without one."""
    identity = (f"--reuid={user}", f"--regid={user}", "--clear-groups")
    return ("setpriv", *identity, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


def capabilities(folder: Path) -> int:
    return int(Path(f"/proc/{postmaster_pid(folder)}/status").read_text().split("CapEff:")[1].split()[0], 16)


ONE_ID = ("unshare", "--user", "--map-root-user")
MOUNTED = ("unshare", "--mount", "sh", "-ec")
NO_ENTRY = 12345
STORE = "embedded:{place}/store"
OPENED = "^memstore$"
REFUSED = "refuses to run as root.*Run memstore as an ordinary user"

SITUATIONS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "without HOME": (("env", "-u", "HOME"), STORE, OPENED),
    "no entry in passwd": (become(NO_ENTRY), STORE, OPENED),
    "no entry in passwd, no HOME": (("env", "-u", "HOME", *become(NO_ENTRY)), STORE, OPENED),
    "no home folder for the store": (
        ("env", "-u", "HOME", *become(NO_ENTRY)),
        "embedded",
        "Set HOME, or give the whole",
    ),
    "a user namespace with one id": (ONE_ID, STORE, OPENED),
    "a user namespace with one id, no unshare": ((*ONE_ID, "env", "PATH=/nowhere"), STORE, REFUSED),
    "root without capabilities": (("setpriv", "--bounding-set=-all"), STORE, REFUSED),
    "root that may not read all": (("setpriv", "--bounding-set=-dac_read_search,-dac_override"), STORE, OPENED),
    "a noexec temporary folder": (
        (*MOUNTED, 'mount -t tmpfs -o noexec,mode=1777 none "$0"; exec "$@"', "{place}"),
        STORE,
        OPENED,
    ),
    "a read-only wheel": (
        (*MOUNTED, 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"', "{wheel}"),
        STORE,
        OPENED,
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@on_linux
def test_accounts_and_machines(situation: str, reachable: Path, wheel: Path) -> None:
    prefix, url, expected = SITUATIONS[situation]
    if situation.startswith("root") and os.geteuid() != 0:
        pytest.skip("this is not root")
    place = reachable.parent
    place.chmod(0o777)
    wheel.parent.chmod(0o755)
    prefix = tuple(part.format(place=place, wheel=wheel.parent) for part in prefix)
    if subprocess.run([*prefix, shutil.which("true")], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let the account do that")
    environment = {name: value for name, value in os.environ.items() if name != "MEMSTORE_CONFIG"} | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(place),
        "TMPDIR": str(place),
    }
    command = [*prefix, sys.executable, "-W", "error", "-c", VISIT, url.format(place=place)]
    visit = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert re.search(expected, visit.stdout), visit
    assert visit.stderr == ""


def test_a_backup_that_is_restored_under_an_open_store_is_what_recall_finds(own_folder: Path, tmp_path: Path) -> None:
    """Its transactions are numbered from the backup on, like those that are gone."""

    def said_by_another(text: str) -> None:
        with memstore.open(f"embedded:{own_folder}", settings={"embedder": "hashing:64"}) as other:
            other.user("alice").conversation("c").add("user", text)
            other.derive()

    backup = tmp_path / "backup"
    with memstore.open(f"embedded:{own_folder}", settings={"embedder": "hashing:64"}) as store:
        said_by_another("We painted the fence.")
        stop(own_folder)
        copied(own_folder / "data", backup)
        for text in ("The ferry leaves at nine.", "The ferry leaves at ten."):
            said_by_another(text)
            (best, *_) = store.user("alice").recall("ferry", tiers=["messages"])
            assert best.text == text
            stop(own_folder)
            shutil.rmtree(own_folder / "data")
            copied(backup, own_folder / "data")
