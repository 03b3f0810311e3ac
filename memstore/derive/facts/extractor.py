"""Who extracts the facts: the rules, or a chat model where one is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memstore.derive.dependencies import Dependencies, Producer
from memstore.derive.facts.by_model import ModelExtractor
from memstore.derive.facts.by_rules import RuleExtractor
from memstore.derive.facts.extracted import FactBatch, MadeFacts


class Extractor(Producer, Protocol):
    """Extracts facts from messages. Pure but for the models that it asks."""

    def extract(self, batches: Sequence[FactBatch]) -> list[MadeFacts]:
        """Give the facts of each batch."""


def extractor_of(resources: Dependencies) -> Extractor:
    """Give who extracts facts with these resources."""
    model = resources.facts_model
    return RuleExtractor(resources) if model is None else ModelExtractor(resources, model)
