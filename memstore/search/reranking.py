"""Reranking: the best hits are read together with the question by a reranker, and put in order by both scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memstore.errors import ProviderError
from memstore.models import Hit
from memstore.providers import Reranker, Scores

PART = "reranker"
# Hits that are read. Contexts of 2,000 tokens hold fewer, and a small cross-encoder (6 layers of 384) takes 20 ms of a
# processor for each, of 47 tokens. What is not read keeps its place behind them, as no part is below 0.
READ = 50


def rerank(reranker: Reranker, question: str, hits: Sequence[Hit], known: dict[str, float] | None = None) -> list[Hit]:
    """Return hits, which come the best first, in the order of both scores, each with one more part.

    The reranker's scores are of a scale of its own: they are spread over as much as ours differ among what was read, so
    that both count the same. Raises `ProviderError` where it gives something else than a number for each. `known` holds
    the scores of texts that it has read for this question, which it need not read again, and is added to.
    """
    read = hits[:READ]
    if not read:
        return []
    known = {} if known is None else known
    texts = [f"{hit.speaker}: {hit.text}" if hit.speaker else hit.text for hit in read]  # as they are embedded
    if fresh := [text for text in dict.fromkeys(texts) if text not in known]:
        known.update(zip(fresh, _checked(reranker, question, fresh).tolist(), strict=True))
    scores = [known[text] for text in texts]
    ours = [hit.score for hit in read]
    spread = float(max(ours) - min(ours)) or 1.0  # where we cannot tell them apart, it decides
    lowest, range_ = min(scores), max(scores) - min(scores) or 1.0
    shares = [(score - lowest) / range_ for score in scores]
    reranked = [_with_part(hit, round(spread * share, 6)) for hit, share in zip(read, shares, strict=True)]
    return [*sorted(reranked, key=lambda hit: -hit.score), *hits[READ:]]


def _checked(reranker: Reranker, question: str, texts: Sequence[str]) -> Scores:
    scores = np.asarray(reranker.scores(question, texts), dtype=np.float64)
    if scores.shape != (len(texts),) or not np.isfinite(scores).all():
        raise ProviderError(
            f"The reranker {reranker.name!r} gave scores of the shape {scores.shape} for {len(texts)} texts, or "
            "numbers that are not finite: mend it, or set MEMSTORE_RERANKER=none."
        )
    return scores


def _with_part(hit: Hit, part: float) -> Hit:
    return replace(hit, score=round(hit.score + part, 6), parts={**hit.parts, PART: part})
