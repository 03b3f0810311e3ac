"""Documents: values that an application keeps under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from memstore.models.messages import Json

Namespace = tuple[str, ...]
LONGEST_TTL = timedelta(days=365_000)  # 999 years: a moment beyond the year 9999 could not be read again


@dataclass(frozen=True, slots=True)
class Document:
    """A value under a namespace and a key; `score` is its similarity to the query of a search."""

    namespace: Namespace
    key: str
    value: Json
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A value to store.

    `texts` are embedded for search, each under a path of the value; by default the whole value as JSON, and with `{}`
    it is not found by meaning. It expires `ttl` after it was last written or read, if that is given.
    """

    namespace: Namespace
    key: str
    value: Json
    texts: Mapping[str, str] | None = None
    ttl: timedelta | None = None
