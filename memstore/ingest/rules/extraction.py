"""Facts by rule, without a model: what people say of themselves and their world, each told so that it stands alone.

message -> sentences -> statements                                                 statements.py
statement -> the third person, with who is meant and when      standalone.py, answers.py, dates.py
          -> a type and a confidence                                               reading.py
          -> a worth; those above the operating point become facts                 worth.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from memstore.ingest.rules import german
from memstore.ingest.rules.answers import joined_answer, last_question
from memstore.ingest.rules.asides import closed_up
from memstore.ingest.rules.dangling import dangles
from memstore.ingest.rules.dates import anchor
from memstore.ingest.rules.drafts import MOST_SENTENCES, FactDraft, Said
from memstore.ingest.rules.reading import Reading, instructed, loosely, precisely
from memstore.ingest.rules.standalone import Standing, Talk, long_forms, stand_alone, trimmed
from memstore.ingest.rules.statements import Clause, assertions, clauses_of, is_english, sentences_of, without_lead_in
from memstore.ingest.rules.thirdperson import is_present
from memstore.ingest.rules.until import ends
from memstore.ingest.rules.worth import ANSWER, OPERATING_POINT, SURE, needs_antecedent, of_statement, ranked
from memstore.models import kind_of
from memstore.store.terms import terms

__all__ = ["OPERATING_POINT", "FactDraft", "Said", "extract"]

ALONE = 0.9  # confidence from which a clause is a fact of its own, whatever else its sentence says
STANDING = frozenset({"constraint", "identity", "relationship", "procedure"})
ANSWERED = Reading("event", 0.5, None, past=True)
ALIKE = 0.8  # share of stems that two statements of one message have in common when they say the same
LOOKED_BACK = 50  # statements, so that the time of a long message grows with its length only
MOST_WORDS, MOST_JOINED = 60, 16
NEAR = 40  # characters between two sentences that are joined: what was between them was "Yeah!"
_OUR = re.compile(r"\bour\b")
# How something felt, and not what it does: "Spiders scare me" is a fact.
_IDIOM = re.compile(
    r"(?!(?:my|our|I|we)\b)(?:[\w'-]+ ){1,3}(?:gets?|got|kills?|killed|slays?|slayed) (?:me|us)", re.IGNORECASE
)
_DETERMINERS = frozenset(("a", "an", "the", "my", "our", "some", "this", "these"))


@dataclass(frozen=True, slots=True)
class _Candidate:
    draft: FactDraft
    worth: float
    plain: str = ""  # the speaker's words, of a statement that may be joined


@dataclass(frozen=True, slots=True)
class _Message:
    said: Said
    talk: Talk


def extract(said: Said, before: Sequence[Said] = (), *, worth: float = OPERATING_POINT) -> list[FactDraft]:
    """Give the facts that a message says, in its order, each once; none for any role but "user".

    `before` are up to three messages before it, the newest last: they say whom "you" means and what a short answer
    answers. `worth` is the least that a statement must be worth, from 0 (everything that is stated) to 1; what a rule
    is sure of and what stays true (an allergy, a name) is given at any worth. English is read, and the commonest forms
    of German. The same arguments always give the same facts, and no text raises an error.
    """
    if said.role != "user":
        return []
    message = _Message(said, _talk(said, before))
    found = list(_distinct(_with_antecedents(_candidates(message), message.talk)))
    worths = ranked([one.worth for one in found])
    return [one.draft for one, value in zip(found, worths, strict=True) if value >= worth]


def _talk(said: Said, before: Sequence[Said]) -> Talk:
    """Say who speaks to whom: "you" is known where every message before is by the speaker or one other named person."""
    others = {one.speaker if one.role == "user" else None for one in before} - {said.speaker}
    partner = others.pop() if said.speaker and len(others) == 1 else None
    last = before[-1] if before else None
    asked = last_question(last.stated) if last and partner and last.speaker == partner else None
    return Talk(said.speaker, partner, asked)


def _candidates(message: _Message) -> Iterator[_Candidate]:
    heard, spoken = list(islice(sentences_of(message.said.stated), MOST_SENTENCES)), False
    for sentence in heard:
        if german.is_german(sentence.text):
            for clause, reading in german.read(sentence):
                yield _verbatim(clause, reading, message, "de")
            continue
        if not is_english(sentence.text):
            continue
        joined = None if spoken else joined_answer(sentence.text, message.talk, alone=len(heard) == 1)
        spoken = spoken or len(without_lead_in(sentence.text).split()) > 2
        if joined:
            yield _Candidate(_draft(joined, sentence, ANSWERED, message), ANSWER)
            continue
        for statement in assertions(sentence, _stands_alone, assisted=message.talk.partner is None):
            candidate = _of_statement(statement, message)
            if candidate:
                yield candidate


def _stands_alone(clause: str) -> bool:
    words = _plain(clause)
    reading = precisely(words)
    return instructed(words) is not None or (reading is not None and _is_sure(reading))


def _plain(words: str) -> str:
    return closed_up(trimmed(long_forms(words)))


def _is_sure(reading: Reading) -> bool:
    return reading.confidence >= ALONE and reading.type in STANDING


def _of_statement(statement: Clause, message: _Message) -> _Candidate | None:
    words = _plain(without_lead_in(statement.text))
    instruction = instructed(words)
    if instruction:
        return _verbatim(replace(statement, text=words), instruction, message, "en")
    standing = stand_alone(statement.text, message.talk)
    if standing is None:
        return None
    rule = next(filter(None, map(precisely, [standing.plain, *clauses_of(standing.plain)])), None)
    if not _is_believed(standing, message.talk, rule):
        return None
    if message.talk.partner is None and not (rule and _is_sure(rule)) and dangles(standing.plain):
        return None
    reading = rule or loosely(standing.plain)
    if standing.left_out or standing.of_us:
        reading = reading._replace(confidence=round(reading.confidence - 0.1, 2))
    worth = SURE if rule and _is_sure(rule) else of_statement(standing, message.talk, rule.confidence if rule else 0.0)
    told = standing.plain if not standing.named and reading.about else standing.text  # "Tom hates mushrooms"
    return _Candidate(_draft(told, statement, reading, message), worth, standing.plain)


def _is_believed(standing: Standing, talk: Talk, rule: Reading | None) -> bool:
    """Whether a statement is the speaker's own: to an assistant one says "you" in requests, and much is pasted."""
    shortest = 2 if rule is not None and rule.about is not None else 3  # "Bruno died."
    if not shortest <= len(standing.plain.split()) <= MOST_WORDS or standing.plain == f"I am {talk.speaker}":
        return False
    first, _, rest = standing.plain.partition(" ")
    if talk.partner is None and is_present(first) and rest.split(" ")[0].lower() in _DETERMINERS:
        return False  # "Visit my parents in June": a command, or a note of one
    if talk.partner is None and rule is None and _IDIOM.fullmatch(standing.plain):
        return False  # "The orange got me"
    own = standing.named or (rule is not None and rule.about is not None)
    return talk.partner is not None or (own and not standing.to_you)


def _verbatim(clause: Clause, reading: Reading, message: _Message, language: str) -> _Candidate:
    anchored, begins = anchor(closed_up(clause.text), message.said.occurred_at, past=reading.past)
    text = f'{message.talk.subject}: "{anchored[0].upper()}{anchored[1:]}."'
    return _Candidate(_made(text, clause, reading, message, begins, language), SURE)


def _draft(text: str, place: Clause, reading: Reading, message: _Message) -> FactDraft:
    past = reading.past and reading.type != "plan"
    anchored, begins = anchor(text, message.said.occurred_at, past=past)
    return _made(f"{anchored}.", place, reading, message, begins, "en")


def _made(
    text: str, place: Clause, reading: Reading, message: _Message, begins: datetime | None, language: str
) -> FactDraft:
    # A plan holds from the moment it is told, whatever the day it is for.
    if begins is not None and (begins > message.said.occurred_at or reading.type in ("plan", "goal")):
        begins = None
    told = message.said.text[place.start : place.stop]
    lasts = not reading.past and reading.type not in ("plan", "goal")
    until = ends(told, message.said.occurred_at, language, passing=False) if lasts else None
    kin = reading.about is not None and reading.about.startswith("'s ")
    subject = f"{message.talk.subject}{reading.about}" if kin else reading.about or message.talk.subject
    return FactDraft(
        text=text,
        type=reading.type,
        kind=kind_of(reading.type),
        subject=subject,
        confidence=reading.confidence,
        language=language,
        start=place.start,
        stop=place.stop,
        valid_from=begins,
        valid_to=until,
    )


def _with_antecedents(candidates: Iterable[_Candidate], talk: Talk) -> Iterator[_Candidate]:
    """Put a short "It's …" behind the short statement before it: what "it" is stands there."""
    last: _Candidate | None = None
    for one in candidates:
        if last and _belongs(one, last):
            told = _OUR.sub(f"{talk.inside}'s", one.draft.text.removeprefix(f"{talk.subject}: "))
            draft = replace(last.draft, text=f"{last.draft.text} {told}", stop=one.draft.stop)
            last = replace(last, draft=draft, worth=max(last.worth, one.worth))
            continue
        if last:
            yield last
        last = one
    if last:
        yield last


def _belongs(one: _Candidate, last: _Candidate) -> bool:
    if not (last.plain and needs_antecedent(one.plain)) or SURE in (last.worth, one.worth):
        return False
    words = len(last.draft.text.split()) + len(one.draft.text.split())
    return words <= MOST_JOINED and one.draft.start - last.draft.stop <= NEAR


def _distinct(candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    """Leave out what a message has said before in nearly the same words."""
    seen: list[set[str]] = []
    for one in candidates:
        stems = set(terms(one.draft.text))
        if not any(len(stems & other) >= ALIKE * max(1, len(stems | other)) for other in seen[-LOOKED_BACK:]):
            yield one
        seen.append(stems)
