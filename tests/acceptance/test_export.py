"""Exports as people make them, on the command line; as long as they come, in how much memory."""

import gzip
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore import ids
from memstore.testing import HashingEmbedder
from tests.command_line import SCRIPT, Run, environment
from tests.helpers.user_rows import rows
from tests.working import HASHING, START, said


@pytest.fixture
def filled(url: str) -> str:
    with memstore.open(url, settings=HASHING) as store:
        for name in ("ann", "bob"):
            store.user(name).conversation("talk", title="A talk").add_many(said(f"{name}talk", 24))
            store.user(name).conversation("other").add("user", "I play the cello.")
        store.derive()
    return url


def test_what_export_writes_import_takes_in_and_tells(cli: Run, filled: str, twin: str, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl.gz"
    told = cli("export", str(path), "-d", filled, "--json")
    assert told.code == 0
    assert told.json | {"summaries": 0, "facts": 0} == {
        "file": str(path), "users": 2, "conversations": 4, "messages": 50, "summaries": 0, "facts": 0,
        "documents": 0
    }  # fmt: skip
    assert json.loads(gzip.decompress(path.read_bytes()).splitlines()[0])["format"] == "memstore-export"
    took = cli("import", str(path), "-d", twin, "--json")
    [file] = took.json["files"]
    assert (took.code, took.json["new"], file["format"]) == (0, 50, "memstore")
    assert file["restored"] == {name: told.json[name] for name in ("users", "conversations", "summaries", "facts")}
    assert rows(twin, "ann", "bob") == rows(filled, "ann", "bob")
    again = cli("import", str(path), "-d", twin)
    assert (again.code, "0 new, 50 known, 0 skipped" in again.out) == (0, True)


def test_an_export_goes_through_a_pipe(filled: str, twin: str) -> None:
    env = environment()
    out = subprocess.Popen(
        [SCRIPT, "export", "-u", "ann", "-d", filled], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    ran = subprocess.run(
        [SCRIPT, "import", "-", "-d", twin, "--json"], env=env, stdin=out.stdout, capture_output=True, timeout=120
    )
    assert out.communicate(timeout=60)[1].count(b"\n") == 1
    assert (out.returncode, ran.returncode) == (0, 0), ran.stderr
    assert json.loads(ran.stdout)["new"] == 25
    assert rows(twin, "ann") == rows(filled, "ann")
    assert not any(rows(twin, "bob").values())


# -- as long as they come

WORK = """
import sys, memstore
what, url, path = sys.argv[1:]
with memstore.open(url, settings={"embedder": "hashing:256"}) as store:
    done = store.export(path) if what == "export" else store.import_file(path)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(getattr(done, "messages", None) or done.new, int(peak.split()[1]) // 1024)
"""


def synthetic(messages: int) -> Iterator[dict[str, Any]]:
    """Give the lines of an export of one user, whose every message has a chunk with a vector: 2.3 KB each."""
    embedder, at = HashingEmbedder(256), START.isoformat()
    owner, place = ids.user_id("ann"), ids.conversation_id(ids.user_id("ann"), "long")
    named = {"user": "ann", "conversation": "long"}
    yield {"kind": "export", "format": "memstore-export", "version": 1, "memstore": "0", "exported_at": at} | {
        "derived": True, "vectors": True
    }  # fmt: skip
    yield {"kind": "user", "user": "ann", "id": str(owner), "created_at": at} | {
        "embedder": {"name": "hashing:256", "dimensions": 256}
    }
    marks = {name: {"seq": messages} for name in ("chunks", "summaries", "facts")}
    yield {"kind": "conversation", **named, "id": str(place), "last_seq": messages, "created_at": at} | {
        "updated_at": at, "watermarks": marks
    }  # fmt: skip
    for seq in range(1, messages + 1):
        text = f"Entry {seq}: the tram number {seq % 40} went to market {seq % 901} at {seq % 24} o'clock. " * 4
        vector = b64encode(embedder.embed_query(f"user: {text}").astype("<f4").tobytes()).decode()
        when = (START + timedelta(minutes=seq)).isoformat()
        yield {"kind": "message", **named, "id": str(ids.message_id(place, str(seq))), "seq": seq, "role": "user"} | {
            "content": text, "external_id": str(seq), "occurred_at": when, "recorded_at": when, "tokens": 80,
            "counter": "tiktoken:o200k_base",
            "chunks": [{"start": 0, "stop": len(text), "recorded_at": when, "vector": vector}],
        }  # fmt: skip


def write(path: Path, messages: int) -> None:
    digest = sha256()
    with path.open("wb") as file:
        for line in synthetic(messages):
            data = json.dumps(line).encode() + b"\n"
            digest.update(data)
            file.write(data)
        file.write(json.dumps({"kind": "end", "lines": {}, "sha256": digest.hexdigest()}).encode() + b"\n")


def peak(what: str, url: str, path: Path) -> tuple[int, int]:
    """Give how many messages went in or out of a process of its own, and the most memory that it had, in MiB."""
    ran = subprocess.run(
        [sys.executable, "-c", WORK, what, url, str(path)],
        env=environment(), capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    messages, memory = ran.stdout.split()
    return int(messages), int(memory)


@pytest.mark.slow
def test_memory_does_not_grow_with_what_goes_out_and_comes_in(url: str, twin: str, tmp_path: Path) -> None:
    small, large, most = 2_000, 26_000, 12  # messages, and MiB: the large file has 49 MB more
    found: dict[str, list[int]] = {"import": [], "export": []}
    for messages, database in ((small, twin), (large, url)):
        came, went = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        write(came, messages)
        for what, path in (("import", came), ("export", went)):
            count, memory = peak(what, database, path)
            assert count == messages
            found[what].append(memory)
        first, again = ([json.loads(line) for line in path.read_bytes().splitlines()] for path in (came, went))
        assert [line["id"] for line in again[3:-1]] == [line["id"] for line in first[3:-1]]
        assert again[3:-1:500] == first[3:-1:500]
    assert went.stat().st_size > 50_000_000
    for what, (of_small, of_large) in found.items():
        assert of_large - of_small < most, (what, found)
