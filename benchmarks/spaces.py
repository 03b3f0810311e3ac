"""Measure what spaces cost: python benchmarks/spaces.py [--data ../shared/data] [--only evidence|time]

1. The evidence of LoCoMo's questions that stands word for word in contexts: of one user with all sessions, and of a
   user with a third of them and two spaces with the others.
2. The time of a context of 2,000 tokens, by turns: of a user with 10,000 messages, and of that user with two spaces of
   as many.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import data as data_sets
from contexts import plain

import memstore
from memstore.settings import ONNX_MINILM

SETTINGS = {"embedder": ONNX_MINILM, "receipt_retention_days": 0}
ANIMALS = ("otter", "seal", "heron", "lynx", "badger", "crane", "raven", "finch", "viper", "moth")
BUDGETS = (500, 1000, 2000)
ROUNDS = 60


def spaces_of(number: int) -> list[str]:
    """Return the names of the two spaces of a user."""
    return [*ANIMALS[2 * number : 2 * number + 2]]


def measure_evidence(store: memstore.MemoryStore, folder: Path, count: int) -> None:
    rows = list(data_sets.objects(data_sets.file(folder, "locomo-dev")))
    users = sorted({row["user"] for row in rows})
    texts = {(row["user"], row["external_id"]): plain(row["content"]) for row in rows}
    for number, user in enumerate(users):
        names = spaces_of(number)
        for name in names:
            store.space(name).grant(f"{user} of three", "read")
        owners = [store.user(f"{user} of three"), *map(store.space, names)]
        sessions = dict[str, list[dict[str, object]]]()
        for row in rows:
            if row["user"] == user:
                kept = {key: value for key, value in row.items() if key not in ("user", "conversation")}
                sessions.setdefault(row["external_id"].split(":")[0], []).append(kept)
        for place, (session, messages) in enumerate(sessions.items()):
            for owner in (store.user(user), owners[place % 3]):
                owner.conversation(session).add_many(messages)
    store.derive()
    questions = data_sets.questions(folder, "locomo-dev")
    questions = [each for each in questions if each.category not in ("adversarial", "abstention")]
    questions = random.Random(3).sample(questions, min(count, len(questions)))
    for budget in BUDGETS:
        shares = []
        for is_split in (False, True):
            found = total = 0
            for each in questions:
                name = f"{each.user} of three" if is_split else each.user
                names = spaces_of(users.index(each.user)) if is_split else []
                asked = store.user(name).conversation("asked")
                context = asked.context(each.text, budget=budget, spaces=names)
                sent = plain("\n".join(str(message["content"]) for message in context.messages))
                wanted = [texts[each.user, id] for id in each.evidence if (each.user, id) in texts]
                total, found = total + len(wanted), found + sum(text in sent for text in wanted)
            shares.append(found / total)
        print(f"{budget:,} tokens: one user {shares[0]:.1%}, a user and two spaces {shares[1]:.1%}", flush=True)


def measure_time(store: memstore.MemoryStore, folder: Path) -> None:
    texts = [row["content"] for row in data_sets.objects(data_sets.file(folder, "locomo-dev"))]
    for name in ("beam-100K-dev", "beam-500K-dev"):
        texts += [row["content"] for row in data_sets.objects(data_sets.file(folder, name)) if row["role"] == "user"]
    chance, user = random.Random(5), store.user("of many")
    for name in ANIMALS[:2]:
        store.space(f"large {name}").grant(user.name, "read")
    names = [f"large {name}" for name in ANIMALS[:2]]
    for owner in (user, *map(store.space, names)):
        for start in range(0, 10_000, 250):
            said = [{"role": "user", "content": chance.choice(texts)[:400]} for _ in range(250)]
            owner.conversation(f"talk {start}").add_many(said)
    store.derive()
    questions = [each.text for each in data_sets.questions(folder, "locomo-dev")][:ROUNDS]
    talk, taken = user.conversation("asked"), ([], [])
    for question in (*questions[:3], *questions):
        for times, spaces in zip(taken, ([], names), strict=True):
            start = time.perf_counter()
            talk.context(question, budget=2000, spaces=spaces)
            times.append(time.perf_counter() - start)
    alone, together = (statistics.median(times[3:]) for times in taken)
    print(f"p50 of a context: three owners take {together / alone:.2f} times what one takes ({alone * 1000:.0f} ms)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", choices=["evidence", "time"])
    parser.add_argument("--questions", type=int, default=360)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, memstore.open(f"embedded:{root}/store", settings=SETTINGS) as store:
        if given.only != "time":
            measure_evidence(store, given.data, given.questions)
        if given.only != "evidence":
            measure_time(store, given.data)


if __name__ == "__main__":
    main()
