"""Users: who has a memory here, and how large it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel
from starlette.responses import Response

from memstore.server.http.dependencies import USER, StoreDep, UserDep, require_operator
from memstore.server.http.pagination import Page, PageParams, json_response

router = APIRouter(tags=["users"])


class UserStats(BaseModel):
    """A user, by name and in numbers."""

    name: str
    stats: dict[str, int]


@router.get("/users", response_model=Page[str], dependencies=[Depends(require_operator)])
async def list_users(store: StoreDep, params: Annotated[PageParams, Query()]) -> Response:
    """Return the names of all users, sorted. The operator's."""
    (after,) = params.position(tuple[str]) or ("",)
    names: list[str] = []
    async for name in store.users(after=after):
        names.append(name)
        if len(names) > params.limit:
            break
    return params.response(str, names, lambda name: [name])


@router.get(USER, response_model=UserStats)
async def get_user_stats(user: UserDep, store: StoreDep) -> Response:
    """Return how much is stored of a user: zeros before the first message."""
    return json_response(UserStats, UserStats(name=user.name, stats=await store.stats(user=user.name)))


@router.get("/stats", response_model=dict[str, int], dependencies=[Depends(require_operator)])
async def get_stats(store: StoreDep) -> Response:
    """Return how much is stored of all users together. The operator's."""
    return json_response(dict[str, int], await store.stats())
