"""The encoder that stays: the same vectors, one process, and no trouble when anybody is killed. Real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import memstore
from memstore import local_socket, residence
from memstore.errors import ProviderError
from memstore.local_socket import Line, Unanswered
from memstore.providers import load_embedder
from memstore.providers.resident import ResidentEmbedder, load
from memstore.store._account import _reading_capability
from memstore.testing import check_embedder
from tests.command_line import EMBEDDER, Run

QUICK = "hashing:64"  # the same ways as for torch, without its seconds
TEXTS = ["Ada is allergic to peanuts.", "The ferry leaves at nine.", "", "a \ud800 b", "Grüße aus 北京"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the test's own for sockets; whoever listens there is ended with the test."""
    place = Path(tempfile.mkdtemp(prefix="ms-", dir="/tmp"))
    monkeypatch.setattr(local_socket, "_folders", lambda: [place])
    yield place
    for path in place.glob("*.sock"):
        residence.stop(path)
    shutil.rmtree(place)


def process_of(embedder: str = QUICK) -> int:
    """Give the process that answers."""
    path = local_socket.socket_path(embedder)
    assert path
    told = residence.asked(path, {"ask": "status"})
    assert told
    return int(told["process"])


def until(happened: Callable[[], bool]) -> None:
    """Wait for it."""
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    path = local_socket.socket_path(QUICK)
    assert path
    until(lambda: not local_socket.is_held(path))


@pytest.mark.usefixtures("folder")
def test_its_vectors_are_those_of_the_embedder_bit_for_bit() -> None:
    there, here = ResidentEmbedder(QUICK, 5), load_embedder(QUICK)
    assert here
    check_embedder(there)
    assert (there.name, there.dimensions, there.max_tokens) == (here.name, here.dimensions, here.max_tokens)
    assert np.array_equal(there.embed_documents(TEXTS), here.embed_documents(TEXTS))
    for text in TEXTS:
        assert np.array_equal(there.embed_query(text), here.embed_query(text))
        assert there.count(text) == here.count(text)
    assert there.embed_query("writable").flags.writeable


@pytest.mark.encoder
@pytest.mark.usefixtures("folder")
def test_the_real_encoders_vectors_are_the_same_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_RESIDENT_MINUTES", "5")
    there, here = load(residence.EMBEDDER), load_embedder(residence.EMBEDDER)
    assert here
    assert isinstance(there, ResidentEmbedder)
    assert there.name == here.name == residence.EMBEDDER
    many = [f"{text} {number} " * (1 + number % 7) for number, text in enumerate(TEXTS * 10)]
    assert np.array_equal(there.embed_documents(many), here.embed_documents(many))
    assert np.array_equal(there.embed_query("What must she not eat?"), here.embed_query("What must she not eat?"))
    for text in [*many, "hello world", "word " * 300, "x" * 101]:
        assert there.count(text) == here.count(text)


def test_the_socket_is_for_its_owner_alone(folder: Path) -> None:
    ResidentEmbedder(QUICK, 5)
    found = [path for path in folder.iterdir() if path.suffix == ".sock"]
    assert [path.stat().st_mode & 0o777 for path in found] == [0o600]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    assert len(os.fsencode(found[0])) <= local_socket.PATH_BYTES


@pytest.mark.usefixtures("folder")
def test_many_that_start_at_once_share_one_process() -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ResidentEmbedder(QUICK, 5).embed_query("hello"), range(6)))
    assert all(np.array_equal(found[0], one) for one in found)
    assert len(local_socket.running()) == 1


@pytest.mark.usefixtures("folder")
def test_killed_it_is_started_again_and_what_it_left_is_no_hindrance() -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    before, first = embedder.embed_documents(TEXTS), process_of()
    kill(first)
    path = local_socket.socket_path(QUICK)
    assert path
    assert path.exists()
    assert np.array_equal(embedder.embed_documents(TEXTS), before)
    assert process_of() != first
    kill(process_of())
    assert ResidentEmbedder(QUICK, 5).count("two words") == 2


@pytest.mark.usefixtures("folder")
def test_where_none_can_be_started_the_embedder_is_loaded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    before = embedder.embed_query("hello")
    monkeypatch.setattr(residence, "start", lambda *_: None)
    kill(process_of())
    assert np.array_equal(embedder.embed_query("hello"), before)
    assert np.array_equal(embedder.embed_documents(["hello"])[0], before)
    monkeypatch.setenv("MEMSTORE_RESIDENT_MINUTES", "5")
    assert not isinstance(load(QUICK), ResidentEmbedder)


@pytest.mark.usefixtures("folder")
def test_who_hangs_up_in_the_middle_is_nobodys_trouble() -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    path = local_socket.socket_path(QUICK)
    assert path
    for start in (b"\0", b"\0\0\1\0{", b"\xff\xff\xff\xff", b"\0\0\0\2[]", b"\0\0\0\3{]}"):
        with socket.socket(socket.AF_UNIX) as torn:
            torn.connect(str(path))
            torn.sendall(start)
    code = (
        "import sys; from pathlib import Path; from memstore.local_socket import Line\n"
        "line = Line.to(Path(sys.argv[1]))\n"
        "line.send({'ask': 'status'}); print('asked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdin=-1, stdout=subprocess.PIPE) as client:
        assert client.stdout
        client.stdout.readline()
        client.kill()
    assert embedder.count("still there") == 2


@pytest.mark.usefixtures("folder")
def test_another_model_is_refused() -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    path = local_socket.socket_path(QUICK)
    assert path
    with Line.to(path) as line:
        asked, _ = line.ask({"ask": "model", "embedder": "hashing:32"}, seconds=30)
        assert "error" in asked
        own, _ = line.ask({"ask": "model", "embedder": QUICK}, seconds=30)
        for changed in ({"name": "hashing:32"}, {"dimensions": 32}, {"digest": "0" * 64}):
            refused, data = line.ask({"ask": "embed", "query": "hello", "model": own | changed}, seconds=30)
            assert "error" in refused
            assert data == b""
        assert "error" in line.ask({"ask": "nonsense"}, seconds=30)[0]
    embedder._model["digest"] = "0" * 64
    with pytest.raises(ProviderError, match="not of"):
        embedder.embed_query("hello")


def test_what_is_not_ours_is_not_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ResidentEmbedder(QUICK, 5)
    path = local_socket.socket_path(QUICK)
    assert path
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Unanswered):
        Line.to(path)
    assert local_socket.socket_path(QUICK) is None
    monkeypatch.undo()
    monkeypatch.setattr(local_socket, "_folders", lambda: [folder])
    folder.chmod(0o755)
    assert local_socket.socket_path(QUICK) is None
    folder.chmod(0o700)
    assert local_socket.socket_path(QUICK) == path
    monkeypatch.setattr(local_socket, "_folders", lambda: [Path("/tmp") / ("long" * 30)])
    assert local_socket.socket_path(QUICK) is None


@pytest.mark.root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv (util-linux)")
def test_an_ordinary_user_has_one_of_their_own(folder: Path) -> None:
    code = (
        "import json; from memstore import local_socket, residence; from memstore.providers.resident import *\n"
        "import os; given = ResidentEmbedder('hashing:64', 5).embed_query('hello')\n"
        "path = local_socket.socket_path('hashing:64'); told = residence.asked(path, {'ask': 'status'})\n"
        "status = open(f\"/proc/{told['process']}/status\").read() if os.path.exists('/proc') else 'Uid:\\t65534'\n"
        "print(json.dumps([str(path), 'Uid:\\t65534' in status, len(given)])); input(); assert residence.stop(path)"
    )
    folder.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    able = f"+{_reading_capability()}"  # the interpreter may lie in a folder of root's
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps", able, "--ambient-caps", able]
    env = os.environ | {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("XDG_RUNTIME_DIR", None)
    with subprocess.Popen([*become, sys.executable, "-c", code], env=env, stdin=-1, stdout=-1, text=True) as user:
        assert user.stdin
        assert user.stdout
        path, theirs, dimensions = json.loads(user.stdout.readline())
        assert (theirs, dimensions) == (True, 64)
        assert path.startswith(str(home))
        with pytest.raises(Unanswered):  # root would not ask it either
            Line.to(Path(path))
        user.communicate("\n", timeout=60)
    assert user.returncode == 0


@pytest.mark.usefixtures("folder")
def test_it_ends_when_nobody_asks_or_its_socket_is_removed() -> None:
    path = local_socket.socket_path(QUICK)
    assert path
    assert ResidentEmbedder(QUICK, 0.02).count("hello") == 1
    until(lambda: not local_socket.is_held(path))
    assert not path.exists()
    ResidentEmbedder(QUICK, 5)
    first = process_of()
    path.unlink()  # by whoever cleans temporary folders
    ResidentEmbedder(QUICK, 5)
    assert process_of() != first


@pytest.mark.usefixtures("folder")
def test_recall_answers_the_same_through_it(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        for user in ("alice", "bob"):
            store.user(user).conversation("c").add("user", f"I am {user}, allergic to peanuts.", name="A\x1b[31m")
        store.derive()
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    asked = ("recall", "allergic?", "--user", "alice", "-d", url, "--since", "2020-01-01", "--tier", "messages")
    by_session = ("--group-by", "session", "--order", "time")
    for more in ((), ("--json",), by_session, (*by_session, "--json")):
        here = cli(*asked, *more)
        there = cli(*asked, *more, resident_minutes="5")
        assert here == there
        assert "alice" in there.out
    assert cli("encoder", "status", "--json").json[0]["stores"] == 1
    assert cli("recall", "x", "--user", "nobody", "-d", url, resident_minutes="5").err.startswith("no user 'nobody'")
    wrong = ("recall", "x", "--user", "alice", "-d", url)
    assert "MEMSTORE_POOL_SIZE='x'" in cli(*wrong, resident_minutes="5", pool_size="x").err
    other = cli(*wrong, resident_minutes="5", embedder="hashing:32")
    assert (other.code, other) == (1, cli(*wrong, embedder="hashing:32"))
    assert "resident encoder: process" in cli("doctor", "-d", url, resident_minutes="5").out
    assert cli("encoder", "stop").out.strip() == "2 stopped"
    assert cli("encoder", "status", "--json").json == []
    assert cli("encoder", "start").code == 2  # with 0 minutes none may stay


@pytest.mark.usefixtures("folder")
def test_a_database_that_is_away_is_told_as_ever(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    away = ("recall", "x", "--user", "alice", "-d", "postgresql://127.0.0.1:1/none")
    there = cli(*away, resident_minutes="5")
    assert (there.code, there) == (3, cli(*away))
