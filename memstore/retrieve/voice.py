"""A question about a speaker, as that speaker would put it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memstore.store.terms import is_english


def as_told(question: str, speakers: Iterable[str]) -> str:
    """Give a question in which the speakers whom it names speak: "What is Ann's job?" is "What is my job?".

    For the embedder alone: people say "I painted a lake", and that is nearer to "What did I paint?" than to "What did
    Ann paint?". Worth 0.9 points, all on LoCoMo, and 10 where a question mistakes one speaker for the other. English
    only; a question in another language stays as it is.
    """
    names = sorted((name for name in speakers if name in question), key=len, reverse=True)
    if not names or not is_english(question):
        return question
    anyone = "|".join(map(re.escape, names))
    question = re.sub(rf"\b(?:{anyone})(?:['’]s\b|(?<=s)['’](?=\s))", "my", question)
    return re.sub(rf"\b(?:{anyone})\b", "I", question)
