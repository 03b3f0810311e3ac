"""German statements, kept as they were said: in its inflections, a safe third person is not a matter of rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memstore.ingest.rules.parts import completed, parts_of
from memstore.ingest.rules.questions import asking
from memstore.ingest.rules.reading import ALLERGY, Reading
from memstore.ingest.rules.rulebook import GERMAN, GERMAN_KIN, GERMAN_ORDER, Rule
from memstore.ingest.rules.slots_german import GERMAN as SLOTS
from memstore.ingest.rules.statements import Clause, is_question

_MOST_WORDS = 36

_WORDS = re.compile(
    r"\b(?:ich|wir|mein|meine|meinen|meiner|unser|unsere|unseren|unserer|ist (?:\w+ ){0,2}(?:allergisch|vegetarier\w*"
    r"|veganer\w*)|verträgt (?:\w+ )?kein\w*|darf (?:\w+ )?kein\w*|im rollstuhl|kein\w* \w+ für|hat zöliakie|gestorben"
    rf"|(?:bitte|ab jetzt|künftig|in zukunft) (?:immer|nie|niemals|nur|bitte)|{GERMAN_ORDER})\b",
    re.IGNORECASE,
)
_NEXT_CLAUSE = re.compile(
    r"\s*(?:;|—|–|\s-+\s)\s*|,? (?:und|aber|denn|also|doch) (?=(?:ich|wir|meine?|er|sie|es|das|du|kannst|am|im|bin"
    r"|habe) )|, (?=(?:weil|dass|aber|kannst|hast|was|wie|ich|wir|meine?|unsere?|mir|das|es|er|sie|darum|deshalb|also"
    r"|denn"
    r"|und)\b)|: (?=(?:ich|meine?|wir)\b)",
    re.IGNORECASE,
)
# What follows is hoped or supposed: "Ich hoffe, ich bin …", "Angenommen, ich bin …".
_SUPPOSES = re.compile(
    r"(?:ich (?:hoffe|dachte|glaubte|meinte|träumte?|wünschte?)|angenommen|nehmen wir(?: mal)? an|sagen wir(?: mal)?"
    r"|stell(?:t|en sie)?(?: \w+){0,3} vor|gesetzt den fall|tu[ent]? so)",
    re.IGNORECASE,
)
# What follows its colon somebody else says.
_TELLS = re.compile(
    r"\b(?!ich\b|wir\b)\w+ (?:sagte?|meinte?|schr(?:ie|ei)bt?|erzählte?|behauptete?|antwortete?|rief)(?: \w+){0,3}$",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:(?:ach|ja|nein|hallo|hi|hey|also|und|aber|übrigens|nee|naja|danke|denn|gut|okay|ok|genau|merk dir|weil"
    r"|guten tag|grüß gott|moin)[ ,:!.-]+)+(?:dass )?",
    re.IGNORECASE,
)
_UNREAL = re.compile(r"\b(?:wenn|falls|würde|könnte|hätte|wäre|vielleicht|ob|du|dir|dich|dein\w*)\b", re.IGNORECASE)
# "Ab März arbeite ich bei Zeiss": a time, a place or how often, the verb, and then who.
_FRONTED = re.compile(
    r"(?P<front>(?:ab|seit|bis|in (?-i:[A-ZÄÖÜ])\w+|jede[nsr]?|jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit"
    r"|momentan"
    r"|neuerdings|\w+mal|täglich|morgens|abends|nachts|hauptberuflich|beruflich|privat|nebenbei|außerdem"
    r"|\w+tags)\b[^,;:]{0,60}?) (?P<verb>[a-zäöüß]+) ich(?P<rest> .*|$)",
    re.IGNORECASE,
)
_OF_US = re.compile(r"\b(?:wir (?P<verb>\w+en|sind)|(?P<turned>\w+en|sind) wir)\b", re.IGNORECASE)
_KIN_OF = re.compile(rf"\w+(?:s|'s?) (?:{GERMAN_KIN})\b", re.IGNORECASE)
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
        start = clause.start + (found.end() if found else 0)
        for part in parts_of(words, "de", lambda told: _rule(told) is not None):
            rule = _rule(part.words)
            if rule:
                kind = "constraint" if ALLERGY.search(part.words) else rule.type
                about = _named(part.words) if rule.about_named else None
                reading = Reading(kind, rule.confidence, about, rule.type == "event")
                stop = min(start + part.stop, clause.stop)  # a clause that was completed is longer than what was said
                yield Clause(part.words, min(start + part.start, stop - 1), stop), reading


def _rule(words: str) -> Rule | None:
    """Give the first rule that fits; what stands before the verb may as well stand behind it, and "we" are one."""
    told = _OF_US.sub(_of_one, words)
    fronted = _FRONTED.match(told)
    orders = [told]
    if fronted:
        front = f"{fronted['front'][0].lower()}{fronted['front'][1:]}"
        orders.append(f"ich {fronted['verb']} {front}{fronted['rest']}")
    rule = next((rule for order in orders for rule in GERMAN if rule.pattern.match(order)), None)
    return rule._replace(confidence=round(rule.confidence - 0.1, 2)) if rule and told != words else rule


def _of_one(found: re.Match[str]) -> str:
    """Give "ich fahre" for "wir fahren", "fahre ich" for "fahren wir": the tables speak of one person."""
    verb = (found["verb"] or found["turned"]).lower()
    one = "bin" if verb == "sind" else verb.removesuffix("n")
    return f"ich {one}" if found["verb"] else f"{one} ich"


def _named(words: str) -> str:
    """Give "Jonas' Vater" for "Jonas' Vater ist …", "Jonas" for "Jonas ist …"."""
    found = _KIN_OF.match(words)
    return found[0] if found else words.split()[0]


def _clauses(sentence: Clause) -> list[Clause]:
    clauses: list[Clause] = []
    text, begin = sentence.text, 0
    before = ""
    heard = [found.span("before") for found in SLOTS.hearsay.finditer(text)]
    gaps = [gap for gap in _NEXT_CLAUSE.finditer(text) if not any(a < gap.end() <= b for a, b in heard)]
    for gap in [*gaps, None]:
        end = gap.start() if gap else len(text)
        told = text[begin:end]
        if gap and ":" in gap[0] and (SLOTS.asks.search(told) or _TELLS.search(told)):
            return clauses  # what follows are words of a letter that is asked for, or of somebody else's
        if gap and "," in gap[0] and _SUPPOSES.fullmatch(told):
            return clauses
        if end > begin:
            before = completed(text[begin:end], before, "de")
            clauses.append(Clause(before, sentence.start + begin, sentence.start + end))
        begin = gap.end() if gap else end
    return clauses[: -asking([one.text for one in clauses])] if is_question(text) else clauses
