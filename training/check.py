"""Check files of labelled messages: check.py FILE…"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memstore.derive.reader.notes import ATTRIBUTES, TYPES


def problems(message: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the labels of a message."""
    for fact in message["facts"]:
        for name in ("quote", "value"):
            if fact[name] is not None and fact[name] not in message["text"]:
                yield f"{name} {fact[name]!r} is no part of the text"
        if fact["type"] not in TYPES or fact["attribute"] not in ATTRIBUTES:
            yield f"{fact['type']} or {fact['attribute']} is not in the lists"
        if not fact["quote"] or "{NAME}" not in fact["fact"] or not isinstance(fact["ends"], bool):
            yield f"{fact['fact']!r} lacks a quote, {{NAME}}, or whether something ends"


def main() -> int:
    """Print every problem, and how many messages there are; return whether there was any."""
    failed = False
    for file in map(Path, sys.argv[1:]):
        messages = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for number, message in enumerate(messages, 1):
            for problem in problems(message):
                failed = True
                print(f"{file}:{number}: {problem}")
        empty = sum(not message["facts"] for message in messages)
        print(f"{file}: {len(messages)} messages, {empty} with nothing to keep")
    return failed


if __name__ == "__main__":
    sys.exit(main())
