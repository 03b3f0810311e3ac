"""The certificate of an erasure: what was removed, what keeps it out, and what was looked for afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from memstore.models.decisions import adapter
from memstore.models.rows import Json


class ErasureScope(StrEnum):
    """What an erasure was of. `retention` is of messages that a rule keeps no longer."""

    USER = "user"
    CONVERSATION = "conversation"
    MESSAGE = "message"
    FACT = "fact"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True)
class Scan:
    """What was looked for in every table after an erasure, in its own transaction.

    `ids` are ids of what was erased, `found` the rows in which one of them still stands, by table: empty where nothing
    is left.
    """

    tables: int = 0
    ids: int = 0
    found: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.found


@dataclass(frozen=True, slots=True)
class Certificate:
    """What an erasure removed: ids and numbers, never a text.

    `erased` are the ids of what was asked for: of the user, the conversation, the messages or the facts. `counts` are
    the rows that are gone, by table; `tombstones` how many keyed hashes keep messages and facts from coming back.
    `again` says for derivers how many conversations they look at once more, as something that was derived rested on
    erased messages and on others too. `id` is None for a rehearsal (`dry_run`), of which nothing was done,
    and where there was nothing to erase.
    """

    scope: ErasureScope
    user_id: UUID
    erased: tuple[UUID, ...] = ()
    conversation_id: UUID | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    tombstones: int = 0
    again: Mapping[str, int] = field(default_factory=dict)
    scan: Scan = field(default_factory=Scan)
    hints: tuple[str, ...] = ()
    id: UUID | None = None
    recorded_at: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove."""
        return not any(self.counts.values())

    def as_dict(self) -> Json:
        """Give the certificate as JSON has it: `Certificate.from_dict` gives it back."""
        return _as_json(self)

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Certificate:
        """Give the certificate of what `as_dict` gave. Raises `ValueError` for what is none, naming what is wrong."""
        if not isinstance(body, Mapping):
            raise ValueError("it is no object")
        known = {one.name for one in fields(cls)}
        try:
            certificate: Certificate = adapter(Certificate).validate_python(
                {name: value for name, value in body.items() if name in known}
            )
        except ValidationError as error:
            raise ValueError(_wrong(error)) from None
        if not certificate.erased:  # every erasure names one id: of none, all would be found to be gone
            raise ValueError("it names nothing that was erased")
        return certificate


@dataclass(frozen=True, slots=True)
class Remains:
    """Rows in which something that was erased still stands, by table."""

    looked_for: int
    tables: int
    found: Mapping[str, int] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no row has any of it."""
        return not self.found

    def as_dict(self) -> Json:
        """Give it as JSON has it."""
        return _as_json(self)


def _wrong(error: ValidationError) -> str:
    """Name what a certificate lacks, and what in it is of another kind."""
    missing = [str(one["loc"][0]) for one in error.errors() if one["type"] == "missing"]
    other = [".".join(map(str, one["loc"])) for one in error.errors() if one["type"] != "missing"]
    told = ((missing, "it has no"), (other, "it has something else for its"))
    return ", and ".join(f"{words} {', '.join(dict.fromkeys(names))}" for names, words in told if names)


def _as_json(value: Any) -> Json:
    """Give a dataclass as JSON has it, with what is as by default too: programs read these."""
    kind: Any = type(value)  # mypy takes no type of Any for hashable
    found: Json = adapter(kind).dump_python(value, mode="json")
    return found
