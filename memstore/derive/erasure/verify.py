"""Verifies that what was erased is gone: the ids of a certificate, or a text, everywhere."""

from __future__ import annotations

from collections import Counter

from memstore.models import Certificate, ErasureScope, LeftoverReport
from memstore.store import erasure, tombstones
from memstore.store.database import Database

MAX_IDS = 20  # that are searched for in every table and column, one after the other
RESTORED = (
    "the tombstones of this erasure are not in this database: was it restored from a backup that is older? "
    "Erase again what the certificate names."
)


async def verify_certificate(database: Database, certificate: Certificate) -> LeftoverReport:
    """Search for the ids of a certificate in the tables of its user and in every other.

    That of a retention names the conversation, which goes on: messages in it that were erased are searched for.
    """
    ids = () if certificate.scope == ErasureScope.RETENTION else certificate.erased
    async with database.user_transaction(certificate.user_id) as scope:
        if certificate.scope == ErasureScope.USER:
            found = Counter(await erasure.count_user_rows(scope))
        elif certificate.scope == ErasureScope.RETENTION:
            messages = await erasure.messages_of(scope, certificate.erased)
            found = Counter(messages=len(await tombstones.erased_items(scope, messages)))
        else:
            found = Counter(await erasure.count_references(scope, ids))
        kept = certificate.tombstones if certificate.id is None else await tombstones.of_erasure(scope, certificate.id)
    tables, elsewhere = await erasure.scan_tables(database, [str(id) for id in ids[:MAX_IDS]])
    found |= Counter(elsewhere)
    hints = () if kept == certificate.tombstones else (RESTORED,)
    return LeftoverReport(max(1, len(certificate.erased)), tables, +found, hints)


async def verify_text(database: Database, text: str) -> LeftoverReport:
    """Search every table, of every user, for a text in capital or small letters."""
    tables, found = await erasure.scan_tables(database, [text])
    return LeftoverReport(1, tables, found)
