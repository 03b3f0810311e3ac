"""Statements that read, with what builds their results: reads of one transaction may go together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, LiteralString, TypeVar

from psycopg.rows import AsyncRowFactory, kwargs_row, tuple_row

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Read(Generic[T_co]):
    """A statement that reads, and the function that builds its result; the user's id is added when it is sent.

    Reads that were sent together are asked for their results one by one: `Transaction.result`.
    """

    statement: LiteralString
    values: Mapping[str, Any]
    result: Callable[[list[Any]], T_co]
    rows: AsyncRowFactory[Any] = tuple_row


def read_all(statement: LiteralString, build: Callable[..., T], **values: Any) -> Read[list[T]]:
    """Return the read of every row, each built from its columns."""
    return Read(statement, values, list, kwargs_row(build))


def read_one(statement: LiteralString, build: Callable[..., T], **values: Any) -> Read[T | None]:
    return Read(statement, values, lambda rows: rows[0] if rows else None, kwargs_row(build))
