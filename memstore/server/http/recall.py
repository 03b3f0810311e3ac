"""Recall: what is remembered about a question."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from memstore.client.recalling import Grouping, Order
from memstore.models import Hit, HitGroup, Role, Tier
from memstore.server.http.dependencies import (
    USER,
    RuleName,
    StrictFloat,
    StrictInt,
    StrictModel,
    Timestamp,
    UserDep,
)
from memstore.server.http.pagination import MAX_LIMIT, json_response

router = APIRouter(prefix=USER, tags=["recall"])


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
