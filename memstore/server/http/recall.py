"""Recall: what is remembered about a question."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from memstore.memory.recalling import Grouping, Order
from memstore.models import Hit, HitGroup, Role, Tier
from memstore.server.http.asked import Body, Moment, Real, RuleName, UserDep, Whole
from memstore.server.http.pages import answer
from memstore.server.http.paths import USER
from memstore.server.http.problems import documented

router = APIRouter(prefix=USER, tags=["recall"], responses=documented(404, 409, 502))
MOST = 1000


class RecallAsked(Body):
    """What is asked, and what narrows it."""

    query: str = Field(min_length=1)
    limit: Whole = Field(10, ge=1, le=MOST)
    tiers: list[Tier] = Field(list(Tier), min_length=1)
    conversation: str | None = Field(None, min_length=1)
    roles: list[Role] | None = None
    tags: list[str] | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    min_score: Real | None = Field(None, allow_inf_nan=False)
    viewer: str | None = Field(None, min_length=1)
    visibility: RuleName | None = None
    order: Order = "score"
    group_by: Grouping | None = None


@router.post("/recall", response_model=list[Hit] | list[HitGroup])
async def recall(user: UserDep, asked: RecallAsked) -> Response:
    """Give what is remembered, the best first: hits, or with `group_by` groups of them."""
    found = await user.recall(**{name: getattr(asked, name) for name in RecallAsked.model_fields})
    return answer(list[Hit] if asked.group_by is None else list[HitGroup], found)
