"""The data that is measured on: conversations in memstore-jsonl and questions with their evidence, plain or gzipped.

None of it is part of memstore. LoCoMo (ACL 2024, CC BY-NC 4.0) is `locomo-dev.jsonl`, BEAM (ICLR 2026) a file
`beam-SIZE-dev.jsonl` for each size; the questions are next to them in `…-questions.jsonl`, one object a line with
`user`, `question`, `category` and `evidence` (the external ids of the messages that answer it). Each is the half that
was developed on. From the originals the same files are made so, each conversation of a user of its own
(`locomo_jsonl.py` does so for LoCoMo):

- `locomo-dev`: conversations 26, 30, 41, 42 and 43 of `locomo10.json`, 2,760 messages, `user` and `conversation` being
  `conv-26`. The role is always `user`, `name` the speaker's, `external_id` the turn's `dia_id`. The first turn is said
  at its session's time (as UTC), each other one half a minute later. A picture follows the text, as
  ` [shares: CAPTION]`. Categories 1 to 5 are multi-hop, temporal, open-domain, single-hop and adversarial.
- `beam-SIZE-dev`: conversations of odd numbers, `beam-100K-1` and so on: ten of 100K and 500K, four of 1M, and of 10M
  one cut at 5.8 million tokens. `external_id` is `m0`, `m1`, … in order, `metadata.session` the session. A session
  begins at 9 o'clock (UTC) of its day, and its messages are two minutes apart.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Missing(Exception):
    """The folder has not the data; the message says which."""


@dataclass(frozen=True)
class Question:
    """A question, and the external ids of the messages that answer it."""

    user: str
    text: str
    category: str
    evidence: frozenset[str]


def file(folder: Path, name: str) -> Path:
    """Return `NAME.jsonl` or `NAME.jsonl.gz` of a folder. Raises Missing."""
    for ending in (".jsonl", ".jsonl.gz"):
        if (found := folder / f"{name}{ending}").is_file():
            return found
    raise Missing(f"{folder} has no {name}.jsonl or {name}.jsonl.gz; name their folder with --data")


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Return the objects of a file, one a line."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def questions(folder: Path, name: str) -> list[Question]:
    """Return the questions of a data set that have evidence; without it nothing is to be found."""
    return [
        Question(one["user"], one["question"], one["category"], frozenset(map(str, one["evidence"])))
        for one in objects(file(folder, f"{name}-questions"))
        if one["evidence"]
    ]


def part(folder: Path, name: str, users: Collection[str], into: Path) -> Path:
    """Write the messages of some users to a file in `into`, and give it."""
    path = into / f"{name}.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for one in objects(file(folder, name)):
            if one["user"] in users:
                out.write(json.dumps(one, ensure_ascii=False) + "\n")
    return path
