"""Characters that a Python string may hold, and a database or an encoding may not."""

from __future__ import annotations

import re

# JSON can escape both, and Postgres holds neither, in a text or in jsonb.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """Give the text with U+FFFD for what Postgres does not hold: NUL and lone surrogates."""
    return UNSTORABLE.sub(REPLACEMENT, text)


def sendable(text: str) -> str:
    """Give the text with U+FFFD for lone surrogates, which no UTF-8 has, and tokenizers refuse with a TypeError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
