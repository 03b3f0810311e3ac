"""Times as a clock on a wall shows them: days in the order of some country, hours without a zone. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo

from memstore.errors import InvalidInput

from .reading import DateOrder

Numbers = tuple[str, str, str]


class DateOrders:
    """Finds in which order days, months and years are written, from all dates of a file in turn."""

    def __init__(self) -> None:
        self._possible: dict[DateOrder, bool] = {"dmy": True, "mdy": True, "ymd": True}
        self._sorted = dict(self._possible)
        self._last: dict[DateOrder, date] = {}

    def add(self, numbers: Numbers, *, points: bool) -> None:
        """See a date. With points between its numbers the month is not first; a year that is has four digits."""
        for order in self._possible:
            day = written(numbers, order)
            if day is None or (order == "mdy" and points) or (order == "ymd" and len(numbers[0]) < 4):
                self._possible[order] = False
            else:
                self._sorted[order] &= self._last.get(order, day) <= day
                self._last[order] = day

    def found(self) -> DateOrder:
        """Give the order; InvalidInput where two remain, or none. A chat is written in the order of its time."""
        possible = [order for order, fits in self._possible.items() if fits]
        if len(possible) > 1:
            possible = [order for order in possible if self._sorted[order]]
        if len(possible) == 1:
            return possible[0]
        why = "may be read in two ways" if possible else "are written in more than one order"
        raise InvalidInput(f"its dates {why}; say how they are meant with --date-order dmy, mdy or ymd")


def written(numbers: Numbers, order: DateOrder) -> date | None:
    """Give the day that three numbers mean in this order, or None; a year of two digits is of this century."""
    year, month, day = (numbers[order.index(unit)] for unit in "ymd")
    if len(year) not in (2, 4) or len(month) > 2 or len(day) > 2:
        return None
    try:
        return date(int(year) + (2000 if len(year) == 2 else 0), int(month), int(day))
    except ValueError:
        return None


class Clock:
    """Gives the instants of a clock's times, read in their order, through the changes of summer time."""

    def __init__(self, timezone: tzinfo) -> None:
        self._timezone = timezone
        self._last: datetime | None = None

    def instant(self, shown: datetime) -> datetime:
        """Give the instant, in UTC. Of an hour that comes twice, the first one that is not before the last time."""
        first, second = (shown.replace(tzinfo=self._timezone, fold=fold).astimezone(UTC) for fold in (0, 1))
        # In spring the clock skips an hour, and fold then means the two sides of the gap: the first is what was meant.
        late = first < second and self._last is not None and first < self._last <= second
        self._last = second if late else first
        return self._last
