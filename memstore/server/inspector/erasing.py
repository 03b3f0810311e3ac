"""Erasing: what would go, then the word of whoever asks, then the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from uuid import UUID

from starlette.responses import JSONResponse, Response

from memstore.memory.user import AsyncUserScope
from memstore.models import Certificate, ErasureScope
from memstore.server.http.problems import Problem
from memstore.server.http.streams import unhurried
from memstore.server.inspector import links
from memstore.server.inspector.visit import Visit, seen

SHOWN = 20
KINDS = (ErasureScope.USER, ErasureScope.CONVERSATION, ErasureScope.MESSAGE, ErasureScope.FACT)


async def page(visit: Visit) -> Response:
    """Give the certificates of a user, and where it is allowed the form that begins with a rehearsal."""
    user = visit.user
    found = await user.erasures(limit=SHOWN + 1)
    return visit.page(
        "erase.html",
        user=user.name,
        certificates=found[:SHOWN],
        more=len(found) > SHOWN,
        what=visit.asked("what") if visit.asked("what") in KINDS else ErasureScope.CONVERSATION,
        which=visit.asked("which") or "",
    )


async def rehearse(visit: Visit) -> Response:
    """Give what would be erased; nothing is."""
    fields = await visit.form()
    unhurried(visit.request.scope)
    return await _rehearsed(visit, fields)


async def erase(visit: Visit) -> Response:
    """Erase, where the word was typed that names it; lead to the certificate."""
    fields = await visit.form()
    unhurried(visit.request.scope)
    user = visit.user
    if fields.get("word", "") != _word(user, fields):
        return await _rehearsed(visit, fields, "That is not what it is called: nothing was erased.")
    done = await _erased(user, fields, dry_run=False)
    return seen(links.to("users", user.name, *(("erase",) if done.id is None else ("erasures", done.id))))


async def certificate(visit: Visit) -> Response:
    """Give a certificate."""
    user = visit.user
    return visit.page("certificate.html", user=user.name, certificate=await user.erasure(visit.id()))


async def as_json(visit: Visit) -> Response:
    """Give a certificate as a file, as `memstore verify-erasure` reads it."""
    found = await visit.user.erasure(visit.id())
    kept = f'attachment; filename="certificate-{found.id}.json"'
    return JSONResponse(found.as_dict(), headers={"Content-Disposition": kept})


async def _rehearsed(visit: Visit, fields: Mapping[str, str], wrong: str = "") -> Response:
    user = visit.user
    return visit.page(
        "rehearsal.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        user=user.name,
        certificate=await _erased(user, fields, dry_run=True),
        what=fields.get("what", ""),
        which=_which(fields),
        word=_word(user, fields),
        wrong=wrong,
    )


def _word(user: AsyncUserScope, fields: Mapping[str, str]) -> str:
    """Give what has to be typed to erase."""
    return user.name if fields.get("what") == ErasureScope.USER else _which(fields)


def _which(fields: Mapping[str, str]) -> str:
    """Give what is named: a conversation to the letter, for " a" and "a" are two; an id without blanks around it."""
    which = fields.get("which", "")
    return which if fields.get("what") == ErasureScope.CONVERSATION else which.strip()


async def _erased(user: AsyncUserScope, fields: Mapping[str, str], *, dry_run: bool) -> Certificate:
    what, which = fields.get("what", ""), _which(fields)
    if what == ErasureScope.USER:
        return await user.erase(dry_run=dry_run)
    if what == ErasureScope.CONVERSATION:
        return await user.conversation(which).erase(dry_run=dry_run)
    if what == ErasureScope.MESSAGE:
        return await user.erase_message(_id(which), dry_run=dry_run)
    if what == ErasureScope.FACT:
        return await user.erase_fact(_id(which), dry_run=dry_run)
    raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", "Say what is to be erased.")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", f"{text:.60} is no id.") from None
