"""Health, for whoever watches over processes: no token, no names, no numbers."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from memstore.errors import MemstoreError
from memstore.server.http.asked import StoreDep
from memstore.server.http.problems import REFERRED, Problem

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """That it is well."""

    status: Literal["ok"] = "ok"


@router.get("/healthz")
async def healthy() -> Health:
    """Say that the process answers."""
    return Health()


@router.get("/readyz", responses={503: {"description": REFERRED}})
async def ready(request: Request, store: StoreDep) -> Health:
    """Say whether requests can be served: the database answers, and this server is not about to stop."""
    if request.app.state.bell.stopping:
        raise Problem(503, "stopping", "This server is about to stop: ask another.")
    try:
        await store.tokens.exist()
    except MemstoreError:  # it may name the database's host, which is nobody's business here
        raise Problem(503, "no-database", "The database does not answer: memstore doctor says why.") from None
    return Health()
