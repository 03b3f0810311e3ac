"""One request for a page: who asks, for what, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from memstore.errors import NotFound
from memstore.memory.conversation import AsyncConversationScope
from memstore.memory.store import AsyncMemoryStore
from memstore.memory.user import AsyncUserScope
from memstore.server.http.beside import Behind
from memstore.server.http.door import OWN_USER, Caller
from memstore.server.http.pages import decoded, place_as
from memstore.server.http.paths import PAGES
from memstore.server.http.problems import Problem
from memstore.server.http.sessions import COOKIE, SECONDS, cookie_of, fresh
from memstore.server.inspector.drawing import drawn

LARGEST_FORM, MOST_FIELDS = 65_536, 100
PROOF = "proof"  # the field of every form that shows it is one of these pages'
NOBODY = "There is no such user, or it is not this token's."


class Visit:
    """A request, with what pages work with."""

    def __init__(self, request: Request, behind: Behind, *, writes: bool) -> None:
        self.request, self.behind, self.writes = request, behind, writes
        self._given = cookie_of(request.headers)
        self._made: str | None = None

    @property
    def store(self) -> AsyncMemoryStore:
        """The store."""
        return self.behind.store

    @property
    def known(self) -> Caller | None:
        """Who asks, as the door let it in; None for somebody who is to sign in."""
        caller: Caller | None = self.request.state.caller
        return caller

    @property
    def caller(self) -> Caller:
        """Who asks; nobody who is not known comes this far."""
        assert self.known is not None
        return self.known

    @property
    def user(self) -> AsyncUserScope:
        """The user of the path, where it is this caller's to see."""
        scope = self.store.user(self.request.path_params["user"])
        if not self.caller.may_see(scope.id):
            raise Problem(HTTPStatus.NOT_FOUND, "not-found", NOBODY)
        return scope

    @property
    def conversation(self) -> AsyncConversationScope:
        """The conversation of the path."""
        return self.user.conversation(self.request.path_params["conversation"])

    @property
    def is_operator(self) -> bool:
        """Whether all users are open to who asks."""
        return self.caller.owner is None

    def check_operator(self) -> None:
        """Refuse whoever has the token of one user."""
        if not self.is_operator:
            detail = "This is the operator's: sign in with a token of the operator."
            raise Problem(HTTPStatus.FORBIDDEN, "operators-only", detail)

    def id(self, name: str = "id") -> UUID:
        """Give the id in the path; what is none is not there."""
        try:
            return UUID(self.request.path_params[name])
        except ValueError:
            raise NotFound("There is nothing of this id.") from None

    def asked(self, name: str) -> str | None:
        """Give a value of the query; None where it is missing or blank."""
        return self.request.query_params.get(name, "").strip() or None

    def number(self, name: str, default: int, *, most: int) -> int:
        """Give a whole number of the query, from 1 to so many; what is none is the default."""
        value = self.asked(name) or ""
        return min(most, max(1, int(value))) if value.isascii() and value.isdigit() and len(value) < 19 else default

    def place(self, kind: Any) -> Any:
        """Give the place of the query's cursor as values of these types; None for the first page."""
        cursor = self.asked("cursor")
        return place_as(kind, None if cursor is None else decoded(cursor))

    async def form(self) -> dict[str, str]:
        """Give the fields of a form that one of these pages was sent with. Refuses any other (CSRF)."""
        fields = await self.fields()
        self.check_own()
        if not self.behind.sessions.proves(self._given, fields.pop(PROOF, "")):
            detail = "This form is too old, or not of these pages: go back, load the page again, and send it again."
            raise Problem(HTTPStatus.FORBIDDEN, "unknown-form", detail)
        return fields

    async def fields(self) -> dict[str, str]:
        """Give the fields that were sent, the last one of each name."""
        body = b""
        async for piece in self.request.stream():
            body += piece
            if len(body) > LARGEST_FORM:
                raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", "This form is too large.")
        try:
            return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            raise Problem(HTTPStatus.BAD_REQUEST, "bad-request", "This is no form of these pages.") from None

    def check_own(self) -> None:
        """Refuse what a page of others sends, by what the browser says of where it comes from."""
        headers = self.request.headers
        origin, host = headers.get("origin"), headers.get("host", "")
        site = headers.get("sec-fetch-site")
        is_own = site == "same-origin" if origin is None else origin in (f"http://{host}", f"https://{host}")
        if not is_own:
            raise Problem(HTTPStatus.FORBIDDEN, "unknown-origin", "Forms are taken from these pages only.")

    def page(self, template: str, *, status: int = 200, **told: Any) -> Response:
        """Give a page of a template."""
        if self.writes and self.known is not None and status == HTTPStatus.OK:
            self.proof()  # a stream may bring a form later, and can set no cookie
        about: dict[str, Any] = {
            "visit": self,
            "is_operator": self.known is not None and self.is_operator,
            "signed_in": self.known not in (None, OWN_USER) and self._given is not None,
            "writes": self.writes and self.known is not None,
        }
        response = HTMLResponse(drawn(template, about | told).encode("utf-8", "replace"), status)
        if self._made is not None:
            self.keep(response, self._made)
        return response

    def proof(self) -> str:
        """Give what a form on this page brings along, with a cookie for it where there is none."""
        if self._given is None and self._made is None:
            self._made = fresh()
        return self.behind.sessions.proof(self._given or self._made or "")

    def keep(self, response: Response, cookie: str) -> None:
        """Have the browser keep a cookie: for these pages, out of reach of scripts and of other sites."""
        secure = self.request.url.scheme == "https" or self.request.headers.get("origin", "").startswith("https:")
        kept: Mapping[str, Any] = {"path": PAGES, "httponly": True, "samesite": "strict", "secure": secure}
        response.set_cookie(COOKIE, cookie, max_age=round(SECONDS), **kept)

    @property
    def cookie(self) -> str | None:
        """The cookie that came."""
        return self._given


def seen(path: str) -> Response:
    """Give what leads to another page after a form was taken."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)
