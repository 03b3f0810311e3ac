"""Tokens of the servers, as they are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ApiToken:
    """Who may ask over a network: for the memory of one `user`, or of everybody as the operator (None).

    `secret` is the token itself, on the day on which it is made; it is kept nowhere.
    """

    id: UUID
    user: str | None
    name: str | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)
