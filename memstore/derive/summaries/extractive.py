"""Extractive summaries: the sentences that say most, chosen and not written. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memstore.derive.asked import Asked
from memstore.derive.resources import Resources
from memstore.derive.summaries.abridge import abridged
from memstore.derive.summaries.nest import Range
from memstore.models import Summary


class ExtractiveSummarizer:
    """Makes summaries of the sentences that say most."""

    batch = 512
    asks = False
    recipe = "extractive/5"

    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    def asked(self) -> None:
        """Nobody is asked."""
        return

    def summarize(self, ranges: Sequence[Range], tokens: int, asked: Sequence[Asked | None] = ()) -> list[Summary]:
        """Return a summary of at most `tokens` tokens for each range."""
        texts = [abridged(one.lines, tokens, self.resources.counter) for one in ranges]
        return [one.summary(text, self.recipe, self.resources) for one, text in zip(ranges, texts, strict=True)]
