"""Dependencies of routes: authentication by bearer token, types of values, keyset pagination.

Unknown, expired and revoked tokens are answered like a missing one, and another token's user like a missing user.
Dependencies are async, though nothing waits: FastAPI would run each plain function in a thread. A cursor says after
which row the page ended, not how many rows were before: inserts and deletes move nothing.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin
from urllib.parse import quote, unquote
from uuid import UUID

from fastapi import Depends, Path, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, TypeAdapter, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from memstore import ids
from memstore.client.admin import TOKEN_PREFIX, AsyncTokens, hash_token
from memstore.client.conversation import AsyncConversationScope
from memstore.client.space import AsyncSpaceScope
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.errors import InvalidInput, MemstoreError
from memstore.ingest.validation import drop_nulls
from memstore.server.http.errors import (
    IssuerUnavailable,
    Problem,
    database_unavailable,
    issuer_unavailable,
    user_not_found,
)
from memstore.server.http.middleware import API, MCP, METRICS
from memstore.server.owners import SEPARATOR, owner_named
from memstore.server.validation import join_problems
from memstore.text import INVALID_CHARS, read_json

if TYPE_CHECKING:
    # Another extra, which may not be there.
    from memstore.server.http.oidc import OidcVerifier

T = TypeVar("T")
# The user, or on the user's behalf a space: /users/alice/spaces/otter has the paths that /users/alice has.
USER = "/users/{user:owner}"
SPACES = "/spaces/"
CONVERSATION = f"{USER}/conversations/{{conversation:name}}"
MAX_LIMIT = 1000
BEARER = HTTPBearer(auto_error=False, description="made by `memstore token create`")


class Name(Convertor[str]):
    """A name as one percent-encoded part of a path.

    Bytes that are no UTF-8 become a character that no name may hold.
    """

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


class OwnerName(Name):
    """A user by name, or a user and a space, see `owner_named`; a NUL becomes what no name may hold either."""

    regex = f"[^/]+(?:{SPACES}[^/]+)?"

    def convert(self, value: str) -> str:
        return SEPARATOR.join(
            super(OwnerName, self).convert(name).replace("\0", "\udfff") for name in value.split(SPACES)
        )


register_url_convertor("name", Name())
register_url_convertor("owner", OwnerName())


class StrictModel(BaseModel):
    """A body or a query: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: object) -> object:
        return drop_nulls(cls, data)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe that what is optional may be null, too."""
        schema = handler.resolve_ref_schema(handler(core))
        for name, field in schema.get("properties", {}).items():
            if name not in schema.get("required", ()) and {"type": "null"} not in field.get("anyOf", ()):
                told = {key: field.pop(key) for key in ("title", "description", "default") if key in field}
                schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **told}
        return schema


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of the token: `user_id` is the only user whose memory is open, None for the operator."""

    user_id: UUID | None
    user_name: str | None = None

    def can_access(self, user_id: UUID) -> bool:
        return self.user_id in (None, user_id)


class Authenticator:
    """Looks up tokens by their SHA-256. With `allow_local` none is needed until the first token is made.

    With `oidc` tokens of an issuer are taken too, and one is always needed.
    """

    def __init__(self, tokens: AsyncTokens, *, allow_local: bool, oidc: OidcVerifier | None = None) -> None:
        self._tokens, self._allow_local, self.oidc = tokens, allow_local and oidc is None, oidc

    async def authenticate(self, credentials: str | None) -> Principal | None:
        """Return the holder of a bearer token; None if it does not hold."""
        if self.oidc is None or credentials is None or credentials.startswith(TOKEN_PREFIX):
            return await self.find(None if credentials is None else hash_token(credentials))
        try:
            user = await self.oidc.user_of(credentials)
        except IssuerUnavailable:
            raise issuer_unavailable() from None
        if user is None or user.startswith(ids.SPACE_PREFIX) or INVALID_CHARS.search(user):
            return None
        return Principal(ids.user_id(user), user)

    async def find(self, token_hash: bytes | None) -> Principal | None:
        try:
            if token_hash is None:
                self._allow_local = self._allow_local and not await self._tokens.exist()
                return Principal(None) if self._allow_local else None
            holder = await self._tokens.holder(token_hash)
        except MemstoreError:
            raise database_unavailable() from None
        return None if holder is None else Principal(holder.owner, holder.user_name)


async def bearer_token(request: Request) -> str | None:
    credentials = await BEARER(request)
    return None if credentials is None else credentials.credentials


async def get_store(request: Request) -> AsyncMemoryStore:
    store: AsyncMemoryStore = request.app.state.store
    return store


class AuthenticationMiddleware:
    """Authenticates each request of the API, of MCP and of the metrics before anything of its body is read."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app, self._authenticator = app, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith((f"{API}/", f"{MCP}/", METRICS)):
            try:
                principal = await self._authenticator.authenticate(await bearer_token(Request(scope)))
                if principal is None:
                    detail = (
                        "Give a token that holds, as `Authorization: Bearer mst_…`; `memstore token create` makes one. "
                        "This one is missing, is unknown, has expired or was revoked."
                    )
                    oidc = self._authenticator.oidc
                    path = scope["path"] if scope["path"].startswith(f"{MCP}/") else ""
                    challenge = 'Bearer realm="memstore"' if oidc is None else oidc.challenge(path)
                    headers = {"WWW-Authenticate": challenge}
                    raise Problem(HTTPStatus.UNAUTHORIZED, "no-token", detail, headers=headers)
            except Problem as problem:
                await problem.response()(scope, receive, send)
                return
            scope["state"]["principal"] = principal
        await self._app(scope, receive, send)


async def get_principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


StoreDep = Annotated[AsyncMemoryStore, Depends(get_store)]
PrincipalDep = Annotated[Principal, Depends(get_principal)]
NamePart = Annotated[str, Path(min_length=1, description="percent-encoded: `a%2Fb` is called a/b")]


async def require_operator(principal: PrincipalDep) -> None:
    if principal.user_id is not None:
        detail = "This is the operator's: use a token that was made with `memstore token create --operator`."
        raise Problem(HTTPStatus.FORBIDDEN, "operators-only", detail)


OPERATOR = [Depends(require_operator)]


async def get_user(user: NamePart, store: StoreDep, principal: PrincipalDep) -> AsyncUserScope:
    """Return the user of the path; raise 404 where the token does not open that user's memory.

    A space is that of the user, whom it must be shared with.
    """
    scope = owner_named(store, user)
    holder = scope.member if isinstance(scope, AsyncSpaceScope) else scope
    if holder is None or not principal.can_access(holder.id):
        raise user_not_found()
    if isinstance(scope, AsyncSpaceScope):
        await scope.access()
    return scope


UserDep = Annotated[AsyncUserScope, Depends(get_user)]


async def get_conversation(conversation: NamePart, user: UserDep) -> AsyncConversationScope:
    return user.conversation(conversation)


ConversationDep = Annotated[AsyncConversationScope, Depends(get_conversation)]


async def refuse_ignored_input(request: Request) -> None:
    """Refuse what would be ignored, such as a wish to rehearse: a repeated parameter, a body where none is read."""
    route = request.scope["route"]
    lists = set()
    for param in get_flat_params(route.dependant):
        annotation = param.field_info.annotation
        if any(get_origin(each) is list for each in (annotation, *get_args(annotation))):
            lists.add(param.alias)
    counts = Counter(name for name, _ in request.query_params.multi_items() if name not in lists)
    wrong = [{"where": f"query.{name}", "what": "give it once"} for name, count in counts.items() if count > 1]
    takes_body = request.method not in (HTTPMethod.DELETE, HTTPMethod.POST) or route.body_field
    if not takes_body and (await request.body()).strip() not in (b"", b"{}", b"null"):
        wrong.append({"where": "body", "what": "there is none here; options stand in the query, see /openapi.json"})
    if wrong:
        detail = f"{join_problems(wrong)}. Nothing was done."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", detail, errors=wrong)


class Page(BaseModel, Generic[T]):
    items: list[T]
    next_cursor: str | None = Field(default=None, description="of the next page; null: this is the last")


class PageParams(StrictModel):
    cursor: str | None = Field(None, min_length=1, description="`next_cursor` of the page before")
    limit: int = Field(100, ge=1, le=MAX_LIMIT)

    def position(self, kind: Any) -> Any:
        return None if self.cursor is None else decode_cursor(self.cursor, kind)

    def page(self, rows: Sequence[T], position: Callable[[T], Sequence[Any]]) -> Page[T]:
        """Return a page of rows; one row more than the limit means that another page follows."""
        items = list(rows[: self.limit])
        cursor = encode_cursor(position(items[-1])) if len(rows) > self.limit else None
        return Page.model_construct(items=items, next_cursor=cursor)


def encode_cursor(position: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position, default=str).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, kind: Any) -> Any:
    try:
        encoded = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = read_json(encoded.decode())
        if any(isinstance(value, str) and INVALID_CHARS.search(value) for value in position):
            raise ValueError
        return TypeAdapter(kind).validate_python(position)
    except (ValueError, TypeError):
        raise InvalidInput(f"cursor={cursor!r:.60} is no cursor; give a page's next_cursor, or leave it out.") from None
