"""Webhooks. They are the operator's, and are sent the events of every user."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from memstore.models import QUARANTINED, FactColumns, Json, Webhook, WebhookEvent
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("webhooks")
# As the statements say.
TASK, QUEUE = "memstore.webhook", "webhooks"
# By which receivers know a secret.
SECRET_PREFIX = "whsec_"  # nosec B105  # it is no secret


class Target(NamedTuple):
    """Where an event is sent, what signs it, and the name of its user, if the user was not erased."""

    url: str
    secret: str
    user_name: str | None


async def add(tx: Transaction, id: UUID, url: str, events: Sequence[str], secret: str) -> Webhook:
    [webhook] = await tx.all(SQL["add"], Webhook, id=id, url=url, events=list(events), secret=secret)
    return webhook


async def webhooks(tx: Transaction) -> list[Webhook]:
    """Return all there are, the latest first; the disabled ones too."""
    return await tx.all(SQL["webhooks"], Webhook)


async def remove(tx: Transaction, id: UUID) -> bool:
    """Remove a webhook; return whether there was one."""
    return bool(await tx.run(SQL["remove"], id=id))


async def target(tx: Transaction, id: UUID, user: UUID) -> Target | None:
    """Return where to send an event of a user; None if the webhook is removed or disabled."""
    name = await tx.value(SQL["user_name"], str, user=user)
    return await tx.one(SQL["target"], partial(Target, user_name=name), id=id)


async def note_failure(tx: Transaction, id: UUID, error: str, *, disable: bool) -> None:
    """Note why a delivery failed; with `disable` nothing more is enqueued or sent."""
    await tx.run(SQL["note_failure"], id=id, error=error, disable=disable)


async def forget(tx: Transaction, facts: Collection[UUID] | None) -> bool:
    """Remove the events about these facts of the user, or about all; return whether there is any webhook.

    They are the operator's rows, as is what this transaction sees from now on.
    """
    await tx.run(SQL["as_operator"])
    if not await tx.value(SQL["exist"], bool):
        return False
    await tx.run(SQL["forget"], user=tx.user_id, facts=None if facts is None else [str(fact) for fact in facts])
    return True


def note_created(tx: Transaction, fact: FactColumns, before: Json | None = None) -> None:
    """Send `fact.created` for a new fact, or one that waited for review before a change; not while it waits."""
    if fact.state == "active" and (before is None or before["state"] == QUARANTINED):
        tx.notify(WebhookEvent.FACT_CREATED, fact=str(fact.id), kind=fact.kind)
