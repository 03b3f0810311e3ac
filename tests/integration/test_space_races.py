"""Spaces under concurrency: what was granted or erased meanwhile holds for what is under way."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from memstore.client.space import AsyncSpaceScope
from memstore.client.store import AsyncMemoryStore
from memstore.errors import Conflict, Forbidden, MemstoreError, NotFound
from memstore.store import grants
from memstore.store.database import Transaction
from memstore.store.tables import tables_of
from tests.rest import HASHING

HERON = "The staging server is called heron."


class Gate:
    """Where a task waits until it is let through."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await asyncio.wait_for(self.opened.wait(), 20)

    async def during(self, work: Awaitable[Any], meanwhile: Callable[[], Awaitable[Any]]) -> Any:
        """Do something while some work waits at the gate; return what the work gives, or its error."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait_for(self.reached.wait(), 20)
            await meanwhile()
        finally:
            self.opened.set()
            await asyncio.wait([task])
        return task.exception() or task.result()


@pytest.fixture
async def stores(url: str) -> AsyncIterator[list[AsyncMemoryStore]]:
    """Two stores of one database, as two processes have; Alice and Dora rule Otter, Bob writes, Carol reads."""
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(await AsyncMemoryStore.open(url, settings=HASHING)) for _ in range(2)]
        otter = await opened[0].user("alice").create_space("otter")
        await otter.grant("dora", "admin")
        await otter.grant("bob")
        await otter.grant("carol", "read")
        await otter.conversation("standup").add("user", "The release of Otter is on Friday the 12th of March.")
        await opened[0].user("bob").space("otter").conversation("standup").add("user", HERON)
        await opened[0].derive()
        yield opened


@pytest.fixture
def store(stores: list[AsyncMemoryStore]) -> AsyncMemoryStore:
    return stores[0]


def rows_with(url: str, words: str) -> dict[str, int]:
    """Return in how many rows of each table some words stand, whoever's they are."""
    with psycopg.connect(url) as superuser:
        counts = {
            table: superuser.execute(
                f"select count(*) from {table} t where t::text ilike %s",
                [f"%{words}%"],
            ).fetchone()
            for table in (*tables_of("user"), *tables_of("kept"))
        }
    return {table: row[0] for table, row in counts.items() if row and row[0]}


def before_commit(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    """Have the next message that is stored wait before its transaction ends."""
    run_together = Transaction.run_together

    async def wait(tx: Transaction, statements: Any, *, commit: bool = False) -> None:
        await run_together(tx, statements)
        monkeypatch.setattr(Transaction, "run_together", run_together)
        await gate.wait()

    monkeypatch.setattr(Transaction, "run_together", wait)


async def test_what_a_member_is_saying_while_they_are_erased_does_not_stay(
    stores: list[AsyncMemoryStore], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    before_commit(monkeypatch, gate)
    writes = stores[0].user("bob").space("otter").conversation("standup").add("user", "My ferret is called Quill.")
    erasing: list[asyncio.Task[Any]] = []

    async def erase() -> None:
        erasing.append(asyncio.ensure_future(stores[1].user("bob").erase()))
        await asyncio.wait(erasing, timeout=0.3)

    await gate.during(writes, erase)
    certificate = await erasing[0]
    await stores[0].derive()
    assert (await stores[1].verify_erasure(certificate)).is_clean
    assert [message.name for message in await stores[0].space("otter").conversation("standup").messages()] == ["alice"]
    assert rows_with(url, "quill") == {}
    assert rows_with(url, "heron") == {}


async def test_what_a_member_says_in_a_space_that_is_erased_meanwhile_is_not_there_afterwards(
    stores: list[AsyncMemoryStore], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, remove_space = Gate(), grants.remove_space

    async def wait(tx: Transaction) -> None:
        await gate.wait()
        await remove_space(tx)

    monkeypatch.setattr(grants, "remove_space", wait)
    said: list[asyncio.Task[Any]] = []

    async def say() -> None:
        bob = stores[1].user("bob").space("otter")
        said.append(asyncio.ensure_future(bob.conversation("standup").add("user", "My ferret is called Quill.")))
        await asyncio.wait(said, timeout=0.3)

    await gate.during(stores[0].user("alice").space("otter").erase(), say)
    await asyncio.wait(said)
    await stores[0].user("eve").create_space("otter")
    assert rows_with(url, "quill") == {}
    assert [grant.member for grant in await stores[0].space("otter").members()] == ["eve"]


async def test_grants_of_an_erased_space_do_not_open_the_next_one_of_its_name(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that erases ends in the midst."""

    async def end(tx: Transaction) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(grants, "remove_space", end)
        with pytest.raises(KeyboardInterrupt):
            await store.user("alice").space("otter").erase()
    try:
        eve = await store.user("eve").create_space("otter")
    except Conflict:
        return  # nothing was erased
    await eve.conversation("c").add("user", "My ferret is called Quill.")
    for name in ("alice", "bob", "carol", "dora"):
        with pytest.raises(NotFound):
            await store.user(name).space("otter").conversation("c").messages()


async def test_two_admins_who_revoke_each_other_at_once_leave_one(stores: list[AsyncMemoryStore]) -> None:
    for _ in range(12):
        await asyncio.gather(
            stores[0].user("alice").space("otter").revoke("dora"),
            stores[1].user("dora").space("otter").revoke("alice"),
            return_exceptions=True,
        )
        admins = [grant.member for grant in await stores[0].space("otter").members() if grant.access == "admin"]
        assert len(admins) == 1
        for name in ("alice", "dora"):
            await stores[0].space("otter").grant(name, "admin")


async def test_two_admins_who_leave_or_step_down_at_once_leave_one(stores: list[AsyncMemoryStore]) -> None:
    for number in range(12):
        spaces = [store.user(name).space("otter") for store, name in zip(stores, ("alice", "dora"), strict=True)]
        leave = [space.revoke(space.member.name) for space in spaces if space.member]
        step_down = [space.grant(space.member.name, "read") for space in spaces if space.member]
        wanted, other = (leave, step_down) if number % 2 else (step_down, leave)
        for each in other:
            each.close()
        results = await asyncio.gather(*wanted, return_exceptions=True)
        assert [type(result) for result in results if result] == [Conflict]
        for name in ("alice", "dora"):
            await stores[0].space("otter").grant(name, "admin")


@pytest.mark.parametrize("access", [None, "read", "write"])
@pytest.mark.parametrize("deed", ["grant", "revoke", "erase", "erase_message", "erase_conversation"])
async def test_what_an_admin_began_before_losing_the_grant_is_not_done(
    stores: list[AsyncMemoryStore], monkeypatch: pytest.MonkeyPatch, deed: str, access: str | None
) -> None:
    dora = stores[1].user("dora").space("otter")
    [first, _] = await stores[0].space("otter").conversation("standup").messages()
    work: dict[str, Awaitable[Any]] = {
        "grant": dora.grant("eve", "admin"),
        "revoke": dora.revoke("bob"),
        "erase": dora.erase(),
        "erase_message": dora.erase_message(first),
        "erase_conversation": dora.conversation("standup").erase(),
    }
    gate, look = Gate(), AsyncSpaceScope.access

    async def look_and_wait(space: AsyncSpaceScope) -> Any:
        held = await look(space)
        if space is dora:
            await gate.wait()
        return held

    monkeypatch.setattr(AsyncSpaceScope, "access", look_and_wait)

    async def take() -> None:
        alice = stores[0].user("alice").space("otter")
        await (alice.revoke("dora") if access is None else alice.grant("dora", access))

    result = await gate.during(work.pop(deed), take)
    for other in work.values():
        other.close()  # type: ignore[attr-defined]
    assert isinstance(result, Forbidden | NotFound), result
    assert len(await stores[0].space("otter").conversation("standup").messages()) == 2
    members = {grant.member: grant.access for grant in await stores[0].space("otter").members()}
    assert members.pop("dora", None) == access
    assert members == {"alice": "admin", "bob": "write", "carol": "read"}


async def test_of_those_who_create_a_space_at_once_one_has_it(stores: list[AsyncMemoryStore]) -> None:
    names = [f"user-{number}" for number in range(10)]
    for space in ("seal", "heron", "lynx"):
        made = await asyncio.gather(
            *(stores[number % 2].user(name).create_space(space) for number, name in enumerate(names)),
            return_exceptions=True,
        )
        [winner] = [name for name, result in zip(names, made, strict=True) if not isinstance(result, BaseException)]
        assert {type(result) for result in made if isinstance(result, BaseException)} == {Conflict}
        assert [grant.member for grant in await stores[0].space(space).members()] == [winner]


async def test_who_comes_back_under_an_erased_name_has_no_grant_and_reads_nothing(
    stores: list[AsyncMemoryStore],
) -> None:
    await stores[0].user("bob").erase()
    bob = stores[1].user("bob")
    await bob.conversation("home").add("user", "I am new here.")
    assert await bob.spaces() == []
    for space in (bob.space("otter"), stores[0].user("bob").space("otter")):
        with pytest.raises(NotFound):
            await space.recall("heron")
    with pytest.raises(NotFound):
        await bob.recall("heron", spaces=["otter"])


async def test_a_grant_that_another_process_takes_away_closes_what_is_held_here(
    stores: list[AsyncMemoryStore],
) -> None:
    """This process has the arrays of the space, its embedding model and connections that have served it."""
    bob = stores[1].user("bob")
    there = bob.space("otter")
    standup = there.conversation("standup")
    assert any(hit.text == HERON for hit in await bob.recall("staging server", spaces=["otter"]))
    assert await there.recall("staging server")
    receipt = (await standup.context("staging server?", budget=500)).receipt
    fact = await stores[0].space("otter").add_fact("We meet in Porto.")
    await stores[0].user("alice").space("otter").revoke("bob")
    asked: list[Callable[[], Awaitable[Any]]] = [
        lambda: bob.recall("staging server", spaces=["otter"]),
        lambda: there.recall("staging server"),
        lambda: there.recall("staging server", as_of="2100-01-01"),
        lambda: standup.context("staging server?", budget=500),
        lambda: bob.conversation("home").context("staging server?", budget=500, spaces=["otter"]),
        lambda: there.conversation("c", private=True).context("staging server?", budget=500),
        lambda: standup.messages(),
        lambda: standup.recent(),
        lambda: standup.info(),
        lambda: standup.settings(),
        lambda: standup.statistics(),
        lambda: standup.summarize(),
        lambda: standup.summaries(),
        lambda: standup.receipts(),
        lambda: standup.add("user", "I was here."),
        lambda: there.receipt(receipt),
        lambda: there.replay(receipt),
        lambda: there.receipt_page(),
        lambda: there.facts(),
        lambda: there.profile(300),
        lambda: there.inbox(),
        lambda: there.events(),
        lambda: there.erasures(),
        lambda: there.invalid_responses(),
        lambda: there.conversations(),
        lambda: there.resolve_id("0000", kind="fact"),
        lambda: there.documents().search(("notes",)),
        lambda: there.documents().get(("notes",), "first"),
        lambda: there.members(),
        lambda: there.access(),
        lambda: there.update(settings={"review_facts": True}),
        lambda: there.add_fact("I was here."),
        lambda: there.export(io.BytesIO()),
        lambda: there.fact(fact),
    ]
    for number, ask in enumerate(asked):
        with pytest.raises(NotFound):
            assert await ask() is None, number


async def test_recall_and_contexts_begun_after_a_grant_is_gone_find_nothing(stores: list[AsyncMemoryStore]) -> None:
    bob, alice = stores[1].user("bob"), stores[0].user("alice").space("otter")
    # Odd while no grant holds; what begins then may end when one holds again.
    period, over, leaked, found = 0, False, 0, 0

    async def ask(number: int) -> None:
        nonlocal leaked, found
        while not over:
            began = period
            try:
                if number % 2:
                    hits = await bob.recall("staging server", spaces=["otter"])
                    said = str([hit.text for hit in hits])
                else:
                    said = str((await bob.space("otter").conversation("x").context("staging?", budget=400)).messages)
            except MemstoreError:
                said = ""
            found += "heron" in said
            leaked += "heron" in said and began % 2 == 1 and began == period

    askers = [asyncio.create_task(ask(number)) for number in range(4)]
    for _ in range(10):
        await alice.revoke("bob")
        period += 1
        await asyncio.sleep(0.05)
        period += 1
        await alice.grant("bob")
        await asyncio.sleep(0.02)
    over = True
    await asyncio.gather(*askers)
    assert found > 0
    assert leaked == 0


async def test_a_member_exports_a_space_and_no_more_once_the_grant_is_gone(stores: list[AsyncMemoryStore]) -> None:
    written = io.BytesIO()
    await stores[0].user("bob").space("otter").export(written)
    assert HERON.encode() in written.getvalue()


async def test_nothing_derived_of_an_erased_member_stays_when_workers_derive_meanwhile(
    stores: list[AsyncMemoryStore], url: str
) -> None:
    bob, otter = stores[0].user("bob"), stores[0].space("otter")
    for number in range(6):
        await otter.grant("bob")
        talk = bob.space("otter").conversation("standup")
        for n in range(4):
            await talk.add("user", f"I live in Quillmouth{number}{n}, and my sister Quilla works there.")
        deriving = asyncio.ensure_future(stores[1].derive())
        await asyncio.sleep(0.03 * number)
        certificate = await bob.erase()
        await deriving
        await stores[1].derive()
        assert rows_with(url, "quill") == {}
        assert (await stores[1].verify_erasure(certificate)).is_clean


async def test_a_writer_does_not_have_what_others_said_erased_by_a_rule(store: AsyncMemoryStore) -> None:
    bob = store.user("bob").space("otter")
    with pytest.raises(Forbidden):
        await bob.update(settings={"message_retention_days": 0.000001})
    with pytest.raises(Forbidden):
        await bob.conversation("standup").update(settings={"message_retention_days": 0.000001})
    await bob.conversation("standup").add("user", "One more.")
    await store.derive()
    assert len(await store.space("otter").conversation("standup").messages()) == 3
    await store.user("alice").space("otter").update(settings={"message_retention_days": 30})


SETTINGS = "user_id", "space_id", "member_id", "operator"


async def test_a_connection_gives_nothing_on_to_who_has_it_next(url: str, stores: list[AsyncMemoryStore]) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING | {"pool_size": 1}) as store:
        carol, bob = store.user("carol").space("otter"), store.user("bob").space("otter")

        async def left() -> dict[str, str | None]:
            pool = store._database._pool
            async with pool.connection() as connection:
                settings = {name: f"memstore.{name}" for name in SETTINGS} | {"role": "role"}
                found = {}
                for name, setting in settings.items():
                    row = await (await connection.execute("select current_setting(%s, true)", [setting])).fetchone()
                    found[name] = row[0] if row else None
                rows = await (await connection.execute("select count(*) from pg_stat_activity")).fetchone()
                assert rows
                return {name: value for name, value in found.items() if value not in (None, "", "none")}

        async def cancelled(work: Awaitable[Any], after: float) -> None:
            task = asyncio.ensure_future(work)
            await asyncio.sleep(after)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        await carol.recall("staging server")
        assert await left() == {}
        for wrong in (
            carol.conversation("standup").add("user", "I was here."),
            store.user("eve").space("otter").recall("staging server"),
            bob.resolve_id("abcd", kind="fact"),
            bob.erase(),
        ):
            with pytest.raises(MemstoreError):
                await wrong
            assert await left() == {}
        for step in range(12):
            await cancelled(bob.recall("staging server"), step / 1000)
            assert await left() == {}
            await cancelled(bob.conversation(f"c{step}").add("user", "Hello."), step / 1000)
            assert await left() == {}
            with pytest.raises(NotFound):
                await store.user("eve").space("otter").conversation("standup").messages()
            assert await store.user("eve").conversations() == []


async def test_who_only_reads_is_refused_each_change_at_once(store: AsyncMemoryStore) -> None:
    """Locks find no rows for a reader: what waits for one would try for ever."""
    otter, there = store.space("otter"), store.user("carol").space("otter")
    fact = await otter.add_fact("We meet in Porto.")
    waiting = await otter.add_fact("We meet in Faro.", quarantined=True)
    standup = there.conversation("standup")
    [message, _] = await standup.messages()
    changes: list[Callable[[], Awaitable[Any]]] = [
        standup.summarize,
        standup.clear,
        standup.erase,
        lambda: standup.update(title="Mine"),
        lambda: standup.add("user", "I was here."),
        lambda: standup.add("user", "I was here.", external_id="x"),
        lambda: there.conversation("new", keep="session").add("user", "I was here."),
        lambda: there.update(settings={"review_facts": True}),
        lambda: there.update(settings={"message_retention_days": 1}),
        lambda: there.add_fact("I was here."),
        lambda: there.add_fact("We meet in Porto.", importance="pinned"),
        lambda: there.edit_fact(fact, text="We meet in Paris."),
        lambda: there.edit_fact(fact, confidence=0.1),
        lambda: there.retract_fact(fact),
        lambda: there.confirm_fact(waiting),
        lambda: there.review(accept=[waiting.id]),
        lambda: there.review(refuse=[waiting.id]),
        lambda: there.erase_fact(fact),
        lambda: there.erase_message(message),
        lambda: there.documents().put(("notes",), "first", {"text": "I was here."}),
        there.erase,
        lambda: there.grant("eve"),
        lambda: there.revoke("bob"),
    ]
    before = await otter.facts(state=None), await standup.messages(), await otter.conversations()
    done = {}
    for number, change in enumerate(changes):
        try:
            done[number] = await asyncio.wait_for(change(), 5)
        except Forbidden:
            continue
    assert done == {}
    assert (await otter.facts(state=None), await standup.messages(), await otter.conversations()) == before
    assert (await standup.context("staging server?", budget=400)).receipt.id is None
