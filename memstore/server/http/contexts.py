"""Recall: what is remembered about a question. Contexts: what a model is sent, within its budget; their receipts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from memstore.client.user import Grouping, Order
from memstore.models import Context, Hit, HitGroup, Json, Role, Tier
from memstore.server.http.dependencies import (
    MAX_LIMIT,
    USER,
    ConversationDep,
    RuleName,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictModel,
    Timestamp,
    UserDep,
    json_response,
)

router = APIRouter(prefix=USER, tags=["contexts"])
MAX_BUDGET = 10**9
MAX_MODEL_NAME = 200


class RecallRequest(StrictModel):
    """A question, and what narrows it."""

    query: str = Field(min_length=1)
    limit: StrictInt = Field(10, ge=1, le=MAX_LIMIT)
    tiers: list[Tier] = Field(list(Tier), min_length=1)
    conversation: str | None = Field(None, min_length=1)
    roles: list[Role] | None = None
    tags: list[str] | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None
    as_of: Timestamp | None = None
    min_score: StrictFloat | None = Field(None, allow_inf_nan=False)
    viewer: str | None = Field(None, min_length=1)
    visibility: RuleName | None = None
    order: Order = "score"
    group_by: Grouping | None = None


@router.post("/recall", response_model=list[Hit] | list[HitGroup])
async def recall(user: UserDep, body: RecallRequest) -> Response:
    """Return what is remembered, the best first: hits, or with `group_by` groups of them."""
    hits = await user.recall(**dict(body))
    return json_response(list[Hit] if body.group_by is None else list[HitGroup], hits)


def _refuse_file(model: str) -> str:
    if model.partition(":")[0] == "tokenizer":
        raise ValueError("files of the server are not named by its clients; the settings' counter may be one")
    return model


class ContextRequest(StrictModel):
    """What a context is asked for; what is left out is as the conversation's settings have it, else the system's."""

    query: str | None = Field(None, description="the question; null: the newest user message is")
    budget: StrictInt | None = Field(None, ge=1, le=MAX_BUDGET, description="the most tokens that it may have")
    reserve: StrictInt | None = Field(None, ge=0, le=MAX_BUDGET, description="tokens of the budget to keep free")
    system: str | None = Field(None, description="the system prompt")
    strategy: list[str | Json] | None = Field(None, description="what compresses the conversation; []: nothing")
    sections: list[Json] = Field([], description="what sections may take, and texts of your own")
    viewer: str | None = Field(None, min_length=1, description="who looks")
    visibility: RuleName | None = Field(None, description="the rule by which a viewer sees messages")
    as_of: Timestamp | None = Field(None, description="of what was known then")
    model: Annotated[str, AfterValidator(_refuse_file)] | None = Field(
        None, min_length=1, max_length=MAX_MODEL_NAME, description="count as this model does"
    )
    tools: list[Json] = Field([], description="definitions of tools that are sent beside: they are counted")
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


@router.post("/conversations/{conversation:name}/context", response_model=ContextResponse)
async def build_context(conversation: ConversationDep, body: ContextRequest) -> Response:
    """Return chat messages that answer to the question with what is remembered, in at most `budget` tokens."""
    options = dict(body)
    with_receipt = options.pop("receipt")
    return json_response(ContextResponse, _response(await conversation.context(**options), with_receipt=with_receipt))


def _response(context: Context, *, with_receipt: bool) -> ContextResponse:
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


@router.get("/conversations/{conversation:name}/receipts", response_model=list[Json])
async def list_receipts(conversation: ConversationDep, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
    """Return the receipts of a conversation's contexts, the latest first."""
    return json_response(list[Json], [receipt.as_dict() for receipt in await conversation.receipts(limit=limit)])


@router.get("/receipts/{receipt}", response_model=Json)
async def get_receipt(user: UserDep, receipt: UUID) -> Response:
    """Return a receipt: what was in a context, what was left out and why."""
    return json_response(Json, (await user.receipt(receipt)).as_dict())


@router.get("/receipts/{receipt}/explain", response_class=PlainTextResponse)
async def explain_receipt(user: UserDep, receipt: UUID) -> Response:
    """Return a receipt for people."""
    return PlainTextResponse((await user.receipt(receipt)).explain())


@router.get("/receipts/{receipt}/replay", response_model=Json)
async def replay_context(user: UserDep, receipt: UUID) -> Response:
    """Return a context again: `exact` says whether these are the bytes that were sent."""
    return json_response(Json, (await user.replay(receipt)).as_dict())
