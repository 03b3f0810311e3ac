"""The reads of a profile, in a transaction; `profile` composes their result afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from memstore.context.items import ProfileSource, is_by_rules
from memstore.context.visibility import VisibilityFilter
from memstore.models import UNIMPORTANT
from memstore.store import facts, messages
from memstore.store.database import Transaction


async def read_profile_source(
    tx: Transaction,
    *,
    subject: str | None = None,
    as_of: datetime | None = None,
    visibility: VisibilityFilter | None = None,
    without: Collection[UUID] = (),
) -> ProfileSource:
    """Return what the profile of a subject is made of, by default of the one that most facts are about.

    It has none of the facts `without`, and none that a viewer does not see.
    """
    known = await facts.facts(tx, as_of=as_of)
    if visibility is not None and visibility.is_active:
        seen = set(await visibility.fact_ids(tx, [fact.id for fact in known]))
        known = [fact for fact in known if fact.id in seen]
    counts = Counter(fact.subject for fact in known)
    if subject is None:
        subject = min(counts, key=lambda name: (-counts[name], name), default="The user")
    about = [fact for fact in known if fact.subject.casefold() == subject.casefold() and fact.importance != UNIMPORTANT]
    about = [fact for fact in about if fact.id not in without]
    read = await messages.known(tx, sorted({fact.spans[0].message_id for fact in about if is_by_rules(fact)}))
    return ProfileSource(subject, about, read, tuple(counts), as_of)
