"""The facts deriver: what speakers assert about themselves and their world, by rules, merged with what is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

from memstore import ids
from memstore.ingest.embed import Batch, next_messages
from memstore.ingest.rules.extraction import FactDraft, extract
from memstore.ingest.tools import Tools
from memstore.models import Fact, Message, Tier, Unit
from memstore.providers import Vectors
from memstore.store import facts, items
from memstore.store.database import Transaction
from memstore.store.derivations import Pending
from memstore.store.items import new_unit

RECIPE = "rules/1"
NEAR = 0.95  # cosine from which two facts of one type and subject may be the same statement
DETAILS = re.compile(r"\d+|\b(?:not|no|never|nicht|kein\w*|nie)\b|n't\b|(?<=\s)[A-ZÄÖÜ]\w+")


@dataclass(frozen=True, slots=True)
class Found:
    """A draft, the message that says it, and its vector."""

    draft: FactDraft
    message: Message
    vector: Vectors | None


class Facts:
    """Makes facts of messages."""

    name = "facts"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    async def read(self, scope: Transaction, work: Pending, limit: int) -> Batch:
        """Give the next messages."""
        return await next_messages(scope, work, limit)

    def think(self, batches: Sequence[Batch]) -> list[list[Found]]:
        """Extract and embed."""
        drafts = [[(draft, message) for message in batch.messages for draft in drafts_of(message)] for batch in batches]
        vectors = iter(self.tools.embed([draft.text for pairs in drafts for draft, _ in pairs]))
        return [
            [
                Found(draft, message, vector)
                for (draft, message), vector in zip(pairs, islice(vectors, len(pairs)), strict=True)
            ]
            for pairs in drafts
        ]

    async def write(self, scope: Transaction, made: list[Found]) -> dict[str, int]:
        """Store new facts; give known ones, exact or near, one more source."""
        if not made:
            return {}
        await facts.lock(scope)
        model = await items.bind_embedder(scope, self.tools.embedder)
        known = await facts.known(scope, [_id(scope.user_id, found.draft) for found in made])
        sources: list[tuple[UUID, UUID]] = []
        said: list[tuple[UUID, datetime]] = []
        new = 0
        for found in made:
            fact = _id(scope.user_id, found.draft)
            if fact not in known:
                twin = await _near(scope, found, model)
                if twin is None:
                    await _store(scope, fact, found, model)
                    new += 1
                    known.add(fact)
                fact = twin or fact
            sources.append((fact, found.message.id))
            said.append((fact, found.message.occurred_at))
        await facts.add_sources(scope, sources)
        await facts.said_at(scope, said)
        return {"facts": new}


def drafts_of(message: Message) -> list[FactDraft]:
    """Give what a message says that lasts."""
    if not message.text:
        return []
    return extract(message.text, role=message.role, speaker=message.name, occurred_at=message.occurred_at)


def _id(user: UUID, draft: FactDraft) -> UUID:
    return ids.fact_id(user, draft.subject, draft.text)


async def _near(scope: Transaction, found: Found, model: UUID | None) -> UUID | None:
    """Give the fact that says the same in nearly the same words: numbers, names and negations must agree."""
    if found.vector is None or model is None:
        return None
    near = await facts.nearest(scope, found.vector, model, type=found.draft.type, subject=found.draft.subject)
    if near is None or near[2] < NEAR or details(near[1]) != details(found.draft.text):
        return None
    return near[0]


def details(text: str) -> list[str]:
    """Give what makes two near statements different ones: numbers, names, negations."""
    return sorted(DETAILS.findall(text))


async def _store(scope: Transaction, fact: UUID, found: Found, model: UUID | None) -> None:
    draft, message = found.draft, found.message
    record = Fact.model_construct(
        id=fact,
        type=draft.type,
        subject=draft.subject,
        text=draft.text,
        confidence=draft.confidence,
        valid_from=draft.valid_from,
        recipe=RECIPE,
        occurred_at=message.occurred_at,
    )
    await facts.add(scope, record)
    unit = Unit(
        item_id=fact,
        chunk=0,
        tier=Tier.FACTS,
        conversation_id=message.conversation_id,
        seq=None,
        role=None,
        speaker=draft.subject,
        start=0,
        stop=len(draft.text),
        occurred_at=message.occurred_at,
    )
    await items.add(scope, [new_unit(scope.user_id, unit, draft.text, found.vector)], model)
