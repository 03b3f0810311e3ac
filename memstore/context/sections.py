"""Sections: what users say of them is checked here, and becomes tokens of one budget. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from memstore.errors import InvalidInput
from memstore.ingest.validation import check_text
from memstore.models import Amount, Json, Section

FACTS, SUMMARIES, HITS, RECENT = "facts", "summaries", "hits", "recent"
ALWAYS = ("system", "question")  # in whole, or there is no context
# The parts of the room that sections may count on. Hits find more of what is asked than facts of the same length: on
# half of LoCoMo's questions 91.2 % of the evidence at 2,000 tokens and 93.9 % at 4,000, against 89.7 and 92.0 % with
# 0.35 for hits and 0.2 for facts and both falling from 800 tokens on (by `benchmarks/run.py locomo` then).
WEIGHTS: Mapping[str, float] = {FACTS: 0.1, HITS: 0.45, SUMMARIES: 0.15, RECENT: 0.3}
ADDED = 0.25
# What answers to the question has its weight up to `WHOLE` tokens of room. It is read anew at every turn, while a model
# keeps what stands before it: so of `FLAT` tokens of room it has no more than of `WHOLE`, and from there on more by the
# square root (benchmarks/prefix.py has the curve). Between the two the part of hits falls evenly. Had they no more
# tokens there, as facts have, all that is added would be recent turns: of LoCoMo's evidence a context of 5,000 tokens
# held 0.3 points more than one of 3,000, and holds 1.8 more. Facts take the place of the messages they were made from.
FOR_THE_QUESTION = (FACTS, HITS)
WHOLE, FLAT = 2500, 8000
MOST = 20  # sections of a user
MOST_TEXTS = 1000
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RESERVED = frozenset({"memory", "standing", "record", "overhead", "tools", "reserve"})

Sections: TypeAlias = "Sequence[Section | Json]"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a section may take of one budget, in tokens: `minimum` is its own, `share` it may count on.

    A minimum that was given in tokens is `required`: where it does not fit there is no context. What is `cut` is then
    cut to the minimum, which no budget changes.
    """

    minimum: int
    share: int
    maximum: int
    priority: int = 0
    required: bool = False
    cut: bool = False

    @property
    def longest(self) -> int | None:
        """The tokens to which a minimum in tokens has long pieces cut; None without one."""
        return self.minimum if self.required else None


def allowances(sections: Sequence[Section], room: int) -> dict[str, Allowance]:
    """Return what each section may take of so many tokens, the built-in ones included."""
    known = {name: Section(name) for name in WEIGHTS} | {section.name: section for section in sections}
    least = {name: _tokens(section.minimum, room) for name, section in known.items()}
    weights = {name: _weight(section, room) for name, section in known.items()}
    rest = max(0.0, room - sum(least.values())) / max(1.0, sum(weights.values()))
    found = {}
    for name, section in known.items():
        most = room if section.maximum is None else int(_tokens(section.maximum, room))
        share = min(most, int(least[name] + rest * weights[name] + 1e-6))  # rounding lets none fall as the room grows
        required = isinstance(section.minimum, int) and section.minimum > 0
        found[name] = Allowance(int(least[name]), share, most, section.priority, required, section.cut)
    return found


def _weight(section: Section, room: int) -> float:
    if section.weight is not None:
        return section.weight
    weight = WEIGHTS.get(section.name, ADDED)
    if section.name not in FOR_THE_QUESTION or room <= WHOLE:
        return weight
    if section.name == HITS and room < FLAT:
        return weight * (1 - (1 - WHOLE / FLAT) * (room - WHOLE) / (FLAT - WHOLE))
    return weight * WHOLE / min(room, math.sqrt(room * FLAT))


def _tokens(amount: Amount, room: int) -> float:
    return amount if isinstance(amount, int) else amount * room


def read_sections(given: Sections) -> tuple[Section, ...]:
    """Return sections from sections or JSON objects. Raises `InvalidInput`, which says what to give instead."""
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"sections={given!r:.60}: give a list of sections.")
    made = tuple(_check(_to_section(one)) for one in given)
    if len(made) > MOST:
        raise InvalidInput(f"{len(made)} sections are more than the {MOST} that a context may have.")
    names = [section.name for section in made]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidInput(f"The section {', '.join(sorted(twice))} is given twice; say everything about it in one.")
    _check_sum(made)
    return made


def merge_sections(kept: Sequence[Section], given: Sequence[Section]) -> tuple[Section, ...]:
    """Return the sections kept with a conversation, those that are given for this context in place of theirs."""
    found = tuple(({one.name: one for one in kept} | {one.name: one for one in given}).values())
    _check_sum(found)
    return found


def as_json(given: Sections) -> list[Json]:
    """Return sections as settings keep them."""
    return [section.as_dict() for section in read_sections(given)]


def _to_section(one: object) -> Section:
    if isinstance(one, Section):
        return one
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        raise InvalidInput(f'{one!r:.60} is no section: give Section("facts", maximum=0.1) or {{"name": "facts", …}}.')
    known = [field.name for field in fields(Section)]
    if unknown := set(one) - set(known):
        raise InvalidInput(f"A section has no {', '.join(sorted(map(str, unknown)))}; it has {', '.join(known)}.")
    return Section(**one)


def _check(section: Section) -> Section:
    name = section.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        raise InvalidInput(
            f"{name!r:.60} is no name of a section: small letters, digits, - and _, and no word of ours."
        )
    if name in ALWAYS:
        raise InvalidInput(f"The section {name!r} is always in, whole; it takes no limits.")
    if (name in WEIGHTS) != (section.text is None):
        raise InvalidInput(
            f"The section {name!r} has its own content; leave out its text."
            if name in WEIGHTS
            else f"There is no section {name!r}: give it a text, or one of {', '.join(WEIGHTS)}."
        )
    _check_limits(section)
    _check_texts(section)
    return section


def _check_limits(section: Section) -> None:
    name, least, most = section.name, section.minimum, section.maximum
    for what, amount in (("minimum", least), ("maximum", most)):
        if not _is_amount(amount) and not (amount is None and what == "maximum"):  # without one there is no limit
            raise InvalidInput(
                f"{name}: {what}={amount!r}: give tokens (a whole number) or a share of the room (0.0 to 1.0)."
            )
    if most is not None and type(least) is type(most) and least > most:
        raise InvalidInput(f"{name}: the minimum {least} is more than the maximum {most}.")
    if section.weight is not None and not (_is_number(section.weight) and 0 <= section.weight <= 1000):
        raise InvalidInput(f"{name}: weight={section.weight!r}: give a number from 0 to 1000.")
    if type(section.priority) is not int:
        raise InvalidInput(f"{name}: priority={section.priority!r}: give a whole number, the higher the sooner.")
    for what, flag in (("steady", section.steady), ("cut", section.cut)):
        if type(flag) is not bool:
            raise InvalidInput(f"{name}: {what}={flag!r}: give True or False.")


def _check_texts(section: Section) -> None:
    if section.text is None:
        return
    if not isinstance(section.text, str | list | tuple) or len(section.texts) > MOST_TEXTS:
        raise InvalidInput(
            f"{section.name}: text={section.text!r:.60}: give a text, or a list of at most {MOST_TEXTS}."
        )
    for text in section.texts:
        check_text(text, f"a text of the section {section.name!r}")


def _check_sum(sections: Sequence[Section]) -> None:
    """Shares that are promised must not be more than there is; tokens are seen once there is a budget."""
    together = sum(section.minimum for section in sections if isinstance(section.minimum, float))
    if together > 1.0:
        raise InvalidInput(f"The minimums of {', '.join(s.name for s in sections)} are {together:.2f} of the room.")


def _is_amount(amount: Any) -> bool:
    if type(amount) is int:
        return amount >= 0
    return type(amount) is float and 0.0 <= amount <= 1.0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
