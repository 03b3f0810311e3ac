"""Receipts of contexts, and the outbox of events for readers that were not subscribed.

A receipt's body has ids, tokens and reasons; `sent` is what was sent, packed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic_core import to_json

from memstore.errors import InvalidInput
from memstore.models import MAX_PREVIEW_CHARS, Decision, Event, EventType, Json, Reason, Receipt
from memstore.models.contexts import as_json
from memstore.store.database import Read, Transaction
from memstore.store.sql import statements

SQL = statements("receipts")
# What a strategy or the caller wrote, which no other row has.
KINDS_WITHOUT_ROW = ("block", "text")


async def add(tx: Transaction, receipt: Receipt, sent: bytes) -> None:
    """Keep a receipt with what was `sent` in its conversation, and the events so far, and commit; it has an id."""
    # A step's names differ, and jsonb does not keep the order of an object.
    body = as_json(receipt, exclude={"id", "conversation_id", "recorded_at", "compressed", "sections"})
    body["sections"] = list(receipt.sections.items())
    if receipt.compressed:
        body["compressed"] = [step.as_dict() for step in receipt.compressed]
    for decision in body["included"]:
        if decision["kind"] not in KINDS_WITHOUT_ROW:
            decision.pop("preview", None)
    for decision in body["left_out"]:
        decision.pop("preview", None)
    row = {name: getattr(receipt, name) for name in ("id", "conversation_id", "budget", "tokens")}
    # `to_json` takes a tenth of json's time.
    row |= {"body": Jsonb(body, dumps=to_json), "sent": sent}
    await tx.run_together([(SQL["add_receipt"], [row])], commit=True)


async def receipt(tx: Transaction, id: UUID) -> Receipt | None:
    """Return one receipt; its decisions say how their items begin, where those are still there."""
    stored = await receipt_with_sent(tx, id)
    return None if stored is None else (await _add_previews(tx, stored[:1]))[0]


async def receipts(tx: Transaction, conversation: UUID, *, limit: int) -> list[Receipt]:
    return await _add_previews(tx, await receipt_page(tx, conversation, before=None, limit=limit))


async def receipt_page(tx: Transaction, conversation: UUID | None, *, before: UUID | None, limit: int) -> list[Receipt]:
    """Return a page of receipts, of one or all conversations, the latest first, without what their items say."""
    values = {"conversation_id": conversation, "before": before, "limit": limit}
    return await tx.all(SQL["receipt_page"], _receipt, **values)


async def receipt_with_sent(tx: Transaction, id: UUID) -> tuple[Receipt, bytes | None] | None:
    """Return one receipt without previews, and what was sent; None for that where it was not kept."""
    return await tx.one(SQL["receipt"], lambda sent, **columns: (_receipt(**columns), sent), id=id)


def _receipt(id: UUID, conversation_id: UUID, body: Json, recorded_at: datetime) -> Receipt:
    columns = {"id": id, "conversation_id": conversation_id, "sections": dict(body["sections"])}
    return replace(Receipt.from_dict(body | columns), recorded_at=recorded_at)


async def _add_previews(tx: Transaction, receipts: Sequence[Receipt]) -> list[Receipt]:
    every = (decision for receipt in receipts for decision in receipt.decisions())
    # A receipt does not name what its viewer does not see.
    wanted = {
        (decision.id, decision.start)
        for decision in every
        if decision.id is not None and decision.reason != Reason.NOT_VISIBLE
    }
    ids, starts = [id for id, _ in wanted], [start for _, start in wanted]
    rows = await tx.tuples(SQL["says"], ids=ids, starts=starts, most=MAX_PREVIEW_CHARS) if wanted else []
    says = {(id, start): (speaker, text or "") for id, start, speaker, text in rows}
    return [
        replace(receipt, included=_preview(receipt.included, says), left_out=_preview(receipt.left_out, says))
        for receipt in receipts
    ]


def _preview(
    decisions: Sequence[Decision], says: Mapping[tuple[UUID, int], tuple[str | None, str]]
) -> tuple[Decision, ...]:
    return tuple(
        decision if decision.kind in KINDS_WITHOUT_ROW else replace(decision, preview=_preview_of(decision, says))
        for decision in decisions
    )


def _preview_of(decision: Decision, says: Mapping[tuple[UUID, int], tuple[str | None, str]]) -> str:
    row = None if decision.id is None else says.get((decision.id, decision.start))
    # Turns are several.
    if row is None or decision.kind == "turns":
        return ""
    speaker, text = row
    return (f"{speaker}: {text}" if decision.kind in ("turn", "message") else text)[:MAX_PREVIEW_CHARS]


HORIZON: Read[int] = Read(SQL["horizon"], {}, lambda rows: int(rows[0][0]))


async def events(tx: Transaction, *, after: str | None, types: Sequence[str] | None, limit: int) -> list[Event]:
    """Return a user's events after a cursor, in the order in which a reader may rely on seeing all of them.

    The transaction was opened with the `HORIZON`.
    """
    transaction, event = _position(after)
    values = {"after_transaction": transaction, "after_id": event, "oldest": tx.result(HORIZON)}
    return await tx.all(SQL["events"], _event, **values, types=types and list(types), limit=limit)


def _position(cursor: str | None) -> tuple[int, UUID]:
    try:
        transaction, _, event = (cursor or f"0/{UUID(int=0)}").partition("/")
        place = int(transaction), UUID(event)
        if not 0 <= place[0] < 2**63:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            f"after={cursor!r} is no cursor; give Event.cursor of an event that you have read."
        ) from None
    return place


def _event(type: str, **columns: Any) -> Event:
    return Event(type=EventType(type), **columns)
