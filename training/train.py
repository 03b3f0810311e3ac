"""Train the reader: train.py DATA.jsonl… --check FILE.jsonl… --out FOLDER

Needs torch, onnx and memstore. Messages of --check are not learnt from: they tell how probable notes are, and measure.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from export import copy_relations, weights_of, write
from measure import agree, score
from model import Encoder
from torch import Tensor, nn
from torch.nn import functional

from examples import UNKNOWN, Examples, phrases, read, turns
from memstore.derive.reader.model import CARD_FILE, CLS, GRAPH_FILE, SEP, Reader
from memstore.derive.reader.notes import BINARY, Note, probability, sizes
from memstore.providers.minilm import WEIGHTS_FILE

BATCH = 16
STEP = 16  # tokens of a length: few lengths, as the kernels of each are made once
PHRASES = 150
MASK, MASKED = 103, 0.12  # the token, and the share of tokens that are masked
LAYER_DECAY = 0.85  # of the rate from one layer to the one below
DECAY = 0.998  # of the mean of the weights over the steps, which is what is kept
RATE, HEAD_RATE = 3e-4, 3e-3
MORE = 0.3  # share of the rates at which a reader learns more
WEIGHTS = {"kept": 1.0, "type": 0.5, "attribute": 0.5, "edit": 0.2, "phrase": 0.2}  # of losses; others
OTHERS = 0.3


def batches(examples: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Return the examples in batches of about one length, shuffled."""
    order = sorted(examples, key=lambda each: len(each["ids"]) + random.random() * 12)
    made = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    random.shuffle(made)
    yield from made


def masked(ids: Tensor, mask: Tensor) -> Tensor:
    """Return tokens of which some are masked, so that not a word alone decides."""
    hidden = (torch.rand(ids.shape) < MASKED) & mask.bool() & (ids != CLS) & (ids != SEP)
    return ids.masked_fill(hidden, MASK)


def inputs(batch: Sequence[dict[str, Any]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tokens of examples, their segments, and which of them there are."""
    shape = len(batch), -(-max(len(each["ids"]) for each in batch) // STEP) * STEP
    ids, segments, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    for row, each in enumerate(batch):
        ids[row, : len(each["ids"])] = torch.tensor(each["ids"])
        segments[row, each["from"] : len(each["ids"])] = 1
        mask[row, : len(each["ids"])] = 1
    return ids, segments, mask


def loss_of(logits: dict[str, Tensor], batch: Sequence[dict[str, Any]]) -> Tensor:
    """Return the loss of a batch."""
    total = torch.zeros(())
    for name, values in logits.items():
        wanted = torch.full(values.shape[:2], UNKNOWN)
        for row, each in enumerate(batch):
            if name == "any":
                wanted[row, 0] = each["any"]
            else:
                labels = each["labels"][name]
                wanted[row, each["from"] : each["from"] + len(labels)] = torch.from_numpy(labels)
        told = wanted != UNKNOWN
        if not told.any():
            continue
        if name in BINARY:
            loss = functional.binary_cross_entropy_with_logits(values[..., 0][told], wanted[told].float())
        else:
            loss = functional.cross_entropy(values[told], wanted[told], label_smoothing=0.05)
        total = total + WEIGHTS.get(name, OTHERS) * loss
    return total


def train(
    examples: Sequence[dict[str, Any]], labels: dict[str, int], epochs: int, seed: int, begin: Path | None = None
) -> Encoder:
    """Return a reader that has learnt from examples, or learnt more: its layers that pairs share stay as they were."""
    torch.manual_seed(seed)
    random.seed(seed)
    reader = Encoder(labels, WEIGHTS_FILE)
    if begin is None:
        return learn(reader, lambda: examples, loss_of, epochs)
    missing, _ = reader.load_state_dict(weights_of(begin / GRAPH_FILE), strict=False)
    assert missing == ["embeddings.word_embeddings.weight"], missing  # which stay in the embedding model's file
    reader.freeze_shared()
    return learn(reader, lambda: examples, loss_of, epochs, MORE)


def learn(
    encoder: Encoder,
    examples: Callable[[], Sequence[dict[str, Any]]],
    loss_of: Callable[[dict[str, Tensor], Sequence[dict[str, Any]]], Tensor],
    epochs: int,
    share: float = 1.0,
) -> Encoder:
    """Return the encoder after it has learnt from the examples of each epoch: the mean of its weights.

    `share` is that of the rate at which it learns.
    """
    groups = [{"params": list(encoder.heads.parameters()), "lr": HEAD_RATE * share}]
    parts = [encoder.embeddings, *encoder.encoder["layer"]]
    for depth, part in enumerate(reversed(parts)):
        groups.append(
            {
                "params": [each for each in part.parameters() if each.requires_grad],
                "lr": RATE * share * LAYER_DECAY**depth,
            }
        )
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = epochs * -(-len(examples()) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [group["lr"] for group in groups], total_steps=steps, pct_start=0.1
    )
    mean = torch.optim.swa_utils.AveragedModel(encoder, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(DECAY))
    encoder.train()
    for epoch in range(epochs):
        begin, losses = time.time(), []
        for batch in batches(examples()):
            ids, segments, mask = inputs(batch)
            with torch.autocast("cpu", torch.bfloat16):  # several times as fast where the processor has it
                logits = encoder(masked(ids, mask), segments, mask)
            loss = loss_of({name: each.float() for name, each in logits.items()}, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            mean.update_parameters(encoder)
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.time() - begin:.0f} s", flush=True)
    return mean.module.eval()


def calibrate(notes: Sequence[Note], right: Sequence[bool]) -> list[float]:
    """Return the weights of score, gate and one by which a logistic is the share of notes that are right."""
    x = torch.tensor([[note.score, note.gate, 1.0] for note in notes])
    y = torch.tensor(right).float()
    line = torch.tensor([1.0, 0.0, 0.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([line], max_iter=200)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = functional.binary_cross_entropy_with_logits(x @ line, y)
        value.backward()
        return value

    optimizer.step(loss)
    return [round(weight, 3) for weight in line.tolist()]


def main() -> None:
    """Train, write the reader, and measure it as it is written."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--check", nargs="*", type=Path, default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--begin", type=Path, help="a reader that learns more; its reading of pairs comes along")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    messages, checked = read(options.data), read(options.check)
    before = json.loads((options.begin / CARD_FILE).read_text(encoding="utf-8")) if options.begin else {}
    told = before.get("phrases") or phrases(messages, PHRASES)
    maker = Examples(told)
    reader = train([*map(maker.make, messages)], sizes(told), options.epochs, options.seed, options.begin)
    options.out.mkdir(parents=True, exist_ok=True)
    begun = onnx.load(options.begin / GRAPH_FILE, load_external_data=False) if options.begin else None  # before it goes
    write(reader.state_dict(), options.out / GRAPH_FILE)
    if begun is not None:
        copy_relations(begun, options.out / GRAPH_FILE)
    card = before | {"phrases": told, "line": [1.0, 0.0, 0.0]}
    (options.out / CARD_FILE).write_text(json.dumps(card))
    found = Reader(options.out).read(turns(checked))
    matches = [agree(message, notes) for message, notes in zip(checked, found, strict=True)]
    noted = [note for notes in found for note in notes]
    line = calibrate(noted, [fact is not None for each in matches for fact in each])
    digest = sha256((options.out / GRAPH_FILE).read_bytes()).hexdigest()
    card |= {"line": line, "sha256": digest, "messages": len(messages)}
    (options.out / CARD_FILE).write_text(json.dumps(card, ensure_ascii=False, indent=1) + "\n")
    for least in (0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9):
        chosen = [[note for note in notes if probability(note.score, note.gate, line) >= least] for notes in found]
        print(f"from {least}:  {score(checked, chosen)}")


if __name__ == "__main__":
    main()
