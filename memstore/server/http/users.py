"""Users: who has a memory here, and how large it is."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from pydantic import BaseModel
from starlette.responses import Response

from memstore.server.http.asked import StoreDep, UserDep, operator
from memstore.server.http.pages import Page, PageDep, answer, place_as
from memstore.server.http.paths import USER
from memstore.server.http.problems import documented

router = APIRouter(tags=["users"])


class UserAnswer(BaseModel):
    """A user, by name and in numbers."""

    name: str
    stats: dict[str, int]


@router.get("/users", response_model=Page[str], dependencies=[Depends(operator)])
async def users(store: StoreDep, page: PageDep) -> Response:
    """Give the names of all users, sorted. The operator's."""
    (after,) = place_as(tuple[str], page.place) or ("",)
    found: list[str] = []
    async for name in store.users(after=after):
        found.append(name)
        if len(found) > page.limit:
            break
    return page.answer(str, found, lambda name: [name])


@router.get(USER, response_model=UserAnswer, responses=documented(404))
async def user(scope: UserDep, store: StoreDep) -> Response:
    """Give how much is stored of a user: zeros before the first message."""
    return answer(UserAnswer, UserAnswer(name=scope.name, stats=await store.stats(user=scope.name)))


@router.get("/stats", response_model=dict[str, int], dependencies=[Depends(operator)])
async def stats(store: StoreDep) -> Response:
    """Give how much is stored of all users together. The operator's."""
    return answer(dict[str, int], await store.stats())
