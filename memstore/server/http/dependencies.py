"""What routes share: the store, who asks, whose memory; the types of values; keyset pagination; JSON responses.

Dependencies are async, though nothing waits: FastAPI would run each plain function in a thread.
A cursor says after which row the page ended, not how many rows were before: inserts and deletes move nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import quote, unquote

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict, TypeAdapter
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.context.visibility import rule_of
from memstore.errors import ConfigurationError, InvalidInput
from memstore.server.http.auth import Authenticator, Principal
from memstore.server.http.errors import Problem, user_not_found
from memstore.text import INVALID_CHARS

T = TypeVar("T")
USER = "/users/{user:name}"
CONVERSATIONS = f"{USER}/conversations"
CONVERSATION = f"{CONVERSATIONS}/{{conversation:name}}"
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000


class Name(Convertor[str]):
    """A name as one percent-encoded part of a path. What is no UTF-8 becomes what no name may hold."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the name."""
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        """Return the part of a path."""
        return quote(value, safe="")


register_url_convertor("name", Name())


def _check_rule(name: str) -> str:
    try:
        rule_of(name)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return name


def _refuse_number(value: object) -> object:
    if not isinstance(value, str) or value.replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("give ISO 8601 with its zone, such as 2026-01-31T18:00:00+01:00")
    return value


RuleName = Annotated[str, AfterValidator(_check_rule)]
Timestamp = Annotated[AwareDatetime, BeforeValidator(_refuse_number)]
# Pydantic takes true for 1, and "yes" for true.
StrictInt = Annotated[int, Strict()]
StrictFloat = Annotated[float, Strict()]
StrictBool = Annotated[bool, Strict()]


class StrictModel(BaseModel):
    """A body or a query: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


async def get_store(request: Request) -> AsyncMemoryStore:
    """Return the store."""
    store: AsyncMemoryStore = request.app.state.store
    return store


async def get_principal(request: Request) -> Principal:
    """Return who asks; raise a 401 problem where no token lets them in."""
    authenticator: Authenticator = request.app.state.authenticator
    return await authenticator.authenticate(request)


StoreDep = Annotated[AsyncMemoryStore, Depends(get_store)]
PrincipalDep = Annotated[Principal, Depends(get_principal)]
NamePart = Annotated[str, Path(min_length=1, description="percent-encoded: `a%2Fb` is called a/b")]


async def require_operator(principal: PrincipalDep) -> None:
    """Refuse the token of one user."""
    if principal.user_id is not None:
        detail = "This is the operator's: use a token that was made with `memstore token create --operator`."
        raise Problem(HTTPStatus.FORBIDDEN, "operators-only", detail)


async def get_user(user: NamePart, store: StoreDep, principal: PrincipalDep) -> AsyncUserScope:
    """Return the user of the path; raise 404 where the token does not open that user's memory."""
    scope = store.user(user)
    if not principal.can_access(scope.id):
        raise user_not_found()
    return scope


UserDep = Annotated[AsyncUserScope, Depends(get_user)]


async def get_conversation(conversation: NamePart, user: UserDep) -> AsyncConversationScope:
    """Return the conversation of the path, which need not exist yet."""
    return user.conversation(conversation)


ConversationDep = Annotated[AsyncConversationScope, Depends(get_conversation)]


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    next_cursor: str | None = Field(default=None, description="of the next page; null: this is the last")


class PageParams(StrictModel):
    """Which page is asked for."""

    cursor: str | None = Field(None, min_length=1, description="`next_cursor` of the page before")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)

    def position(self, kind: Any) -> Any:
        """Return where the page before ended, as values of these types; None for the first page."""
        return None if self.cursor is None else decode_cursor(self.cursor, kind)

    def response(self, kind: Any, rows: Sequence[T], position: Callable[[T], Sequence[Any]]) -> Response:
        """Return a page of rows, of which there is one more than the limit where another page follows."""
        items = list(rows[: self.limit])
        cursor = encode_cursor(position(items[-1])) if len(rows) > self.limit else None
        return json_response(Page[kind], Page.model_construct(items=items, next_cursor=cursor))


def json_response(kind: Any, value: Any, *, status: int = 200) -> Response:
    """Return a value as JSON of this type, not validated again: that took longer than to make it."""
    return Response(_adapter(kind).dump_json(value, warnings=False), status, media_type="application/json")


def encode_cursor(position: Sequence[Any]) -> str:
    """Return the cursor of a position."""
    return base64.urlsafe_b64encode(json.dumps(position, default=str).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, kind: Any) -> Any:
    """Return the position of a cursor as values of these types; raise `InvalidInput` for any other text."""
    try:
        position = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        if any(isinstance(value, str) and INVALID_CHARS.search(value) for value in position):
            raise ValueError
        return _adapter(kind).validate_python(position)
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(f"cursor={cursor!r:.60} is none; give next_cursor of the page before, or none.") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
