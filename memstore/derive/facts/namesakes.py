"""Facts of one and the same that have other subjects: "Lily" is "Alice's daughter Lily", "Momo" her cat. Pure.

A bare name is somebody's kin only where one kin of that name is known: of a daughter and a friend called Lily neither
is meant for sure. Whose kin have names that differ are two, as two daughters are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from memstore.derive.facts.linked import PARTED, as_written
from memstore.derive.rules.slots import FORMER, Slot

LIFE = f"{FORMER}life"  # the attribute of a death
_PETS = ("pet/", "petname/")


def _words(text: str) -> list[str]:
    return text.split()


_PARTNERS = _words(
    "husband wife spouse partner boyfriend girlfriend fiancé fiancée fiance fiancee mann frau freund freundin partnerin"
)
_ANIMALS = _words("dog cat puppy kitten rabbit hamster horse parrot hund katze")
_KIN = _ANIMALS + _words(
    "daughter son child kid baby stepson stepdaughter mother mom mum father dad sister brother aunt uncle cousin niece"
    " nephew grandma grandpa grandmother grandfather granddaughter grandson friend ex flatmate roommate boss manager"
    " colleague teacher neighbour neighbor tochter sohn kind mutter mama vater papa schwester bruder tante onkel nichte"
    " neffe oma opa cousine chef chefin kollege kollegin"
)
_BARE = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'-]{1,40}")
_PARTED = re.compile(rf"(?P<name>{_BARE.pattern}) (?:and|und) ")


class Told(NamedTuple):
    """A fact as far as it says whom it is about."""

    subject: str
    text: str
    type: str
    attribute: str | None
    value: str | None


def told(text: str, type: str, subject: str, slot: Slot | None) -> Told:
    """Give a fact that comes in, with its slot, if any."""
    return Told(subject, text, type, slot.attribute if slot else None, slot.value if slot else None)


class Beside(NamedTuple):
    """Where else facts may stand that a new one has to do with: of these subjects, with this name in their text."""

    subjects: list[str]
    name: str


def beside(new: Told, speaker: str) -> Beside | None:
    """Say where to look for facts of other subjects; None where there are none. `speaker` is who says the new one."""
    if new.attribute is None or not speaker:
        return None
    name = _name(new) or _partner(new)
    if name is not None and name != speaker:
        kin = _kin(new.subject)
        own = [speaker] if new.attribute == LIFE or kin in _PARTNERS else []
        return Beside([name, *own, *_theirs(speaker, [*_KIN, *_PARTNERS])], name)
    if new.subject != speaker:
        return None
    pet = _called(new.text) if new.attribute.startswith(_PETS) else None
    if pet is not None:
        return Beside([pet, *_theirs(speaker, _KIN)], pet)
    left = _left(new)
    return Beside(_theirs(speaker, _PARTNERS), left) if left else None


def alike(new: Told, known: Iterable[Told]) -> set[str]:
    """Give the subjects besides its own whose facts of the new one's name are about it, all or none of them."""
    name = _name(new)
    if name is None:
        return set()
    kin = {one.subject for one in known if _kin(one.subject) and _name(one) == name}
    kin |= {new.subject} if _kin(new.subject) else set()
    return {*kin, name} if len(kin) == 1 else set()


def is_of(one: Told, new: Told, subjects: set[str]) -> bool:
    """Whether a known fact is about whom the new one is about; `subjects` are what `alike` gave."""
    names = _name(one), _name(new)
    if one.subject.casefold() == new.subject.casefold():
        return None in names or names[0] == names[1]
    return one.subject in subjects and names[0] == names[1]


def parts(later: Told, earlier: Told, known: Iterable[Told]) -> bool:
    """Whether what is said later ends what another subject was: a husband by a divorce, a cat by its death.

    A pet is not meant for sure where one of the kin among the `known` has its name.
    """
    if later.attribute == LIFE:
        pet = (earlier.attribute or "").startswith(_PETS)
        name = _name(later)
        if not pet or name is None or _called(earlier.text) != name:
            return False
        return not any(_kin(one.subject) and _kin(one.subject) not in _ANIMALS and _name(one) == name for one in known)
    owner, _, kin = earlier.subject.rpartition("'s ")
    name = _left(later)
    if owner != later.subject or kin.casefold() not in _PARTNERS or name is None or earlier.type == "constraint":
        return False
    return name in (_name(earlier), _partner(earlier))


def is_another_pet(attribute: str, text: str, earlier: str) -> bool:
    """Whether a pet of the kind that `attribute` tells is called otherwise than the one in an earlier text."""
    kind, name = attribute.rpartition("/")[2], _called(earlier)
    found = re.search(rf"(?<!\w)(?i:{re.escape(kind)}) ({_BARE.pattern})(?!\w)", text)
    return name is not None and found is not None and found[1] != name


def _left(new: Told) -> str | None:
    """Give the name of whom somebody is no longer with, as their text writes it."""
    if new.attribute == f"{FORMER}partner" and new.value:
        return as_written(new.value, new.text)
    if new.attribute == "marital_status" and new.value in PARTED:
        paired = _PARTED.match(new.text)
        return paired["name"] if paired and paired["name"] != new.subject else None
    return None


def _kin(subject: str) -> str:
    return subject.rpartition("'s ")[2].casefold() if "'s " in subject else ""


def _theirs(speaker: str, kin: list[str]) -> list[str]:
    """Give what somebody's kin are called as subjects, in German with a capital."""
    return [f"{speaker}'s {form}" for one in kin for form in (one, one.capitalize())]


def _name(one: Told) -> str | None:
    """Give the name of whom a fact is about, if it is no more than a name, or stands behind what they are."""
    kin = _kin(one.subject)
    if not kin:
        return one.subject if _BARE.fullmatch(one.subject) else None
    found = re.search(rf"(?<!\w)(?i:{re.escape(kin)}),? ({_BARE.pattern})(?!\w)", one.text)
    return found[1] if found and not found[1].endswith("'s") else None


def _partner(one: Told) -> str | None:
    """Give the name that a fact tells of somebody's partner: "my girlfriend is called Anna"."""
    if one.attribute != "name" or not one.value or _kin(one.subject) not in _PARTNERS:
        return None
    return as_written(one.value, one.text)


def _called(text: str) -> str | None:
    found = re.search(rf"\b(?:called|named|is|heißt|namens) ({_BARE.pattern})(?!\w)", text)
    return found[1] if found else None
