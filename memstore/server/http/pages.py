"""Lists in pages: `items`, and where there is more a `next_cursor` and a Link header that leads to it.

A cursor says where the page ended, not how many rows were before: what is added or removed meanwhile moves nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field, TypeAdapter
from starlette.responses import Response

from memstore.characters import UNSTORABLE
from memstore.errors import InvalidInput

T = TypeVar("T")
A_PAGE, MOST = 100, 1000


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    next_cursor: str | None = Field(default=None, description="of the next page; null: this is the last")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which page is asked for: the place where the one before ended, and the most items."""

    request: Request
    place: list[Any] | None
    limit: int

    def answer(self, kind: Any, found: Sequence[T], place: Callable[[T], Sequence[Any]]) -> Response:
        """Give a page of what was found, which is one item more than was asked for where there is more."""
        items = list(found[: self.limit])
        cursor = encoded(place(items[-1])) if len(found) > self.limit and items else None
        headers = {}
        if cursor is not None:
            following = self.request.url.include_query_params(cursor=cursor)
            headers["Link"] = f'<{_path_of(self.request)}?{following.query}>; rel="next"'
        return answer(Page[kind], Page.model_construct(items=items, next_cursor=cursor), headers=headers)


async def asked_page(
    request: Request,
    cursor: Annotated[str | None, Query(min_length=1, description="`next_cursor` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = A_PAGE,
) -> Asked:
    """Give which page is asked for."""
    return Asked(request, None if cursor is None else decoded(cursor), limit)


PageDep = Annotated[Asked, Depends(asked_page)]


def answer(kind: Any, value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Give a value as JSON of this type. What memory gives is not checked again: that took longer than to make it."""
    return Response(_adapter(kind).dump_json(value, warnings=False), status, headers, "application/json")


def encoded(place: Sequence[Any]) -> str:
    """Give the cursor of a place."""
    return base64.urlsafe_b64encode(json.dumps(place, default=str).encode()).decode().rstrip("=")


def decoded(cursor: str) -> list[Any]:
    """Give the place that a cursor says."""
    try:
        found = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or any(isinstance(one, str) and UNSTORABLE.search(one) for one in found):
        raise InvalidInput(f"cursor={cursor!r:.60} is none; give next_cursor of the page before, or none.")
    return found


def place_as(kind: Any, place: list[Any] | None) -> Any:
    """Give the place of a cursor as values of these types; None stays None."""
    try:
        return None if place is None else _adapter(kind).validate_python(place)
    except ValueError:
        raise InvalidInput("This cursor is of another list; give next_cursor of the page before, or none.") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _path_of(request: Request) -> str:
    return str(request.scope["path"])
