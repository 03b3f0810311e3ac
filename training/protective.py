"""Print how many sentences protect somebody by their facts, and how many that only sound so do: protective.py [READER]

A sentence of test/protective-N.jsonl is found if a constraint has one of its values; one of test/tempting-N.jsonl
tempts if a constraint of the speaker has its thing.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples import read
from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.note_facts import extract, turn_of
from memstore.derive.facts.utterances import Utterance
from memstore.derive.reader.model import Reader
from memstore.models import Role

TEST = Path(__file__).parent / "test"
SAID = datetime(2026, 11, 2, tzinfo=UTC)


def constraints(message: dict[str, Any], reader: Reader) -> list[FactDraft]:
    """Return what always holds by a message."""
    said = Utterance(message["text"], Role.USER, message["name"], SAID)
    asked = [Utterance(message["before"], Role.ASSISTANT, "The assistant", SAID)] if message["before"] else []
    [notes] = reader.read([turn_of(said, asked)])
    return [draft for draft in extract(said, notes, asked) if draft.fact.type == "constraint"]


def is_found(message: dict[str, Any], reader: Reader) -> bool:
    """Return whether a constraint has a value of the message."""
    texts = [draft.fact.text.casefold() for draft in constraints(message, reader)]
    return any(value.casefold() in text for value in message["values"] for text in texts)


def tempts(message: dict[str, Any], reader: Reader) -> bool:
    """Return whether a constraint of the speaker has the thing of the message."""
    facts = [draft for draft in constraints(message, reader) if draft.fact.subject == message["name"]]
    return any(message["thing"].casefold() in draft.fact.text.casefold() for draft in facts)


def main() -> None:
    """Print a line for each of the three sets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("reader", nargs="?", type=Path, help="the folder that train.py wrote; by default what ships")
    options = parser.parse_args()
    reader = Reader(options.reader) if options.reader else Reader()
    for number in (1, 2, 3):
        protective, tempting = (read([TEST / f"{name}-{number}.jsonl"]) for name in ("protective", "tempting"))
        found, kept = sum(is_found(one, reader) for one in protective), sum(tempts(one, reader) for one in tempting)
        print(f"{number}: {found} of {len(protective)} found, {kept} of {len(tempting)} tempting ones kept")


if __name__ == "__main__":
    main()
