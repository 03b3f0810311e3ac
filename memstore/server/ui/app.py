"""The application under /ui: routes, signing in, who may see which page, errors, and the headers of every answer."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from memstore.client.admin import hash_token
from memstore.client.store import AsyncMemoryStore
from memstore.errors import MemstoreError
from memstore.server.http.dependencies import Authenticator, bearer_token
from memstore.server.http.errors import Problem, problem_from
from memstore.server.http.middleware import LOCAL_HOSTS, UI
from memstore.server.ui import contexts, pages
from memstore.server.ui.request import UIRequest, redirect, safe_redirect_target, url_to

Page: TypeAlias = Callable[[UIRequest], Awaitable[Response]]
COOKIE = "memstore_ui"

PAGES: dict[str, Page] = {
    "/": pages.home,
    "/users/{user:owner}": pages.overview,
    "/users/{user:owner}/conversations": pages.list_conversations,
    "/users/{user:owner}/conversations/{conversation:name}": pages.show_conversation,
    "/users/{user:owner}/messages/{id:uuid}": pages.show_message,
    "/users/{user:owner}/summaries/{id:uuid}": pages.show_summary,
    "/users/{user:owner}/facts": pages.list_facts,
    "/users/{user:owner}/facts/{id:uuid}": pages.show_fact,
    "/users/{user:owner}/inbox": pages.show_inbox,
    "/users/{user:owner}/recall": contexts.show_recall,
    "/users/{user:owner}/contexts": contexts.list_contexts,
    "/users/{user:owner}/contexts/{id:uuid}": contexts.show_context,
    "/users/{user:owner}/contexts/{id:uuid}/replay": contexts.show_replay,
    "/users/{user:owner}/erase": pages.show_erasures,
    "/users/{user:owner}/erasures/{id:uuid}": pages.show_certificate,
    "/users/{user:owner}/members": pages.list_members,
    "/users/{user:owner}/spaces": pages.list_spaces,
}
FORMS: dict[str, Page] = {
    "/users/{user:owner}/facts/{id:uuid}/confirm": pages.confirm,
    "/users/{user:owner}/facts/{id:uuid}/retract": pages.retract,
    "/users/{user:owner}/inbox": pages.review,
    "/users/{user:owner}/changes/{id:uuid}/undo": pages.undo,
    "/users/{user:owner}/erase/rehearse": pages.rehearse,
    "/users/{user:owner}/erase": pages.erase,
}


def create_ui(store: AsyncMemoryStore, authenticator: Authenticator, *, writes: bool) -> ASGIApp:
    """Return the application; with `writes` it takes forms that confirm, retract, undo and erase."""
    views = _Views(store, authenticator, writes=writes)
    session = Middleware(
        SessionMiddleware,
        secret_key=secrets.token_urlsafe(32),
        session_cookie=COOKIE,
        max_age=86_400,
        path=UI,
        same_site="strict",
        # Other names are a proxy's, with TLS.
        https_only=not set(store.settings.server_hosts) <= set(LOCAL_HOSTS),
    )
    routes = [
        Mount("/static", StaticFiles(directory=Path(__file__).with_name("static"))),
        Route("/sign-in", views.ask_token),
        Route("/sign-in", views.sign_in, methods=["POST"]),
        Route("/sign-out", views.sign_out, methods=["POST"]),
        *(Route(path, views.require_principal(page)) for path, page in PAGES.items()),
        *(Route(path, views.require_principal(page), methods=["POST"]) for path, page in FORMS.items()),
    ]
    handlers = {HTTPException: views.show_error, MemstoreError: views.show_error}
    return Starlette(routes=routes, middleware=[session], exception_handlers=handlers)


class _Views:
    def __init__(self, store: AsyncMemoryStore, authenticator: Authenticator, *, writes: bool) -> None:
        self._store, self._authenticator, self._writes = store, authenticator, writes

    async def _ui_request(self, request: Request) -> UIRequest:
        token = await bearer_token(request)
        token_hash = None if token is None else hash_token(token)
        if token_hash is None and "token" in request.session:
            token_hash = bytes.fromhex(request.session["token"])
        return UIRequest(request, self._store, await self._authenticator.find(token_hash), writes=self._writes)

    def require_principal(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """Return a page's endpoint: who is not signed in is asked to, and forms need `writes`."""

        async def answer(request: Request) -> Response:
            ui, is_form = await self._ui_request(request), request.method == "POST"
            if ui.principal is None and is_form:
                raise Problem(HTTPStatus.UNAUTHORIZED, "no-token", "Sign in first.")
            if ui.principal is None:
                here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return redirect(url_to("sign-in") + f"?next={quote(here, safe='')}")
            if is_form and not self._writes:
                detail = "These pages only show: start the server with --allow-writes-in-ui to change something here."
                raise Problem(HTTPStatus.FORBIDDEN, "read-only", detail)
            return await page(ui)

        return answer

    async def ask_token(self, request: Request) -> Response:
        """Ask for a token; who needs none, or has signed in, goes on."""
        ui = await self._ui_request(request)
        target = safe_redirect_target(ui.param("next") or "")
        return redirect(target) if ui.principal else ui.page("sign_in.html", further=target, wrong="")

    async def sign_in(self, request: Request) -> Response:
        """Keep a token's SHA-256 in the signed session cookie, so that its revocation ends the session."""
        ui = UIRequest(request, self._store, None, writes=False)
        fields = await ui.form()
        target, token_hash = safe_redirect_target(fields.get("next", "")), hash_token(fields.get("token", "").strip())
        if await self._authenticator.find(token_hash) is None:
            wrong = "This token is unknown, has expired or was revoked."
            return ui.page("sign_in.html", status=HTTPStatus.UNAUTHORIZED, further=target, wrong=wrong)
        request.session["token"] = token_hash.hex()
        return redirect(target)

    async def sign_out(self, request: Request) -> Response:
        request.session.clear()
        return redirect(url_to("sign-in"))

    async def show_error(self, request: Request, error: Exception) -> Response:
        problem = problem_from(error) if isinstance(error, MemstoreError) else error
        assert isinstance(problem, HTTPException)
        ui = UIRequest(request, self._store, None, writes=False)
        title = HTTPStatus(problem.status_code).phrase
        detail = problem.detail if isinstance(problem, Problem) else "There is no such page."
        response = ui.page("error.html", status=problem.status_code, title=title, detail=detail)
        response.headers.update(problem.headers or {})
        return response
