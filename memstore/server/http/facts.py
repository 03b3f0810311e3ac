"""Facts: what lasts, and what people do to it by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from memstore.models import Entity, Fact, FactChange, FactKind, FactType
from memstore.server.http.asked import Body, Flag, Moment, NamePart, Real, UserDep
from memstore.server.http.pages import Page, PageDep, answer, place_as
from memstore.server.http.paths import USER
from memstore.server.http.problems import documented

router = APIRouter(prefix=USER, tags=["facts"], responses=documented(404, 409))
LONGEST, LONGEST_PART, LONGEST_LANGUAGE = 2000, 300, 35


class FactParts(Body):
    """What may be said of a fact; what is left out of a change stays."""

    kind: FactKind | None = None
    subject: str = Field("The user", min_length=1, max_length=LONGEST_PART)
    attribute: str | None = Field(None, max_length=LONGEST_PART)
    value: str | None = Field(None, max_length=LONGEST)
    language: str = Field("und", min_length=1, max_length=LONGEST_LANGUAGE, description="ISO 639")
    confidence: Real = Field(1.0, ge=0, le=1)
    valid_from: Moment | None = None
    valid_to: Moment | None = None


class NewFact(FactParts):
    """A fact that is entered by hand."""

    text: str = Field(min_length=1, max_length=LONGEST)
    type: FactType
    sources: list[UUID] = Field([], description="ids of messages that say it")
    quarantined: Flag = Field(False, description="it waits until it is confirmed, as what a model proposes")


class FactEdit(FactParts):
    """What is to be other of a fact, something at least."""

    text: str = Field("", min_length=1, max_length=LONGEST)
    type: FactType = "identity"


@router.get("/facts", response_model=Page[Fact])
async def facts(
    user: UserDep,
    page: PageDep,
    state: Literal["active", "ended", "quarantined", "superseded", "retracted", "erased", "all"] = "active",
    type: FactType | None = None,
    kind: FactKind | None = None,
    subject: Annotated[str | None, Query()] = None,
    as_of: Moment | None = None,
) -> Response:
    """Give facts, the latest first, as they are or as they were known at a moment."""
    found = await user.facts(state=state, type=type, kind=kind, subject=subject, as_of=as_of)
    last = place_as(tuple[datetime, UUID], page.place)
    rest = found if last is None else [one for one in found if _order(one.occurred_at, one.id) > _order(*last)]
    return page.answer(Fact, rest[: page.limit + 1], lambda one: [one.occurred_at, one.id])


@router.post("/facts", response_model=Fact, status_code=201)
async def add(user: UserDep, given: NewFact) -> Response:
    """Enter a fact: it is found at once. One that is known with the same words becomes this one.

    With `quarantined` it waits; one that is known with the same words stays what it is, and is given.
    """
    return answer(Fact, await user.add_fact(**given.model_dump()), status=201)


@router.get("/facts/{fact}", response_model=Fact)
async def fact(user: UserDep, fact: UUID) -> Response:
    """Give a fact, in whatever state."""
    return answer(Fact, await user.fact(fact))


@router.patch("/facts/{fact}", response_model=Fact)
async def edit(user: UserDep, fact: UUID, given: FactEdit) -> Response:
    """Put another fact in the place of an active one; the one that was edited is superseded, and can be brought back.

    Where its words stay, it is changed in its place, and has the same id.
    """
    changes: dict[str, Any] = given.model_dump(exclude_unset=True)
    return answer(Fact, await user.edit_fact(fact, **changes))


@router.delete("/facts/{fact}", response_model=Fact)
async def retract(user: UserDep, fact: UUID) -> Response:
    """Take a fact back: it is no longer recalled, also where it is said again. Its history can undo that."""
    return answer(Fact, await user.retract_fact(fact))


@router.post("/facts/{fact}/confirm", response_model=Fact)
async def confirm(user: UserDep, fact: UUID) -> Response:
    """Let a fact hold that is quarantined, since who says it is not believed alone: recall finds it from now on."""
    return answer(Fact, await user.confirm_fact(fact))


@router.get("/facts/{fact}/history", response_model=list[FactChange])
async def history(user: UserDep, fact: UUID) -> Response:
    """Give what happened to a fact, in order."""
    return answer(list[FactChange], await user.fact_history(fact))


@router.post("/changes/{change}/undo", response_model=FactChange)
async def undo(user: UserDep, change: UUID) -> Response:
    """Undo a change of a fact exactly; 409 where the fact was changed again since."""
    return answer(FactChange, await user.undo(change))


@router.get("/entities/{entity:name}", response_model=Entity)
async def entity(user: UserDep, entity: NamePart, depth: Annotated[int, Query(ge=1, le=5)] = 2) -> Response:
    """Give the facts about somebody or something, and how it is related to others."""
    return answer(Entity, await user.entity(entity, depth=depth))


def _order(at: datetime, id: UUID) -> tuple[float, UUID]:
    return -at.timestamp(), id
