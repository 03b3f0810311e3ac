"""What a question asks for: a list, an overview, the course of something, an assistant's words. By its form. Pure.

The phrases stand in memstore/language, in the languages that have them.
"""

from __future__ import annotations

import re

from memstore.language import load_phrases, load_words
from memstore.search.dates import asked_time
from memstore.search.outdated import asks_what_holds
from memstore.store.tokenize import terms

# A plural soon behind "what" or "which".
_PLURAL = r"(?!(?:this|his|was|is|does|has|us|yes|always|\w*(?:ss|us|is))\b)[a-z]{3,}s"
_WHICH_PLURAL = re.compile(
    rf"\b(?:what|which) (?:[\w+&/-]+ ){{0,3}}?(?:{_PLURAL}|people|children)\b"
    r"(?= (?:has|have|had|do|does|did|are|were|is|was|can|could|will|would|might|should|in|of|at|for|with|on|[a-z]+ed)"
    rf"\b|[?]|$)|\b(?:what|which|who) (?:are|were|all)\b(?: [\w'’.-]+){{1,4}}? {_PLURAL}\b",
    re.IGNORECASE,
)
# What is not the topic of such a question: "Can you give me a short summary of how".
_REQUEST = re.compile(
    r"^(?:[\w'’]+,? ){0,8}?(?:summar(?:y|ies|i[sz]e)|overview|recap|timeline|order|reihenfolge|zusammenfassung"
    r"|überblick|zusammen|sum(?: \w+)? up)\b,?"
    r"(?: (?:of|on|in which|that|how|what|von|über|davon|der|die|wie|was)\b,?){0,3}(?= \S+ \S)"
    r"|^(?:bitte )?fass\w*(?: (?:bitte|mir|uns|mal|kurz)\b)*",
    re.IGNORECASE,
)


def asks_for_list(question: str) -> bool:
    """Return whether a question asks for several things or a count, by its form, in English or German.

    >>> questions = ("Which cities did we visit?", "Wie viele Katzen hat Eva?", "Where is my bus?")
    >>> [asks_for_list(question) for question in questions]
    [True, True, False]
    """
    lists = load_phrases("lists").search(question) or _WHICH_PLURAL.search(question)
    return lists is not None and _has_topic(question)


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks for a summary of what was said, in English or German."""
    return load_phrases("overviews").search(question) is not None


def asks_for_overview_or_order(question: str) -> bool:
    """Return whether a question asks for an overview, an order of events or the course of something, and of what.

    >>> questions = ("In what order did we visit them?", "Wie hat sich Ida entwickelt?", "Recap!")
    >>> [asks_for_overview_or_order(question) for question in questions]
    [True, True, False]
    """
    how_it_went, changes = load_phrases("how_it_went"), load_phrases("changes_over_time")
    is_course = load_phrases("courses").search(question) or (how_it_went.search(question) and changes.search(question))
    return bool(is_course or asks_for_overview(question)) and _has_topic(question)


def _has_topic(question: str) -> bool:
    """Whether a request names a topic: else the latest turns and summaries answer it."""
    return not load_words("request_terms").issuperset(terms(_REQUEST.sub("", question)))


def asks_for_now(question: str) -> bool:
    """Return whether a question asks for one thing, and neither for what was nor for a time.

    >>> [asks_for_now(question) for question in ("Where do I live?", "Where did I live?", "Where do I live in May?")]
    [True, False, False]
    """
    time = asked_time(question)
    of_a_time = bool(time.inside or time.outside) or not asks_what_holds(question)
    of_several = asks_for_list(question) or asks_for_overview_or_order(question)
    return not (of_a_time or of_several or asks_for_assistant_words(question))


def without_request(question: str) -> str:
    """Return the topic of a question for an overview or a course; any other question as it is.

    >>> without_request("Could you give me a short summary of how the garden changed?")
    'the garden changed'
    """
    return _REQUEST.sub("", question).strip(" ,.?!") if asks_for_overview_or_order(question) else question


def asks_for_assistant_words(question: str) -> bool:
    """Return whether a question asks for what an assistant said: "Which hotel did you recommend?"

    In English, German, French, Spanish and Chinese. To such a question an assistant's words are as likely an answer as
    a person's.
    """
    # With their capitals: "haben Sie" asks somebody else than "haben sie".
    if load_phrases("addresses", ignore_case=False).search(question) and load_phrases("saying").search(question):
        return True
    chinese = r"(?<![跟对给向和与])你(?:的|[^们。？！?我]{0,10})(?:推荐|建议|意见|回答|看法|说的|提到|告诉|.过|.了)"
    return (load_phrases("assistant_words").search(question) or re.search(chinese, question)) is not None
