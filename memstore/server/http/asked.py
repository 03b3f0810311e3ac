"""What a request is about: the store, who asks, whose memory, which conversation.

All of it is async, though nothing waits: the framework would give each plain function to a thread.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPBearer
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Strict

from memstore.assemble.visibility import rule_of
from memstore.errors import ConfigurationError
from memstore.memory.conversation import AsyncConversationScope
from memstore.memory.store import AsyncMemoryStore
from memstore.memory.user import AsyncUserScope
from memstore.server.http.door import Caller
from memstore.server.http.paths import ROOT
from memstore.server.http.problems import Problem, Wrong, invalid

BEARER = Depends(HTTPBearer(auto_error=False, description="made by `memstore token create`"))  # for OpenAPI: see door


def _known_rule(name: str) -> str:
    try:
        rule_of(name)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return name


def _no_number(value: object) -> object:
    if not isinstance(value, str) or value.replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("give ISO 8601 with its zone, such as 2026-01-31T18:00:00+01:00")
    return value


RuleName = Annotated[str, AfterValidator(_known_rule)]
Moment = Annotated[AwareDatetime, BeforeValidator(_no_number)]
# Pydantic takes true for 1, and "yes" for true.
Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]


class Body(BaseModel):
    """What is asked for: fields that nobody knows are refused."""

    model_config = ConfigDict(extra="forbid")


async def store_of(request: Request) -> AsyncMemoryStore:
    """Give the store."""
    store: AsyncMemoryStore = request.app.state.store
    return store


async def caller_of(request: Request) -> Caller:
    """Give who asks, as the door let it in."""
    caller: Caller = request.state.caller
    return caller


async def only_known_parameters(request: Request) -> None:
    """Refuse a parameter of the query that nobody reads: one that is misspelt would else silently do nothing."""
    if not request.query_params:
        return
    operation = request.app.openapi()["paths"][ROOT + request.scope["route"].path_format][request.method.lower()]
    known = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    if unknown := sorted(set(request.query_params) - known):
        what = f"there is no such parameter here; there are {', '.join(sorted(known)) or 'none'}"
        raise invalid([Wrong(where=f"query.{name:.60}", what=what) for name in unknown])


KNOWN_PARAMETERS = Depends(only_known_parameters)
StoreDep = Annotated[AsyncMemoryStore, Depends(store_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
NamePart = Annotated[str, Path(min_length=1, description="percent-encoded: `a%2Fb` is called a/b")]


async def operator(caller: CallerDep) -> None:
    """Refuse whoever has the token of one user."""
    if caller.owner is not None:
        detail = "This is the operator's: use a token that was made with `memstore token create --operator`."
        raise Problem(HTTPStatus.FORBIDDEN, "operators-only", detail)


async def user_of(user: NamePart, store: StoreDep, caller: CallerDep) -> AsyncUserScope:
    """Give the user of the path. To whom has another user's token there is nothing here, whoever it names."""
    scope = store.user(user)
    if not caller.may_see(scope.id):
        raise Problem(HTTPStatus.NOT_FOUND, "not-found", "There is no such user, or it is not this token's.")
    return scope


UserDep = Annotated[AsyncUserScope, Depends(user_of)]


async def conversation_of(conversation: NamePart, user: UserDep) -> AsyncConversationScope:
    """Give the conversation of the path, which need not exist yet."""
    return user.conversation(conversation)


ConversationDep = Annotated[AsyncConversationScope, Depends(conversation_of)]
