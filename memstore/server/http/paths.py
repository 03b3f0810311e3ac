"""Names in paths: a user or a conversation may be called anything, also "a/b" or "50%".

The framework decodes a path before it looks for slashes. Here paths are matched as they were sent, and each name is
decoded by itself: `/v1/users/a%2Fb` is the user "a/b".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = "/v1"
PAGES = "/ui"  # for people
USER = "/users/{user:name}"
CONVERSATIONS = f"{USER}/conversations"
CONVERSATION = f"{CONVERSATIONS}/{{conversation:name}}"


class Name(Convertor[str]):
    """A name as one part of a path, percent-encoded. What is no UTF-8 becomes what no name may hold."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Give the name."""
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        """Give the part of a path."""
        return quote(value, safe="")


def taken_at(path: str, paths: Mapping[str, Iterable[str]]) -> list[str]:
    """Give the methods that a path takes, of OpenAPI's `paths`: the framework names those of one route alone."""
    found = next((methods for one, methods in paths.items() if _template(one).fullmatch(path)), ())
    return sorted(method.upper() for method in found)


@cache
def _template(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


register_url_convertor("name", Name())


class AsSent:
    """Has paths under /v1/ and /ui/ matched as they were sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with its path undecoded."""
        if scope["type"] == "http" and scope.get("raw_path"):
            sent = scope["raw_path"].partition(b"?")[0].decode("latin-1")
            if any(scope["path"].startswith(f"{root}/") and sent.startswith(f"{root}/") for root in (ROOT, PAGES)):
                scope["path"] = sent
        await self._app(scope, receive, send)
