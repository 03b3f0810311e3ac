"""Whether what was derived of a user is what the watermarks say: counted, table by table. Nothing is changed."""

from __future__ import annotations

from memstore.models import HAND
from memstore.store.database import Transaction, columns
from memstore.store.derivations import DERIVERS
from memstore.store.statements import statements

SQL = statements("verify")


async def problems(scope: Transaction) -> dict[str, int]:
    """Give what is not as it should be of the user, in words, and how many rows that concerns; nothing where all is."""
    read = {
        "messages wait for a deriver": SQL["pending"],
        "watermarks do not know of the last message": SQL["watermarks"],
        "messages under the watermark have no unit": SQL["unembedded"],
        "units are of nothing": SQL["orphans"],
        "units have no vector": SQL["without_vectors"],
        "facts have no source": SQL["unsourced_facts"],
        "summaries are of no messages": SQL["unsourced_summaries"],
        "the user's units are counted wrongly": SQL["miscounted"],
        "the user's postings are not those of the units": SQL["misposted"],
    }
    found = {}
    for problem, statement in read.items():
        row = await scope.one(statement, columns, derivers=list(DERIVERS), hand=HAND)
        if row and row["found"]:
            found[problem] = row["found"]
    return found
