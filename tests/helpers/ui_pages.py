"""Reading the pages at /ui as a browser would, and following every link of them."""

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from memstore.client.store import AsyncMemoryStore
from memstore.models import Receipt, Section
from memstore.server.ui.app import COOKIE

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&<!--"
LINK = "javascript:alert(1)"
NAMES = ("plain", f"a/{SCRIPT}", "~tilde", LINK)  # of users; all but the first are hard on addresses
VARYING = re.compile(r"(?:[0-9a-f]{8}-[0-9a-f-]{27}|(?<==)[\w-]+)")


@dataclass
class Read(HTMLParser):
    """A page: what it links to, its forms, and what no page may have."""

    text: str
    at: str = "/ui/"
    links: list[str] = field(default_factory=list)
    forms: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    heading: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._open.append(tag)
        self.wrong += [f"{tag} {name}" for name in given if name.startswith("on") or name in ("style", "srcdoc")]
        if tag in ("script", "img", "iframe", "object", "embed", "base", "style"):
            self.wrong.append(tag)
        for name in ("href", "src", "action"):
            if name in given and not given[name].startswith(("/ui/", "#")):
                self.wrong.append(f"{tag} {name}={given[name]}")
        if tag in ("a", "link"):
            self.links.append(urljoin(self.at, given.get("href") or given.get("src") or "#"))
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "form":
            self.forms.append((given.get("method", "get"), given["action"], {}))
        if tag == "input" and self.forms and given.get("name"):
            self.forms[-1][2][given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "h1" in self._open:
            self.heading += data

    def __hash__(self) -> int:
        return id(self)


async def read(client: httpx.AsyncClient, path: str, *, status: int = 200) -> Read:
    answer = await client.get(path)
    assert answer.status_code == status, (path, answer.status_code, answer.headers.get("location"))
    return Read(answer.text, path)


async def crawled(client: httpx.AsyncClient, *begin: str, alike: int = 3) -> dict[str, Read]:
    """Give the pages that can be reached from some: of pages that differ in an id or a number alone, so many."""
    found: dict[str, Read] = {}
    kinds = Counter[str]()
    ahead = list(begin or ["/ui/"])
    while ahead:
        path = ahead.pop().partition("#")[0]
        kind = VARYING.sub("", path)
        if path in found or kinds[kind] >= alike or not path.startswith("/ui/") or "/static/" in path:
            continue
        kinds[kind] += 1
        answer = await client.get(path)
        if answer.is_redirect:
            ahead.append(urljoin(path, answer.headers["location"]))
            continue
        assert answer.status_code == 200, (path, answer.status_code, answer.text[-600:])
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        found[path] = Read(answer.text, path)
        ahead += found[path].links
    return found


async def sent(
    client: httpx.AsyncClient, page: Read, ending: str, *, origin: str = "http://127.0.0.1", **fields: str
) -> httpx.Response:
    """Send the form of a page whose action ends like this, with other values in some of its fields."""
    _, action, hidden = next(one for one in page.forms if one[0] == "post" and urlsplit(one[1]).path.endswith(ending))
    return await client.post(action, data=hidden | fields, headers={"Origin": origin})


def signed(cookie: str) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={cookie}"}


async def hostile(store: AsyncMemoryStore) -> Receipt:
    """Fill a store with scripts wherever somebody may write; give the receipt of a context."""
    for name in NAMES:
        user = store.user(name)
        told: list[dict[str, Any]] = [
            {"role": "user", "content": f"I live in Porto {number}. My cat is called {SCRIPT}.", "name": SCRIPT}
            for number in range(2)
        ]
        told += [
            {"role": "user", "content": f"{number} " + '"' * 2_000} for number in range(30 if name == NAMES[0] else 0)
        ]
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'{{"a": "{LINK}"}}'}}
        told += [
            {"role": "assistant", "content": SCRIPT, "tool_calls": [call]},
            {"role": "tool", "content": SCRIPT, "tool_call_id": "c1"},
            {
                "role": "user",
                "content": '"' * (50_000 if name == NAMES[0] else 2_000),
                "tags": [SCRIPT],
                "metadata": {SCRIPT: SCRIPT},
                "external_id": SCRIPT,
            },
            {
                "role": "user",
                "content": [{"type": "text", "text": SCRIPT}, {"type": "image_url", "image_url": {"url": LINK}}],
            },
        ]
        place = user.conversation(name)
        said = await place.add_many(told)
        await place.update(title=SCRIPT, channel=SCRIPT)
        await user.add_fact(
            f"{SCRIPT} likes tea", type="preference", subject=SCRIPT, attribute=SCRIPT, value=LINK, sources=[said[0].id]
        )
    await store.derive()
    plain = store.user(NAMES[0])
    place = plain.conversation(NAMES[0])
    first = [message.id for message in await place.messages(to_seq=2)]
    for text in (SCRIPT, '"' * 1_900):
        await plain.add_fact(f"{text} waits", subject=SCRIPT, sources=first, quarantined=True)
    await place.summarize(1, 3)
    (fact, *_) = await plain.facts(subject=SCRIPT, type="preference")
    await plain.edit_fact(fact, text=f"{SCRIPT} likes coffee")
    own = Section("mine", text=[SCRIPT, "two"])
    await place.context(SCRIPT, budget=9000, system=SCRIPT, sections=[own])
    await place.context(budget=60_000)
    await plain.conversation(SCRIPT).add("user", "soon gone")
    await plain.conversation(SCRIPT).erase()
    return (await plain.receipt_page(limit=2))[-1]
