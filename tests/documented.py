"""Pages of the documentation as programs: their blocks in the order in which they stand, each page in one process.

A page says in comments, which readers do not see, what its blocks need and the reader has:

    <!-- run: python … -->          statements that are run before the next block, such as `trip = …`
    <!-- run: sh … -->              functions and variables for the page's commands, such as a stand-in for docker
    <!-- run: with ollama -->       a scripted server in place of Ollama
    <!-- run: skip, REASON -->      the next block is not run
    <!-- run: needs NAME, REASON --> nor is it where a package is not installed
    <!-- run: by FILE -->           the page is run by another test

`python -m tests.documented PAGE` runs one in the folder where it is started.
"""

import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LANGUAGES = ("python", "sh")
STEP = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```|<!-- run: (?P<told>.*?)-->", re.M | re.S
)
# Those that serve until they are stopped: here, until they are there.
SERVING = re.compile(r"^((?:\w+=\S+ )*)(memstore serve[^&#\n]*?) *(&?) *(?:#.*)?$", re.M)
PRELUDE = """
up() {
    command "$@" > up.log 2>&1 & UP=$!
    for _ in $(seq 600); do
        if grep -q http:// up.log; then return; fi
        kill -0 $UP || break
        sleep 0.05
    done
    cat up.log >&2; return 1
}
down() { if [ -n "${UP:-}" ]; then kill -TERM $UP; wait $UP; UP=; fi; }
trap down EXIT
"""


class Step(NamedTuple):
    """A block of a page, or what stands in a comment; `excuse` says why it is not run, `unless` a package is there."""

    language: str
    code: str
    line: int
    shown: bool
    excuse: str = ""
    unless: str | None = None

    @property
    def skipped(self) -> bool:
        return bool(self.excuse) and (self.unless is None or find_spec(self.unless) is None)


class Page(NamedTuple):
    steps: list[Step]
    with_ollama: bool
    elsewhere: str

    @property
    def runs(self) -> bool:
        return not self.elsewhere and any(one.shown and not one.skipped for one in self.steps)


def read(path: Path) -> Page:
    """Read a page. Raises `ValueError` for a comment that says nothing known."""
    text = path.read_text(encoding="utf-8")
    steps, excuse, unless, with_ollama, elsewhere = [], "", None, False, ""
    for found in STEP.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["told"] is None:
            if found["language"] in LANGUAGES:
                steps.append(Step(found["language"], dedent(found["code"]), line, True, excuse, unless))
            excuse, unless = "", None
            continue
        word, _, rest = found["told"].strip().replace("\n", " \n", 1).partition(" ")
        if word in LANGUAGES:
            steps.append(Step(word, dedent(rest.lstrip("\n")), line, False))
        elif word == "skip," and rest:
            excuse = rest
        elif word == "needs" and ", " in rest:
            unless, _, excuse = rest.partition(", ")
        elif word == "by" and (ROOT / rest).is_file():
            elsewhere = rest
        elif (word, rest) == ("with", "ollama"):
            with_ollama = True
        else:
            raise ValueError(f"{path.name}:{line} says to run {found['told']!r}")
    return Page(steps, with_ollama, elsewhere)


def run(path: Path) -> None:
    """Run the blocks of a page in this process and this folder; the first that fails ends it."""
    page, names = read(path), {"__name__": "__main__"}
    functions: list[str] = []
    with ExitStack() as held:
        if page.with_ollama:
            os.environ.update(held.enter_context(_ollama()))
        for step in page.steps:
            if step.skipped:
                continue
            if step.language == "python":
                _in_process(path, step, names)
            elif step.shown:
                _in_shell(path, step, functions)
            else:
                functions.append(step.code)


def _in_process(path: Path, step: Step, names: dict[str, Any]) -> None:
    """Run a program; one that leaves would end the page before its last block, and as if all were well."""
    try:
        exec(compile("\n" * step.line + step.code, str(path), "exec", dont_inherit=True), names)
    except SystemExit as error:
        raise SystemExit(f"{path.name}:{step.line} left with {error.code!r}") from error


def _in_shell(path: Path, step: Step, functions: list[str]) -> None:
    """Run commands; a server among them has a port that nobody else has."""
    port = _free_port()
    commands = SERVING.sub(lambda one: _served(*one.groups(), port), step.code.replace(":8377", f":{port}"))
    told = "\n".join([PRELUDE, *functions, commands])
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", told], stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{path.name}:{step.line} ended with {done.returncode}:\n{step.code}")


def _free_port() -> str:
    """Return a port below those that the system gives to whoever asks for any: nobody takes it meanwhile."""
    while True:
        port = random.randrange(20_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return str(port)


def _served(variables: str, command: str, stays: str, port: str) -> str:
    return f"{variables}up {command} --port {port}" + ("" if stays else "; down")


@contextmanager
def _ollama() -> Iterator[dict[str, str]]:
    from tests.model_server import ScriptedServer, says

    with ScriptedServer() as server:
        # To `doctor` in its words, whose schema has "ok"; to people in others.
        server.next = lambda body: says({"ok": True} if "ok" in str(body.get("format")) else "Then no satay for you.")  # type: ignore[method-assign]
        yield {"MEMSTORE_OLLAMA_URL": server.url, "OLLAMA_HOST": server.url}


if __name__ == "__main__":
    run(Path(sys.argv[1]))
