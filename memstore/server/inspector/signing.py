"""Signing in with a token, and out again. What the browser keeps is a cookie that stands for it."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

from starlette.responses import Response

from memstore.memory.tokens import hashed
from memstore.server.http.door import token_of
from memstore.server.http.limits import Tries, place_of
from memstore.server.http.paths import PAGES
from memstore.server.http.sessions import COOKIE
from memstore.server.inspector import links
from memstore.server.inspector.visit import Visit, seen

TRIES_A_SECOND = 0.5  # from one place; five at once
WRONG = "This token is unknown, has expired or was revoked."
_tries = Tries(TRIES_A_SECOND)


async def ask(visit: Visit) -> Response:
    """Ask for a token; who needs none, or has signed in, goes on."""
    further = links.own(visit.asked("next") or "")
    return _page(visit, further) if visit.known is None else seen(further)


async def sign_in(visit: Visit) -> Response:
    """Take a token."""
    visit.check_own()
    fields = await visit.fields()
    further, secret = links.own(fields.get("next", "")), fields.get("token", "").strip()
    look = partial(visit.behind.callers.caller, token_of(f"Bearer {secret}"))
    caller = await _tries.found(place_of(visit.request.scope), look)
    if caller is None:
        return _page(visit, further, WRONG)
    response = seen(further)
    if visit.cookie is not None:
        visit.behind.sessions.end(visit.cookie)
    visit.keep(response, visit.behind.sessions.begin(hashed(secret)))  # a new one: nobody can have planted it
    return response


async def sign_out(visit: Visit) -> Response:
    """End the session."""
    await visit.form()
    if visit.cookie is not None:
        visit.behind.sessions.end(visit.cookie)
    response = seen(links.to("sign-in"))
    response.delete_cookie(COOKIE, path=PAGES, httponly=True, samesite="strict")
    return response


def _page(visit: Visit, further: str, wrong: str = "") -> Response:
    status = HTTPStatus.UNAUTHORIZED if wrong else HTTPStatus.OK
    return visit.page("sign_in.html", status=status, further=further, wrong=wrong)
