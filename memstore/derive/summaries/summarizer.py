"""Who makes the summaries: sentences are chosen, or a chat model writes them where one is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memstore.derive.asked import Asked
from memstore.derive.method import Method
from memstore.derive.resources import Resources
from memstore.derive.summaries.abstractive import AbstractiveSummarizer
from memstore.derive.summaries.extractive import ExtractiveSummarizer
from memstore.derive.summaries.nest import Range
from memstore.models import Summary


class Summarizer(Method, Protocol):
    """Makes summaries of ranges. Pure but for the models that it asks."""

    def asked(self) -> Asked | None:
        """Give a new account of what is asked for one conversation; None where nobody is."""

    def summarize(self, ranges: Sequence[Range], tokens: int, asked: Sequence[Asked | None]) -> list[Summary]:
        """Give a summary of at most `tokens` tokens for each range; `asked` are their accounts.

        Fewer, those of the first ranges, where a model that is asked goes away in between.
        """


def summarizer_of(resources: Resources) -> Summarizer:
    """Give who makes summaries with these resources."""
    model = resources.summary_model
    return ExtractiveSummarizer(resources) if model is None else AbstractiveSummarizer(resources, model)
