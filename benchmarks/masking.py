#!/usr/bin/env python3
"""How much of what people say is masked as a secret: the share of messages, by kind. `--show` prints what was masked.

Needs the extra `secrets`, and conversations as `benchmarks/run` reads them: files of memstore-jsonl in a folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from report import Cell, Table, reported

from memstore.ingest.masking import Masking
from memstore.providers import recognizers

KINDS = ("card", "account", "document", "key", "password")


def said(path: Path) -> Iterator[str]:
    """Give the texts of a file's messages."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            content = json.loads(line).get("content")
            if isinstance(content, str):
                yield content


def main() -> int:
    """Give a row for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print each secret with what stands around it")
    parser.add_argument("--json", type=Path, help="write the figures")
    given = parser.parse_args()
    rows: list[list[Cell]] = []
    masking = Masking(frozenset(KINDS), recognizers.load())
    for path in given.files:
        messages = touched = 0
        kinds: Counter[str] = Counter()
        began = time.process_time()
        for text in said(path):
            found = masking.found(text)
            messages, touched = messages + 1, touched + bool(found)
            kinds.update(one.kind for one in found)
            for one in found if given.show else ():
                print(f"{one.kind}: {text[max(0, one.start - 40) : one.stop + 20]!r}")
        took = (time.process_time() - began) / max(1, messages) * 1e6
        share = round(100 * touched / max(1, messages), 2)
        rows.append([path.name, messages, touched, share, *(kinds[kind] for kind in KINDS), round(took)])
    columns = ("file", "messages", "touched", "%", *KINDS, "µs a message")
    table = Table("masking", "Messages in which something was masked, and how often what", columns, rows)
    reported([table], given.json, ["masking.py", *(path.name for path in given.files)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
