"""Keyset pagination: `items`, and where there is more a `next_cursor`.

A cursor says after which row the page ended, not how many rows were before: inserts and deletes move nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field, TypeAdapter
from starlette.responses import Response

from memstore.errors import InvalidInput
from memstore.server.http.dependencies import StrictModel
from memstore.text import INVALID_CHARS

T = TypeVar("T")
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    next_cursor: str | None = Field(default=None, description="of the next page; null: this is the last")


class PageParams(StrictModel):
    """Which page is asked for."""

    cursor: str | None = Field(None, min_length=1, description="`next_cursor` of the page before")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)

    def position(self, kind: Any) -> Any:
        """Return where the page before ended, as values of these types; None for the first page."""
        return None if self.cursor is None else decode_cursor(self.cursor, kind)

    def response(self, kind: Any, rows: Sequence[T], position: Callable[[T], Sequence[Any]]) -> Response:
        """Return a page of rows, of which there is one more than the limit where another page follows."""
        items = list(rows[: self.limit])
        cursor = encode_cursor(position(items[-1])) if len(rows) > self.limit else None
        return json_response(Page[kind], Page.model_construct(items=items, next_cursor=cursor))


def json_response(kind: Any, value: Any, *, status: int = 200) -> Response:
    """Return a value as JSON of this type, not validated again: that took longer than to make it."""
    return Response(_adapter(kind).dump_json(value, warnings=False), status, media_type="application/json")


def encode_cursor(position: Sequence[Any]) -> str:
    """Return the cursor of a position."""
    return base64.urlsafe_b64encode(json.dumps(position, default=str).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, kind: Any) -> Any:
    """Return the position of a cursor as values of these types; raise `InvalidInput` for any other text."""
    try:
        position = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        if any(isinstance(value, str) and INVALID_CHARS.search(value) for value in position):
            raise ValueError
        return _adapter(kind).validate_python(position)
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(f"cursor={cursor!r:.60} is none; give next_cursor of the page before, or none.") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
