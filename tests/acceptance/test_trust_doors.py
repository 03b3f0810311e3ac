"""What waits in quarantine, through each door: people see it and confirm it, a model does neither."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

import memstore
from memstore.client.store import AsyncMemoryStore
from tests.acceptance.test_mcp import model_of
from tests.command_line import Run
from tests.rest import HASHING, asking, path

SETTINGS = {**HASHING, "facts_from": "user,tool"}


@pytest.fixture
def waiting(url: str) -> Iterator[UUID]:
    """The id of a fact that only a tool says, in a database where a person has said another one."""
    with memstore.open(url, settings=SETTINGS) as store:
        trip = store.user("alice").conversation("c")
        trip.add("tool", "I live in Mallorytown.")
        trip.add("user", "I'm allergic to peanuts.")
        store.derive()
        [fact] = store.user("alice").facts(state="quarantined")
        yield fact.id


async def test_people_confirm_what_a_model_is_not_told(url: str, waiting: UUID) -> None:
    async with model_of(url) as model:
        told = [await model.call("list_memories", state=state) for state in ("active", "all")]
        assert [one["total"] for one in told] == [1, 1]
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store, asking(store) as client:
        found = (await client.get(path("alice", "facts"), params={"state": "quarantined"})).json()
        assert [one["id"] for one in found["items"]] == [str(waiting)]
        done = await client.post(path("alice", "facts", str(waiting), "confirm"))
        assert (done.status_code, done.json()["state"]) == (200, "active")
        assert (await client.post(path("bob", "facts", str(waiting), "confirm"))).status_code == 404


def test_a_fact_is_confirmed_on_the_command_line(
    cli: Run, url: str, waiting: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    of_alice = ("-u", "alice", "--json")
    assert [one["id"] for one in cli("facts", "--state", "quarantined", *of_alice).json] == [str(waiting)]
    assert cli("fact", "confirm", str(waiting)[:8], *of_alice).json["state"] == "active"
    assert len(cli("facts", *of_alice).json) == 2
