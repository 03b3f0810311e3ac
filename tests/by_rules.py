"""What the rules read of a text that Alice says."""

from __future__ import annotations

from datetime import UTC, datetime

from memstore.derive.facts.rule_extractor import FactDraft, Utterance, extract

AT = datetime(2024, 1, 24, 9, tzinfo=UTC)  # a Wednesday


def read(text: str, *before: str, at: datetime = AT) -> list[FactDraft]:
    """Give what is read of a text, after others that she said."""
    return extract(Utterance(text, "user", "Alice", at), [Utterance(one, "user", "Alice", at) for one in before])


def told(text: str, *before: str, at: datetime = AT) -> list[str]:
    """Give the texts of the facts."""
    return [one.text for one in read(text, *before, at=at)]


def slots(text: str, *before: str, at: datetime = AT) -> list[tuple[str, str, str]]:
    """Give subject, attribute and value of each slot."""
    return [(one.subject, one.slot.attribute, one.slot.value) for one in read(text, *before, at=at) if one.slot]
