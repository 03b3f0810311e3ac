"""The pages at /ui in a browser: nothing that was stored runs, everybody can use it, and no script is needed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import compile_path

from memstore.client.store import AsyncMemoryStore
from memstore.server.ui.app import PAGES
from memstore.server.ui.request import url_to
from tests.browser import CHROMIUM, FLAGS
from tests.helpers.ui_pages import NAMES, SCRIPT, hostile
from tests.rest import serving

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: make test-browser installs the distribution's"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no playwright here: make test-browser installs it"),
]
GRAVE = ("minor", "moderate", "serious", "critical")


@asynccontextmanager
async def browsing(base: str, **options: Any) -> AsyncIterator[Any]:
    """Give a page of a browser, and the errors that it met; another world's requests are such, too."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        context = await browser.new_context(base_url=base, viewport={"width": 1280, "height": 900}, **options)
        page = await context.new_page()
        page.met = []
        page.on("console", lambda one: page.met.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: page.met.append(str(one)))
        page.on("dialog", lambda one: page.met.append(f"a dialog: {one.message}"))
        page.on("request", lambda one: None if one.url.startswith(base) else page.met.append(one.url))
        yield page
        await browser.close()


async def test_nothing_stored_runs_and_everybody_can_use_every_page(store: AsyncMemoryStore) -> None:
    receipt = await hostile(store)
    plain = store.user(NAMES[0])
    fact = (await plain.facts(limit=1))[0]
    (message,) = await plain.conversation(NAMES[0]).messages(to_seq=1)
    summary = (await plain.conversation(NAMES[0]).summaries())[0]
    gone = (await plain.erasures())[0]
    hard = url_to("users", NAMES[1])
    of = ["users", NAMES[0]]
    paths = [
        url_to(),
        url_to(*of),
        hard,
        url_to(*of, "conversations"),
        url_to(*of, "conversations", NAMES[0]),
        url_to("users", NAMES[1], "conversations", NAMES[1]),
        url_to(*of, "messages", message.id),
        url_to(*of, "summaries", summary.id),
        url_to(*of, "facts", state="all"),
        url_to(*of, "facts", fact.id),
        url_to(*of, "inbox"),
        url_to(*of, "recall", q=SCRIPT, conversation=SCRIPT),
        url_to(*of, "contexts"),
        url_to(*of, "contexts", receipt.id),
        url_to(*of, "contexts", receipt.id, "replay"),
        url_to(*of, "erase"),
        url_to(*of, "erasures", gone.id),
        url_to("nothing"),
    ]
    kinds = [compile_path(url_to() + pattern.lstrip("/"))[0] for pattern in PAGES]
    assert all(any(kind.match(path.partition("?")[0]) for path in paths) for kind in kinds), "each page is looked at"
    async with serving(store, ui_writes=True) as (client, server):
        for scheme in ("light", "dark"):
            async with browsing(str(client.base_url).rstrip("/"), color_scheme=scheme, bypass_csp=False) as page:
                for path in paths:
                    await page.goto(path, wait_until="load")
                    await _check(page, f"{path}, {scheme}")
                await page.goto(url_to(*of, "erase", what="conversation", which=NAMES[0]))
                await page.get_by_role("button", name="Rehearse").click()
                await page.get_by_role("button", name="Erase", exact=True).wait_for()
                await _check(page, f"what would be erased, {scheme}")
                assert [one for one in page.met if "404" not in one] == []
        server.stop()


async def _check(page: Any, where: str) -> None:
    for width in (1280, 400):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await _wrong(page) == [], f"{where}, {width} wide"
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, f"{where}, {width} wide"


async def _wrong(page: Any) -> list[str]:
    """Give the grave findings of axe, which is given to the page from outside of it: its own policy lets none in."""
    await page.evaluate(_axe())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
        for one in found["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]


def _axe() -> str:
    spec = find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no axe here: make test-browser installs it")
    return next(Path(spec.submodule_search_locations[0]).rglob("axe.min.js")).read_text(encoding="utf-8")


async def test_all_can_be_done_by_keyboard_and_without_script(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.conversation("lisbon").add("user", "I'm allergic to peanuts, and I live in Porto.")
    await store.derive()
    token = await store.tokens.create()
    async with serving(store, ui_writes=True) as (client, server):
        base = str(client.base_url).rstrip("/")
        async with browsing(base, java_script_enabled=False, color_scheme="dark") as page:
            await page.goto("/ui/users/alice/facts")
            assert "/ui/sign-in" in page.url
            async with browsing(base, color_scheme="dark") as scripted:
                await scripted.goto(page.url)
                await _check(scripted, "sign in")
            await page.locator("#token:focus").wait_for()
            await page.keyboard.type(str(token.secret))
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/ui/users/alice/facts")
            await page.keyboard.press("Tab")
            assert await page.locator(":focus").inner_text() == "Skip to content"
            await page.keyboard.press("Enter")
            await page.get_by_role("link", name="allergic to peanuts").click()
            await page.get_by_role("button", name="Take it back").click()
            assert await page.locator(".state").first.inner_text() == "retracted"
            await page.get_by_role("button", name="Undo").first.click()
            assert await page.locator(".state").first.inner_text() == "active"
            await page.get_by_role("link", name="Recall", exact=True).click()
            await page.get_by_label("Question").fill("peanuts")
            await page.keyboard.press("Enter")
            await page.locator(".hit").first.wait_for()
            await page.get_by_role("button", name="Sign out").click()
            assert "/ui/sign-in" in page.url
            assert page.met == []
        server.stop()
