"""Whether what was erased is gone: of a certificate, by ids, or of a text, everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from memstore.models import Certificate, ErasureScope, LeftoverReport
from memstore.store import remains, searching, tombstones
from memstore.store.database import Database, Transaction

SOUGHT = 20  # ids that are looked for in every table and column, one after the other
RESTORED = (
    "the tombstones of this erasure are not in this database: was it restored from a backup that is older? "
    "Erase again what the certificate names."
)


async def of_certificate(database: Database, certificate: Certificate) -> LeftoverReport:
    """Look for the ids that a certificate names, in the tables of its user and in every other.

    That of a retention names the conversation, which goes on: looked for are messages in it that were erased.
    """
    gone = () if certificate.scope == ErasureScope.RETENTION else certificate.erased
    async with database.scope(certificate.user_id) as scope:
        if certificate.scope == ErasureScope.USER:
            found = Counter(await remains.of_user(scope))
        elif certificate.scope == ErasureScope.RETENTION:
            found = Counter(await _come_back(scope, certificate.erased))
        else:
            found = Counter(await remains.ids(scope, gone))
        kept = certificate.tombstones if certificate.id is None else await tombstones.of_erasure(scope, certificate.id)
    tables, elsewhere = await searching.rows(database, [str(one) for one in gone[:SOUGHT]])
    found |= Counter(elsewhere)
    hints = () if kept == certificate.tombstones else (RESTORED,)
    return LeftoverReport(max(1, len(certificate.erased)), tables, +found, hints)


async def _come_back(scope: Transaction, conversations: Sequence[UUID]) -> dict[str, int]:
    """Give how many messages of these conversations were erased and stand there all the same."""
    there = await remains.messages_of(scope, conversations)
    return {"messages": len(await tombstones.erased_items(scope, there))}


async def of_text(database: Database, text: str) -> LeftoverReport:
    """Look for a text in every table, whoever's, in capital or small letters."""
    tables, found = await searching.rows(database, [text])
    return LeftoverReport(1, tables, found)
