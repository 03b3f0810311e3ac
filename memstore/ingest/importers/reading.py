"""How a file is to be read, where it does not say so itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memstore.errors import InvalidInput
from memstore.ingest.check import check_text, one_of

DateOrder = Literal["dmy", "mdy", "ymd"]


def _ignored(_: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What files do not say themselves, and whom to tell how far the reading got; each format uses what it needs.

    `me` is the importing person's name in a chat between people; `timezone` is that of times without a zone;
    `date_order` is how days are written; `all_branches` takes what was edited or tried again, too. `seen` is called
    with the number of bytes that were read further, as they lie on disk.
    """

    me: str | None = None
    timezone: tzinfo | None = None
    date_order: DateOrder | None = None
    all_branches: bool = False
    seen: Callable[[int], None] = _ignored


PLAINLY = Reading()


def as_reading(*, me: str | None, timezone: str | None, date_order: str | None, all_branches: bool) -> Reading:
    """Give what a caller says of a file; InvalidInput for what is no name, no zone or no order."""
    if me is not None:
        check_text(me, "me")
    one_of("date_order", date_order, get_args(DateOrder))
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
    except (ValueError, TypeError, OSError, ZoneInfoNotFoundError):
        raise InvalidInput(f"timezone={timezone!r}: give a name such as Europe/Berlin or UTC.") from None
    return Reading(me=me, timezone=zone, date_order=cast(DateOrder | None, date_order), all_branches=all_branches)
