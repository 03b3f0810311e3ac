"""Facts: what lasts, and what people do to it by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from memstore.models import Entity, Fact, FactChange, FactKind, FactType
from memstore.server.http.dependencies import (
    USER,
    NamePart,
    Page,
    PageParams,
    StrictBool,
    StrictFloat,
    StrictModel,
    Timestamp,
    UserDep,
    json_response,
)

router = APIRouter(prefix=USER, tags=["facts"])
MAX_TEXT, MAX_PART, MAX_LANGUAGE = 2000, 300, 35


class FactFields(StrictModel):
    """What may be said of a fact; what is left out of a change stays."""

    kind: FactKind | None = None
    subject: str = Field("The user", min_length=1, max_length=MAX_PART)
    attribute: str | None = Field(None, max_length=MAX_PART)
    value: str | None = Field(None, max_length=MAX_TEXT)
    language: str = Field("und", min_length=1, max_length=MAX_LANGUAGE, description="ISO 639")
    confidence: StrictFloat = Field(1.0, ge=0, le=1)
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None


class NewFactRequest(FactFields):
    """A fact that is entered by hand."""

    text: str = Field(min_length=1, max_length=MAX_TEXT)
    type: FactType
    sources: list[UUID] = Field([], description="ids of messages that say it")
    quarantined: StrictBool = Field(False, description="it waits until it is confirmed, as what a model proposes")


class FactEdit(FactFields):
    """What is to be other of a fact, something at least."""

    text: str = Field("", min_length=1, max_length=MAX_TEXT)
    type: FactType = "identity"


class FactParams(PageParams):
    """Which facts are asked for."""

    state: Literal["active", "ended", "quarantined", "superseded", "retracted", "erased", "all"] = "active"
    type: FactType | None = None
    kind: FactKind | None = None
    subject: str | None = None
    as_of: Timestamp | None = None


@router.get("/facts", response_model=Page[Fact])
async def list_facts(user: UserDep, params: Annotated[FactParams, Query()]) -> Response:
    """Return facts, the latest first, as they are or as they were known at a moment."""
    facts = await user.facts(**params.model_dump(exclude={"cursor", "limit"}))
    last = params.position(tuple[datetime, UUID])
    if last is not None:
        facts = [fact for fact in facts if _sort_key(fact.occurred_at, fact.id) > _sort_key(*last)]
    return params.response(Fact, facts[: params.limit + 1], lambda fact: [fact.occurred_at, fact.id])


def _sort_key(at: datetime, id: UUID) -> tuple[float, UUID]:
    return -at.timestamp(), id


@router.post("/facts", response_model=Fact, status_code=201)
async def add_fact(user: UserDep, body: NewFactRequest) -> Response:
    """Enter a fact: it is found at once. One that is known with the same words becomes this one.

    With `quarantined` it waits; one that is known with the same words stays what it is, and is given.
    """
    return json_response(Fact, await user.add_fact(**body.model_dump()), status=201)


@router.get("/facts/{fact}", response_model=Fact)
async def get_fact(user: UserDep, fact: UUID) -> Response:
    """Return a fact, in whatever state."""
    return json_response(Fact, await user.fact(fact))


@router.patch("/facts/{fact}", response_model=Fact)
async def edit_fact(user: UserDep, fact: UUID, body: FactEdit) -> Response:
    """Replace an active fact; the one that was edited is superseded, and can be brought back.

    Where its words stay, it is changed in its place, and has the same id.
    """
    changes: dict[str, Any] = body.model_dump(exclude_unset=True)
    return json_response(Fact, await user.edit_fact(fact, **changes))


@router.delete("/facts/{fact}", response_model=Fact)
async def retract_fact(user: UserDep, fact: UUID) -> Response:
    """Retract a fact: it is no longer recalled, also where it is said again. Its history can undo that."""
    return json_response(Fact, await user.retract_fact(fact))


@router.post("/facts/{fact}/confirm", response_model=Fact)
async def confirm_fact(user: UserDep, fact: UUID) -> Response:
    """Activate a quarantined fact: recall finds it from now on."""
    return json_response(Fact, await user.confirm_fact(fact))


@router.get("/facts/{fact}/history", response_model=list[FactChange])
async def get_fact_history(user: UserDep, fact: UUID) -> Response:
    """Return what happened to a fact, in order."""
    return json_response(list[FactChange], await user.fact_history(fact))


@router.post("/changes/{change}/undo", response_model=FactChange)
async def undo_change(user: UserDep, change: UUID) -> Response:
    """Undo a change of a fact exactly; 409 where the fact was changed again since."""
    return json_response(FactChange, await user.undo(change))


@router.get("/entities/{entity:name}", response_model=Entity)
async def get_entity(user: UserDep, entity: NamePart) -> Response:
    """Return the facts about somebody or something, and how it is related to others."""
    return json_response(Entity, await user.entity(entity))
