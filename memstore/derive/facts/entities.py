"""The subjects of facts: which names are one person or thing, by name and by kinship. Pure.

"Lily" may be "Alice's daughter Lily", and "Momo" her cat. A bare name is a relative only if one relative of that name
is known: with a daughter and a friend called Lily, neither is sure. Relatives with different names are two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import numpy as np

from memstore import ids
from memstore.derive.facts.drafts import UNNAMED_SPEAKERS
from memstore.derive.facts.normalization import STEM_LETTERS, plain
from memstore.derive.facts.slots import root_of
from memstore.language import LETTERS, load_words
from memstore.models import FactColumns, KnownFact, Message, Role
from memstore.providers import Vectors
from memstore.store.tokenize import terms

PARTNERS = load_words("partners")
ANIMALS = load_words("animals")
KIN = ANIMALS | load_words("kin")
_NAME = r"[A-ZÀ-ÖØ-Þ][\w'-]{1,40}"
_OWNED = re.compile(rf"'s (?P<kin>(?:(?!'s ).)+?)(?: (?P<name>{_NAME}))?$")
NAMELESS_WORDS = KIN | PARTNERS | {"the", "user", "assistant"}


class RelatedSubjects(NamedTuple):
    subjects: list[str]
    name: str


def related_subjects(fact: FactColumns, speaker: str) -> RelatedSubjects | None:
    name = _name(fact)
    if not speaker or name is None or name == speaker:
        return None
    kin = [f"{speaker}'s {form}" for word in KIN | PARTNERS for form in (word, word.capitalize())]
    return RelatedSubjects([name, *kin, *(f"{form} {name}" for form in kin)], name)


def same_subjects(fact: FactColumns, known_facts: Iterable[FactColumns]) -> set[str]:
    """Return the subjects besides a fact's own whose facts of its name are about it: all of them, or none."""
    name = _name(fact)
    if name is None:
        return set()
    kin = {each.subject for each in (fact, *known_facts) if _kinship(each.subject) and _name(each) == name}
    return {*kin, name} if len({subject.removesuffix(f" {name}") for subject in kin}) == 1 else set()


def is_same_entity(known_fact: FactColumns, fact: FactColumns, subjects: set[str]) -> bool:
    """Whether a known fact is about the subject of a new one; `subjects` are its `same_subjects`."""
    name, other = _name(fact), _name(known_fact)
    if known_fact.subject.casefold() == fact.subject.casefold():
        return name is None or other is None or name == other
    return known_fact.subject in subjects and name == other


def _kinship(subject: str) -> str:
    """Return what somebody is to another: "daughter" of "Alice's daughter" and of "Alice's daughter Mia"."""
    match = _OWNED.search(subject)
    return match["kin"].casefold() if match else ""


def _name(fact: FactColumns) -> str | None:
    """Return the name of a fact's subject, if that is only a name, or a name behind what they are ("my sister Ana")."""
    kinship = _kinship(fact.subject)
    if not kinship:
        return fact.subject if re.fullmatch(_NAME, fact.subject) else None
    if (owned := _OWNED.search(fact.subject)) and owned["name"]:
        return owned["name"]
    match = re.search(rf"(?<!\w)(?i:{re.escape(kinship)}),? ({_NAME})(?!\w)", fact.text)
    return match[1] if match and not match[1].endswith("'s") else None


THE_USER = UNNAMED_SPEAKERS[Role.USER]


def find_user_name(messages: Iterable[Message], known_facts: Iterable[KnownFact]) -> str:
    names = {message.name for message in messages if message.role == Role.USER}
    for known_fact in known_facts:
        fact, speaker = known_fact.fact, known_fact.speaker
        if speaker and fact.subject.partition("'s ")[0] == speaker:
            names.add(speaker)
        if fact.attribute == "name" and fact.value == fact.subject:
            names.add(fact.value)
    names.discard(None)
    return str(*names) if len(names) == 1 else ""


def is_own_name(name: str, user: UUID, known_facts: Iterable[KnownFact]) -> bool:
    """Whether a name is surely the user's, and no guest's: they are called so, or have said so without a name."""
    is_called = bool(name) and user in [ids.user_id(form) for form in (name, name.casefold(), name.title())]
    return is_called or any(each.fact.text == say_name(name) and not each.speaker for each in known_facts)


def say_name(name: str) -> str:
    return f"{THE_USER}'s name is {name}."


def name_user(subject: str, user: str) -> str:
    named = re.match(r"(?:the )?user(?=$|['’]s )", subject, re.IGNORECASE)
    return (user or THE_USER) + subject[named.end() :] if named else subject


def owner_of(subject: str) -> str:
    """Return the owner of a subject ("Alice" of "Alice's cat"), or the subject, in small letters."""
    return subject.partition("'s ")[0].casefold()


def is_somebodys(subject: str) -> bool:
    """Whether a subject is somebody or something of another: "Alice's cat"."""
    return owner_of(subject) != subject.casefold()


def may_mean(known_subject: str, subject: str, text: str) -> bool:
    """Whether a statement about a subject may be about a known one: of one owner, or named in it."""
    names = set(re.findall(r"[^\W\d_]{3,}", known_subject.rpartition("'s ")[2].casefold())) - NAMELESS_WORDS
    return owner_of(known_subject) == owner_of(subject) or any(
        re.search(rf"(?<!\w){re.escape(name)}s?(?!\w)", f"{subject} {text}", re.IGNORECASE) for name in names
    )


def may_tell_of(subject: str, text: str) -> bool:
    """Whether a text may tell of a subject: of a relative by their name, or by what they are where they have none."""
    _, of_relative, who = subject.rpartition("'s ")
    words = set(LETTERS.findall(who.casefold()))
    return not of_relative or not (words - NAMELESS_WORDS or words).isdisjoint(LETTERS.findall(text.casefold()))


def is_thing(subject: str) -> bool:
    """Whether a subject is something of somebody's, such as "Ada's team", and neither kin nor an animal."""
    return _kinship(subject) not in ("", *KIN, *PARTNERS)


def is_relative(subject: str, owner: str) -> bool:
    """Whether a subject is kin, a partner or an animal of an owner: "Ada's best friend Mia" of Ada."""
    return owner_of(subject) == owner.casefold() and _kinship(subject).rpartition(" ")[2] in KIN | PARTNERS


def find_introduction(name: str, text: str) -> re.Match[str] | None:
    """Return the match of "my name is …"; its first group is the name."""
    introduction = (
        r"\b(?:I['’]m|I am|my name is|call me|ich bin|ich heiße|mein name ist|je m['’]appelle|je suis|c['’]est"
        rf"|me llamo|soy|mi nombre es) ({re.escape(name)})\b(?!['’]s\b| (?:qui|que)\b)"
    )
    return re.search(introduction, text, re.IGNORECASE)


# Capitalised, and no names.
_CALENDAR = load_words("weekdays", "en") | load_words("short_weekdays") | load_words("months", "en") | {"sat", "sun"}


def find_strange_name(text: str, names: str, said: str, spoken: str) -> str | None:
    """Return a capitalised word that was not said in any form: one of `names`, or of the sentence after its first word.

    German (`spoken` is "de") capitalises each noun: of its sentences only words after a title or a kinship count.
    """
    words = LETTERS.findall(text)
    titles = KIN | PARTNERS | load_words("before_names")
    inner = [word for before, word in pairwise(words) if spoken != "de" or before.casefold() in titles]
    stems = {word[:STEM_LETTERS] for word in LETTERS.findall(plain(said.casefold()))}
    capitalised: list[str] = [word for word in (*LETTERS.findall(names), *inner) if word[0].isupper()]
    for word in capitalised:
        folded = word.casefold()
        is_usual = len(word) < 3 or folded in NAMELESS_WORDS or folded in _CALENDAR
        translated = (names for names in (load_words("tongues"), load_words("feasts")) if folded in names)
        is_translated = any(name in said.casefold() for names in translated for name in names)
        if not (is_usual or is_translated or plain(folded)[:STEM_LETTERS] in stems):
            return word
    return None


MAX_KNOWN_FACTS, MAX_KNOWN_CHARS = 40, 2_000
MAX_SHOWN_CHARS = 300
SINGLE_ATTRIBUTES = frozenset(["residence", "employer", "job", "partner", "age"])
ALWAYS = frozenset(["answer_style", "diet", "allergy", "condition"])
NAME_ATTRIBUTES = ("residence", "employer")
_CHANGING = SINGLE_ATTRIBUTES | ALWAYS | frozenset(["phone", "email", "address", "school", "plan", "task", "decision"])
# All that the prompt names.
ATTRIBUTES = _CHANGING | {"medication", "appointment", "pet", "event", "likes", "dislikes"}


def choose_known(
    known_facts: Sequence[KnownFact], texts: Sequence[str], vectors: Sequence[Vectors | None]
) -> list[KnownFact]:
    """Return the known facts that a segment has most to do with, the nearest first.

    Lasting facts come first, and changeable ones about people who are named; then those nearest in meaning. A rare word
    that both have counts as well: "glad we left Dublin" is near to no fact.
    """
    said = " ".join(texts).casefold()
    said_terms, said_words = terms(said).keys(), set(LETTERS.findall(said))
    own_terms = [terms(each.fact.text).keys() - terms(each.fact.subject).keys() for each in known_facts]
    frequencies = Counter(term for fact_terms in own_terms for term in fact_terms)
    rare = {term for term in said_terms if frequencies[term] <= max(2, 0.03 * len(known_facts))}
    named = {each.fact.id for each, fact_terms in zip(known_facts, own_terms, strict=True) if fact_terms & rare}
    asked = [vector / (np.linalg.norm(vector) or 1) for vector in vectors if vector is not None]

    def weigh(known_fact: KnownFact) -> float:
        cosine = 0.0
        if known_fact.vector is not None and asked and len(known_fact.vector) == len(asked[0]):
            direction = known_fact.vector / (np.linalg.norm(known_fact.vector) or 1)
            cosine = max(float(direction @ vector) for vector in asked)
        fact = known_fact.fact
        who = fact.subject.rpartition("'s ")[2].rpartition(" ")[2].casefold()
        root = root_of(fact.attribute)
        weight = cosine + 0.4 * (fact.subject != known_fact.speaker and len(who) > 2 and who in said_words)
        weight += 0.25 * (fact.id in named)
        weight += 0.3 * (fact.type == "constraint" or root in ALWAYS)
        weight += 0.15 * (root in _CHANGING or root in ("medication", "appointment", "pet"))
        # What has happened is rarely ended.
        return weight - 0.2 * (fact.type == "event")

    chosen, room = list[KnownFact](), MAX_KNOWN_CHARS
    for known_fact in sorted(known_facts, key=lambda known_fact: (-weigh(known_fact), known_fact.fact.id)):
        size = min(len(known_fact.fact.text), MAX_SHOWN_CHARS)
        if size <= room and len(chosen) < MAX_KNOWN_FACTS:
            chosen.append(known_fact)
            room -= size
    return chosen
