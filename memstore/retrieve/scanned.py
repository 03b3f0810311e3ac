"""Ranking for users of whom too much is stored to keep it in the process: the database finds candidates.

Nobody's neighbours are read here, so every unit stands for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from uuid import UUID

from memstore.models import Key, Matches, Role, Tier, Unit
from memstore.retrieve.rank import LATEST, WEIGHTS, Asked, Candidate, Ranking
from memstore.retrieve.signals import K1, B, idf, named_speaker
from memstore.store import items
from memstore.store.database import Transaction
from memstore.store.items import Filters


async def candidates(
    scope: Transaction, question: Asked, model: UUID, filters: Filters, depth: int, also: Sequence[UUID]
) -> Ranking:
    """Rank every unit that a leg found, and the first one of each item in `also`."""
    lexical = bm25(await items.matching(scope, list(question.terms.values()), filters))
    keys = set(nlargest(depth, lexical, key=lambda key: (lexical[key], key)))
    keys.update(await items.latest(scope, filters, LATEST))
    keys.update(Key(item_id, 0) for item_id in also)
    semantic: dict[Key, float] = {}
    if question.vector is not None:
        semantic = await items.nearest(scope, question.vector, model, filters, depth)
        missing = {key.item_id for key in keys - semantic.keys()}
        semantic |= await items.similarity(scope, question.vector, model, missing)
        keys.update(semantic)
    units = await items.units(scope, {key.item_id for key in keys})
    return _signalled(question.text, [units[key] for key in sorted(keys & units.keys())], semantic, lexical)


def bm25(matches: Matches) -> dict[Key, float]:
    """Give BM25 of each unit, divided by the best, so that the best has 1."""
    terms = len(matches.rows[0][2]) if matches.rows else 0
    holding = [sum(1 for _, _, frequencies in matches.rows if frequencies[term]) for term in range(terms)]
    weights = [idf(count, max(matches.units, len(matches.rows))) for count in holding]
    mean = max(matches.mean_length, 1e-9)
    scores = {
        key: sum(
            weight * count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))
            for weight, count in zip(weights, frequencies, strict=True)
            if count
        )
        for key, length, frequencies in matches.rows
    }
    best = max(scores.values(), default=0.0)
    return {key: score / best for key, score in scores.items()} if best > 0 else {}


def _signalled(text: str, units: Sequence[Unit], semantic: dict[Key, float], lexical: dict[Key, float]) -> Ranking:
    named = named_speaker(text, {unit.speaker for unit in units if unit.speaker} - {*Role})
    found = []
    for unit in units:
        signals = {
            "semantic": max(0.0, semantic.get(unit.key, 0.0)),
            "lexical": lexical.get(unit.key, 0.0),
            "speaker": float(named is not None and unit.speaker == named),
            "role": 1.0 if unit.tier != Tier.MESSAGES or unit.role == Role.USER else 0.0,
        }
        parts = {name: round(weight * signals.get(name, 0.0), 6) for name, weight in WEIGHTS.items()}
        found.append(Candidate(unit, parts))
    found.sort(key=lambda one: (-round(one.score, 9), -one.unit.occurred_at.timestamp(), one.unit.key))
    return Ranking([one.unit.tier for one in found], lambda places: [found[place] for place in places])
