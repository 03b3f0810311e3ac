"""The pages put together: routes, who is let to which, what goes wrong, and the headers of every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstore.errors import MemstoreError
from memstore.server.http import paths
from memstore.server.http.beside import Behind
from memstore.server.http.problems import Problem, problem_of
from memstore.server.inspector import (
    contexts,
    conversations,
    documents,
    erasing,
    facts,
    health,
    links,
    operations,
    recall,
    signing,
    users,
)
from memstore.server.inspector.drawing import KINDS, file
from memstore.server.inspector.visit import Visit, seen

Page: TypeAlias = Callable[[Visit], Awaitable[Response]]
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with none at all browsers would say no Origin of a form either
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
A_YEAR = "public, max-age=31536000, immutable"  # the version is in the address
NOT_KEPT = "no-store"
MISSING = "There is no such page."
READ_ONLY = "These pages only show: start the server with --allow-writes-in-ui to change something here."

ANYBODY: dict[str, Page] = {"/sign-in": signing.ask}
PAGES: dict[str, Page] = {
    "/": users.home,
    "/operations": operations.page,
    "/operations/live": operations.changes,
    "/users/{user:part}": users.overview,
    "/users/{user:part}/conversations": conversations.listed,
    "/users/{user:part}/conversations/{conversation:part}": conversations.page,
    "/users/{user:part}/conversations/{conversation:part}/summaries": conversations.summaries_over,
    "/users/{user:part}/conversations/{conversation:part}/facts": conversations.facts_said,
    "/users/{user:part}/messages/{id}": conversations.message,
    "/users/{user:part}/summaries/{id}": conversations.summary,
    "/users/{user:part}/facts": facts.listed,
    "/users/{user:part}/facts/{id}": facts.page,
    "/users/{user:part}/documents": documents.listed,
    "/users/{user:part}/documents/one": documents.page,
    "/users/{user:part}/recall": recall.page,
    "/users/{user:part}/contexts": contexts.listed,
    "/users/{user:part}/contexts/{id}": contexts.page,
    "/users/{user:part}/contexts/{id}/replay": contexts.replay,
    "/users/{user:part}/health": health.page,
    "/users/{user:part}/health/live": health.changes,
    "/users/{user:part}/erase": erasing.page,
    "/users/{user:part}/erasures/{id}": erasing.certificate,
    "/users/{user:part}/erasures/{id}/json": erasing.as_json,
}
FORMS: dict[str, Page] = {
    "/operations/backfills/{id}/{what}": operations.steer,
    "/operations/jobs/retry": operations.retry,
    "/users/{user:part}/facts/{id}/confirm": facts.confirm,
    "/users/{user:part}/facts/{id}/retract": facts.retract,
    "/users/{user:part}/changes/{id}/undo": facts.undo,
    "/users/{user:part}/erase/rehearse": erasing.rehearse,
    "/users/{user:part}/erase": erasing.erase,
}


class Inspector:
    """The application of all paths under `/ui`; whoever comes has passed the door, known or not."""

    def __init__(self, behind: Behind, *, writes: bool) -> None:
        self._behind, self._writes = behind, writes
        taken = {HTTPException: self._on_problem, MemstoreError: self._on_memstore_error, Exception: self._on_error}
        routes = [
            Route("/static/{name}", _static),
            Route("/sign-in", self._to(signing.sign_in), methods=[POST]),
            Route("/sign-out", self._to(signing.sign_out), methods=[POST]),
            *(Route(path, self._to(page)) for path, page in ANYBODY.items()),
            *(Route(path, self._for_known(page, GET)) for path, page in PAGES.items()),
            *(Route(path, self._for_known(page, POST), methods=[POST]) for path, page in FORMS.items()),
            Route("/{path:path}", self._for_known(_missing, POST), methods=[POST]),
            Route("/{path:path}", self._for_known(_missing, GET)),
        ]
        self._app = Starlette(routes=routes, exception_handlers=taken)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", NOT_KEPT)
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            if "route" in scope:  # for the log, in which paths of REST look alike
                path = paths.PAGES + scope["route"].path_format
                scope["route"] = SimpleNamespace(path=path, path_format=path)

    def _visit(self, request: Request) -> Visit:
        return Visit(request, self._behind, writes=self._writes)

    def _to(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await page(self._visit(request))

        return answer

    def _for_known(self, page: Page, method: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = self._visit(request)
            if visit.known is None:
                if method == POST:
                    raise Problem(HTTPStatus.UNAUTHORIZED, "no-token", "Sign in first.")
                here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return seen(links.to("sign-in") + f"?next={quote(here, safe='')}")
            if method == POST and not self._writes:
                raise Problem(HTTPStatus.FORBIDDEN, "read-only", READ_ONLY)
            return await page(visit)

        return answer

    async def _on_problem(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._wrong(request, error.status_code, str(error.detail), error.headers)

    async def _on_memstore_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, MemstoreError)
        found = problem_of(error)
        return self._wrong(request, found.status, str(found.detail), found.headers)

    async def _on_error(self, request: Request, _: Exception) -> Response:
        """Answer with no word of what went wrong: it may quote. The log has where it was raised."""
        return self._wrong(
            request, HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong; the server's log says where."
        )

    def _wrong(self, request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
        title = HTTPStatus(status).phrase
        response = self._visit(request).page("error.html", status=status, title=title, detail=detail)
        response.headers.update(headers or {})  # Retry-After, Allow
        return response


GET, POST = "GET", "POST"


def inspector(*, writes: bool) -> Callable[[Behind], ASGIApp]:
    """Give what makes the pages of a server; with `writes` they undo, retract, erase, and steer backfills."""
    return lambda behind: Inspector(behind, writes=writes)


async def _missing(visit: Visit) -> Response:
    raise Problem(HTTPStatus.NOT_FOUND, "not-found", MISSING)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in KINDS:
        raise Problem(HTTPStatus.NOT_FOUND, "not-found", MISSING)
    found = file(name)
    return Response(found.body, media_type=found.kind, headers={"Cache-Control": A_YEAR})
