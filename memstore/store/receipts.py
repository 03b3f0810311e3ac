"""Receipts: the record of every assembly. Ids, tokens and reasons, never a text."""

from __future__ import annotations

from uuid import UUID

from memstore.models import Receipt
from memstore.store.database import Transaction
from memstore.store.statements import statements

SQL = statements("receipts")


async def add(scope: Transaction, receipt_id: UUID, conversation: UUID, receipt: Receipt) -> None:
    """Keep a receipt with its conversation."""
    values = {"conversation_id": conversation, "budget": receipt.budget, "tokens": receipt.tokens}
    await scope.run(SQL["add_receipt"], id=receipt_id, body=receipt.as_dict(), **values)
