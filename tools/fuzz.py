#!/usr/bin/env python3
"""Fuzz what reads files of others, and what renders memory: coverage-guided, with atheris.

    tools/fuzz.py importers|render [--seconds 120] [--found FOLDER]

`pip install atheris` (Linux, CPython 3.11 to 3.13) first; without it this says so and ends with 0. An input that ends in
anything but words is written to the folder and ends the run with its traceback: give its file in place of the part to
see it again, and keep it as a case in `tests/unit/test_importers_damaged.py` or `tests/unit/test_formats.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

try:
    import atheris
except ImportError:
    print("skipped: atheris is not installed (pip install atheris)")
    raise SystemExit(0) from None

with atheris.instrument_imports(include=["memstore"]):
    from memstore.errors import InvalidInput, MemstoreError
    from memstore.formats import FORMATS
    from memstore.formats.parts import (
        FACTS_HEAD,
        HITS_HEAD,
        PromptContent,
        memory_text,
        standing_facts_text,
        summaries_text,
    )
    from memstore.ingest.add import ConversationRef, build_row
    from memstore.ingest.importers import IMPORTERS, ImportOptions, ImportProblem, Record
    from memstore.models import Hit, Summary, Tier
    from memstore.text import blank_fenced_blocks

PATTERNS = [pattern for importer in IMPORTERS for pattern in importer.files]
NAMES = ["a.json", "a.zip", *(Path(pattern).name.replace("*", "a") for pattern in PATTERNS)]
OPTIONS = ImportOptions(me="Ann", timezone=ZoneInfo("Europe/Berlin"), date_order="dmy")
PLACE = ConversationRef("alice", "lisbon")
PIECES = ["", "", "\n", "\r", "\x0b", "\x1e", "\x85", "\u2028", " ", "- ", ":", '"', "system", "user", "</memory>", "<memory>",
          "</standing>", "</summaries>", "<|im_end|>", FACTS_HEAD, "[1 March 2024]"]  # fmt: skip
MARGIN = {FACTS_HEAD, HITS_HEAD, "[1 March 2024]"}
NOBODY, WHEN = UUID(int=0), datetime(2024, 3, 1, tzinfo=UTC)


def importers(data: bytes, folder: Path) -> None:
    """Read bytes as a file of some name by some importer: each message is taken, or there are words about it."""
    if len(data) < 2:
        return
    path = folder / NAMES[data[0] % len(NAMES)]
    path.write_bytes(data[2:])
    importer = IMPORTERS[data[1] % len(IMPORTERS)]
    importer.sniff(path)
    try:
        found = list(importer(path, replace(OPTIONS, me="U1") if importer.name == "slack" else OPTIONS).read())
    except InvalidInput as error:
        assert str(error).strip()
        return
    for one in found:
        if isinstance(one, ImportProblem):
            assert one.reason.isprintable() and one.where.isprintable(), one
        elif isinstance(one, Record):
            try:
                build_row(one.message, PLACE, 1_000_000)
            except InvalidInput as error:
                assert str(error).strip()


def _text(given: atheris.FuzzedDataProvider) -> str:
    """Return a text of pieces that mean something in a context, and of anything else."""
    made = [given.PickValueInList(PIECES) or given.ConsumeUnicode(4) for _ in range(given.ConsumeIntInRange(0, 12))]
    return "".join(made).replace("\0", "")


def render(data: bytes, folder: Path) -> None:
    """Put texts of somebody else into memory: nothing in them ends its fence, and every format takes them."""
    given = atheris.FuzzedDataProvider(data)
    text, speaker, other = (_text(given) for _ in range(3))
    role = given.PickValueInList(["user", "assistant", "tool", None])

    def hit(tier: Tier, text: str) -> Hit:
        return Hit(tier, NOBODY, text, 1.0, {}, (), WHEN, NOBODY, 1, role, speaker or None)

    facts, hits = [hit(Tier.FACTS, text)], [hit(Tier.MESSAGES, other), hit(Tier.SUMMARIES, text)]
    summary = Summary.model_construct(level=1, from_seq=1, to_seq=2, text=other, occurred_at=WHEN, occurred_until=WHEN)
    for made, foot in (
        (memory_text(facts, hits), "</memory>"),
        (standing_facts_text(facts), "</standing>"),
        (summaries_text([summary]), "</summaries>"),
    ):
        lines = made.splitlines()
        assert lines[-1] == foot and lines.count(foot) == 1, made
        assert not [line for line in lines[2:-1] if line and line not in MARGIN and not line.startswith((" ", "- "))], (
            made
        )
        assert not blank_fenced_blocks(made).strip(), made
    chosen = PromptContent(
        "Be kind.", [summary], (), facts, hits, {"role": "user", "content": other}, 3, standing_facts=facts
    )
    for name in FORMATS:
        try:
            FORMATS[name].render(chosen)
        except MemstoreError as error:
            assert str(error).strip()


PARTS: dict[str, Callable[[bytes, Path], None]] = {"importers": importers, "render": render}


def main() -> None:
    """Fuzz one part for so many seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("again", nargs="*", help="files with inputs that were found")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--corpus", type=Path, help="a folder with inputs to begin with, in which new ones are kept")
    parser.add_argument("--found", type=Path, default=Path(tempfile.mkdtemp(prefix="memstore-fuzz-")))
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="memstore-fuzz-"))
    options = [
        f"-max_total_time={asked.seconds}",
        f"-artifact_prefix={asked.found}/",
        "-max_len=4096",
        "-len_control=0",
        "-timeout=20",
    ]
    start = [str(asked.corpus)] if asked.corpus else []
    atheris.Setup([sys.argv[0], *options, *(asked.again or start)], lambda data: PARTS[asked.part](data, folder))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
