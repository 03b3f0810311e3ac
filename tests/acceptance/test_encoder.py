"""The encoder that stays: the same vectors, one process, and no trouble when anybody is killed. Real processes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memstore
from memstore import local_socket, residence, socket_place
from memstore.cli import encoder
from memstore.errors import DatabaseUnreachable, ProviderError
from memstore.local_socket import Line, Unanswered
from memstore.providers import load_embedder
from memstore.providers.resident import ResidentEmbedder, load
from memstore.resident.stores import MOST_STORES, OpenStores
from memstore.store import folders
from memstore.store._account import _reading_capability
from memstore.testing import check_embedder
from tests.command_line import EMBEDDER, Run

QUICK = "hashing:64"  # the same ways as for torch, without its seconds
TEXTS = ["Ada is allergic to peanuts.", "The ferry leaves at nine.", "", "a \ud800 b", "Grüße aus 北京"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the test's own for sockets; whoever listens there is ended with the test."""
    place = Path(tempfile.mkdtemp(prefix="ms-", dir="/tmp"))
    monkeypatch.setattr(socket_place, "_folders", lambda: [place])
    yield place
    for path in place.glob("*.sock"):
        residence.stop(path)
    shutil.rmtree(place)


def process_of(embedder: str = QUICK) -> int:
    """Give the process that answers."""
    path = socket_place.socket_path(embedder)
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
    path = socket_place.socket_path(QUICK)
    assert path
    until(lambda: not socket_place.is_held(path))


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
    assert len(os.fsencode(found[0])) <= socket_place.PATH_BYTES


@pytest.mark.usefixtures("folder")
def test_many_that_start_at_once_share_one_process() -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ResidentEmbedder(QUICK, 5).embed_query("hello"), range(6)))
    assert all(np.array_equal(found[0], one) for one in found)
    assert len(socket_place.running()) == 1


@pytest.mark.usefixtures("folder")
def test_killed_it_is_started_again_and_what_it_left_is_no_hindrance() -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    before, first = embedder.embed_documents(TEXTS), process_of()
    kill(first)
    path = socket_place.socket_path(QUICK)
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
    path = socket_place.socket_path(QUICK)
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
    path = socket_place.socket_path(QUICK)
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
    path = socket_place.socket_path(QUICK)
    assert path
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Unanswered):
        Line.to(path)
    assert socket_place.socket_path(QUICK) is None
    monkeypatch.undo()
    monkeypatch.setattr(socket_place, "_folders", lambda: [folder])
    folder.chmod(0o755)
    assert socket_place.socket_path(QUICK) is None
    folder.chmod(0o700)
    assert socket_place.socket_path(QUICK) == path
    monkeypatch.setattr(socket_place, "_folders", lambda: [Path("/tmp") / ("long" * 30)])
    assert socket_place.socket_path(QUICK) is None


@pytest.mark.root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv (util-linux)")
def test_an_ordinary_user_has_one_of_their_own(folder: Path) -> None:
    code = (
        "import json; from memstore import residence, socket_place; from memstore.providers.resident import *\n"
        "import os; given = ResidentEmbedder('hashing:64', 5).embed_query('hello')\n"
        "path = socket_place.socket_path('hashing:64'); told = residence.asked(path, {'ask': 'status'})\n"
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
    path = socket_place.socket_path(QUICK)
    assert path
    assert ResidentEmbedder(QUICK, 0.02).count("hello") == 1
    until(lambda: not socket_place.is_held(path))
    assert not path.exists()
    ResidentEmbedder(QUICK, 5)
    first = process_of()
    path.unlink()  # by whoever cleans temporary folders
    until(lambda: not socket_place.is_held(path))  # until then, who asks may have to load the model here
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
    ended = cli("encoder", "stop").out
    assert ended.startswith("2 stopped\n")
    assert EMBEDDER in ended
    assert "hashing:32" in ended
    assert cli("encoder", "status", "--json").json == []
    assert cli("encoder", "start").code == 2  # with 0 minutes none may stay


@pytest.mark.usefixtures("folder")
def test_users_who_were_moved_to_another_embedder_are_asked_by_that(
    cli: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        store.user("alice").conversation("c").add("user", "I am allergic to peanuts.")
        store.derive()
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    asked = ("recall", "allergic?", "--user", "alice", "-d", url, "--json")
    before = cli(*asked, resident_minutes="5").json
    monkeypatch.setenv("MEMSTORE_RESIDENT_MINUTES", "5")
    with memstore.open(url, settings={"embedder": f"resident:{EMBEDDER}"}) as store:
        assert store.embeddings.migrate(QUICK).users == 1
        hits = store.user("alice").recall("allergic?")
        assert isinstance(store._opened.exactly(QUICK, 64), ResidentEmbedder)
    there = cli(*asked, resident_minutes="5")
    assert there == cli(*asked, resident_minutes="0")
    assert [hit["parts"] for hit in there.json] == [dict(hit.parts) for hit in hits]
    assert [hit["parts"] for hit in there.json] != [hit["parts"] for hit in before]
    assert {one["embedder"] for one in residence.states()} == {EMBEDDER, QUICK}


@pytest.mark.usefixtures("folder")
def test_a_database_that_is_away_is_told_as_ever(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    away = ("recall", "x", "--user", "alice", "-d", "postgresql://127.0.0.1:1/none")
    there = cli(*away, resident_minutes="5")
    assert (there.code, there) == (3, cli(*away))


@pytest.fixture
def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ResidentEmbedder, int]]:
    """An embedder whose process the system gives no time any more, and that process."""
    monkeypatch.setattr(local_socket, "SECONDS_OF_PATIENCE", 0.5)
    monkeypatch.setattr(residence, "SECONDS_TO_END", 0.5)
    embedder, process = ResidentEmbedder(QUICK, 5), process_of()
    until(lambda: not any(socket_place.is_starting(path) for path in socket_place.running()))
    os.kill(process, signal.SIGSTOP)
    yield embedder, process
    for path in folder.glob("*.sock"):
        residence.stop(path)


def test_one_that_hangs_is_not_waited_for(stopped: tuple[ResidentEmbedder, int]) -> None:
    here, (there, _) = load_embedder(QUICK), stopped
    assert here
    path = socket_place.socket_path(QUICK)
    assert path
    with Line.to(path) as line, pytest.raises(Unanswered):
        line.ask({"ask": "model", "embedder": QUICK}, seconds=600)
    assert np.array_equal(there.embed_documents(TEXTS), here.embed_documents(TEXTS))
    assert there.count("two words") == 2


def test_one_that_hangs_is_seen_and_ended(
    stopped: tuple[ResidentEmbedder, int], cli: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    _, process = stopped
    (seen,) = cli("encoder", "status", "--json").json
    assert (seen["process"], seen["state"], seen["embedder"], seen["seconds"]) == (process, "silent", QUICK, None)
    assert cli("encoder", "status").out.split("\t")[-3:-1] == ["silent", QUICK]
    told = cli("doctor", "-d", url, resident_minutes="5", embedder=QUICK)
    assert (told.code, f"process {process} does not answer" in told.out) == (1, True)
    with memstore.open(url, settings={"embedder": QUICK}) as store:
        store.user("alice").conversation("c").add("user", "I am allergic to peanuts.")
        store.derive()
    assert "peanuts" in cli("recall", "peanuts", "--user", "alice", "-d", url, resident_minutes="5", embedder=QUICK).out
    assert cli("encoder", "stop").out.startswith("1 stopped\n")
    assert cli("encoder", "status", "--json").json == []


def test_one_that_is_loading_is_waited_for(stopped: tuple[ResidentEmbedder, int]) -> None:
    _, process = stopped
    path = socket_place.socket_path(QUICK)
    assert path
    path.with_suffix(".lock").write_bytes(b"")  # as it is until the model is loaded
    with ThreadPoolExecutor(1) as pool, Line.to(path) as line:
        answer = pool.submit(line.ask, {"ask": "model", "embedder": QUICK}, seconds=60)
        time.sleep(1.5)  # three times as long as one that is ready may be silent
        os.kill(process, signal.SIGCONT)
        assert answer.result()[0]["name"] == QUICK


def test_where_the_system_refuses_to_start_one_commands_do_without(
    folder: Path, cli: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ResidentEmbedder(QUICK, 5)
    before = there.embed_documents(TEXTS)
    kill(process_of())
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    path = socket_place.socket_path(QUICK)
    assert path
    path.with_suffix(".log").unlink()
    path.with_suffix(".log").symlink_to(folder / "elsewhere")  # stands for a full disk: it is not opened
    assert np.array_equal(there.embed_documents(TEXTS), before)
    with pytest.raises(Unanswered):
        ResidentEmbedder(QUICK, 5)
    with memstore.open(url, settings={"embedder": QUICK}) as store:
        store.user("alice").conversation("c").add("user", "I am allergic to peanuts.")
    there_is_none = {"resident_minutes": "5", "embedder": QUICK}
    assert cli("derive", "-d", url, **there_is_none).code == 0
    assert "peanuts" in cli("recall", "peanuts", "--user", "alice", "-d", url, **there_is_none).out
    told = cli("doctor", "-d", url, **there_is_none)
    assert (told.code, "none can be started" in told.out) == (1, True)


def test_a_process_that_the_system_refuses_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **more: Any) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(Unanswered, match="temporarily"):
        residence.reached(QUICK, 5)
    assert list(folder.glob("*.sock")) == []


@pytest.mark.root
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare (util-linux)")
@pytest.mark.parametrize("apart", ["--mount", "--net", "--user"])
def test_another_container_has_one_of_its_own(folder: Path, apart: str) -> None:
    code = (
        f"from pathlib import Path; from memstore import socket_place as s; s._folders = lambda: [Path('{folder}')]; "
    )
    ask = [sys.executable, "-c", code + f"print(s.socket_path('{QUICK}'))"]
    inside = subprocess.run(["unshare", apart, "--map-root-user"], stdin=subprocess.DEVNULL, capture_output=True)
    if inside.returncode:
        pytest.skip("namespaces cannot be made here")
    here, there = (
        subprocess.run([*before, *ask], capture_output=True, text=True, check=True).stdout
        for before in ([], ["unshare", apart, "--map-root-user"])
    )
    assert here.startswith(str(folder))
    assert there.startswith(str(folder))
    assert here != there


@pytest.mark.usefixtures("folder")
def test_a_folder_that_leads_elsewhere_is_not_answered_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residence, "is_worth_it", lambda embedder, minutes: minutes > 0)
    monkeypatch.setenv("MEMSTORE_EMBEDDER", QUICK)
    monkeypatch.setenv("MEMSTORE_RESIDENT_MINUTES", "5")
    store = tmp_path / "store"
    with memstore.open(f"embedded:{store}", settings={"embedder": QUICK}) as opened:
        opened.user("alice").conversation("c").add("user", "I am allergic to peanuts.")
        opened.derive()
        hits = encoder.recalled(f"embedded:{store}", "alice", {"query": "peanuts"})
        assert hits
        assert "peanuts" in hits[0]["text"]
        monkeypatch.setattr(folders, "place_of", lambda _: [1, 2, 3])
        assert encoder.recalled(f"embedded:{store}", "alice", {"query": "peanuts"}) is None


def test_other_code_is_another_encoder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "memstore" / "retrieve" / "rank.py"
    module.parent.mkdir(parents=True)
    module.write_text("before")
    monkeypatch.setattr(socket_place, "PACKAGE", tmp_path / "memstore")
    before = socket_place.socket_path(QUICK)
    assert before == socket_place.socket_path(QUICK)
    assert before
    assert before.parent == folder
    os.utime(module, ns=(1, 1))  # in place, as by git pull: no folder is touched
    assert before != socket_place.socket_path(QUICK)


def test_another_installations_encoder_is_named_and_goes_on(
    cli: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ResidentEmbedder(QUICK, 5)
    [here] = residence.states()
    package = socket_place.PACKAGE
    assert here["installation"] == str(package.resolve())
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(socket_place, "PACKAGE", tmp_path / "memstore")
        assert cli("encoder", "status", "--json").json[0]["installation"] == here["installation"]
        left = cli("encoder", "stop")
        assert left.out == "none was running\n"
        assert str(package.resolve()) in left.err
        assert str(here["process"]) in left.err
    assert process_of() == here["process"]
    assert list(folder.glob("*.lock"))
    assert cli("encoder", "stop", "--json").json["stopped"] == 1
    ResidentEmbedder(QUICK, 5)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(socket_place, "PACKAGE", tmp_path / "memstore")
        done = cli("encoder", "stop", "--all")
    assert done.out.startswith("1 stopped\n")
    assert str(package.resolve()) in done.out
    until(lambda: not list(folder.iterdir()))


def test_what_encoders_leave_is_removed(cli: Run, folder: Path) -> None:
    ResidentEmbedder(QUICK, 0.02)
    until(lambda: not list(folder.iterdir()))  # it ends by itself
    ResidentEmbedder(QUICK, 5)
    kill(process_of())
    said, old = folder / "0123456789abcdef.log", folder / "fedcba9876543210.log"
    for log in (said, old):
        log.write_text("torch is not installed")
    os.utime(old, (1, 1))
    assert list(folder.glob("*.lock"))
    cli("encoder", "stop")
    assert list(folder.iterdir()) == [said], "why one has ended today may be asked still"


def test_a_relative_folder_of_sockets_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "run")
    assert all(folder.is_absolute() for folder in socket_place._folders())
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert socket_place._folders()[0] == tmp_path / "run" / "memstore"


@pytest.mark.usefixtures("folder")
def test_it_outlives_more_connections_than_files() -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    first, path = process_of(), socket_place.socket_path(QUICK)
    assert path
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of another process cannot be set here")
    most = len(list(Path(f"/proc/{first}/fd").iterdir())) + 8
    resource.prlimit(first, resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    lines = [Line.to(path) for _ in range(40)]
    time.sleep(0.5)  # it tries to take them in meanwhile
    for line in lines:
        line.close()
    assert embedder.count("still there") == 2
    until(lambda: residence.asked(path, {"ask": "status"}) is not None)
    assert process_of() == first


@pytest.mark.usefixtures("folder")
def test_connections_over_its_limit_are_hung_up_and_the_first_ones_answered() -> None:
    embedder = ResidentEmbedder(QUICK, 5)
    path = socket_place.socket_path(QUICK)
    assert path
    lines: list[Line] = []

    def another_is_hung_up() -> bool:
        with suppress(Unanswered):  # its queue may be full for a moment
            lines.append(Line.to(path))
            lines[-1].ask({"ask": "status"}, seconds=30)
            return False
        return len(lines) > 1

    until(another_is_hung_up)
    assert len(lines) < 200
    assert lines[0].ask({"ask": "status"}, seconds=30)
    assert embedder.count("still there") == 2
    for line in lines:
        line.close()


def test_one_dead_database_keeps_nobody_else_waiting(url: str) -> None:
    stores, released, tries = OpenStores(), threading.Event(), []

    def dead() -> memstore.MemoryStore:
        tries.append(1)
        assert released.wait(60)
        raise DatabaseUnreachable("nobody is there")

    def ask() -> None:
        with stores.asked("dead", dead):
            pass

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask) for _ in range(3)]
        until(lambda: stores._places["dead"].asking == 3)
        with stores.asked("alive", lambda: memstore.open(url, settings={"embedder": QUICK})) as store:
            assert store.stats()["users"] == 0
        assert not any(one.done() for one in asked)
        released.set()
        assert all(isinstance(one.exception(), DatabaseUnreachable) for one in asked)
    assert len(tries) == 1
    with pytest.raises(DatabaseUnreachable):
        ask()
    assert len(tries) == 2
    stores.close()


def test_the_stores_asked_last_stay_open(url: str) -> None:
    stores = OpenStores()
    opened: list[memstore.MemoryStore] = []

    def open_it() -> memstore.MemoryStore:
        opened.append(memstore.open(url, settings={"embedder": QUICK}))
        return opened[-1]

    for number in range(MOST_STORES + 1):
        with stores.asked(str(number), open_it):
            pass
    assert len(stores) == MOST_STORES
    for number in range(1, MOST_STORES + 1):
        with stores.asked(str(number), open_it) as store:
            assert store.stats()["users"] == 0
    assert len(opened) == MOST_STORES + 1
    stores.close()


class Answering:
    """A line to one who gives always the same answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *ended: object) -> None:
        pass

    def ask(self, message: object, *, seconds: float) -> tuple[dict[str, Any], bytes]:
        return self.answer, b""


def test_an_embedded_server_that_has_died_is_started_by_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    died = Answering({"error": "nobody is there", "kind": "DatabaseUnreachable"})
    monkeypatch.setattr(residence, "is_worth_it", lambda *_: True)
    monkeypatch.setattr(residence, "reached", lambda *_: died)
    assert encoder.recalled("embedded:/nowhere", "alice", {"query": "x"}) is None
    with pytest.raises(DatabaseUnreachable):
        encoder.recalled("postgresql://127.0.0.1:1/none", "alice", {"query": "x"})
