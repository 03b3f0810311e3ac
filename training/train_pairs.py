"""Teach a trained reader what a statement does to an earlier one: train_pairs.py --pairs FILE… --lives FILE… --out DIR

A line of --pairs is a pair, or a statement with several later ones ("news"), each as a clause, in plain words, and in
some files as the whole message; one of --lives is what a person says over months. Of --facts, which are labelled
messages, two values of one attribute are of one person: "lives in Porto", and later "lives in Cork".

Needs torch, onnx and memstore. DIR has a reader; its first layers stay as they are, and the others are learnt once
more, for pairs. The files of --check are not learnt from: they measure.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from export import PAIRS, add_relations, weights_of
from model import SHARED, Encoder
from torch import Tensor
from torch.nn import functional
from train import learn

from examples import read
from memstore.derive.facts.slots import SINGLE
from memstore.derive.reader.model import CARD_FILE, CHANGED_TOKEN, CLS, GRAPH_FILE, MAX_STATEMENT_TOKENS, SEP, Reader
from memstore.derive.reader.notes import RELATIONS, Pair
from memstore.language.detection import language_of
from memstore.providers.minilm import WEIGHTS_FILE, MiniLM, load_tokenizer

NEAREST = 3  # statements of a life before one, which it leaves as they are, to learn from; and any other one
FORMS = 2  # of each pair in which something changes: plain, quoted, with the words around
# Attributes of facts about the speaker of which several values hold at once.
MANY = (
    "likes",
    "dislikes",
    "hobby",
    "language",
    "pet",
    "allergy",
    "medicine",
    "condition",
    "family",
    "friend",
    "device",
)
OWN = re.compile(
    r"\{NAME\}['’]?s (?:phone|mobile|cell|number|e-?mail|mail|address|birthday|name|home|full|first|work)\b",
    re.IGNORECASE,
)
LASTING = ("preference", "constraint", "relation")  # types of facts of which several hold
NAMES = ("Ada", "Tom", "Priya", "Jonas", "Mia", "Luca", "Grace", "Olu", "Marta", "Ben")
KIN = ("sister", "brother", "mother", "dad", "wife", "husband", "son", "daughter", "boss", "friend", "neighbour")
FREUNDE = ("Schwester", "Mutter", "Frau", "Tochter", "Chefin", "Freundin", "Nachbarin", "Oma")
OTHERS = 0.5  # share of the changes that are told of others, too
UNNAMED = 0.35  # share of pairs that speak of "the user"
tokenizer = cache(load_tokenizer)


def pairs_in(line: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the pairs of a line: itself, or a statement with each of its later ones, in one of their forms."""
    for later in line.get("news", [line]):
        old, new = (
            random.choice([each[form] for form in (name, f"{name}_plain", f"{name}_text") if form in each])
            for each, name in ((line, "old"), (later, "new"))
        )
        yield {"name": line.get("name", ""), "old": old, "new": new, "label": later["label"]}


def pairs_of(life: dict[str, Any], embedder: MiniLM) -> Iterator[dict[str, str]]:
    """Yield pairs of the statements of a life: those that touch each other, and near ones that do not.

    What was ended is left alone, and what ends a statement ends those that said the same before.
    """
    statements = life["statements"]
    vectors = np.asarray(embedder.embed_documents([each["plain"] for each in statements]), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ended: set[int] = set()
    same: defaultdict[int, set[int]] = defaultdict(set)
    for place, statement in enumerate(statements):
        does = {int(other): relation for other, relation in statement["does"]}
        for other, relation in list(does.items()):
            if relation in RELATIONS[:2]:
                does = dict.fromkeys(same[other], relation) | does
        order = sorted(range(place), key=lambda other: -float(vectors[other] @ vectors[place]))
        touched = ended | does.keys()
        free = [other for other in order if other not in touched and touched.isdisjoint(same[other])]
        far = random.sample(free[NEAREST:], 1) if len(free) > NEAREST + 1 else []
        for other in (*free[:NEAREST], *far):
            yield _pair(life, statements[other], statement, RELATIONS[-1])
        for other, relation in does.items():
            for _ in range(FORMS):
                yield _pair(life, statements[other], statement, relation)
            if relation in RELATIONS[:2]:
                ended.add(other)
            else:
                same[place] |= {other} | same[other]
                same[other].add(place)


def pairs_of_facts(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield pairs of short facts about the speaker, as if one person had said both."""
    told: defaultdict[tuple[bool, str], list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        for fact in message["facts"]:
            is_single = fact["attribute"] in SINGLE
            is_own = fact["fact"].startswith("{NAME} ") or (is_single and OWN.match(fact["fact"]))
            is_plain = fact["type"] in ("identity", "possession") or (fact["type"] in LASTING and not is_single)
            if is_own and is_plain and fact["value"] and fact.get("holds", True) and not fact["ends"]:
                told[" ist " in fact["fact"] or "{NAME}s " in fact["fact"], fact["attribute"]].append(fact)
    for (tongue, attribute), facts in told.items():
        others = [
            fact for (spoken, other), some in told.items() if spoken == tongue and other != attribute for fact in some
        ]
        for fact in facts:
            same = [one for one in facts if one["value"].casefold() != fact["value"].casefold()]
            if same and attribute in SINGLE:
                yield from (_pair_of_facts(fact, random.choice(same), RELATIONS[0]) for _ in range(FORMS))
            elif same and attribute in MANY:
                yield _pair_of_facts(fact, random.choice(same), RELATIONS[-1])
            yield _pair_of_facts(fact, random.choice(others), RELATIONS[-1])


def _pair_of_facts(earlier: dict[str, Any], later: dict[str, Any], relation: str) -> dict[str, str]:
    name = random.choice(NAMES)
    old, new = (random.choice([each["quote"], each["fact"].replace("{NAME}", name)]) for each in (earlier, later))
    return {"name": name, "old": old, "new": new, "label": relation}


def pairs_of_others(line: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the changes of a line as they would be another's: what a sister does leaves one's own, and ends hers."""
    name = line.get("name", "")
    for later in line.get("news", [line]):
        old, new = line.get("old_plain", later.get("old_plain", "")), later.get("new_plain", "")
        are_plain = name and all(text.startswith(f"{name} ") and text.count(name) == 1 for text in (old, new))
        if later["label"] not in RELATIONS[:2] or not are_plain or random.random() > OTHERS:
            continue
        is_german = language_of(f"{old} {new}") == "de"
        kin = f"{name}s {random.choice(FREUNDE)}" if is_german else f"{name}'s {random.choice(KIN)}"
        other = random.choice([kin, *random.sample([each for each in NAMES if each != name], 2)])
        their_old, their_new = (text.replace(name, other, 1) for text in (old, new))
        yield {"name": name, "old": old, "new": their_new, "label": RELATIONS[-1]}
        if random.random() < OTHERS:
            yield {"name": name, "old": their_old, "new": their_new, "label": later["label"]}
        else:
            yield {"name": name, "old": their_old, "new": new, "label": RELATIONS[-1]}


def _pair(life: dict[str, Any], earlier: dict[str, str], later: dict[str, str], relation: str) -> dict[str, str]:
    return {"name": life["name"], "old": _form(earlier), "new": _form(later), "label": relation}


def _form(statement: dict[str, str]) -> str:
    form = random.choices(("plain", "quote", "text"), (45, 30, 25))[0]
    return statement["quote" if form == "text" and len(statement["text"].split()) > 40 else form]


def example(pair: dict[str, str]) -> dict[str, Any]:
    """Return a pair as it is learnt, now and then without the name."""
    texts = [pair["old"], pair["new"]]
    if (name := pair.get("name")) and random.random() < UNNAMED:
        texts = [text.replace(name, "The user" if text.startswith(name) else "the user") for text in texts]
    earlier, later = (tokenizer().encode(text, add_special_tokens=False).ids[:MAX_STATEMENT_TOKENS] for text in texts)
    ids = [CLS, CHANGED_TOKEN, *earlier, SEP, *later, SEP]
    return {"ids": ids, "from": len(earlier) + 3, "relation": RELATIONS.index(pair["label"])}


def pair_encoder(graph: Path) -> Encoder:
    """Return a reader's encoder of pairs, whose first layers stay as they are, with what it has learnt of pairs."""
    encoder = Encoder({"relation": len(RELATIONS)}, WEIGHTS_FILE)
    own = encoder.state_dict()
    state = {name: each for name, each in weights_of(graph).items() if name in own and "heads" not in name}
    encoder.load_state_dict(state | weights_of(graph, PAIRS), strict=False)
    encoder.freeze_shared()
    return encoder


def train(
    pairs: Sequence[dict[str, str]], left_alone: Sequence[dict[str, str]], graph: Path, epochs: int, seed: int
) -> Encoder:
    """Return an encoder that has learnt from pairs, and in each epoch from half of those that are `left_alone`."""
    torch.manual_seed(seed)
    random.seed(seed)

    def examples() -> list[dict[str, Any]]:
        return [*map(example, [*pairs, *random.sample(left_alone, len(left_alone) // 2)])]

    return learn(pair_encoder(graph), examples, loss_of, epochs)


def loss_of(logits: dict[str, Tensor], batch: Sequence[dict[str, Any]]) -> Tensor:
    """Return the loss of a batch."""
    told = torch.tensor([each["relation"] for each in batch])
    return functional.cross_entropy(logits["relation"][:, 0], told, label_smoothing=0.05)


def measure(pairs: Sequence[dict[str, str]], reader: Reader) -> None:
    """Print how precisely pairs are told of which the later statement makes the earlier one outdated, and how many."""
    read = reader.relations([Pair(each["old"], each["new"]) for each in pairs])
    told = np.array([each["label"] in RELATIONS[:2] for each in pairs])
    outdated = np.array([each["replaces"] + each["ends"] for each in read])
    for least in (0.5, 0.7, 0.8, 0.9, 0.95, 0.97):
        found = outdated >= least
        precision = told[found].mean() if found.any() else 1.0
        print(f"from {least}: precision {precision:.3f}, recall {found[told].mean():.2f}")


def main() -> None:
    """Teach the reader of a folder, and measure it as it is written."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", nargs="+", type=Path, required=True)
    parser.add_argument("--lives", nargs="*", type=Path, default=[])
    parser.add_argument("--facts", nargs="*", type=Path, default=[])
    parser.add_argument("--check", nargs="*", type=Path, default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    embedder = MiniLM()
    lives = [pair for life in read(options.lives) for pair in pairs_of(life, embedder)]
    left_alone = [pair for pair in lives if pair["label"] == RELATIONS[-1]]
    changed = [pair for pair in lives if pair["label"] != RELATIONS[-1]]
    pairs = [*(pair for line in read(options.pairs) * FORMS for pair in pairs_in(line)), *changed]
    pairs += pairs_of_facts(read(options.facts))
    pairs += [pair for line in read(options.pairs) for pair in pairs_of_others(line)]
    graph = options.out / GRAPH_FILE
    encoder = train(pairs, left_alone, graph, options.epochs, options.seed)
    add_relations(encoder.state_dict(), SHARED, graph)
    card = json.loads((options.out / CARD_FILE).read_text(encoding="utf-8"))
    card |= {"sha256": sha256(graph.read_bytes()).hexdigest(), "pairs": len(pairs) + len(left_alone)}
    (options.out / CARD_FILE).write_text(json.dumps(card, ensure_ascii=False, indent=1) + "\n")
    if options.check:
        random.seed(options.seed)
        measure([pair for line in read(options.check) for pair in pairs_in(line)], Reader(options.out))


if __name__ == "__main__":
    main()
