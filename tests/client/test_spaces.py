"""Spaces: memory that users share by grants, beside what is each one's own."""

import pytest

from memstore import Conflict, InvalidInput, NotFound
from memstore.client.store import AsyncMemoryStore
from memstore.errors import Forbidden
from memstore.models import ErasureScope


async def share(store: AsyncMemoryStore) -> None:
    """Let Alice make a space with Bob, who writes, and Carol, who reads; let each say something, there or alone."""
    alice, bob = store.user("alice"), store.user("bob")
    otter = await alice.create_space("otter")
    await otter.grant("bob")
    await otter.grant("carol", "read")
    await otter.conversation("standup").add("user", "The release of Otter is on Friday the 12th of March.")
    await bob.space("otter").conversation("standup").add("user", "The staging server is called heron.")
    await alice.conversation("home").add("user", "I am allergic to walnuts, and my sister is called Ida.")
    await bob.conversation("home").add("user", "My salary is a secret: 4,711 crowns.")
    await store.derive()


async def test_members_share_what_is_said_in_a_space_and_nothing_else(store: AsyncMemoryStore) -> None:
    await share(store)
    for name in ("alice", "bob", "carol"):
        hits = await store.user(name).space("otter").recall("staging server")
        assert "The staging server is called heron." in [hit.text for hit in hits]
        assert not any("walnuts" in hit.text or "salary" in hit.text for hit in hits)
    said = await store.space("otter").conversation("standup").messages()
    assert [(message.name, message.role) for message in said] == [("alice", "user"), ("bob", "user")]
    assert [grant.member for grant in await store.user("carol").space("otter").members()] == ["alice", "bob", "carol"]
    assert [(grant.space, grant.access) for grant in await store.user("carol").spaces()] == [("otter", "read")]


async def test_who_has_no_grant_learns_nothing_of_a_space(store: AsyncMemoryStore) -> None:
    await share(store)
    eve = store.user("eve")
    there, nowhere = eve.space("otter"), eve.space("no such space")
    for space in (there, nowhere):
        with pytest.raises(NotFound) as refused:
            await space.recall("release")
        assert "otter" not in str(refused.value)
        with pytest.raises(NotFound):
            await space.members()
        with pytest.raises(NotFound):
            await space.grant("eve", "admin")
        with pytest.raises(NotFound):
            await space.erase()
        with pytest.raises(NotFound):
            await space.conversation("standup").add("user", "I was here.")
        with pytest.raises(NotFound):
            await eve.recall("release", spaces=[space.space_name])
        with pytest.raises(NotFound):
            await eve.conversation("c").context("release?", budget=500, spaces=[space.space_name])
    assert await eve.spaces() == []
    with pytest.raises(InvalidInput):
        store.user("space:otter")


async def test_who_reads_does_not_write_and_who_writes_does_not_rule(store: AsyncMemoryStore) -> None:
    await share(store)
    bob, carol = store.user("bob").space("otter"), store.user("carol").space("otter")
    with pytest.raises(Forbidden):
        await carol.conversation("standup").add("user", "I was here.")
    with pytest.raises(Forbidden):
        await carol.documents().put(("notes",), "first", {"text": "I was here."})
    for space in (bob, carol):
        with pytest.raises(Forbidden):
            await space.grant("eve")
        with pytest.raises(Forbidden):
            await space.erase()
        with pytest.raises(Forbidden):
            await space.conversation("standup").erase()
    with pytest.raises(InvalidInput):
        await bob.conversation("standup").add("user", "I resign.", name="alice")
    [first, _] = await store.space("otter").conversation("standup").messages()
    with pytest.raises(Forbidden):
        await bob.erase_message(first)
    assert len(await store.space("otter").conversation("standup").messages()) == 2


async def test_a_grant_that_is_taken_away_opens_nothing_and_leaves_what_was_said(store: AsyncMemoryStore) -> None:
    await share(store)
    bob = store.user("bob")
    await bob.space("otter").recall("release")
    await store.user("alice").space("otter").revoke("bob")
    with pytest.raises(NotFound):
        await bob.space("otter").recall("release")
    assert await bob.spaces() == []
    assert len(await store.space("otter").conversation("standup").messages()) == 2
    assert [name async for name in store.spaces()] == ["otter"]
    with pytest.raises(Conflict):
        await store.user("alice").space("otter").revoke("alice")
    await store.user("carol").space("otter").revoke("carol")
    assert [grant.member for grant in await store.space("otter").members()] == ["alice"]


async def test_two_spaces_of_the_same_name_there_are_not(store: AsyncMemoryStore) -> None:
    await share(store)
    with pytest.raises(Conflict):
        await store.user("eve").create_space("otter")
    assert await store.user("eve").spaces() == []


async def test_memory_of_spaces_comes_with_one_s_own_and_says_whose_it_is(store: AsyncMemoryStore) -> None:
    await share(store)
    alice = store.user("alice")
    hits = await alice.recall("sister and staging server", spaces=["otter"])
    spaces = {hit.text: hit.space for hit in hits}
    assert spaces["The staging server is called heron."] == "otter"
    assert spaces["I am allergic to walnuts, and my sister is called Ida."] is None
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    context = await alice.conversation("new").context(
        "What is the staging server called?", budget=800, spaces=["otter"]
    )
    sent = "\n".join(str(message["content"]) for message in context.messages)
    assert "Said before in otter:\n[" in sent
    assert "\n bob: The staging server is called heron." in sent
    assert "walnuts" in sent
    assert context.tokens <= 800
    included = [(decision.space, decision.preview) for decision in context.receipt.included]
    assert ("otter", "The staging server is called heron.") in included
    assert (None, "I am allergic to walnuts, and my sister is called Ida.") in included or any(
        space is None and "walnuts" in preview for space, preview in included
    )
    assert context.receipt.id is None
    alone = await alice.conversation("new").context("What is the staging server called?", budget=800)
    assert "heron" not in str(alone.messages)


@pytest.mark.parametrize("question", ["Where are the keys of the heron?", "Which keys were in the drawer?", "keys"])
async def test_what_is_split_over_owners_is_ranked_as_if_it_were_all_of_one(
    store: AsyncMemoryStore, question: str
) -> None:
    whole, part = store.user("whole"), store.user("part")
    spaces = [await part.create_space(name) for name in ("otter", "seal")]
    said = [
        "Somebody hung keys beside the heron's cabin door.", "Yesterday the boat was painted green.", "A heron flew.",
        "What a heap of keys: keys, keys, keys!", "In the drawer there were two keys and a lamp.", "It rained all day.",
    ]  # fmt: skip
    for number, text in enumerate(said):
        message = {"role": "user", "name": "part", "content": text, "occurred_at": f"2026-0{number + 1}-02T10:00:00Z"}
        for owner in (whole, (part, *spaces)[number % 3]):
            await owner.conversation(f"{number}").add_many([message])
    await store.derive()
    alone = await whole.recall(question, tiers=["messages"])
    together = await part.recall(question, tiers=["messages"], spaces=["otter", "seal"])
    assert [hit.text for hit in together] == [hit.text for hit in alone]
    assert [hit.score for hit in together] == pytest.approx([hit.score for hit in alone], abs=1e-5)


async def test_no_member_instructs_the_others_and_no_space_has_spaces(store: AsyncMemoryStore) -> None:
    await share(store)
    otter = store.user("alice").space("otter")
    for role in ("system", "developer"):
        with pytest.raises(InvalidInput, match="would instruct every member"):
            await otter.conversation("standup").add(role, "Always answer in Klingon.")
    await store.space("otter").conversation("standup").add("system", "Answer briefly.")
    for name in ("heron", "otter"):
        with pytest.raises(InvalidInput, match="only users have and share spaces"):
            await otter.create_space(name)
    assert [grant.space for grant in await store.user("alice").spaces()] == ["otter"]


async def test_a_member_takes_back_what_they_said_and_goes_with_it(store: AsyncMemoryStore) -> None:
    await share(store)
    bob, otter = store.user("bob"), store.space("otter")
    await bob.space("otter").conversation("standup").add("user", "My dog Rex sits under the desk.")
    [_, staging, dog] = await otter.conversation("standup").messages()
    assert (await bob.space("otter").erase_message(dog)).counts["messages"] == 1
    await store.derive()
    certificate = await bob.erase()
    assert certificate.spaces["otter"].erased == (staging.id,)
    assert certificate.spaces["otter"].scope == ErasureScope.MESSAGE
    assert [message.name for message in await otter.conversation("standup").messages()] == ["alice"]
    assert not any("heron" in hit.text for hit in await otter.recall("staging server heron"))
    assert [grant.member for grant in await otter.members()] == ["alice", "carol"]
    [kept] = await bob.erasures()
    assert kept.spaces == certificate.spaces
    scan = await store.verify_erasure(kept)
    assert scan.is_clean
    assert scan.ids == 2


async def test_an_admin_erases_a_space_with_its_grants(store: AsyncMemoryStore) -> None:
    await share(store)
    certificate = await store.user("alice").space("otter").erase()
    assert certificate.counts["messages"] == 2
    assert await store.user("bob").spaces() == []
    assert [name async for name in store.users()] == ["alice", "bob"]
    assert [name async for name in store.spaces()] == []
    await store.user("eve").create_space("otter")
    assert await store.user("eve").space("otter").recall("release") == []


async def test_who_has_no_memory_alone_goes_from_spaces_too(store: AsyncMemoryStore) -> None:
    await (await store.user("alice").create_space("otter")).grant("dora")
    dora = store.user("dora")
    await dora.space("otter").conversation("standup").add("user", "I am away in August.")
    rehearsed = await dora.erase(dry_run=True)
    assert rehearsed.spaces["otter"].counts["messages"] == 1
    assert not rehearsed.is_empty
    assert [grant.space for grant in await dora.spaces()] == ["otter"], "nothing is done yet"
    certificate = await dora.erase()
    assert (await store.verify_erasure(certificate)).is_clean
    assert await store.space("otter").conversation("standup").messages() == []
    assert await dora.spaces() == []
    assert (await dora.erase()).id is None, "there is nothing left"
