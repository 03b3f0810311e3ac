#!/usr/bin/env python3
"""Convert LoCoMo's `locomo10.json` to memstore-jsonl, as `data.py` describes it.

    benchmarks/locomo_jsonl.py locomo10.json 26 30 41 42 43 > FOLDER/locomo-dev.jsonl

The file is from LoCoMo's authors (github.com/snap-research/locomo). Numbers name conversations; by default all.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SESSION = re.compile(r"session_(\d+)")
TURN = timedelta(seconds=30)


def messages(sample: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the messages of a conversation, session by session."""
    conversation, user = sample["conversation"], sample["sample_id"]
    for number in sorted(int(found[1]) for key in conversation if (found := SESSION.fullmatch(key))):
        time = conversation[f"session_{number}_date_time"]
        start = datetime.strptime(time, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for place, turn in enumerate(conversation[f"session_{number}"]):
            caption = turn.get("blip_caption")
            yield {
                "user": user,
                "conversation": user,
                "role": "user",
                "name": turn["speaker"],
                "content": turn["text"] + (f" [shares: {caption}]" if caption else ""),
                "occurred_at": (start + place * TURN).isoformat(),
                "external_id": turn["dia_id"],
                "metadata": {"session": number},
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("numbers", nargs="*", help="of conversations, such as 26")
    options = parser.parse_args()
    for sample in json.loads(options.file.read_text(encoding="utf-8")):
        if not options.numbers or sample["sample_id"].removeprefix("conv-") in options.numbers:
            for message in messages(sample):
                print(json.dumps(message, ensure_ascii=False))


if __name__ == "__main__":
    main()
