"""The pages at /ui, as whoever looks through a memory meets them; and whoever would misuse them."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from markupsafe import escape

from memstore.client.store import AsyncMemoryStore
from memstore.models import Reason
from memstore.server.ui.app import COOKIE
from memstore.server.ui.request import HEADERS, PAGE_SIZE, safe_redirect_target, url_to
from tests.helpers.ui_pages import LINK, NAMES, SCRIPT, Read, crawled, hostile, read, sent, signed
from tests.rest import asking, bearer

PEANUTS = "I'm allergic to peanuts, and I live in Porto."
OURS = {"Origin": "http://127.0.0.1"}


def looking(store: AsyncMemoryStore, *, writes: bool = False, **more: Any) -> Any:
    return asking(store, ui_writes=writes, **more)


async def test_every_page_is_reached_and_has_nothing_that_was_stored_as_script(store: AsyncMemoryStore) -> None:
    await hostile(store)
    async with looking(store, writes=True) as client:
        asked = [{"q": SCRIPT, "conversation": NAMES[0]}, {"q": "tea", "conversation": SCRIPT}]
        found = await crawled(client, "/ui/", *(url_to("users", NAMES[0], "recall", **one) for one in asked))
        assert [(path, page.wrong) for path, page in found.items() if page.wrong] == []
        assert [path for path, page in found.items() if len(page.ids) != len(set(page.ids))] == []
        assert len(found) > 60
        kinds = {part for path in found for part in path.split("?")[0].split("/")[4:5]}
        assert kinds >= {"conversations", "facts", "messages", "contexts", "recall", "erase", "erasures"}
        for name in NAMES:
            assert url_to("users", name) in found
        root = await client.get("/")
        assert (root.status_code, root.headers["location"]) == (307, "/ui/")
        missing = await client.get(f"/ui/users/plain/facts/{SCRIPT}")
        assert (missing.status_code, Read(missing.text).wrong) == (404, [])
        wrong = await client.get("/ui/users/%ED%A0%80")
        assert (wrong.status_code, Read(wrong.text).wrong) == (422, [])
        for path in ("/ui/", "/ui/nothing", "/ui/users/plain"):
            answer = await client.get(path)
            assert dict(answer.headers).items() >= {name.lower(): value for name, value in HEADERS.items()}.items()
        assert "script-src" not in HEADERS["Content-Security-Policy"]


async def test_links_lead_from_a_fact_to_its_message_and_summary_and_back(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    told = [PEANUTS, *(f"Nothing of note on day {number}. {'We talked for long. ' * 20}" for number in range(60))]
    said = await alice.conversation("a/b").add_many([{"role": "user", "content": one} for one in told])
    await store.derive()
    fact = next(one for one in await alice.facts() if "peanuts" in one.text)
    async with looking(store) as client:
        page = await read(client, url_to("users", "alice", "facts", fact.id))
        assert "<mark>I&#39;m allergic to peanuts" in page.text
        place = next(one for one in page.links if one.endswith("#m-1"))
        assert "/conversations/a%2Fb" in place
        talk = await read(client, place)
        assert url_to("users", "alice", "facts", fact.id) in talk.links
        over = next(one for one in page.links if "/summaries/" in one)
        led = (await client.get(over)).headers["location"]
        assert led.partition("#")[2] in (await read(client, led)).ids
        # Every message is on one page, and each page leads to the next.
        seen, ahead = [], [url_to("users", "alice", "conversations", "a/b")]
        while ahead:
            talk = await read(client, ahead.pop())
            seen += [one for one in talk.ids if one.startswith("m-")]
            ahead += [one for one in talk.links if f"from={int(seen[-1][2:]) + 1}" in one.split("#")[0].split("&")[0]][
                :1
            ]
        assert seen == [f"m-{number}" for number in range(1, len(told) + 1)]
        message = await read(client, url_to("users", "alice", "messages", said[0].id))
        assert url_to("users", "alice", "facts", fact.id) in message.links


async def test_lists_say_what_differs_and_history_has_times_as_people_write_them(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    talk = alice.conversation("c")
    await talk.add("user", "I live in Porto.", occurred_at=datetime(2023, 5, 1, tzinfo=UTC))
    await talk.add("user", "I live in Leeds now.", occurred_at=datetime(2024, 6, 2, tzinfo=UTC))
    await store.derive()
    (former,) = await alice.facts(state="superseded")
    async with looking(store) as client:
        page = await read(client, url_to("users", "alice", "facts"))
        assert "1 message<" in page.text and 'class="state active"' not in page.text
        page = await read(client, url_to("users", "alice", "facts", former.id))
        assert re.search(
            r"holds until</span> <span[^>]*>not set</span> → <span[^>]*><time[^>]*>2 Jun 2024, 00:00<", page.text
        )
        page = await read(client, url_to("users", "alice", "conversations"))
        assert "2 Jun 2024" in page.text


async def test_names_that_turn_the_writing_stay_within_themselves(store: AsyncMemoryStore) -> None:
    alice = store.user("alice \u202e\u2069\u05d0")
    await alice.add_fact("Anna\u202e in Porto\u2066.")
    async with looking(store) as client:
        page = (await read(client, url_to("users", alice.name, "facts"))).text
    assert re.search(r'dir="auto"[^>]*>Anna\u202e in Porto\u2066\.<', page)
    (title,) = re.findall(r"<title>.*?</title>", page, re.DOTALL)
    assert "\u2068alice \u05d0\u2069" in title and not re.search("[\u202a-\u202e\u2066\u2067]", title)


async def test_a_receipt_shows_where_the_tokens_went_and_what_was_left_out(store: AsyncMemoryStore) -> None:
    place = store.user("alice").conversation("lisbon")
    await place.add_many([{"role": "user", "content": f"{PEANUTS} Point {number}."} for number in range(60)])
    await store.derive()
    made = await place.context("What should I avoid?", budget=400, reserve=50)
    async with looking(store) as client:
        page = await read(client, url_to("users", "alice", "contexts", made.receipt.id))
        assert page.heading == "What should I avoid?"
        for section, tokens in made.receipt.sections.items():
            assert section in page.text
            assert f'<td class="num">{tokens:,}</td>' in page.text
        reasons = {one.reason for one in made.receipt.left_out if one.reason}
        assert reasons >= {Reason.OVER_BUDGET}
        for reason in reasons:
            assert f'<span class="why">{escape(str(reason))}' in page.text
        assert "kept free" in page.text
        assert f"The same in every context: the first {made.receipt.static_tokens:,} tokens." in page.text
        static = [one for one in made.receipt.included if one.standing]
        assert static and page.text.count("· in every context") == len(static)
        again = await read(client, url_to("users", "alice", "contexts", made.receipt.id, "replay"))
        assert "To the byte." in again.text
        listed = await read(client, url_to("users", "alice", "contexts"))
        assert url_to("users", "alice", "contexts", made.receipt.id) in listed.links


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
        ):
            answer = await client.post(url_to(*path), data={"what": "user", "word": "alice"}, headers=OURS)
            assert answer.status_code == 403
            assert "allow-writes-in-ui" in answer.text
    assert await store.stats() == before


async def test_forms_are_taken_from_these_pages_only(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.conversation("lisbon").add("user", PEANUTS)
    await store.derive()
    (fact, *_) = await alice.facts()
    here = url_to("users", "alice", "facts", fact.id)
    async with looking(store, writes=True) as client:
        page = await read(client, here)
        for answer in (
            await sent(client, page, "/retract", origin="http://127.0.0.1:9999"),
            await sent(client, page, "/retract", origin="null"),
            await client.post(f"{here}/retract", headers={"Sec-Fetch-Site": "same-site"}),
        ):
            assert answer.status_code == 403
        assert (await alice.fact(fact.id)).state == "active"

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
        page = await read(client, url_to("users", name, "erase", what="conversation", which="lisbon"))
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
        assert str((await alice.erasures())[0].id) in kept.text

        shown = await sent(client, page, "/rehearse", what="user", which="")
        gone = await sent(client, Read(shown.text), "/erase", word=name)
        assert (await client.get(gone.headers["location"])).status_code == 200
        assert (await store.stats(user=name))["messages"] == 0
        assert (await read(client, url_to("users", name))).text.count("Nothing is remembered") == 1


async def test_a_user_without_messages_is_shown(store: AsyncMemoryStore) -> None:
    await store.user("fact").add_fact("I live in Porto.", type="identity")
    await store.user("quarantined").add_fact("I live in Porto.", type="identity", quarantined=True)
    talk = store.user("receipt").conversation("empty")
    await talk.update(title="Empty")
    await talk.context("Where do I live?", budget=200)
    async with looking(store) as client:
        for name in ("fact", "quarantined", "receipt"):
            page = await read(client, url_to("users", name))
            assert "Nothing is remembered" not in page.text, name
            assert ("Latest contexts" if name == "receipt" else 'id="known">Facts') in page.text


async def test_pages_of_facts_begin_with_what_matters_and_have_each_once(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    nuts = await alice.add_fact("The user is allergic to nuts.", type="constraint")
    for number in range(40):
        await alice.add_fact(f"The user has read book {number}.", type="event")
    async with looking(store) as client:
        first = await read(client, url_to("users", "alice", "facts"))
        [more] = [link for link in first.links if "cursor=" in link]
        second = await read(client, more)
        seen = [
            one for page in (first, second) for one in re.findall(r'main-link" href="[^"]+/([0-9a-f-]+)"', page.text)
        ]
        assert seen == [str(fact.id) for fact in await alice.facts()]
        assert (seen[0], len(seen)) == (str(nuts.id), 41)
        await alice.erase_fact(UUID(seen[PAGE_SIZE - 1]))
        assert "begin at the first page" in (await read(client, more, status=404)).text


async def signed_in(client: httpx.AsyncClient, secret: str, further: str = "/ui/") -> httpx.Response:
    page = await read(client, url_to("sign-in") + f"?next={further}")
    return await sent(client, page, "/sign-in", token=secret)


async def test_a_token_opens_the_pages_of_whoever_has_it(store: AsyncMemoryStore) -> None:
    for name in ("alice", "bob"):
        await store.user(name).conversation("lisbon").add("user", PEANUTS)
    mine, every = await store.tokens.create(user="alice"), await store.tokens.create()
    assert mine.secret and every.secret
    async with looking(store, allow_local=False) as client:
        away = await client.get("/ui/users/alice?x=1")
        assert (away.status_code, away.headers["location"]) == (303, "/ui/sign-in?next=%2Fui%2Fusers%2Falice%3Fx%3D1")
        assert (await client.post("/ui/users/alice/erase", headers=OURS)).status_code == 401
        assert (await client.get("/ui/static/ui.css")).status_code == 200
        assert (await client.get("/v1/users")).status_code == 401

        welcome = await signed_in(client, mine.secret, "/ui/users/alice")
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/ui/users/alice")
        kept = welcome.headers["set-cookie"]
        assert {"httponly", "samesite=strict", "path=/ui"} <= set(kept.lower().split("; "))
        assert mine.secret not in kept
        assert (await client.get("/ui/")).headers["location"] == "/ui/users/alice"
        own = await crawled(client)
        assert "/ui/users/alice/conversations/lisbon" in own
        assert not [path for path in own if "bob" in path]
        for path in ("/ui/users/bob", "/ui/users/bob/facts", "/ui/users/nobody"):
            assert (await client.get(path)).status_code == 404
        old = signed(kept.partition("=")[2].partition(";")[0])
        assert (await client.get("/ui/users/alice", headers=old)).status_code == 200
        assert (await client.get("/v1/users/alice", headers=old)).status_code == 401  # it is for pages alone
        beside = {"Cookie": f'theirs={{"a": [1, 2]}}; {old["Cookie"]}'}  # of another server of this host
        assert (await client.get("/ui/users/alice", headers=beside)).status_code == 200

        page = await read(client, "/ui/users/alice")
        left = await sent(client, page, "/sign-out")
        assert left.status_code == 303
        assert (await client.get("/ui/users/alice")).status_code == 303

        await signed_in(client, every.secret)
        page = await read(client, "/ui/")
        assert {"/ui/users/alice", "/ui/users/bob"} <= set(page.links)
        assert "Sign out" in page.text
        await store.tokens.revoke(every)
        assert (await client.get("/ui/")).status_code == 303
        assert (await client.get("/ui/users/alice", headers=bearer(mine.secret))).status_code == 200


async def test_who_guesses_at_tokens_is_told_little(store: AsyncMemoryStore) -> None:
    await store.tokens.create()
    async with looking(store, allow_local=False) as client:
        for wrong in ("mst_unknown", "", "ü", LINK):
            answer = await signed_in(client, wrong)
            assert (answer.status_code, COOKIE in answer.headers.get("set-cookie", "")) == (401, False)
            assert wrong == "" or wrong not in answer.text
        page = await read(client, "/ui/sign-in")
        assert (await sent(client, page, "/sign-in", origin="http://evil.example", token="x")).status_code == 403
        assert (await client.put("/ui/sign-in")).headers["allow"]
        read_bytes = 0

        async def spaces() -> AsyncIterator[bytes]:
            nonlocal read_bytes
            for _ in range(1000):
                read_bytes += 10_000
                yield b" " * 10_000

        for content in (spaces(), b" " * 70_000):
            assert (await client.post("/ui/sign-in", content=content, headers=OURS)).status_code == 413
        assert read_bytes < 100_000
        assert (await client.get("/ui/sign-in?next=//[")).status_code == 200
    for further in ("//evil.example", "https://evil.example/ui/", LINK, "/ui/\\evil", "/v1/users", "/ui/\n"):
        assert safe_redirect_target(further) == "/ui/"


async def test_what_waits_in_quarantine_is_confirmed(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    doubted = {"trust": "untrusted"}
    await alice.conversation("lisbon").add("user", PEANUTS, metadata=doubted)
    await store.derive()
    (waiting, *_) = await alice.facts(state="quarantined")
    here = url_to("users", "alice", "facts", waiting.id)
    async with looking(store, writes=True) as client:
        await sent(client, await read(client, here), "/confirm")
        assert (await alice.fact(waiting.id)).state == "active"
        assert "/confirm" not in (await client.get(here)).text


async def test_the_inbox_shows_the_words_and_takes_one_or_all(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    for text in ("Ann owns a kayak.", "Bo owns a canoe.", "Cy owns a raft."):
        await alice.conversation("boats").add("user", text, metadata={"trust": "untrusted"})
    await store.derive()
    waiting = await alice.inbox()
    assert len(waiting) == 3
    async with looking(store, writes=True) as client:
        page = (await client.get("/ui/users/alice/inbox")).text
        assert all(str(escape(quote)) in page for item in waiting for quote in item.quotes)
        assert (page.count('accesskey="a"'), page.count('accesskey="r"'), "Accept all 3" in page) == (1, 1, True)
        one, *others = (str(item.fact.id) for item in waiting)
        for fields in ({"refuse": one}, {"accept": " ".join(others)}):
            answer = await client.post("/ui/users/alice/inbox", data=fields, headers=OURS)
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/users/alice/inbox")
        assert (await client.post("/ui/users/alice/inbox", data={"accept": "x"}, headers=OURS)).status_code == 422
        assert "Nothing waits" in (await client.get("/ui/users/alice/inbox")).text
    assert {str(fact.id) for fact in await alice.facts()} == set(others)


async def test_the_inbox_ends_and_keeps_plans_whose_time_has_passed(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    for text in ("I'm going camping next month.", "I have a dentist appointment next week."):
        await alice.conversation("may").add("user", text, occurred_at=datetime(2026, 5, 25, tzinfo=UTC))
    await store.derive()
    end, keep = ((each.fact.id, each.quotes[0]) for each in await alice.tidy())
    async with looking(store) as client:
        page = (await client.get("/ui/users/alice/inbox")).text
        assert all(str(escape(quote)) in page for _, quote in (end, keep)) and "End all" not in page
    async with looking(store, writes=True) as client:
        page = (await client.get("/ui/users/alice/inbox")).text
        assert ("End all 2" in page, "Nothing waits" in page) == (True, False)
        for name, (id, _) in (("end", end), ("keep", keep)):
            answer = await client.post("/ui/users/alice/inbox", data={name: str(id)}, headers=OURS)
            assert answer.status_code == 303
        assert "Nothing waits" in (await client.get("/ui/users/alice/inbox")).text
    assert [(await alice.fact(id)).state for id, _ in (end, keep)] == ["ended", "active"]
