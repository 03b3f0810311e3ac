"""Short answers, joined with the question they answer: "5 years already!" says nothing alone.

"How long have you been married?" "5 years already!" -> "How long has Alice been married? 5 years already."
"""

from __future__ import annotations

import re

from memstore.ingest.rules.standalone import Talk, long_forms, trimmed, without_address
from memstore.ingest.rules.statements import is_question, sentences_of, without_lead_in
from memstore.ingest.rules.thirdperson import is_modal, is_past, is_present, third_person

_MOST_ASKED, _MOST_ANSWERED = 16, 7  # words
_YES = re.compile(
    r"(?P<yes>yes|yeah|yep|yup|sure|definitely|absolutely|of course)\b|(?P<no>no|nope|nah|not really|never)\b",
    re.IGNORECASE,
)
_ASKS_YES = re.compile(r"(?:are|were|do|did|have|has|is|was|will|can) you\b|(?:is|are|was|were) your\b", re.IGNORECASE)
_ASKS_WHAT = re.compile(
    r"(?:how (?:long|many|much|often|old)|what|which|where|when|who)\b(?! about| if| do you think)", re.IGNORECASE
)
_INVERTED = re.compile(r"\b(?P<verb>are|were|do|did|have|will|can) you\b", re.IGNORECASE)
_OF_ONE = {"are": "is", "were": "was", "do": "does", "have": "has"}
_WORD = re.compile(r"[A-Za-z']+")
_NO_ANSWER = re.compile(r"is|are|be|being|sorry|hear|having|sure|thing|my|your")
_SUBSTANCE = re.compile(
    r"\d|\b[A-Z][a-z]+\b|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|years?|months?|weeks?|days?|times?"
    r"|once|twice)\b"
)


def last_question(text: str) -> str | None:
    """Give the question that a message ends with, or nearly so; None where it asks none, or too much."""
    asked = [sentence.text for sentence in sentences_of(text)][-2:]
    for sentence in reversed(asked):
        question = without_lead_in(sentence)
        if is_question(question) and len(question.split()) <= _MOST_ASKED:
            return question
    return None


def joined_answer(first: str, talk: Talk, *, alone: bool) -> str | None:
    """Give the question, told of the speaker, with the answer behind it; None where the sentence is no short answer.

    A bare "Yes!" is joined only where it is `alone` in its message: what follows it says more.
    """
    if talk.question is None or is_question(first):
        return None
    question, said = long_forms(talk.question), _YES.match(first)
    rest = trimmed(without_lead_in(without_address(first, talk.partner)))
    if len(rest.split()) > _MOST_ANSWERED or _states(rest):
        return None
    bare = not rest or bool(_YES.match(rest))
    if said and _ASKS_YES.match(question) and (alone or not bare):
        answer = "Yes" if said["yes"] else "No"
        answer += "" if bare else f", {rest[0].lower()}{rest[1:]}"
    elif _ASKS_WHAT.match(question) and _SUBSTANCE.search(rest):
        answer = f"{rest[0].upper()}{rest[1:]}"
    else:
        return None
    return f"{_asked_of(question, talk)} {answer}"


def _states(words: str) -> bool:
    """Whether there is a verb, so that the words are a statement of their own."""
    found = [word.lower() for word in _WORD.findall(words)]
    return any(
        is_past(word) or is_present(word) or is_modal(word) or _NO_ANSWER.fullmatch(word) or "'" in word
        for word in found
    )


def _asked_of(question: str, talk: Talk) -> str:
    turned = _INVERTED.sub(lambda found: f"{_OF_ONE.get(found['verb'].lower(), found['verb'])} {talk.inside}", question)
    # What the asker calls "you" is the speaker, and the asker's "I" is the partner.
    told = third_person(turned, talk.partner or "the other", talk.inside).text
    return f"{told[0].upper()}{told[1:]}"
