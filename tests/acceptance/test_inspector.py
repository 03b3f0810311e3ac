"""The inspector, as whoever looks through a memory meets it; and whoever would misuse it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest
from markupsafe import escape
from starlette.types import Receive, Scope, Send

from memstore.memory.store import AsyncMemoryStore
from memstore.memory.tokens import hashed
from memstore.models import Certificate, Reason
from memstore.models.receipts import IN_WORDS
from memstore.server.http import door, sessions
from memstore.server.http.sessions import COOKIE, Sessions
from memstore.server.inspector import conversations, links, signing
from memstore.server.inspector.app import HEADERS, inspector
from memstore.server.inspector.drawing import KINDS, file
from tests.pages import LARGEST, LINK, NAMES, SCRIPT, Read, crawled, hostile, read, sent, signed
from tests.rest import HASHING, asking, bearer, events, serving

PEANUTS = "I'm allergic to peanuts, and I live in Porto."
OURS = {"Origin": "http://127.0.0.1"}


@pytest.fixture
async def store(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncMemoryStore]:
    monkeypatch.setattr(door, "SECONDS_KNOWN", 0.0)
    monkeypatch.setattr(signing, "_tries", signing.Tries(signing.TRIES_A_SECOND))
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store:
        yield store


def looking(store: AsyncMemoryStore, *, writes: bool = False, **more: Any) -> Any:
    return asking(store, pages=inspector(writes=writes), **more)


async def letter(store: AsyncMemoryStore, url: str) -> None:
    """Leave an answer that nobody could use, and a job that was given up."""
    plain = store.user(NAMES[0])
    row = {"user": plain.id, "place": plain.conversation(NAMES[0]).id, "text": SCRIPT}
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into dead_letters (user_id, id, conversation_id, deriver, from_seq, to_seq, recipe, error, payload)"
            " values (%(user)s, gen_random_uuid(), %(place)s, 'facts', 1, 2, %(text)s, %(text)s, %(text)s)",
            row,
        )


async def test_every_page_is_reached_small_and_without_what_was_stored_as_script(
    store: AsyncMemoryStore, url: str
) -> None:
    await hostile(store)
    await letter(store, url)
    loaded = sum(len(file(name).body) for name in KINDS)
    async with looking(store, writes=True) as client:
        asked = [{"q": SCRIPT, "conversation": NAMES[0]}]
        asked += [{"q": "tea", "group_by": group, "viewer": SCRIPT} for group in ("session", "fact")]
        found = await crawled(client, "/ui/", *(links.to("users", NAMES[0], "recall", **one) for one in asked))
        assert [(path, page.wrong) for path, page in found.items() if page.wrong] == []
        sizes = {path: len(page.text.encode()) + loaded for path, page in found.items()}
        assert {path: size for path, size in sizes.items() if size > LARGEST} == {}
        assert [path for path, page in found.items() if len(page.ids) != len(set(page.ids))] == []
        assert len(found) > 80
        kinds = {part for path in found for part in path.split("?")[0].split("/")[4:5]}
        assert kinds >= {"conversations", "facts", "messages", "contexts", "recall", "health", "erase", "erasures"}
        for name in NAMES:
            assert links.to("users", name) in found
        missing = await client.get(f"/ui/users/plain/facts/{SCRIPT}")
        assert (missing.status_code, Read(missing.text).wrong) == (404, [])
        wrong = await client.get("/ui/users/%ED%A0%80")
        assert (wrong.status_code, Read(wrong.text).wrong) == (422, [])
        for path in ("/ui/", "/ui/nothing", "/ui/static/live.js", "/ui/users/plain"):
            answer = await client.get(path)
            assert dict(answer.headers).items() >= {name.lower(): value for name, value in HEADERS.items()}.items()
        assert "'unsafe" not in HEADERS["Content-Security-Policy"]


async def test_links_lead_from_a_fact_to_its_message_and_summary_and_back(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    told = [PEANUTS, *(f"Nothing of note on day {number}. {'We talked for long. ' * 20}" for number in range(60))]
    said = await alice.conversation("a/b").add_many([{"role": "user", "content": one} for one in told])
    await store.derive()
    fact = next(one for one in await alice.facts() if "peanuts" in one.text)
    async with looking(store) as client:
        page = await read(client, links.to("users", "alice", "facts", fact.id))
        assert "<mark>I&#39;m allergic to peanuts" in page.text
        place = next(one for one in page.links if one.endswith("#m-1"))
        assert "/conversations/a%2Fb" in place
        talk = await read(client, place)
        assert links.to("users", "alice", "facts", fact.id) in talk.links
        over = next(one for one in page.links if "/summaries/" in one)
        led = (await client.get(over)).headers["location"]
        assert led.partition("#")[2] in (await read(client, led)).ids
        # Every message is on one page, and each page leads to the next.
        seen, ahead = [], [links.to("users", "alice", "conversations", "a/b")]
        while ahead:
            talk = await read(client, ahead.pop())
            seen += [one for one in talk.ids if one.startswith("m-")]
            ahead += [one for one in talk.links if f"from={int(seen[-1][2:]) + 1}" in one.split("#")[0].split("&")[0]][
                :1
            ]
        assert seen == [f"m-{number}" for number in range(1, len(told) + 1)]
        message = await read(client, links.to("users", "alice", "messages", said[0].id))
        assert links.to("users", "alice", "facts", fact.id) in message.links


async def test_a_receipt_shows_where_the_tokens_went_and_what_was_left_out(store: AsyncMemoryStore) -> None:
    place = store.user("alice").conversation("lisbon")
    await place.add_many([{"role": "user", "content": f"{PEANUTS} Point {number}."} for number in range(60)])
    await store.derive()
    made = await place.context("What should I avoid?", budget=400, reserve=50)
    async with looking(store) as client:
        page = await read(client, links.to("users", "alice", "contexts", made.receipt.id))
        assert page.heading == "What should I avoid?"
        for section, tokens in made.receipt.sections.items():
            assert section in page.text
            assert f'<td class="num">{tokens:,}</td>' in page.text
        reasons = {one.reason for one in made.receipt.left_out if one.reason}
        assert reasons >= {Reason.OVER_BUDGET}
        for reason in reasons:
            assert f'<span class="why">{escape(IN_WORDS[reason])}' in page.text
        assert "kept free" in page.text
        again = await read(client, links.to("users", "alice", "contexts", made.receipt.id, "replay"))
        assert "To the byte." in again.text
        listed = await read(client, links.to("users", "alice", "contexts"))
        assert links.to("users", "alice", "contexts", made.receipt.id) in listed.links


async def test_without_the_flag_nothing_can_be_changed(store: AsyncMemoryStore) -> None:
    await store.user("alice").conversation("lisbon").add("user", PEANUTS)
    await store.derive()
    (fact, *_) = await store.user("alice").facts()
    before = await store.stats()
    async with looking(store) as client:
        found = await crawled(client)
        assert [form for page in found.values() for form in page.forms if form[0] == "post"] == []
        for path in (
            ["users", "alice", "facts", fact.id, "retract"],
            ["users", "alice", "erase"],
            ["users", "alice", "erase", "rehearse"],
            ["operations", "jobs", "retry"],
            ["anything"],
        ):
            answer = await client.post(links.to(*path), data={"what": "user", "word": "alice"}, headers=OURS)
            assert answer.status_code == 403
            assert "allow-writes-in-ui" in answer.text
    assert await store.stats() == before


async def test_forms_are_taken_from_these_pages_only(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.conversation("lisbon").add("user", PEANUTS)
    await store.derive()
    (fact, *_) = await alice.facts()
    here = links.to("users", "alice", "facts", fact.id)
    async with looking(store, writes=True) as client, looking(store, writes=True) as other:
        page, strange = await read(client, here), await read(other, here)
        for answer in (
            await sent(client, page, "/retract", proof=""),
            await sent(client, page, "/retract", proof=strange.forms[-1][2]["proof"]),
            await sent(client, page, "/retract", origin="http://127.0.0.1:9999"),
            await sent(client, page, "/retract", origin="null"),
            await client.post(f"{here}/retract", data=page.forms[-1][2]),  # from nowhere
            await client.post(f"{here}/retract", data=page.forms[-1][2], headers=OURS | {"Cookie": ""}),
        ):
            assert answer.status_code == 403
        assert (await alice.fact(fact.id)).state == "active"
        huge = await client.post(f"{here}/retract", content="a=" + "b" * 70_000, headers=OURS)
        assert huge.status_code == 413

        assert (await sent(client, page, "/retract")).headers["location"] == here
        assert (await alice.fact(fact.id)).state == "retracted"
        page = await read(client, here)
        assert not [one for one in page.forms if one[1].endswith("/retract")]
        undone = await sent(client, page, "/undo")
        assert (undone.status_code, undone.headers["location"]) == (303, here)
        assert (await alice.fact(fact.id)).state == "active"
        assert "undone since" in (await read(client, here)).text
        twice = await sent(client, page, "/undo")
        assert twice.status_code == 409


async def test_erasing_takes_a_rehearsal_and_the_name(store: AsyncMemoryStore) -> None:
    name = "a/b <i>"
    alice = store.user(name)
    await alice.conversation("lisbon").add("user", PEANUTS)
    await alice.conversation("porto").add("user", "I like tea.")
    await store.derive()
    async with looking(store, writes=True) as client:
        page = await read(client, links.to("users", name, "erase", what="conversation", which="lisbon"))
        await alice.conversation(" lisbon ").add("user", "Blanks are of a name.")
        shown = await sent(client, page, "/rehearse", what="conversation", which=" lisbon ")
        await sent(client, Read(shown.text), "/erase", word=" lisbon ")
        assert {one.name for one in await alice.conversations()} == {"lisbon", "porto"}
        shown = await sent(client, page, "/rehearse", what="conversation", which="lisbon")
        assert shown.status_code == 200
        assert "Rows that would go" in shown.text
        assert len(await alice.conversations()) == 2
        confirm = Read(shown.text)
        assert (await sent(client, confirm, "/erase", word="Lisbon")).status_code == 422
        assert len(await alice.conversations()) == 2
        done = await sent(client, confirm, "/erase", word="lisbon")
        assert [one.name for one in await alice.conversations()] == ["porto"]
        kept = await read(client, done.headers["location"])
        assert kept.heading == "Certificate of erasure"
        text = (await client.get(f"{done.headers['location']}/json")).text
        assert Certificate.from_dict(json.loads(text)) == (await alice.erasures())[0]

        shown = await sent(client, page, "/rehearse", what="user", which="")
        gone = await sent(client, Read(shown.text), "/erase", word=name)
        assert (await client.get(gone.headers["location"])).status_code == 200
        assert (await store.stats(user=name))["messages"] == 0
        assert (await read(client, links.to("users", name))).text.count("Nothing is remembered") == 1


async def signed_in(client: httpx.AsyncClient, secret: str, further: str = "/ui/") -> httpx.Response:
    page = await read(client, links.to("sign-in") + f"?next={further}")
    return await sent(client, page, "/sign-in", token=secret)


async def test_a_token_opens_the_pages_of_whoever_has_it(store: AsyncMemoryStore) -> None:
    for name in ("alice", "bob"):
        await store.user(name).conversation("lisbon").add("user", PEANUTS)
    mine, every = await store.tokens.create(user="alice"), await store.tokens.create()
    assert mine.secret and every.secret
    async with looking(store, at_home=False) as client:
        away = await client.get("/ui/users/alice?x=1")
        assert (away.status_code, away.headers["location"]) == (303, "/ui/sign-in?next=%2Fui%2Fusers%2Falice%3Fx%3D1")
        assert (await client.post("/ui/users/alice/erase", headers=OURS)).status_code == 401
        assert (await client.get("/ui/static/inspector.css")).status_code == 200
        assert (await client.get("/v1/users")).status_code == 401

        welcome = await signed_in(client, mine.secret, "/ui/users/alice")
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/ui/users/alice")
        kept = welcome.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/ui"} <= set(kept.split("; "))
        assert mine.secret not in kept
        assert (await client.get("/ui/")).headers["location"] == "/ui/users/alice"
        own = await crawled(client)
        assert "/ui/users/alice/conversations/lisbon" in own
        assert not [path for path in own if "bob" in path]
        for path in ("/ui/users/bob", "/ui/users/bob/facts", "/ui/users/nobody"):
            assert (await client.get(path)).status_code == 404
        assert (await client.get("/ui/operations")).status_code == 403
        old = signed(kept.partition("=")[2].partition(";")[0])
        assert (await client.get("/ui/users/alice", headers=old)).status_code == 200
        assert (await client.get("/v1/users/alice", headers=old)).status_code == 401  # it is for pages alone
        beside = {"Cookie": f'theirs={{"a": [1, 2]}}; {old["Cookie"]}'}  # of another server of this host
        assert (await client.get("/ui/users/alice", headers=beside)).status_code == 200

        page = await read(client, "/ui/users/alice")
        left = await sent(client, page, "/sign-out")
        assert left.status_code == 303
        assert (await client.get("/ui/users/alice", headers=old)).status_code == 303

        await signed_in(client, every.secret)
        assert {"/ui/users/alice", "/ui/users/bob"} <= set((await read(client, "/ui/")).links)
        await store.tokens.revoke(every)
        assert (await client.get("/ui/")).status_code == 303
        assert (await client.get("/ui/users/alice", headers=bearer(mine.secret))).status_code == 200


async def test_who_guesses_at_tokens_is_told_little_and_slowed_down(store: AsyncMemoryStore) -> None:
    await store.tokens.create()
    async with looking(store, at_home=False) as client:
        for wrong in ("mst_unknown", "", "ü", LINK):
            answer = await signed_in(client, wrong)
            assert (answer.status_code, COOKIE in answer.headers.get("set-cookie", "")) == (401, False)
            assert wrong == "" or wrong not in answer.text
        page = await read(client, "/ui/sign-in")
        assert (await sent(client, page, "/sign-in", origin="http://evil.example", token="x")).status_code == 403
        many = [await sent(client, page, "/sign-in", token=f"mst_{number}") for number in range(6)]
        assert many[-1].status_code == 429
        assert int(many[-1].headers["retry-after"]) >= 1
        assert (await client.put("/ui/sign-in")).headers["allow"]
        assert (await client.get("/ui/sign-in?next=//[")).status_code == 200
    for further in ("//evil.example", "https://evil.example/ui/", LINK, "/ui/\\evil", "/v1/users", "/ui/\n"):
        assert links.own(further) == "/ui/"


async def test_operations_are_told_as_they_change(store: AsyncMemoryStore) -> None:
    await store.user("alice").conversation("lisbon").add("user", PEANUTS)
    backfill = await store.backfills.begin()
    async with serving(store, pages=inspector(writes=True)) as (client, server):
        assert COOKIE in (await client.get("/ui/users/alice/contexts")).cookies  # for forms that a stream brings
        async with asyncio.timeout(20), client.stream("GET", "/ui/operations/live") as stream:
            told = events(stream)
            first = await anext(told)
            assert (first["event"], stream.headers["content-type"][:17]) == ("changed", "text/event-stream")
            await store.backfills.pause(backfill)
            later = [await anext(told)]
            while "paused" not in later[-1]["data"]:
                later.append(await anext(told))
        async with asyncio.timeout(20), client.stream("GET", "/ui/users/alice/health/live") as stream:
            told = events(stream)
            assert "Nothing was observed yet" in (await anext(told))["data"]
            talk = store.user("alice").conversation("lisbon")
            made = await talk.context("peanuts?", budget=100)
            await talk.observed(made, prompt_tokens=made.tokens + 1, model="gpt-4o")
            await talk.add("user", "Something happens.")
            assert "gpt-4o" in (await anext(told))["data"]
        page = await read(client, "/ui/operations?again=1")
        assert (await client.get("/ui/operations?again=1")).headers["refresh"] == "10"
        home = str(client.base_url).rstrip("/")
        assert (await sent(client, page, "/resume", origin=home)).status_code == 303
        assert (await store.backfills.status(backfill)).backfill.state == "running"
        server.stop()


async def test_no_pages_where_none_are_wanted(store: AsyncMemoryStore) -> None:
    async with asking(store) as client:
        assert (await client.get("/ui/")).status_code == 404
        assert (await client.get("/v1/users")).status_code == 200


async def test_a_stream_ends_when_its_session_does(store: AsyncMemoryStore) -> None:
    mine = await store.tokens.create()
    sessions, asks = Sessions(), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asks.append(scope["state"]["holds"])

    callers = door.Callers(store.tokens, open_without_tokens=False)
    entrance = door.Door(app, callers, rate=0, hosts=(), sessions=sessions)
    assert mine.secret
    cookie = sessions.begin(hashed(mine.secret))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(entrance), base_url="http://127.0.0.1") as client:
        with suppress(AssertionError):  # nothing is answered
            await client.get("/ui/operations/live", headers=signed(cookie))
    (holds,) = asks
    assert await holds()
    sessions.end(cookie)
    assert not await holds()


async def test_one_token_has_so_many_sessions_and_ends_none_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_OF_ONE", 3)
    kept = Sessions()
    other = kept.begin(hashed("bob"))
    cookies = [kept.begin(hashed("alice")) for _ in range(5)]
    assert [kept.token(one) is not None for one in cookies] == [False, False, True, True, True]
    assert kept.token(other) == hashed("bob")


async def test_documents_are_looked_at_and_do_not_live_longer_for_that(store: AsyncMemoryStore) -> None:
    kept = store.user("alice").documents()
    await kept.put(("notes", "trips"), "ferry", {"text": SCRIPT, "long": "ä" * 30_000}, ttl=timedelta(days=3))
    await kept.put(("other",), "", {"n": 1})
    for number in range(31):
        await kept.put(("many",), f"k{number}", {"n": number})
    (before,) = [one for one in await kept.get_many([(("notes", "trips"), "ferry")], refresh=False) if one]
    async with looking(store) as client:
        first = await read(client, "/ui/users/alice/documents")
        assert "notes / trips" in first.text and "k30" in first.text and "ferry" not in first.text
        (older,) = [link for link in first.links if "from=" in link]
        assert "ferry" in (await read(client, older)).text
        (below,) = [link for link in first.links if "ns=notes&ns=trips" in link]
        (one,) = [link for link in (await read(client, below)).links if "key=ferry" in link]
        shown = await read(client, one)
        assert (shown.wrong, len(shown.text.encode()) < LARGEST) == ([], True)
        assert any("from=12001" in link for link in shown.links)
        assert (await client.get("/ui/users/alice/documents/one?ns=other")).is_success
        assert (await client.get("/ui/users/alice/documents/one?ns=notes&key=none")).status_code == 404
        assert "ferry" not in (await read(client, "/ui/users/bob/documents")).text
    (after,) = [one for one in await kept.get_many([(("notes", "trips"), "ferry")], refresh=False) if one]
    assert after.expires_at == before.expires_at


async def test_what_a_page_has_no_room_for_is_said_and_found_on_the_next(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MOST_FACTS", 3)
    monkeypatch.setattr(conversations, "MOST_SUMMARIES", 2)
    talk = store.user("alice").conversation("c")
    said = await talk.add_many([{"role": "user", "content": f"Line {number}."} for number in range(6)])
    for number in range(8):
        await store.user("alice").add_fact(f"Fact {number}.", type="identity", sources=[said[0].id])
    for last in range(2, 7):
        await talk.summarize(1, last)
    async with looking(store) as client:
        for where in ("conversations/c", f"messages/{said[0].id}"):
            page = await read(client, f"/ui/users/alice/{where}")
            facts, summaries = [
                next(link for link in page.links if f"/c/{kind}?" in link) for kind in ("facts", "summaries")
            ]
            for begin, most in ((facts, 8), (summaries, 5)):
                found, ahead = set[str](), [begin]
                while ahead:
                    (here, ahead) = (await read(client, ahead.pop()), [])
                    kind = "facts" if begin == facts else "summaries"
                    found |= {link for link in here.links if f"/alice/{kind}/" in link}
                    ahead = re.findall(r'<a rel="next" href="([^"]+)"', here.text.replace("&amp;", "&"))
                assert len(found) == most


async def test_the_last_day_that_there_is_may_be_asked_for(store: AsyncMemoryStore) -> None:
    await store.user("alice").conversation("lisbon").add("user", PEANUTS)
    async with looking(store) as client:
        await read(client, links.to("users", "alice", "recall", q="peanuts", until="9999-12-31"))


async def test_what_waits_in_quarantine_is_confirmed(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    doubted = {"trust": "untrusted"}
    await alice.conversation("lisbon").add("user", PEANUTS, metadata=doubted)
    await store.derive()
    (waiting, *_) = await alice.facts(state="quarantined")
    here = links.to("users", "alice", "facts", waiting.id)
    async with looking(store, writes=True) as client:
        await sent(client, await read(client, here), "/confirm")
        assert (await alice.fact(waiting.id)).state == "active"
        assert "/confirm" not in (await client.get(here)).text
