#!/usr/bin/env python3
"""Take the pictures of the pages that docs/how-to/inspector.md shows: of a made-up history, in both schemes.

tools/pictures.py [FOLDER]    docs/pictures by default; needs Chromium, what the tests need, and for letters as they are
                              there the fonts of fonts-noto-core and fonts-noto-color-emoji
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.async_api import Page, async_playwright

from memstore.client.store import AsyncMemoryStore
from memstore.models import Receipt
from tests.browser import CHROMIUM, FLAGS
from tests.rest import serving

QUESTION = "What am I allergic to, and when do we fly to Lisbon?"
GONE = (
    "My locker combination is 31-7-22.",
    "Never mention the Zanzibar incident.",
    "My padel partner is called Quentin.",
)
WAITING = (
    "My sister Noor is allergic to walnuts.",
    "My manager at Hazelwood Press is called Ann.",
    "We want to see the Alhambra next spring.",
)
TITLES = {"lisbon": "A long weekend in Lisbon", "everyday": "Everyday", "kitchen": "In the kitchen"}
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


async def prepared(store: AsyncMemoryStore) -> Receipt:
    """Fill a store with the sample history of the demo; give the receipt of a context."""
    await store.import_file(str(files("memstore.cli").joinpath("sample.jsonl")))
    for name in ("Bob", "Carol Ôç", "support/tickets"):
        await store.user(name).conversation("first").add("user", f"Hello, this is {name}.")
    alice = store.user("alice")
    await alice.conversation("lisbon").add("user", QUESTION, occurred_at=datetime(2026, 5, 7, 8, 30, tzinfo=UTC))
    await (
        store.user("Bob")
        .conversation("long")
        .add_many([{"role": "user", "content": f"Point {number} of a long list."} for number in range(80)])
    )
    await alice.conversation("old notes").add_many([{"role": "user", "content": one} for one in GONE])
    await store.derive(user="alice")
    await alice.conversation("old notes").erase()
    for name, title in TITLES.items():
        await alice.conversation(name).update(title=title)
    asked = {"budget": 2000, "reserve": 200, "system": "You are a travel assistant. Use what you remember of Alice."}
    for query in ("What does Tom eat?", QUESTION):
        made = await alice.conversation("lisbon").context(query, **asked)
    await alice.update(settings={"review_facts": True})
    await alice.conversation("everyday").add_many([{"role": "user", "content": one} for one in WAITING])
    await store.derive(user="alice")
    return made.receipt


async def pages(store: AsyncMemoryStore, receipt: Receipt) -> dict[str, tuple[str, int]]:
    """Return the pages by the names of their pictures, and how high each picture is."""
    alice = store.user("alice")
    past = max(await alice.facts(state="superseded"), key=lambda fact: fact.attribute == "residence")
    gone = (await alice.erasures())[0]
    of = "/ui/users/alice"
    return {
        "overview": (of, 900),
        "conversation": (f"{of}/conversations/lisbon", 700),
        "context": (f"{of}/contexts/{receipt.id}", 1000),
        "recall": (f"{of}/recall?{urlencode({'q': 'Who looks after the cat?'})}", 900),
        "fact": (f"{of}/facts/{past.id}", 960),
        "inbox": (f"{of}/inbox", 700),
        "certificate": (f"{of}/erasures/{gone.id}", 900),
    }


@asynccontextmanager
async def opened(base: str, **options: Any) -> AsyncIterator[Page]:
    """Return a page of a browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        context = await browser.new_context(base_url=base, **options)
        yield await context.new_page()
        await browser.close()


async def take(folder: Path, settings: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="memstore-pictures-") as home:
        async with await AsyncMemoryStore.open(f"embedded:{home}/store", settings=settings) as store:
            receipt = await prepared(store)
            shown = await pages(store, receipt)
            async with serving(store, ui_writes=True) as (client, _):
                base = str(client.base_url)
                for scheme in ("light", "dark"):
                    async with opened(base, viewport=WIDE, color_scheme=scheme) as page:
                        for name, (path, height) in shown.items():
                            await page.set_viewport_size({"width": 1280, "height": height})
                            await page.goto(path, wait_until="load")
                            await page.screenshot(path=folder / f"{name}-{scheme}.png")
                async with opened(base, viewport=NARROW, color_scheme="light") as page:
                    for name in ("overview", "context", "recall", "inbox"):
                        await page.goto(shown[name][0], wait_until="load")
                        await page.screenshot(path=folder / f"{name}-phone.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(folder, {"embedder": sys.argv[2]} if len(sys.argv) > 2 else {}))
