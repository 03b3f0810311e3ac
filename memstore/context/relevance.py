"""The relevance of what is stored to a prompt: how likely anything of it matters, from 0 to 1.

Two things are known of a prompt: whether it calls for memory at all ("ok, go on" does not, nor "why is the sky blue"),
and whether it asks for something that was said; of the store, how well what it holds matches. A logistic regression
weighs them, taught by prompts whose answers need a memory and by others, see training/README.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstore.context.utterances import says_nothing
from memstore.derive import reader
from memstore.search.relevance import QuestionMatch

WEIGHTS_FILE = Path(__file__).with_name("relevance.json")
# The default for coding agents and MCP: where nothing above it is stored, nothing is told.
DEFAULT_MIN_RELEVANCE = 0.5
# A prompt unlike any that was learnt from may have a logit of any size.
MAX_CALLS = 4.0


@cache
def load_weights() -> dict[str, Any]:
    weights: dict[str, Any] = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return weights


def relevance(prompt: str, match: QuestionMatch | None) -> float:
    """Return how likely anything that is stored matters to a prompt."""
    if match is None or says_nothing(prompt):
        return 0.0
    weights = load_weights()
    vector = reader.read_prompt(prompt)
    calls, asks = (weigh(vector, weights[name]) for name in ("calls_for_memory", "asks_what_was_said"))
    return round(logistic(weigh(figures(calls, logistic(asks), match), weights["relevance"])), 3)


def figures(calls: float, asks: float, match: QuestionMatch) -> list[float]:
    """Return what is weighed: each figure, and the products of those that depend on each other."""
    calls = min(max(calls, -MAX_CALLS), MAX_CALLS)
    size = math.log(max(match.chunks, 1))
    nearest, meaning, other, covered = match.nearest, match.best_meaning, match.best_other, match.covered
    named, overview = float(match.names_speaker), float(match.asks_for_overview)
    alone = [calls, nearest, meaning, other, covered, match.unknown, match.rarest_unknown, named, overview, size, asks]
    of_asking = [nearest, meaning, other, covered, match.unknown, match.rarest_unknown, named, overview, size, calls]
    pairs = [(calls, nearest), (calls, covered), (calls, size), (nearest, covered), (nearest, size), (covered, size)]
    return [*alone, *(asks * figure for figure in of_asking), *(first * second for first, second in pairs)]


def weigh(values: Sequence[float] | NDArray[np.float32], weights: Sequence[float]) -> float:
    """Return the logit: the last weight, and the sum of the products of values and weights."""
    logit = float(np.dot(np.asarray(values, dtype=np.float64), weights[:-1])) + weights[-1]
    return min(max(logit, -9.0), 9.0)


def logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
