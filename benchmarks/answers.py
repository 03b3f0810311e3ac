#!/usr/bin/env python3
"""The whole way, from a question to a graded answer: how many a reader answers from what a memory gives.

    benchmarks/answers.py --into FOLDER                                             write the sheets
    benchmarks/answers.py --into FOLDER --reader openai:NAME --judge openai:NAME    have models answer and grade
    benchmarks/answers.py --recorded docs/reference/figures/answers.jsonl           what came out

Thirty questions of each of LoCoMo's categories are drawn by a fixed seed. For each, every system gives notes of
at most `--budget` tokens: memstore's `context()`, dense and hybrid rankings of the same messages and vectors,
and, as what can be had, the whole conversation. A reader sees one sheet, notes and question, and not whose notes they
are; a judge sees question, gold answer and answer. What was never said must be answered "unknown".

FOLDER holds the state, a JSON object a line, and a run goes on where the last one ended: `sheets.jsonl` {id, notes,
question}, `answers.jsonl` {id, answer}, `to-grade.jsonl` {id, question, gold, answer}, `grades.jsonl` {id, correct}.
People may write the answers and grades too. `key.json` says which id is of which question and system; at the end
`graded.jsonl` has all of it {question, category, system, answer, correct}, where `question` is a line of LoCoMo's.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import data
from baselines import Baselines
from corpus import Corpus, corpus
from evidence import ADVERSARIAL, tokens
from locomo import NAME
from opened import opened
from platformdirs import user_cache_path
from pydantic import BaseModel
from report import ROOT, Table, command_line, shown, written

from memstore import MemoryStore
from memstore.providers import ChatMessage, ChatModel, load_chat_model
from memstore.text import format_day

OURS, WHOLE = "memstore", "the whole conversation"
EACH, SEED = 30, 24  # questions of a category, and how they are drawn
READ = """\
You answer questions about conversations between two people from notes about them. Use the notes only. Answer in a \
few words; say dates as day, month and year where the notes allow it, also where a note says "yesterday" or "last \
week": the day in brackets or above a note is when it was said. If the notes do not say it, or say it of somebody \
else, answer "unknown"."""
GRADE = """\
You grade an answer to a question about a conversation. It is correct if it says what the gold answer says: other \
words, other formats of dates and more detail are fine; a list must have what the gold list has, or nearly. A guess \
beside the point, a missing part that matters and "unknown" are not correct."""

Row = dict[str, Any]
A = TypeVar("A", bound=BaseModel)


class Answer(BaseModel):
    """What the reader answers."""

    answer: str


class Grade(BaseModel):
    """What the judge says."""

    correct: bool


def drawn(folder: Path) -> list[tuple[int, Row]]:
    """Return the questions with their line numbers: as many of each category."""
    by_category: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for number, row in enumerate(data.objects(data.file(folder, f"{NAME}-questions"))):
        by_category[row["category"]].append((number, row))
    draw = random.Random(SEED)
    return [
        one for _, rows in sorted(by_category.items()) for one in sorted(draw.sample(rows, EACH), key=lambda x: x[0])
    ]


def notes(options: argparse.Namespace, questions: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, str, Row]]:
    """Return the sheet of each question and system."""
    with opened(options, "locomo", data.file(options.data, NAME)) as (store, embedder):
        known: dict[str, tuple[Corpus, Baselines]] = {}
        for number, row in questions:
            user, question = row["user"], row["question"]
            if user not in known:
                made = corpus(store, user, embedder)
                known[user] = made, Baselines(made)
            made, baselines = known[user]
            ranked = dict(baselines.rankings(question, embedder.embed_query(question)))
            given = {
                OURS: _context(store, user, question, options.budget),
                WHOLE: _lines(made, range(len(made.chunks))),
            }
            for name in ("dense", "hybrid RRF"):
                given[name] = _lines(made, _fitting(made, map(int, ranked[name]), options.budget))
            for system, text in given.items():
                if system in options.systems:
                    yield number, system, {"notes": text, "question": question}


def _context(store: MemoryStore, user: str, question: str, budget: int) -> str:
    """Return a context as a reader sees it, without the question at its end."""
    messages = store.user(user).conversation(user).context(question, budget=budget).messages
    return "\n".join(f"{one.get('name', '')}: {one['content']}".removeprefix(": ") for one in messages[:-1])


def _fitting(made: Corpus, ranked: Iterable[int], budget: int) -> list[int]:
    rows, used = [], 0
    for row in ranked:
        used += made.chunks[row].piece.tokens
        if used > budget:
            break
        rows.append(row)
    return sorted(rows)  # as they were said


def _lines(made: Corpus, rows: Iterable[int]) -> str:
    return "\n".join(f"[{format_day(made.chunks[row].at)}] {made.chunks[row].said}" for row in rows)


def rows_of(path: Path) -> dict[str, Row]:
    """Return the lines of a file by their ids; none where it is not there."""
    return {row["id"]: row for row in data.objects(path)} if path.is_file() else {}


def fill(path: Path, sheets: Iterable[Row], model: ChatModel | None, ask: Callable[[ChatModel, Row], Row]) -> bool:
    """Have a model add what a file lacks; give whether it is whole."""
    missing = [row for row in sheets if row["id"] not in rows_of(path)]
    if model is None:
        return not missing
    with path.open("a", encoding="utf-8") as out:
        for done, row in enumerate(missing, 1):
            print(json.dumps({"id": row["id"], **ask(model, row)}, ensure_ascii=False), file=out, flush=True)
            print(f"\r{path.name}: {done} of {len(missing)} ", end="", file=sys.stderr, flush=True)
    return True


def _asked(model: ChatModel, system: str, text: str, schema: type[A]) -> A:
    chat: list[ChatMessage] = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return model.complete(chat, schema, max_tokens=300).answer


def _answered(model: ChatModel, row: Row) -> Row:
    return _asked(model, READ, f"Notes:\n{row['notes']}\n\nQuestion: {row['question']}", Answer).model_dump()


def _graded(model: ChatModel, row: Row) -> Row:
    text = f"Question: {row['question']}\nGold answer: {row['gold']}\nAnswer: {row['answer']}"
    return _asked(model, GRADE, text, Grade).model_dump()


def is_unknown(answer: str) -> bool:
    """Whether the reader said that the notes do not say it."""
    return "unknown" in answer.lower()


def graded(key: dict[str, Row], answers: dict[str, Row], grades: dict[str, Row]) -> list[Row]:
    """Return each answer with its question, and whether it is right: "unknown", if nobody said it."""
    rows = []
    for id, one in key.items():
        said = answers[id]["answer"]
        unknown = is_unknown(said)
        correct = unknown if one["category"] == ADVERSARIAL else not unknown and grades[id]["correct"]
        rows.append({**one, "answer": said, "correct": correct})
    return sorted(rows, key=lambda row: (row["question"], row["system"]))


def table(rows: list[Row]) -> Table:
    """Return the share of right answers by category; of what was never said, of answers "unknown"."""
    right: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in rows:
        right[one["system"]][one["category"]].append(one["correct"])
    categories = sorted({one["category"] for one in rows} - {ADVERSARIAL})
    columns = ("system", "answerable", *categories, f"{ADVERSARIAL}: unknown")
    shares = []
    for system, found in sorted(right.items()):
        all_right = [good for category in categories for good in found[category]]
        parts = [all_right, *(found[category] for category in (*categories, ADVERSARIAL))]
        shares.append([system, *(round(100 * sum(part) / len(part), 1) if part else None for part in parts)])
    return Table("answers", f"Right answers in percent, {EACH} questions of each category of LoCoMo", columns, shares)


def main() -> int:
    """Go as far as it goes."""
    options = _parser().parse_args()
    if options.recorded:
        shown([table(list(data.objects(options.recorded)))])
        return 0
    into: Path = options.into
    into.mkdir(parents=True, exist_ok=True)
    try:
        questions = drawn(options.data)
    except data.Missing as reason:
        print(f"skipped: {reason}")
        return 0
    if not (into / "key.json").is_file():
        _write_sheets(options, questions)
    key: dict[str, Row] = json.loads((into / "key.json").read_text(encoding="utf-8"))
    sheets = rows_of(into / "sheets.jsonl")
    if not fill(into / "answers.jsonl", sheets.values(), load_chat_model(options.reader), _answered):
        print(
            f"Answer the sheets of {into / 'sheets.jsonl'} into answers.jsonl beside it, or name a --reader.\n\n{READ}"
        )
        return 0
    answers = rows_of(into / "answers.jsonl")
    gold = {str(number): str(row["answer"]) for number, row in questions}
    to_grade = [
        {
            "id": id,
            "question": sheets[id]["question"],
            "gold": gold[str(one["question"])],
            "answer": answers[id]["answer"],
        }
        for id, one in key.items()
        if one["category"] != ADVERSARIAL and not is_unknown(answers[id]["answer"])
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in to_grade)
    (into / "to-grade.jsonl").write_text(lines, encoding="utf-8")
    if not fill(into / "grades.jsonl", to_grade, load_chat_model(options.judge), _graded):
        print(
            f"Grade the answers of {into / 'to-grade.jsonl'} into grades.jsonl beside it, or name a --judge.\n\n{GRADE}"
        )
        return 0
    rows = graded(key, answers, rows_of(into / "grades.jsonl"))
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (into / "graded.jsonl").write_text(lines, encoding="utf-8")
    made = shown([table(rows)])
    if options.json:
        written(options.json, command_line(sys.argv), made)
    return 0


def _write_sheets(options: argparse.Namespace, questions: list[tuple[int, Row]]) -> None:
    """Write the sheets in an order that tells nothing of question or system."""
    category = {number: row["category"] for number, row in questions}
    given = list(notes(options, questions))
    random.Random(SEED).shuffle(given)
    key, lines = {}, []
    for place, (number, system, sheet) in enumerate(given):
        key[f"s{place:04}"] = {"question": number, "category": category[number], "system": system}
        lines.append(json.dumps({"id": f"s{place:04}", **sheet}, ensure_ascii=False))
    (options.into / "sheets.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (options.into / "key.json").write_text(json.dumps(key, indent=0), encoding="utf-8")
    print(f"tokens of notes: {sum(tokens(sheet['notes']) for _, _, sheet in given):,}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=str(__doc__).partition("\n")[0], epilog=str(__doc__), formatter_class=argparse.RawTextHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--into", type=Path, help="the folder of sheets, answers and grades")
    what.add_argument("--recorded", type=Path, help="a graded.jsonl of an earlier run, to print its table")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of the data")
    parser.add_argument("--budget", type=int, default=1000, help="tokens of the notes")
    parser.add_argument("--systems", nargs="+", default=[OURS, "hybrid RRF"], help=f"also: dense, {WHOLE!r}")
    parser.add_argument("--reader", default="none", help="the chat model that answers, as the settings name one")
    parser.add_argument("--judge", default="none", help="the chat model that grades")
    parser.add_argument("--store", type=Path, help="keep stores in this folder for the next run")
    parser.add_argument("--cache", type=Path, default=user_cache_path("memstore") / "benchmarks")
    parser.add_argument("--reranker", default="none", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the figures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
