"""Times for people and models, the same in every locale and time zone of a process."""

from __future__ import annotations

from datetime import UTC, datetime

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def day(moment: datetime) -> str:
    """Give the day of a moment, in UTC: 8 May 2023."""
    moment = moment.astimezone(UTC)
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"
