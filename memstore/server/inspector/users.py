"""Users, and one of them: what is remembered, over time."""

from __future__ import annotations

from starlette.responses import Response

from memstore.server.inspector import contexts, links, pictures
from memstore.server.inspector.visit import Visit, seen

A_PAGE, LATEST, SENT = 25, 6, 4


async def home(visit: Visit) -> Response:
    """Give the users, sorted; whoever has the token of one is led there."""
    if not visit.is_operator:
        return seen(links.to("users", visit.caller.name))
    place = visit.place(tuple[str])
    names: list[str] = []
    async for name in visit.store.users(after=place[0] if place else ""):
        names.append(name)
        if len(names) > A_PAGE:
            break
    shown = [(name, await visit.store.user(name).conversations(limit=LATEST)) for name in names[:A_PAGE]]
    return visit.page("users.html", users=shown, more=len(names) > A_PAGE, first=place is None)


async def overview(visit: Visit) -> Response:
    """Give a user: how much there is, when it was said, what came last."""
    user = visit.user
    counts = await visit.store.stats(user=user.name)
    receipts = await user.receipt_page(limit=SENT)
    names = await contexts.names_of(user, receipts)
    timeline = await user.timeline(parts=pictures.PARTS)
    return visit.page(
        "user.html",
        user=user.name,
        counts=counts,
        timeline=None if timeline is None else pictures.lanes(timeline),
        conversations=await user.conversations(limit=LATEST),
        facts=await user.fact_page(limit=LATEST),
        receipts=[(one, await contexts.question(user, one, names)) for one in receipts],
    )
