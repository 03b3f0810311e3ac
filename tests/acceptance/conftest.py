"""What the tests of the whole product share."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memstore.cli import app
from memstore.cli.session import run_command
from memstore.client.store import AsyncMemoryStore
from memstore.store.embedded import server
from tests.command_line import EMBEDDER, Ended, Run, variables


@pytest.fixture
async def store(url: str) -> AsyncIterator[AsyncMemoryStore]:
    async with await AsyncMemoryStore.open(url, settings={"embedder": EMBEDDER}) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a store of the test's own, whose server is stopped in the end."""
    yield tmp_path / "store"
    if (tmp_path / "store" / "data").is_dir():
        server.stop(tmp_path / "store")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a command in this process, which spares it the imports, with these settings."""
    handlers, level = logging.root.handlers[:], logging.root.level
    monkeypatch.setenv("MEMSTORE_EMBEDDER", EMBEDDER)

    def run(*args: str, **settings: str) -> Ended:
        with monkeypatch.context() as patch:
            for name, value in variables(settings).items():
                patch.setenv(name, value)
            capsys.readouterr()
            code = run_command(lambda: app(args))
        return Ended(code, *capsys.readouterr())

    yield run
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    logging.getLogger("memstore").setLevel(logging.NOTSET)
