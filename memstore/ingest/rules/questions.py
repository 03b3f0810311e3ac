"""How much of a sentence with a question mark asks: its last clause, and before a tag the one before as well."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAG = re.compile(
    r"(?:(?:or|and) )?(?:(?:am|is|are|was|were|do|does|did|have|has|had|can|could|will|would|should|must)(?:n't| not)?"
    r" (?:I|we|he|she|it|they|there|you)(?: not)?|right|correct|yes|no|not|true|is that (?:right|correct|true)|oder"
    r"(?: nicht| doch| etwa)?|nicht wahr|nicht|stimmt'?s|stimmt das|richtig|ne|gell)[\s?!\"')]*",
    re.IGNORECASE,
)


def asking(clauses: Sequence[str]) -> int:
    """Give how many of the clauses at the end of a question ask: two in "I'm not allergic to nuts, am I?"."""
    return 2 if clauses and _TAG.fullmatch(clauses[-1].strip(" ,;")) else 1
