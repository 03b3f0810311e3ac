"""What callers give: checked here, in words that say what to give instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from numbers import Real
from uuid import UUID

from memstore.errors import InvalidInput, NotFound
from memstore.ids import SHORTEST, beginning_with, is_beginning
from memstore.ingest.check import check_json, check_text
from memstore.models import Context, Fact, FactChange, Json, Receipt, Tier
from memstore.store.messages import LAST

MOST = 1_000_000  # hits or messages at once
MOST_PASSED = 2**31 - 1  # rows
HIGHEST = 100  # level of summaries: each stands for several below it


def known_tiers(tiers: Sequence[str]) -> tuple[Tier, ...]:
    """Give the tiers that are meant, at least one."""
    given = listed(tiers, "tiers", Tier)
    if not given:
        raise InvalidInput(f"tiers={tiers!r}: give some of {', '.join(Tier)}.")
    return tuple(Tier(tier) for tier in given)


def check_recall(query: str, limit: int, min_score: object) -> None:
    """Refuse what is no question, as nothing is like a blank one; no number of hits, or no score."""
    check_text(query, "the query")
    if not query.strip():
        raise InvalidInput(f"query={query!r:.60} asks for nothing; give a question, or some words of what was said.")
    check_limit(limit)
    is_number = isinstance(min_score, Real) and not math.isnan(min_score)
    if min_score is not None and not is_number:
        raise InvalidInput(f"min_score={min_score!r:.60}: give a number, or None for any score.")


def check_seq(seq: int, name: str) -> None:
    """Refuse what is no number of a message."""
    if type(seq) is not int or abs(seq) > LAST:
        raise InvalidInput(f"{name}={seq!r:.60}: give the number of a message, from 1.")


def check_object(value: Json | None, name: str) -> None:
    """Refuse what is no object of JSON; None is."""
    if value is not None and not isinstance(value, dict):
        raise InvalidInput(f"{name}={value!r:.60}: give a dict.")
    check_json(value, name)


def check_limit(limit: int | None, *, or_none: bool = False) -> None:
    """Refuse what is no number of rows; None, for all of them, only where it may be."""
    if not (limit is None and or_none) and (type(limit) is not int or not 1 <= limit <= MOST):
        raise InvalidInput(f"limit={limit!r}: give a number from 1 to {MOST:,}.")


def check_offset(offset: int) -> None:
    """Raise `InvalidInput` for what is no number of rows to be passed over."""
    if type(offset) is not int or not 0 <= offset <= MOST_PASSED:
        raise InvalidInput(f"offset={offset!r:.60}: give a number from 0.")


def check_level(level: int | None) -> None:
    """Refuse what is no level of summaries."""
    if level is not None and (type(level) is not int or not 0 <= level <= HIGHEST):
        raise InvalidInput(f"level={level!r}: give a number from 0 to {HIGHEST}.")


def listed(values: Sequence[str] | None, name: str, known: type[StrEnum] | None = None) -> list[str] | None:
    """Give a list of strings, each of `known`; None stays None."""
    if values is None:
        return None
    if not isinstance(values, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={values!r}: give a list.")
    for value in values:
        check_text(value, f"one of {name}")
    if known is not None and set(values) - set(known):
        raise InvalidInput(f"{name}={values!r}: give some of {', '.join(known)}.")
    return [str(value) for value in values]


def aware(moment: datetime | None, name: str) -> datetime | None:
    """Give the moment in UTC; it must have a time zone. None stays None."""
    if moment is not None and not isinstance(moment, datetime):
        raise InvalidInput(f"{name}={moment!r} is no datetime; give one with its time zone.")
    if moment is not None and moment.tzinfo is None:
        raise InvalidInput(f"{name}={moment} has no time zone; give one, such as {moment}+00:00.")
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{name}={moment} is outside of the years 1 to 9999 in UTC.") from None


def ids_of(given: Sequence[UUID], name: str) -> list[UUID]:
    """Give a list of ids."""
    if not isinstance(given, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={given!r}: give a list.")
    return [id_of(one) for one in given]


def receipt_of(given: Context | Receipt | UUID | str) -> Receipt | UUID | str:
    """Give the receipt of a context; what is given by itself or by its id stays."""
    return given.receipt if isinstance(given, Context) else given


def id_of_receipt(given: Receipt | UUID | str) -> UUID:
    """Give the id of a receipt that was given itself or by its id."""
    value = given.id if isinstance(given, Receipt) else given
    if value is None:
        raise InvalidInput("This receipt was not kept: the conversation has no message yet, or receipts_days is 0.")
    return _uuid(value, "as context.receipt.id has it")


def id_of(given: Fact | FactChange | UUID | str) -> UUID:
    """Give the id of a fact or of a change that was given itself or by its id."""
    value = given.id if isinstance(given, Fact | FactChange) else given
    if value is None:
        raise InvalidInput("What was only added or said again cannot be undone; retract the fact instead.")
    return _uuid(value, "as facts and their history have them")


def beginning_of(given: str) -> tuple[UUID, UUID]:
    """Give the least and the greatest id that begin like this."""
    if not isinstance(given, str) or not is_beginning(given):
        raise InvalidInput(f"{given!r:.60} is not how an id begins; give {SHORTEST} hexadecimal digits or more.")
    return beginning_with(given)


def the_one(found: Sequence[UUID], given: str, kind: str) -> UUID:
    """Give the one id that was found of this kind; refuse none and several."""
    if not found:
        raise NotFound(f"This user has no {kind} whose id begins with {given!r}.")
    if len(found) > 1:
        raise InvalidInput(f"More than one {kind} has an id that begins with {given!r}: {found[0]}, {found[1]}…")
    return found[0]


def _uuid(value: UUID | str, where: str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(f"{value!r:.60} is no id; give a UUID, {where}.") from None
