"""Slots and how they are rendered: an attribute of somebody with its value, and the sentence that says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from babel import Locale

from memstore.derive.rules.pack import Language, Rule, SlotType, language, slot_types

FORMER = "former/"  # an attribute of what has ended: "former/residence" is "berlin"
PLACES = frozenset(["residence", "hometown"])
COUNTRY = "/country"  # the end of an attribute that holds a country which somebody has not moved to, but is in
_LANGUAGES = ("en", "de", "fr", "es", "zh")
_EVERYDAY = (
    "usa|us|u.s.|states|america|uk|u.k.|britain|great britain|england|scotland|wales|northern ireland|holland|czech"
    " republic|amerika|großbritannien|england|schottland|nordirland|tschechien|angleterre|écosse|pays de galles"
    "|grande-bretagne|amérique|hollande|inglaterra|escocia|gales|gran bretaña|ee. uu.|holanda|英格兰|苏格兰"
)
# Names of towns too: Granada in Spain is no Grenada.
_TOWNS = "granada|singapore|singapur|singapour|新加坡|monaco|gibraltar|luxembourg|luxemburg|luxemburgo"
_BESIDE = frozenset(["job", "employer"])  # of which somebody may have another "as well"


class Modality(StrEnum):
    """How a value is said to hold."""

    HOLDS = "holds"
    ENDED = "ended"
    CORRECTS = "corrects"


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute with its value. With `many` several values hold at once, and only yes and no exclude each other.

    A value is in lower case, without articles. An ended one has the attribute "former/…"; its value may be empty: "I
    quit my job".
    """

    attribute: str
    value: str
    many: bool
    modality: Modality


class SlotMention(NamedTuple):
    """A slot that the characters `start` to `stop` of a message fill, in the words of the slot's template."""

    start: int
    stop: int
    slot: Slot
    type: str
    subject: str
    text: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None


class Subject(NamedTuple):
    """Whom a clause is about: the speaker, or somebody of theirs, or somebody named."""

    name: str  # as facts name them
    full_name: str  # with a name behind what they are: "Alice's sister Maria"
    third: bool


class Reading(NamedTuple):
    """A match of a rule: subject, attribute, value, and the clause that says it."""

    rule: Rule
    subject: Subject
    value: str  # as it was said
    thing: str  # the thing it is of, or that is yes or no
    over: bool  # it has ended, or is not so
    corrects: bool
    clause: str
    place: tuple[int, int]
    said_at: datetime


def slot_of(attribute: str) -> SlotType:
    """Return what is known of the slot of an attribute, ended or not."""
    root = attribute.removeprefix(FORMER).split("/")[0]
    return slot_types()["plan" if root == "appointment" else root]


def holds_many(attribute: str) -> bool:
    """Whether several values of an attribute hold at once, if only its name is known."""
    root = attribute.split("/")[0]
    return attribute.startswith(FORMER) or (root in slot_types() and slot_types()[root].many)


def fill(said: Reading, lang: Language) -> SlotMention:
    """Return what is caught as the slot that it fills."""
    rule, slot = said.rule, said.rule.slot
    attribute, thing, value = slot.name, said.thing, canonical(said.value, lang)
    if thing:
        key = (
            thing.casefold()
            if rule.verbatim or thing == rule.thing
            else lang.patterns["plural"].sub("", thing.casefold())
        )
        attribute = _plan_attribute(key, lang) if slot.name == "plan" else f"{slot.name}/{key}"
    many = slot.many or (slot.name in _BESIDE and bool(lang.patterns["also"].search(said.clause)))
    instead = lang.patterns["instead"].search(said.clause) is not None
    moves = rule.moves or (slot.name == "plan" and instead)
    modality = Modality.CORRECTS if said.corrects or moves else Modality.HOLDS
    if slot.many and not (slot.former and said.over):
        value = "no" if said.over else "yes"
    elif said.over:
        attribute, many, modality = f"{FORMER}{attribute}", True, Modality.ENDED
    if attribute in PLACES and is_country(value) and not rule.moves:  # who moves to a country has left the town
        attribute += COUNTRY
    over = said.over or value == "no"
    text = render(slot, lang, said.subject.full_name, said.value, thing, over=over, text=rule.text)
    begins, ends = _validity(said.clause, said.said_at, lang)
    filled = Slot(attribute, value, many, modality)
    return SlotMention(*said.place, filled, slot.type, said.subject.name, text, begins, ends)


def render(
    slot: SlotType, lang: Language, who: str, value: str, thing: str, *, over: bool = False, text: str = ""
) -> str:
    """Return a fact in the words of its slot, or of `text`: as it holds, as it is over, over without a value."""
    texts: Sequence[str] = (text,) if text else lang.texts.get(slot.name) or language("en").texts[slot.name]
    number = (2 if not value and not thing else 1) if over else 0
    if who == "The user":
        who = str(lang.data["user"])
    elif who.startswith("The user's ") and "theirs" in lang.data:
        who = str(lang.data["theirs"]).format(who.removeprefix("The user's "))
    shown = lang.patterns["shown"].sub("", value).strip(" .")
    sentence = texts[min(number, len(texts) - 1)].format(who=who, v=shown, t=thing)
    return sentence[0].upper() + sentence[1:]


def canonical(value: str, lang: Language) -> str:
    """Return a value in lower case without its articles, and of two words for one thing always the same."""
    value = without_article(" ".join(value.casefold().split()), lang)
    return str(lang.data.get("synonyms", {}).get(value, value))


def without_article(words: str, lang: Language) -> str:
    """Return what is named, without what stands around it."""
    words = words.replace(" 's", "'s").strip(" '\"*_-.,")
    for _ in range(2):
        words = lang.patterns["article"].sub("", words).strip()
    return words


def _plan_attribute(key: str, lang: Language) -> str:
    """Return the attribute of an event: "dentist appointment" is appointment/dentist, "exam" is plan/exam."""
    appointment = lang.patterns["appointment"]
    if appointment.search(key):
        return f"appointment/{appointment.sub('', key).strip() or 'any'}"
    return f"plan/{key}"


def _validity(clause: str, said_at: datetime, language: Language) -> tuple[datetime | None, datetime | None]:
    """Return since and until when a clause says that it holds, from the few forms that say it for certain.

    "Since March 2024" and "until 5 June 2026" say it; "last spring" does not. A wrong date is worse than none.
    """
    begins = _first_moment(language.patterns["since"].search(clause), language, said_at)
    until = language.patterns["until"].search(clause)
    ends = _first_moment(until, language, said_at)
    if ends is not None and until and until["day"]:  # with the day, and with the beginning of a month or a year
        ends += timedelta(days=1)
    if begins is not None and begins > said_at:
        begins = None
    if ends is not None and ends <= said_at:
        ends = None
    return begins, ends


def _first_moment(found: re.Match[str] | None, language: Language, said_at: datetime) -> datetime | None:
    """Return the beginning of the day, month or year that is named."""
    if found is None:
        return None
    named = found.groupdict()
    months = {name: number for number, name in enumerate(language.data["months"].split(), 1)}
    year = int(named["year"]) if named.get("year") else said_at.year
    month = months.get(named["month"].casefold(), 0) if named.get("month") else 1  # 0 for "Aprıl", which is none
    day = int(named["day"]) if named.get("day") else 1
    try:
        return datetime(year, month, day, tzinfo=said_at.tzinfo or UTC)
    except ValueError:  # 31 June, or no month
        return None


# "I live in Germany" takes nothing from "I live in Berlin", it is only less exact. The names are those of the Unicode
# CLDR, by Babel, in the languages that slots are read in, and a few of everyday use. Which town lies in which country
# is not known here: that takes a gazetteer of tens of megabytes.
def is_country(value: str) -> bool:
    """Whether a value, in lower case without an article, is the name of a country or of a continent."""
    return value in _countries()


@cache
def _countries() -> frozenset[str]:
    names = {name.casefold() for language in _LANGUAGES for name in Locale(language).territories.values()}
    return frozenset({*names, *_EVERYDAY.split("|")} - {*_TOWNS.split("|")})
