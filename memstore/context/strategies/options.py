"""Options of strategies are checked where a strategy is made, from code or from settings."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

from memstore.errors import InvalidInput

MOST = 1_000_000  # turns or tokens


def check_options(strategy: Any, *, zero: tuple[str, ...] = ()) -> None:
    """Refuse what is no option's value: numbers of turns or tokens are whole and from 1, or 0 for those in `zero`;
    shares are above 0 and at most 1.
    """
    for option in fields(strategy):
        value = getattr(strategy, option.name)
        least = 0 if option.name in zero else 1
        if option.type == "int" and (type(value) is not int or not least <= value <= MOST):
            raise InvalidInput(f"{_told(strategy, option.name, value)}: give a whole number from {least}.")
        if option.type == "float" and (type(value) not in (int, float) or not 0 < value <= 1):
            raise InvalidInput(f"{_told(strategy, option.name, value)}: give a share above 0 and at most 1.")


def check_falling(strategy: Any, *names: str) -> None:
    """Refuse options of which one is not above the next."""
    values = [getattr(strategy, name) for name in names]
    if any(one <= other for one, other in pairwise(values)):
        given = ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))
        raise InvalidInput(f"{strategy.name}: {given}: each must be above the next.")


def _told(strategy: Any, option: str, value: object) -> str:
    return f"{strategy.name}: {option}={value!r}"
