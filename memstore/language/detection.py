"""The language of a text, by its commonest words. Pure."""

from __future__ import annotations

import re

from memstore.language import LANGUAGES, load_words

# ISO 639's code for a language that is not known.
UNKNOWN = "und"
_COMMON = {code: load_words("common", code) for code in LANGUAGES}
# One that is common in several languages tells little of each.
_WEIGHTS = {
    code: {word: 1 / sum(word in vocabulary for vocabulary in _COMMON.values()) for word in common}
    for code, common in _COMMON.items()
}


def language_of(text: str) -> str:
    """Return the language of a text: "en", "de", "fr", "es", or "und" where its words do not tell.

    A message of a chat is short, and a detector of seventy languages guesses wrongly on "Me too" more often than it
    helps.
    """
    words = [word.casefold().replace("’", "'") for word in re.findall(r"[^\W\d_]+['’]?", text[:4_000])]
    counts = sorted((sum(weights.get(word, 0.0) for word in words), code) for code, weights in _WEIGHTS.items())
    (second, _), (most, code) = counts[-2:]
    return code if most > second and 12 * most >= len(words) else UNKNOWN
