"""Recall, contexts with their receipts, and facts with what people do to them by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool, StrictFloat, StrictInt

from memstore.derive.facts.manual_edits import COLUMN_LIMITS
from memstore.errors import InvalidInput
from memstore.ingest.validation import to_utc
from memstore.models import (
    FACT_TYPES,
    NORMAL,
    Fact,
    FactChange,
    FactKind,
    Hit,
    Importance,
    InboxItem,
    Json,
    Role,
    TidyProposal,
    Tier,
)
from memstore.server.http.dependencies import MAX_LIMIT, USER, ConversationDep, Page, PageParams, StrictModel, UserDep

contexts = APIRouter(prefix=USER, tags=["contexts"])
facts = APIRouter(prefix=USER, tags=["facts"])
MAX_BUDGET = 10**9


def _read_moment(value: Any) -> datetime | None:
    try:
        return to_utc(value, "time")
    except InvalidInput as error:
        raise ValueError(str(error)) from None


# A day too, as in Python.
Moment = Annotated[datetime, BeforeValidator(_read_moment)]
ScopeName = Annotated[str, Field(min_length=1)]
SpaceName = Annotated[str, Field(min_length=1)]
SPACES = "names of spaces of which something may be in too"
SCOPE = "what was said there and without a scope; a list: in these scopes alone (null: without one)"


class RecallRequest(StrictModel):
    """A question and its filters."""

    query: str = Field(min_length=1)
    limit: StrictInt = Field(10, ge=1, le=MAX_LIMIT)
    tiers: list[Tier] = Field(list(Tier), min_length=1)
    conversation: str | None = Field(None, min_length=1)
    roles: list[Role] | None = None
    tags: list[str] | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    min_score: StrictFloat | None = Field(None, allow_inf_nan=False)
    viewer: str | None = Field(None, min_length=1)
    visibility: str | None = None
    scope: ScopeName | list[ScopeName | None] | None = Field(None, description=SCOPE)
    spaces: list[SpaceName] = Field([], description=SPACES)


@contexts.post("/recall")
async def recall(user: UserDep, body: RecallRequest) -> list[Hit]:
    """Return messages, summaries and facts about a question, the best first."""
    return await user.recall(**dict(body))


def _refuse_file(model: str) -> str:
    if model.partition(":")[0] == "tokenizer":
        raise ValueError("files of the server are not named by its clients; the settings' counter may be one")
    return model


class ContextRequest(StrictModel):
    """Options of a context; for those left out the conversation's settings count, else the store's."""

    query: str | None = Field(None, description="the question; null: the newest user message is")
    budget: StrictInt | None = Field(None, ge=1, le=MAX_BUDGET, description="the most tokens that it may have")
    reserve: StrictInt | None = Field(None, ge=0, le=MAX_BUDGET, description="tokens of the budget to keep free")
    system: str | None = Field(None, description="the system prompt")
    strategy: str | Json | list[str | Json] | None = Field(
        None, description="what compresses the conversation; []: nothing"
    )
    sections: list[Json] = Field([], description="limits of sections, and sections with texts of your own")
    viewer: str | None = Field(None, min_length=1, description="who looks")
    visibility: str | None = Field(None, description="the rule by which a viewer sees messages")
    scope: ScopeName | list[ScopeName | None] | None = Field(None, description=SCOPE)
    spaces: list[SpaceName] = Field([], description=SPACES)
    min_relevance: float = Field(0.0, ge=0, le=1, description="nothing is recalled where less relevant is stored")
    as_of: Moment | None = Field(None, description="of what was known then")
    model: Annotated[str, AfterValidator(_refuse_file)] | None = Field(
        None, min_length=1, max_length=200, description="count as this model does"
    )
    tools: list[Json] = Field([], description="definitions of tools that are sent with it: they are counted")
    format: Literal["openai", "ollama", "anthropic", "text"] = "openai"
    receipt: StrictBool = Field(False, description="whether to give the whole receipt, and not its id alone")


class ContextResponse(BaseModel):
    """A finished context: its tokens are within the budget."""

    messages: list[Json]
    system: str | None
    text: str | None
    tokens: int
    budget: int
    counter: str
    count: str = Field(description="exact, server, estimated or upper_bound")
    sections: dict[str, int] = Field(description="tokens by section")
    receipt_id: UUID | None = Field(description="null where none is kept")
    receipt: Json | None = None


@contexts.post("/conversations/{conversation:name}/context")
async def build_context(conversation: ConversationDep, body: ContextRequest) -> ContextResponse:
    """Return chat messages for a question, with memories that answer it, in at most `budget` tokens."""
    options = dict(body)
    with_receipt = options.pop("receipt")
    context = await conversation.context(**options)
    receipt = context.receipt
    return ContextResponse.model_construct(
        messages=context.messages,
        system=context.system,
        text=context.text,
        tokens=context.tokens,
        budget=receipt.budget,
        counter=receipt.counter,
        count=receipt.count,
        sections=dict(receipt.sections),
        receipt_id=receipt.id,
        receipt=receipt.as_dict() if with_receipt else None,
    )


@contexts.get("/receipts/{receipt}")
async def get_receipt(user: UserDep, receipt: UUID) -> Json:
    """Return a receipt: the parts of a context, and why others were left out."""
    return (await user.receipt(receipt)).as_dict()


Type = Annotated[
    str,
    Field(min_length=1, max_length=40, description=f"{', '.join(FACT_TYPES)}, or a type of the settings' fact_types"),
]


class FactFields(StrictModel):
    """The columns of a fact that may be set; those that a change leaves out stay."""

    kind: FactKind | None = None
    subject: str = Field("The user", min_length=1, max_length=COLUMN_LIMITS["subject"])
    attribute: str | None = Field(None, max_length=COLUMN_LIMITS["attribute"])
    value: str | None = Field(None, max_length=COLUMN_LIMITS["value"])
    language: str = Field("und", min_length=1, max_length=COLUMN_LIMITS["language"], description="ISO 639")
    confidence: StrictFloat = Field(1.0, ge=0, le=1)
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    importance: Importance = NORMAL
    expires_at: Moment | None = Field(None, description="from then on it is neither recalled nor in a context")


class NewFactRequest(FactFields):
    """A fact that is entered by hand."""

    text: str = Field(min_length=1, max_length=COLUMN_LIMITS["text"])
    type: Annotated[Type | None, Field(description="without one as the reader reads it")] = None
    sources: list[UUID] = Field([], description="ids of messages that say it")
    quarantined: StrictBool = Field(False, description="it waits until it is confirmed, as what a model proposes")


class FactEdit(FactFields):
    """The changes of a fact, at least one."""

    text: str = Field("", min_length=1, max_length=COLUMN_LIMITS["text"])
    type: Type = "identity"


class FactParams(PageParams):
    state: Literal["active", "ended", "expired", "quarantined", "superseded", "retracted", "erased", "all"] = "active"
    type: Type | None = None
    kind: FactKind | None = None
    subject: str | None = None
    as_of: Moment | None = None
    scope: ScopeName | None = None


@facts.get("/facts")
async def list_facts(user: UserDep, params: Annotated[FactParams, Query()]) -> Page[Fact]:
    """Return facts, what matters first: a page as they are, or all as they were known at a moment."""
    filters = params.model_dump(exclude={"cursor", "limit"})
    if params.as_of is not None:
        return Page(items=await user.facts(**filters))
    (last,) = params.position(tuple[UUID]) or (None,)
    rows = await user.facts(**filters, before=last, limit=params.limit + 1)
    return params.page(rows, lambda fact: [fact.id])


@facts.post("/facts", status_code=201)
async def add_fact(user: UserDep, body: NewFactRequest) -> Fact:
    """Enter a fact: it is found at once. A known fact with the same words becomes this one.

    With `quarantined` it waits; a known fact with the same words stays as it is, and is given.
    """
    return await user.add_fact(**body.model_dump())


class ProfileParams(StrictModel):
    budget: int = Field(400, ge=1, le=MAX_BUDGET, description="the most tokens that it may have")
    subject: str | None = Field(
        None, min_length=1, max_length=COLUMN_LIMITS["subject"], description="the one most facts are about"
    )
    as_of: Moment | None = None
    scope: ScopeName | None = None


@contexts.get("/profile")
async def get_profile(user: UserDep, params: Annotated[ProfileParams, Query()]) -> Json:
    """Return who somebody is, what holds, what is planned, how to answer: a text, its lines with their sources."""
    return (await user.profile(**dict(params))).as_dict()


class ReviewRequest(StrictModel):
    """Facts that are accepted, and those that are refused."""

    accept: list[UUID] = Field([], max_length=1000)
    refuse: list[UUID] = Field([], max_length=1000)


class ReviewResponse(BaseModel):
    accepted: list[Fact]
    refused: list[Fact]


class InboxParams(PageParams):
    scope: ScopeName | None = None


@facts.get("/inbox")
async def list_inbox(user: UserDep, params: Annotated[InboxParams, Query()]) -> Page[InboxItem]:
    """Return the facts that wait to be accepted, with the words that say them."""
    (last,) = params.position(tuple[UUID]) or (None,)
    rows = await user.inbox(before=last, limit=params.limit + 1, scope=params.scope)
    return params.page(rows, lambda item: [item.fact.id])


@facts.post("/inbox")
async def review_inbox(user: UserDep, body: ReviewRequest) -> ReviewResponse:
    """Accept and refuse facts of the inbox: accepted ones are found from now on, refused ones do not come back."""
    accepted, refused = await user.review(accept=body.accept, refuse=body.refuse)
    return ReviewResponse(accepted=accepted, refused=refused)


@facts.get("/tidy")
async def list_tidy(user: UserDep) -> list[TidyProposal]:
    """Return plans whose time has passed, when it had, and the words that say them."""
    return await user.tidy()


@facts.post("/tidy")
async def decide_tidy(user: UserDep, body: ReviewRequest) -> list[FactChange]:
    """End the plans that are accepted; those that are refused stay as they are, and are not proposed again."""
    return await user.decide_tidy(accept=body.accept, refuse=body.refuse)


@facts.post("/tidy/{change}/undo")
async def undo_tidy(user: UserDep, change: UUID) -> list[FactChange]:
    """Undo a change that ended a plan, and those that were made with it; 409 if a fact was changed again since."""
    return await user.undo_tidy(change)


@facts.get("/facts/{fact}")
async def get_fact(user: UserDep, fact: UUID) -> Fact:
    """Return a fact, in whatever state."""
    return await user.fact(fact)


@facts.patch("/facts/{fact}")
async def edit_fact(user: UserDep, fact: UUID, body: FactEdit) -> Fact:
    """Replace an active fact; the old one is superseded, and can be restored.

    If the words stay, it is changed in place and keeps its id.
    """
    return await user.edit_fact(fact, **body.model_dump(exclude_unset=True))


@facts.delete("/facts/{fact}")
async def retract_fact(user: UserDep, fact: UUID) -> Fact:
    """Retract a fact: it is no longer recalled, also where it is said again. Its history can undo that."""
    return await user.retract_fact(fact)


@facts.post("/facts/{fact}/confirm")
async def confirm_fact(user: UserDep, fact: UUID) -> Fact:
    """Activate a quarantined fact: recall finds it from now on."""
    return await user.confirm_fact(fact)


@facts.get("/facts/{fact}/history")
async def get_fact_history(user: UserDep, fact: UUID) -> list[FactChange]:
    """Return the changes of a fact, in order."""
    return await user.fact_history(fact)


@facts.post("/changes/{change}/undo")
async def undo_change(user: UserDep, change: UUID) -> FactChange:
    """Undo a change of a fact; 409 if the fact was changed again since."""
    return await user.undo(change)
