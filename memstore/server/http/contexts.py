"""Contexts: what a model is sent, within its budget; and their receipts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from memstore.models import Context, Json
from memstore.server.http.asked import Body, ConversationDep, Flag, Moment, RuleName, UserDep, Whole
from memstore.server.http.pages import answer
from memstore.server.http.paths import USER
from memstore.server.http.problems import documented

router = APIRouter(prefix=USER, tags=["contexts"], responses=documented(404, 409, 502))
LARGEST_BUDGET = 10**9
LONGEST_MODEL = 200


def _no_file(model: str) -> str:
    if model.partition(":")[0] == "tokenizer":
        raise ValueError("files of the server are not named by its clients; the settings' counter may be one")
    return model


class ContextAsked(Body):
    """What a context is asked for; what is left out is as the conversation's settings have it, else the system's."""

    query: str | None = Field(None, description="the question; null: the newest user message is")
    budget: Whole | None = Field(None, ge=1, le=LARGEST_BUDGET, description="the most tokens that it may have")
    reserve: Whole | None = Field(None, ge=0, le=LARGEST_BUDGET, description="tokens of the budget to keep free")
    system: str | None = Field(None, description="the system prompt")
    strategy: list[str | Json] | None = Field(None, description="what compresses the conversation; []: nothing")
    sections: list[Json] = Field([], description="what sections may take, and texts of your own")
    viewer: str | None = Field(None, min_length=1, description="who looks")
    visibility: RuleName | None = Field(None, description="the rule by which a viewer sees messages")
    as_of: Moment | None = Field(None, description="of what was known then")
    model: Annotated[str, AfterValidator(_no_file)] | None = Field(
        None, min_length=1, max_length=LONGEST_MODEL, description="count as this model does"
    )
    tools: list[Json] = Field([], description="definitions of tools that are sent beside: they are counted")
    format: Literal["openai", "ollama", "anthropic", "text"] = "openai"
    receipt: Flag = Field(False, description="whether to give the whole receipt, and not its id alone")


class ContextAnswer(BaseModel):
    """A finished context: its tokens are within the budget."""

    messages: list[Json]
    system: str | None
    text: str | None
    tokens: int
    budget: int
    counter: str
    count: str = Field(description="exact, server, modelled or bound")
    sections: dict[str, int] = Field(description="tokens by section")
    receipt_id: UUID | None = Field(description="null where none is kept")
    receipt: Json | None = None


@router.post("/conversations/{conversation:name}/context", response_model=ContextAnswer)
async def context(scope: ConversationDep, asked: ContextAsked) -> Response:
    """Give chat messages that answer to the question with what is remembered, in at most `budget` tokens."""
    wanted = {name: getattr(asked, name) for name in ContextAsked.model_fields if name != "receipt"}
    return answer(ContextAnswer, _answer(await scope.context(**wanted), whole=asked.receipt))


@router.get("/conversations/{conversation:name}/receipts", response_model=list[Json])
async def receipts(scope: ConversationDep, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
    """Give the receipts of a conversation's contexts, the latest first."""
    return answer(list[Json], [one.as_dict() for one in await scope.receipts(limit=limit)])


@router.get("/receipts/{receipt}", response_model=Json)
async def receipt(user: UserDep, receipt: UUID) -> Response:
    """Give a receipt: what was in a context, what was left out and why."""
    return answer(Json, (await user.receipt(receipt)).as_dict())


@router.get("/receipts/{receipt}/explain", response_class=PlainTextResponse)
async def explain(user: UserDep, receipt: UUID) -> Response:
    """Give a receipt for people."""
    return PlainTextResponse((await user.receipt(receipt)).explain())


@router.get("/receipts/{receipt}/replay", response_model=Json)
async def replay(user: UserDep, receipt: UUID) -> Response:
    """Give a context again: `exact` says whether these are the bytes that were sent."""
    return answer(Json, (await user.replay(receipt)).as_dict())


def _answer(made: Context, *, whole: bool) -> ContextAnswer:
    receipt = made.receipt
    return ContextAnswer.model_construct(
        messages=made.messages,
        system=made.system,
        text=made.text,
        tokens=made.tokens,
        budget=receipt.budget,
        counter=receipt.counter,
        count=receipt.count,
        sections=dict(receipt.sections),
        receipt_id=receipt.id,
        receipt=receipt.as_dict() if whole else None,
    )
