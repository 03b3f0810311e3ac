"""How a user's memory is: what waits, answers of models that nobody could use, and counters that are off."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from memstore.server.inspector import live
from memstore.server.inspector.visit import Visit

MOST_LETTERS = 30
LOOK = 5.0  # seconds between two looks: to count what there is of a large user takes a tenth of one


async def page(visit: Visit) -> Response:
    """Give what waits, dead letters, and the drift of counters."""
    return live.again(visit, visit.page("health.html", **await _found(visit)))


async def changes(visit: Visit) -> Response:
    """Give the same each time that it changes."""
    _ = visit.user  # refused here, not when the stream has begun
    return live.stream(visit, "_health.html", _found, seconds=LOOK)


async def _found(visit: Visit) -> dict[str, Any]:
    user = visit.user
    letters = await user.dead_letters(limit=MOST_LETTERS + 1)
    return {
        "user": user.name,
        "counts": await visit.store.stats(user=user.name),
        "letters": letters[:MOST_LETTERS],
        "more": len(letters) > MOST_LETTERS,
        "names": await user.conversation_names(list({one.conversation_id for one in letters})),
        "drift": await user.drift(),
    }
