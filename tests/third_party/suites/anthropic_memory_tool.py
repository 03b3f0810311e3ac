"""The tests of Anthropic's SDK for its memory tool over a folder, with memstore's over documents in its place."""

from __future__ import annotations

import atexit
from functools import cache
from typing import Any

import pytest
import tests.lib.tools.memory_tools.test_filesystem as suite
from memstore_suite import cloned_url
from tests.lib.tools.memory_tools.test_filesystem import *  # noqa: F403

import memstore
from memstore.adapters.anthropic import NAMESPACE, AsyncMemstoreMemoryTool, MemstoreMemoryTool


@cache
def store() -> Any:
    opened = memstore.open(cloned_url().__enter__(), settings={"embedder": "none"})
    atexit.register(opened.close)
    return opened


class Root:
    """The folder of files, as far as the tests reach into it."""

    def __init__(self, user: Any, name: str = "") -> None:
        self.user, self.name = user, name

    def __truediv__(self, name: str) -> Root:
        return Root(self.user, name)

    def write_bytes(self, data: bytes) -> None:
        self.user.documents().put(NAMESPACE, self.name, {"text": data.decode()})

    def read_bytes(self) -> bytes:
        data: bytes = self.user.documents().get(NAMESPACE, self.name).value["text"].encode()
        return data

    def is_dir(self) -> bool:
        return True


class AsyncRoot(Root):
    """The same, awaited."""

    async def is_dir(self) -> bool:  # type: ignore[override]
        return True


@pytest.fixture
def sync_local_filesystem_tool(temp_directory: str) -> MemstoreMemoryTool:
    made: Any = MemstoreMemoryTool(store().user(temp_directory))
    made.base_path, made.memory_root = temp_directory, Root(store().user(temp_directory))
    return made


@pytest.fixture
def async_local_filesystem_tool(temp_directory: str) -> AsyncMemstoreMemoryTool:
    made: Any = AsyncMemstoreMemoryTool(store().user(temp_directory))
    made.base_path, made.memory_root = temp_directory, AsyncRoot(store().user(temp_directory))
    return made


def snapshot(base_path: str) -> dict[str, str]:
    found = store().user(base_path).documents().search(NAMESPACE, limit=1000)
    return {f"memories/{one.key}": one.value["text"] for one in found}


suite.get_directory_snapshot = snapshot
