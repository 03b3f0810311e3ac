"""What a receipt needs of the store, and keeping it: the context before, what was not known yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import UUID

from memstore import ids
from memstore.context.receipt import stable_prefix
from memstore.events import EventType
from memstore.models import Receipt
from memstore.store import receipts
from memstore.store.database import Transaction
from memstore.store.receipts import Previous


@dataclass(frozen=True, slots=True)
class PreviousContext:
    """What was before: the context of this conversation that was sent last, and what a past moment did not know."""

    previous: Previous | None = None
    hints: tuple[str, ...] = ()


async def load_previous(
    scope: Transaction, conversation: UUID, as_of: datetime | None, viewer: str | None = None
) -> PreviousContext:
    """Give what a receipt is to be put beside."""
    if as_of is None:
        return PreviousContext(await receipts.previous(scope, conversation, viewer))
    later = await receipts.learnt_later(scope, conversation, as_of)
    if not later.messages:
        return PreviousContext()
    return PreviousContext(
        hints=(
            f"as of {as_of.isoformat()} memstore did not know {later.messages:,} messages that were said before: it "
            f"learnt them later, from {later.first} on. since= and until= of recall go by when something was said.",
        )
    )


def finalize(
    receipt: Receipt,
    found: PreviousContext,
    *,
    arguments: Mapping[str, Any],
    models: Mapping[str, str],
    conversation: UUID,
) -> Receipt:
    """Return the receipt with what it was made with, and the tokens that are the same as in the context before."""
    prefix = stable_prefix(receipt.sent, found.previous.sent) if found.previous else 0
    return replace(
        receipt,
        stable_prefix=prefix,
        previous=found.previous.id if found.previous else None,
        arguments={name: value for name, value in arguments.items() if value is not None},
        models={**models, "memstore": _version()},
        hints=(*receipt.hints, *found.hints),
        conversation_id=conversation,
    )


async def save(scope: Transaction, receipt: Receipt) -> Receipt:
    """Keep a receipt and say that it is; give it with its id."""
    receipt = replace(receipt, id=ids.uuid7())
    emit_event(scope, receipt)
    await receipts.add(scope, receipt)
    return receipt


def emit_event(scope: Transaction, receipt: Receipt) -> None:
    """Say what happened; `receipt` is null where none was kept."""
    id = None if receipt.id is None else str(receipt.id)
    for one in receipt.compressed:
        body = {"strategy": one.strategy, "before": one.before, "after": one.after, "saved": one.saved}
        scope.happened(EventType.SUMMARIZATION_COMPLETED, receipt.conversation_id, receipt=id, **body)
    body = {"budget": receipt.budget, "tokens": receipt.tokens, "sections": dict(receipt.sections)}
    scope.happened(EventType.CONTEXT_ASSEMBLED, receipt.conversation_id, receipt=id, **body)


@cache
def _version() -> str:
    try:
        return version("memstore")
    except PackageNotFoundError:
        return "unknown"
