"""Documents: what an application keeps under names of its own. To look at them does not keep them alive."""

from __future__ import annotations

from starlette.responses import Response

from memstore.errors import NotFound
from memstore.server.inspector.drawing import pretty
from memstore.server.inspector.visit import Visit
from memstore.store.documents import DEEPEST

A_PAGE, NAMESPACES = 30, 40
A_VALUE = 12_000  # characters of a value on a page of its own


async def listed(visit: Visit) -> Response:
    """Give a page of a user's documents, the latest change first; below a namespace where one is asked for."""
    user = visit.user
    below = visit.request.query_params.getlist("ns")
    begin = visit.number("from", 1, most=DEEPEST - A_PAGE) - 1
    kept = user.documents()
    found = await kept.search(below, limit=A_PAGE + 1, offset=begin, refresh=False)
    namespaces = await kept.namespaces(limit=NAMESPACES + 1)
    return visit.page(
        "documents.html",
        user=user.name,
        documents=found[:A_PAGE],
        below=below,
        namespaces=namespaces[:NAMESPACES],
        more_namespaces=len(namespaces) > NAMESPACES,
        before=max(1, begin + 1 - A_PAGE) if begin else None,
        following=begin + 1 + A_PAGE if len(found) > A_PAGE else None,
    )


async def page(visit: Visit) -> Response:
    """Give one document, by its namespace and its key; its value in pieces where it is long."""
    user = visit.user
    namespace, key = visit.request.query_params.getlist("ns"), visit.request.query_params.get("key", "")
    found = await user.documents().get(namespace, key, refresh=False)
    if found is None:
        raise NotFound("There is no such document, or it has expired.")
    value = pretty(found.value)
    begin = visit.number("from", 1, most=DEEPEST) - 1
    return visit.page(
        "document.html",
        user=user.name,
        document=found,
        piece=value[begin : begin + A_VALUE],
        begin=begin,
        most=A_VALUE,
        length=len(value),
    )
