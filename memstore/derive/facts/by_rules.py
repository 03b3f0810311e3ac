"""Facts by rules: no model is asked, and the same messages give the same facts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.extracted import UNNAMED, FactBatch, MadeFacts, Maker, extracted
from memstore.derive.facts.trust import LEVELS, Trust
from memstore.derive.rules.extract import Extracted, Utterance, extract
from memstore.models import Message, Role
from memstore.text import blank_fenced_blocks

RECIPE = "rules/11"
BEFORE = 3  # messages that may be needed to understand one
MOST = 256  # facts of one message: what says more is a paste, and each one is settled with the user's row locked


class RuleExtractor:
    """Extracts facts by rules."""

    batch_size = 512  # enough for the encoder to sort them by length
    uses_llm = False

    def __init__(self, resources: Dependencies) -> None:
        self.resources = resources
        self.trust = Trust.of(resources.settings)

    @property
    def recipe(self) -> str:
        """The rules, whom else than people they are read for, and who is not believed alone."""
        return self.trust.recipe(RECIPE)

    def extract(self, batches: Sequence[FactBatch]) -> list[MadeFacts]:
        """Read and embed; texts of all conversations go to the encoder together."""
        read = [list(facts_of(batch.messages, batch.before, self.trust.roles)) for batch in batches]
        vectors = iter(self.resources.embed([one.draft.text for facts in read for _, one in facts]))
        return [
            MadeFacts(
                batch.to_seq,
                [
                    extracted(draft, message, (draft.start, draft.stop), vector, self._maker(batch), slot)
                    for (message, (draft, slot)), vector in zip(facts, islice(vectors, len(facts)), strict=True)
                ],
            )
            for batch, facts in zip(batches, read, strict=True)
        ]

    def _maker(self, batch: FactBatch) -> Maker:
        return Maker(self.recipe, self.trust)


def facts_of(said: Sequence[Message], begin: int, roles: frozenset[str]) -> Iterator[tuple[Message, Extracted]]:
    """Give the facts that messages from the one at `begin` on say; those before it help to understand them.

    Only people, assistants and tools are read, those of them that are among `roles`.
    """
    for place in range(begin, len(said)):
        message = said[place]
        if message.text and message.role in roles and message.role in LEVELS:
            for one in _of_message(message, said[max(0, place - BEFORE) : place]):
                yield message, one


def _of_message(message: Message, before: Sequence[Message]) -> Iterator[Extracted]:
    said = replace(_said(message), role=Role.USER)  # whoever is trusted is read as a person is
    read = extract(said, [_said(one) for one in before])
    once = {(one.draft.subject, one.draft.text): one for one in reversed(read)}.values()  # each where it is said first
    return islice(reversed(once), MOST)


def _said(message: Message) -> Utterance:
    speaker = message.name or (None if message.role == Role.USER else UNNAMED.get(Role(message.role)))
    return Utterance(blank_fenced_blocks(message.text or ""), message.role, speaker, message.occurred_at)
