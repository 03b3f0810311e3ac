"""Teaches when a memory keeps silent.

    python training/relevance.py --data ../shared/data --out memstore/context/relevance.json

Positive are prompts that need a memory, asked of the store that has it, and the questions of LoCoMo and BEAM asked of
their user's store; negative those that need nothing, and the same questions asked of another user's store. With
`--folds 4` it only measures: each person's prompts and each user's questions by weights that were taught without them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import memstore
from memstore import ids
from memstore.context.relevance import DEFAULT_MIN_RELEVANCE, figures, load_weights, logistic, weigh
from memstore.derive.reader.model import load
from memstore.search.recall import build_query, rank_candidates
from memstore.search.relevance import QuestionMatch, measure
from memstore.settings import ONNX_MINILM
from memstore.store import chunks
from memstore.store.chunks import Filters

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import data as data_sets

PERSONS = Path(__file__).parent / "relevance"
QUESTIONS = ("locomo", "beam")
WRONG_STORES = 2  # for each question
SMALL_STORES = 10  # of each person
# Of the questions' positives, so that the floor lies lower: to keep silent there costs evidence.
QUESTION_WEIGHT = 2.0
PROMPT_PENALTY, ASKING_PENALTY, PENALTY = 100.0, 300.0, 1.0
Floats = NDArray[np.float64]


@dataclass
class Example:
    """A prompt of a person or a question of a data set, whether something stored matters, and how it matches."""

    group: str
    kind: str
    prompt: str
    needs: bool
    match: QuestionMatch


async def match_of(store: memstore.AsyncMemoryStore, user: str, prompt: str) -> QuestionMatch | None:
    """Return how well what a user has stored matches a prompt."""
    database, embedder, user_id = store._database, store._runtime.embedder, ids.user_id(user)
    query = await build_query(database, user_id, embedder, prompt)
    read_version = chunks.index_version(query.model)
    async with database.user_transaction(user_id, [read_version]) as tx:
        ranking = await rank_candidates(tx, query, Filters(), version=tx.result(read_version))
    return measure(ranking, query)


async def examples_of_questions(store: memstore.AsyncMemoryStore, data: Path) -> list[Example]:
    """Return the questions of LoCoMo and BEAM, asked of their own store and of others."""
    chance, found = random.Random(1), list[Example]()
    for kind, history in (("locomo", "locomo-dev"), ("beam", "beam-100K-dev")):
        await store.import_file(data_sets.file(data, history))
        await store.derive()
        questions = data_sets.questions(data, history)
        questions = [each for each in questions if each.category not in ("adversarial", "abstention")]
        users = sorted({each.user for each in questions})
        for each in questions:
            others = chance.sample([user for user in users if user != each.user], WRONG_STORES)
            for user in (each.user, *others):
                if match := await match_of(store, user, each.text):
                    found.append(Example(each.user, kind, each.text, user == each.user, match))
    return found


def rare_words(memories: Sequence[dict[str, Any]], chance: random.Random) -> Iterator[str]:
    """Yield for each memory one to three words that few others have, as people type them into a search box."""
    words = [set(re.findall(r"[^\W\d_]{3,}", memory["text"])) for memory in memories]
    counts = Counter(word.casefold() for each in words for word in each)
    for each in words:
        rare = sorted(each, key=lambda word: (counts[word.casefold()], -len(word), word))[:8]
        yield " ".join(chance.sample(rare, min(len(rare), chance.randint(1, 3))))


def read_persons(folder: Path) -> dict[Path, Any]:
    """Return the persons of a folder by their files."""
    return {path: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


async def examples_of_persons(store: memstore.AsyncMemoryStore, persons: dict[Path, Any]) -> list[Example]:
    """Return the prompts of each person, asked of all memories and of four at a time; words of theirs and others'."""
    found, chance = list[Example](), random.Random(5)
    for path, person in persons.items():
        memories = person["memories"]
        stores = {f"{path.stem} {start}": memories[start : start + 4] for start in range(0, 4 * SMALL_STORES, 4)}
        stores[path.stem] = memories
        for user, part in stores.items():
            for memory in part:
                talk = store.user(user).conversation(memory["id"])
                await talk.add("user", memory["text"], occurred_at=datetime.fromisoformat(memory["occurred_at"]))
        await store.derive()
        for user, part in stores.items():
            known, kind = {memory["id"] for memory in part}, f"{len(part)} memories"
            for each in person["needed"]:
                if known.issuperset(each["needs"]) and (match := await match_of(store, user, each["prompt"])):
                    found.append(Example(path.stem, kind, each["prompt"], True, match))
            for each in person["nothing"]:
                if match := await match_of(store, user, each["prompt"]):
                    found.append(Example(path.stem, kind, each["prompt"], False, match))
        others = [memory for other, each in persons.items() if other != path for memory in each["memories"]]
        asked = [(words, True) for words in rare_words(memories, chance)]
        asked += [(words, False) for words in rare_words(chance.sample(others, len(memories)), chance)]
        for words, needs in asked:
            if match := await match_of(store, path.stem, words):
                found.append(Example(path.stem, "words", words, needs, match))
    return found


def fit(rows: Floats, is_positive: Floats, counts: Floats, penalty: float) -> list[float]:
    """Return the weights of a logistic regression, and the bias as the last of them."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    inputs = np.c_[(rows - mean) / spread, np.ones(len(rows))]
    weights, penalties = np.zeros(inputs.shape[1]), np.r_[np.full(rows.shape[1], penalty), 0.0]
    for _ in range(60):
        shares = 1 / (1 + np.exp(-inputs @ weights))
        curve = (inputs.T * (counts * shares * (1 - shares) + 1e-6)) @ inputs + np.diag(penalties)
        step = np.linalg.solve(curve, inputs.T @ (counts * (is_positive - shares)) - penalties * weights)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    scaled = weights[:-1] / spread
    return [round(float(each), 5) for each in (*scaled, weights[-1] - scaled @ mean)]


class Teacher:
    """Teaches weights by examples."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples
        reader = load()
        self.vectors = {prompt: reader.prompt_vector(prompt) for prompt in {each.prompt for each in examples}}

    def teach(self, groups: set[str]) -> dict[str, list[float]]:
        """Return weights taught by the examples of these groups."""
        used = [each for each in self.examples if each.group in groups]
        prompts = {each.prompt: each.needs for each in used if each.kind not in QUESTIONS}
        questions = {each.prompt for each in used if each.kind in QUESTIONS}
        weights = {
            "calls_for_memory": self._teach_prompts(prompts, PROMPT_PENALTY),
            "asks_what_was_said": self._teach_prompts(
                dict.fromkeys(prompts, False) | dict.fromkeys(questions, True), ASKING_PENALTY
            ),
        }
        counts = defaultdict[tuple[str, bool], int](int)
        for each in used:
            counts[each.kind, each.needs] += 1
        weight = {
            key: (QUESTION_WEIGHT if key[1] and key[0] in QUESTIONS else 1.0) * 250 / count
            for key, count in counts.items()
        }
        rows = np.array([self.figures(each, weights) for each in used])
        positive = np.array([each.needs for each in used], dtype=np.float64)
        weights["relevance"] = fit(rows, positive, np.array([weight[each.kind, each.needs] for each in used]), PENALTY)
        return weights

    def _teach_prompts(self, prompts: dict[str, bool], penalty: float) -> list[float]:
        rows = np.array([self.vectors[prompt] for prompt in prompts], dtype=np.float64)
        return fit(rows, np.array([*prompts.values()], dtype=np.float64), np.ones(len(rows)), penalty)

    def figures(self, example: Example, weights: dict[str, list[float]]) -> list[float]:
        """Return what is weighed of an example."""
        vector = self.vectors[example.prompt]
        calls, asks = (weigh(vector, weights[name]) for name in ("calls_for_memory", "asks_what_was_said"))
        return figures(calls, logistic(asks), example.match)

    def judge(self, example: Example, weights: dict[str, list[float]]) -> float:
        """Return the relevance by these weights."""
        return logistic(weigh(self.figures(example, weights), weights["relevance"]))


def shift(weights: dict[str, list[float]], floor: float) -> dict[str, list[float]]:
    """Return the weights by which what was `floor` is 0.5."""
    *others, bias = weights["relevance"]
    return weights | {"relevance": [*others, round(bias - float(np.log(floor / (1 - floor))), 5)]}


def report(examples: Sequence[Example], judged: Sequence[float], floors: Iterable[float]) -> None:
    """Print what each floor spares and what it loses."""
    kinds = sorted({each.kind for each in examples})
    for floor in floors:
        cells = []
        for kind in kinds:
            silent, lost = (
                np.mean([share < floor for share, each in zip(judged, examples, strict=True)
                         if each.kind == kind and each.needs == needs])
                for needs in (False, True)
            )  # fmt: skip
            cells.append(f"{kind}: {silent:.1%} silent, {lost:.1%} lost")
        print(f"{floor:.2f}  {'   '.join(cells)}")


async def main() -> None:
    """Teach, or take the examples of an earlier run; print figures by weights that were taught without the person."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--floor", type=float, default=0.35, help="what is to become 0.5")
    parser.add_argument("--questions", type=Path, help="a file in which examples of questions are kept between runs")
    parser.add_argument(
        "--validate", action="store_true", help="only judge other persons by the weights of the package"
    )
    given = parser.parse_args()
    questions = list[Example]()
    if given.questions and given.questions.exists():
        questions = [Example(*row[:4], QuestionMatch(*row[4])) for row in json.loads(given.questions.read_text())]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"embedder": ONNX_MINILM}
        async with await memstore.open_async(f"embedded:{folder}/store", settings=settings) as store:
            if given.validate:
                examples = await examples_of_persons(store, read_persons(PERSONS / "validation"))
                teacher, weights = Teacher(examples), load_weights()
                report(examples, [teacher.judge(each, weights) for each in examples], floors=[DEFAULT_MIN_RELEVANCE])
                return
            examples = [
                *await examples_of_persons(store, read_persons(PERSONS)),
                *(questions or await examples_of_questions(store, given.data)),
            ]
    if given.questions and not questions:
        of_questions = (each for each in examples if each.kind in QUESTIONS)
        rows = [(each.group, each.kind, each.prompt, each.needs, each.match) for each in of_questions]
        given.questions.write_text(json.dumps(rows))
    teacher, groups = Teacher(examples), sorted({each.group for each in examples})
    judged = [0.0] * len(examples)
    for fold in range(4):
        left_out = set(groups[fold::4])
        weights = teacher.teach(set(groups) - left_out)
        for place, each in enumerate(examples):
            if each.group in left_out:
                judged[place] = teacher.judge(each, weights)
    report(examples, judged, floors=np.arange(0.1, 0.65, 0.05))
    if given.out:
        given.out.write_text(json.dumps(shift(teacher.teach(set(groups)), given.floor)) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
