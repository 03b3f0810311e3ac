"""Slots whose values end with those of others: who is divorced is no longer anybody's wife. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from memstore.derive.rules.slots import FORMER

APPOINTMENTS, MOVED = "appointment/", "appointment/any"  # of one that is not named
PARTED = ("divorced", "separated", "geschieden", "getrennt")  # values of marital_status
_MARRIED = re.compile(r"\b(?:husband|wife|spouse|married|verheiratet|ehemann|ehefrau)\b", re.IGNORECASE)
_DIVORCE = re.compile(r"\b(?:divorc\w+|scheid\w+|geschieden)\b", re.IGNORECASE)
_DAY = re.compile(r"^the | (?:at|um|à|a las)? ?\d{1,2}[:.]\d\d.*$", re.IGNORECASE)  # all but the day of an appointment


class Filled(NamedTuple):
    """What a fact says of its subject: its attribute and value, and its text."""

    attribute: str
    value: str
    text: str


def attributes_beside(attribute: str) -> list[str]:
    """Give the attributes with whose values one of this attribute may end, or be ended."""
    return [later if earlier == attribute else earlier for earlier, later in _ENDS if attribute in (earlier, later)]


def ends_too(later: Filled, earlier: Filled) -> bool:
    """Whether what is said later ends a value of another slot that was said earlier."""
    if later.attribute == MOVED and earlier.attribute.startswith(APPOINTMENTS):  # "it is moved from 21 May"
        return _names(later.text, f"from {_DAY.sub('', earlier.value)}")
    ends = _ENDS.get((earlier.attribute, later.attribute))
    return ends is not None and ends(later, earlier)


def compatible(value: str, other: str) -> bool:
    """Whether two values may be one, told more and less exactly: "porto" and "porto portugal"."""
    words, others = set(value.casefold().split()), set(other.casefold().split())
    return words <= others or others <= words


def _is_called_off(later: Filled, wedding: Filled) -> bool:
    return later.value == "engaged"


def _is_left(later: Filled, teaching: Filled) -> bool:
    return bool(later.value) and compatible(later.value, teaching.value)


def _is_divorced(later: Filled, partner: Filled) -> bool:
    """Who divorces somebody may love another one by now."""
    return later.value in PARTED and (_names(later.text, partner.value) or bool(_MARRIED.search(partner.text)))


def _is_broken_up(later: Filled, state: Filled) -> bool:
    """Of "my fiancé left me" an engagement is over; of "Leo and I broke up" that to Leo alone."""
    engaged = state.value in ("engaged", "verlobt")
    married = state.value in ("married", "verheiratet") and bool(_DIVORCE.search(later.text))
    named = _names(state.text, later.value) if later.value else engaged
    return (engaged or married) and (named or (married and bool(later.value)))


def as_written(name: str, text: str) -> str | None:
    """Give a name as a text writes it; None where it is not there."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return found[0] if found else None


def _names(text: str, name: str) -> bool:
    return bool(name) and as_written(name, text) is not None


# Whether a value of the second attribute, said later, ends one of the first.
_ENDS: Mapping[tuple[str, str], Callable[[Filled, Filled], bool]] = {
    ("plan/wedding", f"{FORMER}marital_status"): _is_called_off,
    ("employer/teaching", f"{FORMER}employer"): _is_left,
    ("partner", "marital_status"): _is_divorced,
    ("marital_status", f"{FORMER}partner"): _is_broken_up,
}
