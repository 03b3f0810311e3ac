"""Documents: values that an application keeps under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from memstore.models.rows import Json

Namespace = tuple[str, ...]
LONGEST_TTL = timedelta(days=365_000)  # 999 years: a moment beyond the year 9999 could not be read again


@dataclass(frozen=True, slots=True)
class Document:
    """A value under a namespace and a key; `score` is how near it is to the question, where one was asked."""

    namespace: Namespace
    key: str
    value: Json
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A value to be kept.

    `texts` are what it is found by, each under a path of the value; by default the whole of it, as JSON, and with none
    it is not found by meaning. It lives for `ttl` after it was written or read, 999 years at most; for ever by default.
    """

    namespace: Namespace
    key: str
    value: Json
    texts: Mapping[str, str] | None = None
    ttl: timedelta | None = None
