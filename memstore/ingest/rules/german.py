"""German statements, kept as they were said: in its inflections, a safe third person is not a matter of rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memstore.ingest.rules.reading import ALLERGY, Reading
from memstore.ingest.rules.rulebook import GERMAN
from memstore.ingest.rules.statements import Clause, is_question

_MOST_WORDS = 36
_WORDS = re.compile(
    r"\b(?:ich|mein|meine|meinen|meiner|ist (?:\w+ ){0,2}(?:allergisch|vegetarier\w*|veganer\w*))\b", re.IGNORECASE
)
_NEXT_CLAUSE = re.compile(
    r"\s*(?:;|—|–|\s-+\s)\s*|,? (?:und|aber|denn|also|doch) (?=(?:ich|wir|meine?|er|sie|es|das|du|kannst|am|im|bin"
    r"|habe) )|, (?=(?:weil|dass|aber|kannst|hast|was|wie|ich|meine?|mir|das|es|er|sie|darum|deshalb|also|denn"
    r"|und)\b)|: (?=(?:ich|meine?|wir)\b)",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:(?:ach|ja|nein|hallo|hi|hey|also|und|aber|übrigens|nee|naja|danke|denn|gut|okay|ok|genau|merk dir|weil"
    r"|guten tag|grüß gott|moin)[ ,:!.-]+)+(?:dass )?",
    re.IGNORECASE,
)
_UNREAL = re.compile(r"\b(?:wenn|falls|würde|könnte|hätte|wäre|vielleicht|ob|du|dir|dich|dein\w*)\b", re.IGNORECASE)
_NO_WORD_AT_END = re.compile(r"[^\w)\"'%€$£°+]+$")


def is_german(sentence: str) -> bool:
    """Whether somebody speaks of themself, or of an allergy, in German."""
    return bool(_WORDS.search(sentence))


def read(sentence: Clause) -> Iterator[tuple[Clause, Reading]]:
    """Give the clauses that a rule fits, without their last stop."""
    for clause in _clauses(sentence):
        found = _LEAD_IN.match(clause.text)
        words = _NO_WORD_AT_END.sub("", clause.text[found.end() :] if found else clause.text)
        if not 2 < len(words.split()) <= _MOST_WORDS or _UNREAL.search(words):
            continue
        rule = next((rule for rule in GERMAN if rule.pattern.match(words)), None)
        if rule:
            kind = "constraint" if ALLERGY.search(words) else rule.type
            about = words.split()[0] if rule.about_named else None
            yield Clause(words, clause.start, clause.stop), Reading(kind, rule.confidence, about, rule.type == "event")


def _clauses(sentence: Clause) -> list[Clause]:
    text, begin, clauses = sentence.text, 0, []
    for gap in [*_NEXT_CLAUSE.finditer(text), None]:
        end = gap.start() if gap else len(text)
        if end > begin:
            clauses.append(Clause(text[begin:end], sentence.start + begin, sentence.start + end))
        begin = gap.end() if gap else end
    return clauses[:-1] if is_question(text) else clauses
