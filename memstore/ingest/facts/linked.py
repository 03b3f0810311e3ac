"""Slots whose values end with those of others: who is divorced is no longer anybody's wife. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from memstore.ingest.rules.slots import FORMER

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
    return _BESIDE.get(attribute, [])


def ends_too(later: Filled, earlier: Filled) -> bool:
    """Whether what is said later ends a value of another slot that was said earlier."""
    match earlier.attribute, later.attribute:
        case str(known), "appointment/any" if known.startswith("appointment/"):  # "it is moved from 21 May"
            return _names(later.text, f"from {_DAY.sub('', earlier.value)}")
        case "plan/wedding", "former/marital_status":
            return later.value == "engaged"
        case "employer/teaching", "former/employer":
            return bool(later.value) and _within(later.value, earlier.value)
        case "partner", "marital_status":  # who divorces somebody may love another one by now
            parted = later.value in ("divorced", "separated", "geschieden", "getrennt")
            return parted and (_names(later.text, earlier.value) or bool(_MARRIED.search(earlier.text)))
        case "marital_status", "former/partner":  # "my fiancé left me", "Leo and I broke up", of Leo alone
            engaged = earlier.value in ("engaged", "verlobt")
            married = earlier.value in ("married", "verheiratet") and bool(_DIVORCE.search(later.text))
            named = _names(earlier.text, later.value) if later.value else engaged
            return (engaged or married) and (named or (married and bool(later.value)))
    return False


def _names(text: str, name: str) -> bool:
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _within(value: str, other: str) -> bool:
    words, others = set(value.split()), set(other.casefold().split())
    return words <= others or others <= words


_PAIRS = (
    ("plan/wedding", f"{FORMER}marital_status"),
    ("employer/teaching", f"{FORMER}employer"),
    ("partner", "marital_status"),
    ("marital_status", f"{FORMER}partner"),
)
_BESIDE: dict[str, list[str]] = {}
for _earlier, _later in _PAIRS:
    _BESIDE.setdefault(_earlier, []).append(_later)
    _BESIDE.setdefault(_later, []).append(_earlier)
