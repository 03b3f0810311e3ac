"""One request for a page: who asks, for what; and the page, from a template that escapes every value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from memstore._version import __version__
from memstore.client.space import AsyncSpaceScope
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.server.http.dependencies import SPACES, Principal, decode_cursor, encode_cursor
from memstore.server.http.errors import Problem, user_not_found
from memstore.server.http.middleware import UI
from memstore.server.owners import SEPARATOR, owner_named
from memstore.text import remove_controls

PAGE_SIZE = 24
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    # With none at all browsers would send no Origin with a form either.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class UIRequest:
    """A request, with what pages work with. `principal` is None for somebody who is to sign in."""

    def __init__(self, request: Request, store: AsyncMemoryStore, principal: Principal | None, *, writes: bool) -> None:
        self.request, self.store, self.principal, self.writes = request, store, principal, writes

    @property
    def user(self) -> AsyncUserScope:
        """The user of the path, or a space on the user's behalf; 404 where the token does not open that memory."""
        scope = owner_named(self.store, self.owner)
        holder = scope.member if isinstance(scope, AsyncSpaceScope) else scope
        if self.principal is None or holder is None or not self.principal.can_access(holder.id):
            raise user_not_found()
        return scope

    @property
    def owner(self) -> str:
        """What the path names, as links to its pages name it."""
        owner: str = self.request.path_params["user"]
        return owner

    @property
    def id(self) -> UUID:
        id: UUID = self.request.path_params["id"]
        return id

    def param(self, name: str) -> str | None:
        """Return a value of the query; None where it is missing or blank."""
        return self.request.query_params.get(name, "").strip() or None

    def number(self, name: str) -> int:
        """Return a number of the query from 1 on; 1 for what is none."""
        value = self.param(name) or ""
        return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 19 else 1

    def position(self, kind: Any) -> Any:
        cursor = self.param("cursor")
        return None if cursor is None else decode_cursor(cursor, kind)

    async def form(self) -> dict[str, str]:
        """Return the fields of the form that was sent, the last one of each name."""
        try:
            body = (await self.request.body()).decode("ascii")
            return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=100))
        except ValueError:
            raise Problem(HTTPStatus.BAD_REQUEST, "bad-request", "This is no form of these pages.") from None

    def list_page(self, template: str, name: str, rows: Sequence[Any], **values: Any) -> Response:
        """Return a page with a list under this name; a row more than a page has means that another page follows."""
        values |= {name: rows[:PAGE_SIZE], "more": len(rows) > PAGE_SIZE}
        return self.page(template, **values)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        context: dict[str, Any] = {
            "user": self.request.path_params.get("user"),
            "whose": " for ".join(reversed(self.request.path_params.get("user", "").split(SEPARATOR))),
            "is_space": SEPARATOR in self.request.path_params.get("user", ""),
            "is_known": self.principal is not None,
            "is_operator": self.principal is not None and self.principal.user_id is None,
            "signed_in": self.principal is not None and "token" in self.request.session,
            "writes": self.writes and self.principal is not None,
        }
        html = _environment().get_template(template).render(context | values)
        return HTMLResponse(html.encode("utf-8", "replace"), status, HEADERS)


def redirect(path: str) -> Response:
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)


def url_to(*parts: object, at: str | None = None, **query: Any) -> str:
    """Return the path of a page: names are encoded, empty values of the query left out; `at` is an anchor."""
    encoded = "/".join([UI, *(quote(str(part), safe="", errors="replace") for part in parts)])
    path = encoded.replace(quote(SEPARATOR), SPACES) if parts else f"{UI}/"
    values = urlencode({name: value for name, value in query.items() if value not in (None, "", [])}, doseq=True)
    return path + (f"?{values}" if values else "") + (f"#{at}" if at else "")


def safe_redirect_target(path: str) -> str:
    """Return a path of these pages unchanged, and their first page for anything else."""
    is_own = path.startswith(f"{UI}/") and "\\" not in path and path.isprintable() and path.isascii()
    return path if is_own else f"{UI}/"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("memstore.server.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "to": url_to,
        "cursor": _cursor,
        "space_path": lambda user, space: user + SEPARATOR + space,
        "asset": lambda name: f"{UI}/static/{name}?v={__version__}",
    }
    environment.filters |= {
        "clip": clip,
        "isolate": isolate,
        "when": lambda moment: _time(moment, "%b %Y, %H:%M"),
        "moment": lambda text: _time(datetime.fromisoformat(text), "%b %Y, %H:%M"),
        "day": lambda moment: _time(moment, "%b %Y"),
        "n": lambda number: "–" if number is None else f"{number:,}",
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False, default=str),
    }
    return environment


def clip(text: object, limit: int) -> str:
    whole = "" if text is None else str(text)
    return whole if len(whole) <= limit else f"{whole[:limit].rstrip()}…"


def isolate(text: str) -> str:
    """Return a text whose direction changes nothing around it, for places without markup: <title>, labels, SVG."""
    return text if text.isascii() else f"\u2068{remove_controls(text)}\u2069"


def _time(moment: datetime | None, format: str) -> Markup:
    if moment is None:
        return Markup("")
    label = f"{moment.day} {moment:{format}}"
    return Markup('<time datetime="{}">{}</time>').format(moment.isoformat(timespec="seconds"), label)


def _cursor(*position: object) -> str:
    return encode_cursor([value.isoformat() if isinstance(value, datetime) else value for value in position])
