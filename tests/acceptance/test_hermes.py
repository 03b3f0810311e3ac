"""The memory provider for Hermes Agent, in that program's own manager of providers."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import memstore
from tests.command_line import EMBEDDER


@pytest.fixture
def provider_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The provider; where Hermes is not installed, over a class that stands for its base."""
    try:
        import agent.memory_provider  # noqa: F401
    except ModuleNotFoundError:
        base = types.ModuleType("agent.memory_provider")
        base.MemoryProvider = object  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "agent", types.ModuleType("agent"))
        monkeypatch.setitem(sys.modules, "agent.memory_provider", base)
        monkeypatch.delitem(sys.modules, "memstore.adapters.hermes", raising=False)
    from memstore.adapters.hermes import MemstoreMemoryProvider

    return MemstoreMemoryProvider


@pytest.fixture
def settings(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    monkeypatch.setenv("MEMSTORE_EMBEDDER", EMBEDDER)
    return url


def test_a_turn_is_stored_and_told_to_other_sessions_only(provider_class: Any, settings: str) -> None:
    provider = provider_class()
    assert (provider.name, provider.is_available()) == ("memstore", True)
    assert "not open" in json.loads(provider.handle_tool_call("memstore_search", {"query": "ferry"}))["error"]
    provider.initialize("first", hermes_home="/nowhere", platform="cli", user_id="alice")
    try:
        assert [tool["name"] for tool in provider.get_tool_schemas()] == ["memstore_search", "memstore_remember"]
        provider.sync_turn("We keep the ferry timetable in Postgres.", "Noted.", session_id="first")
        provider.on_session_end([])
        asks = "Where do we keep the ferry timetable?"
        assert provider.prefetch(asks, session_id="first") == ""
        assert "We keep the ferry timetable in Postgres." in provider.prefetch(asks, session_id="second")
        assert provider.prefetch("ok, go on", session_id="second") == ""
        provider.on_memory_write("add", "user", "The user is allergic to walnuts.")
        provider.on_session_switch("third", reset=True)
        provider.on_session_end([])
        assert "walnuts" in provider.prefetch(asks)
        found = json.loads(provider.handle_tool_call("memstore_search", {"query": "allergic", "limit": 1}))
        assert "walnuts" in found["memories"][0]["text"]
        assert json.loads(provider.handle_tool_call("memstore_remember", {"text": "The user owns a kayak."})) == {
            "kept": "The user owns a kayak."
        }
        for wrong in (("memstore_remember", {}), ("memstore_search", {"query": ""}), ("other", {})):
            assert "error" in json.loads(provider.handle_tool_call(*wrong))
    finally:
        provider.shutdown()
    with memstore.open(settings, settings={"embedder": EMBEDDER}) as store:
        alice = store.user("alice")
        assert [message.text for message in alice.conversation("first").messages()] == [
            "We keep the ferry timetable in Postgres.",
            "Noted.",
        ]
        assert store.stats(user="alice")["pending"] == 0


def test_an_entry_that_hermes_replaces_or_removes_is_so_here(provider_class: Any, settings: str) -> None:
    with memstore.open(settings, settings={"embedder": EMBEDDER}) as store:
        alice = store.user("alice")
        alice.conversation("talk").add("user", "I own a kayak.")
        store.derive()
        said = {fact.text for fact in alice.facts()}
        provider = provider_class()
        provider.initialize("first", user_id="alice")
        provider.on_memory_write("add", "user", "The user prefers trains.")
        provider.on_memory_write("add", "memory", "The garage code changes on Mondays.")
        provider.on_memory_write("replace", "user", "The user prefers night trains.", {"old_text": "prefers trains"})
        provider.on_memory_write("remove", "memory", "", {"old_text": "garage code"})
        provider.on_memory_write("remove", "memory", "", {"old_text": "kayak"})
        provider.on_memory_write("remove", "memory", "")
        provider.on_memory_write(
            "replace", "user", "The office closes at six.", metadata={"old_text": "nothing of this"}
        )
        provider.shutdown()
        texts = {"The user prefers night trains.", "The office closes at six."}
        assert said and {fact.text for fact in alice.facts()} == said | texts


def test_a_program_that_inspects_opens_no_store(provider_class: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", "postgresql://nobody@nowhere.invalid/none")
    provider = provider_class()
    provider.initialize_for_inspection("first", agent_context="subagent")
    assert "memstore_search" in provider.system_prompt_block()
    assert [tool["name"] for tool in provider.get_tool_schemas()] == ["memstore_search"]
    provider.sync_turn("I own a kayak.", "Nice.")
    provider.shutdown()


def test_a_subagent_reads_and_stores_nothing(provider_class: Any, settings: str) -> None:
    with memstore.open(settings, settings={"embedder": EMBEDDER}) as store:
        store.user("coder").add_fact("The user is allergic to walnuts.")
        provider = provider_class()
        provider.initialize("cron 1", agent_context="cron", agent_identity="coder")
        provider.sync_turn("I own a kayak.", "Nice.")
        provider.on_memory_write("add", "user", "The user owns a kayak.")
        provider.on_session_end([])
        assert [tool["name"] for tool in provider.get_tool_schemas()] == ["memstore_search"]
        assert "error" in json.loads(provider.handle_tool_call("memstore_remember", {"text": "The user owns a kayak."}))
        assert "walnuts" in provider.handle_tool_call("memstore_search", {"query": "allergic"})
        provider.shutdown()
        assert [fact.text for fact in store.user("coder").facts()] == ["The user is allergic to walnuts."]
        assert store.user("coder").conversations() == []


def test_it_runs_in_hermes(settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager_of_hermes = pytest.importorskip("agent.memory_manager")
    discovery = pytest.importorskip("plugins.memory")
    folder = tmp_path / "plugins" / "memstore"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from memstore.adapters.hermes import MemstoreMemoryProvider\n")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    assert "memstore" in discovery.list_memory_provider_names()
    provider = discovery.load_memory_provider("memstore")
    manager = manager_of_hermes.MemoryManager()
    manager.add_provider(provider)
    manager.initialize_all("first", user_id="alice", platform="cli")
    assert "memstore_search" in manager.get_all_tool_names()
    assert "memstore_search" in manager.build_system_prompt()
    manager.sync_all("We keep the ferry timetable in Postgres.", "Noted.", session_id="first")
    assert manager.flush_pending(30)
    manager.on_session_end([])
    told = manager.prefetch_all("Where do we keep the ferry timetable?", session_id="second")
    assert "We keep the ferry timetable in Postgres." in told
    assert "ferry" in manager.handle_tool_call("memstore_search", {"query": "timetable"})
    manager.shutdown_all()
