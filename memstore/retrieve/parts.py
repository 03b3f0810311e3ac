"""A question that asks two things, taken apart: "What am I allergic to, and when do we fly?". Pure."""

from __future__ import annotations

import re

from memstore.store.terms import terms

MOST_PARTS = 3
LONGEST = 1000  # characters: what is longer tells something, and asks at its end
FEWEST_WORDS = 3  # "and why?" asks nothing by itself
_ASKS = (
    r"(?:what|when|where|who|whom|whose|which|why|how)\b"
    r"|(?:am|is|are|was|were|do|does|did|has|have|had|can|could|should|will|would) (?:I|we|you|my|our|your)\b"
    r"|(?:wann|wo|woher|wohin|wer|wen|wem|wessen|was|welche[mnrs]?|warum|wieso|wie)\b"
    r"|(?:bin|ist|sind|war|waren|habe|haben|kann|können|soll|sollen|muss|müssen) (?:ich|wir|meine?|unsere?)\b"
)
_NEXT = re.compile(
    rf"(?<=\?)\s+(?=[^?]+\?)|(?:,\s*|\s+)(?:and|but|und|aber)\s+(?:(?:also|auch)\s+)?(?={_ASKS})", re.IGNORECASE
)
# "How long was it between when I began and when I ended?" is one question, "zwischen" likewise.
_ONE = re.compile(r"\b(?:between|zwischen)\b", re.IGNORECASE)


def parts_of(question: str) -> tuple[str, ...]:
    """Give what a question asks, each by itself; nothing where that is one thing, or more than three.

    The vector of a question of two things is near to the one of which more was said, and so are its words: of the other
    nothing is among the first. So the best of each part counts as much as the best of the whole, but only the first few
    of a part: all of them cost BEAM at a million tokens 1.4 points at 4,000. Worth 0.2 on BEAM at 100,000 tokens, where
    5 of 179 questions have parts; one of a thousand of LoCoMo's has.
    """
    if len(question) > LONGEST or _ONE.search(question):
        return ()
    parts = [part.strip(" ,") for part in _NEXT.split(" ".join(question.split()))]
    if len(parts) < 2:  # as a rule: its words are looked at where it is made ready
        return ()
    asking = tuple(part for part in parts if len(part.split()) >= FEWEST_WORDS and any(terms(part)))
    return asking if 1 < len(asking) <= MOST_PARTS else ()
