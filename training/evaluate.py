"""Print how well a reader agrees with labels: evaluate.py READER FILE.jsonl…"""

from __future__ import annotations

import argparse
from pathlib import Path

from measure import score

from examples import read, turns
from memstore.derive.reader.model import Reader

LEAST = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def main() -> None:
    """Read the messages of the files, and print a line for each least probability."""
    parser = argparse.ArgumentParser()
    parser.add_argument("reader", type=Path, help="the folder that train.py wrote")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    messages = read(options.files)
    notes = Reader(options.reader).read(turns(messages))
    for least in LEAST:
        chosen = [[note for note in found if note.confidence >= least] for found in notes]
        print(f"from {least}: {score(messages, chosen)}")


if __name__ == "__main__":
    main()
