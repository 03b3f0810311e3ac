"""Slots: an attribute of somebody and its value, by which one statement can end another. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from memstore.language import word_set
from memstore.models import FactColumns

# Attributes of one value at a time: who lives in Cork no longer lives in Porto.
SINGLE = word_set("residence job employer phone email address age name birthday partner")
# The root of the slot of a value that protects somebody, by the reader's attribute.
GUARDED = {"allergy": "allergy", "condition": "health", "medicine": "medication", "diet": "diet"}
READER_RECIPE_PREFIX = "reader/"
_ARTICLE = re.compile(
    r"^(?:to|against|gegen|an?|the(?! pill)|some|any|my|our|all|every|raw|being|der|die|das|den|dem|eine?n?|meine?n?"
    r"|unsere?n?)(?= )"
    r"|(?<=\w\w) (?:tablet|capsule|tablette|kapsel)[ns]?$"
    r"|(?<=\w\w)-?(?:allergien?|allergiker(?:in)?|intoleran(?:z|zen|t)|unverträglichkeit)$",
    re.IGNORECASE,
)


class Slot(NamedTuple):
    """An attribute with its value, in lower case. With `many` several values hold at once."""

    attribute: str
    value: str
    many: bool


def root_of(attribute: str | None) -> str:
    """Return the first part of an attribute: "allergy" of "allergy/peanut"; "" for none."""
    return (attribute or "").partition("/")[0]


def holds_many(attribute: str) -> bool:
    """Whether several values hold at once, and only yes and no exclude each other: "allergy/peanut" is "yes"."""
    return root_of(attribute) in word_set(
        "allergy intolerance eats avoid restriction health condition pregnancy former language relative pet smoking"
        " drinking likes task decision instruction caution"
    )


def slot_of_fact(fact: FactColumns) -> Slot | None:
    """Return the slot of a stored fact. Of what the reader tells it is only what protects somebody."""
    if fact.attribute is None or fact.value is None:
        return None
    if fact.recipe.startswith(READER_RECIPE_PREFIX) and root_of(fact.attribute) not in GUARDED.values():
        return None
    return Slot(fact.attribute, fact.value, fact.value in ("yes", "no") or holds_many(fact.attribute))


def protection(root: str, thing: str, *, holds: bool) -> Slot:
    """Return the slot of what protects somebody, or of that it does not: "allergy/peanut" is "yes" or "no"."""
    key = re.sub(r"(?<=\w\w\w)(?<![suié])(?<!diabete)s$", "", without_article(thing.casefold()))
    return Slot(f"{root}/{key}", "yes" if holds else "no", many=True)


def without_article(words: str) -> str:
    words = " ".join(words.split()).strip(" '\"*_-.,")
    for _ in range(2):
        words = _ARTICLE.sub("", words).strip()
    return words
