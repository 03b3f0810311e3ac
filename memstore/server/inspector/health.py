"""How a user's memory is: what waits, answers of models that nobody could use, and counters that are off."""

from __future__ import annotations

from starlette.responses import Response

from memstore.server.inspector.visit import Visit

MOST_LETTERS = 30


async def page(visit: Visit) -> Response:
    """Give what waits, dead letters, and the drift of counters."""
    user = visit.user
    letters = await user.dead_letters(limit=MOST_LETTERS + 1)
    return visit.page(
        "health.html",
        user=user.name,
        counts=await visit.store.stats(user=user.name),
        letters=letters[:MOST_LETTERS],
        more=len(letters) > MOST_LETTERS,
        names=await user.conversation_names(list({one.conversation_id for one in letters})),
        drift=await user.drift(),
    )
