"""Dependencies of routes: the store, who asks, whose memory, which conversation; and the types of their values.

All are async, though nothing waits: FastAPI would run each plain function in a thread.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Strict
from starlette.convertors import Convertor, register_url_convertor

from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.context.visibility import rule_of
from memstore.errors import ConfigurationError
from memstore.server.http.auth import Authenticator, Principal
from memstore.server.http.errors import Problem, user_not_found

USER = "/users/{user:name}"
CONVERSATIONS = f"{USER}/conversations"
CONVERSATION = f"{CONVERSATIONS}/{{conversation:name}}"


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
