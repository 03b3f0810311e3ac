"""Erasing users, conversations, messages and facts, each with a certificate that can be verified."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import Field

from memstore.models import Certificate, ScanResult
from memstore.server.http import dependencies
from memstore.server.http.dependencies import ConversationDep, StoreDep, StrictModel, UserDep
from memstore.server.timeout import disable_timeout

erasures = APIRouter(tags=["erasures"])


class ErasureParams(StrictModel):
    """Whether this is a rehearsal. A misspelt name is refused, and nothing is erased."""

    dry_run: bool = Field(False, description="erase nothing, and return what would be removed")


Params = Annotated[ErasureParams, Query()]


@erasures.delete(dependencies.USER)
async def erase_user(user: UserDep, request: Request, params: Params) -> Certificate:
    """Erase everything of a user, tokens of this user's too; return the certificate. There is no timeout."""
    disable_timeout(request.scope)
    return await user.erase(dry_run=params.dry_run)


@erasures.delete(dependencies.CONVERSATION)
async def erase_conversation(conversation: ConversationDep, request: Request, params: Params) -> Certificate:
    """Erase a conversation with all that was derived from it; return the certificate. There is no timeout."""
    disable_timeout(request.scope)
    return await conversation.erase(dry_run=params.dry_run)


@erasures.delete(f"{dependencies.USER}/messages/{{message}}")
async def erase_message(user: UserDep, message: UUID, params: Params) -> Certificate:
    """Erase a message with all that was derived from it; return the certificate."""
    return await user.erase_message(message, dry_run=params.dry_run)


@erasures.post(f"{dependencies.USER}/facts/{{fact}}/erase")
async def erase_fact(user: UserDep, fact: UUID, params: Params) -> Certificate:
    """Erase a fact, which DELETE only retracts; return the certificate. The messages that say it stay."""
    return await user.erase_fact(fact, dry_run=params.dry_run)


@erasures.get(f"{dependencies.USER}/erasures")
async def list_erasures(
    user: UserDep, limit: Annotated[int, Query(ge=1, le=dependencies.MAX_LIMIT)] = 100
) -> list[Certificate]:
    """Return the certificates of a user, the latest first; they are kept when the user is gone."""
    return await user.erasures(limit=limit)


@erasures.get(f"{dependencies.USER}/erasures/{{erasure}}")
async def get_erasure(user: UserDep, erasure: UUID) -> Certificate:
    """Return a certificate."""
    return await user.erasure(erasure)


@erasures.post(f"{dependencies.USER}/erasures/{{erasure}}/verify")
async def verify_erasure(user: UserDep, store: StoreDep, erasure: UUID) -> ScanResult:
    """Search every table for what was erased; return where it still is."""
    return await store.verify_erasure(await user.erasure(erasure))


# A certificate may name any id.
@erasures.post("/erasures/verify", dependencies=dependencies.OPERATOR)
async def verify_certificate(certificate: Certificate, store: StoreDep) -> ScanResult:
    """Search every table for what a certificate names that was kept elsewhere, such as after a restore."""
    return await store.verify_erasure(certificate)
