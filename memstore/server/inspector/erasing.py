"""Erasing: what would go, then the word of whoever asks, then the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote
from uuid import UUID

from starlette.responses import JSONResponse, Response

from memstore.errors import NotFound
from memstore.memory.user import AsyncUserScope
from memstore.models import Certificate, ErasureScope
from memstore.server.http.problems import Problem
from memstore.server.http.streams import unhurried
from memstore.server.inspector import links
from memstore.server.inspector.visit import Visit, seen

SHOWN = 20
MOST = 1000  # certificates that are looked through for one
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
    unhurried(visit.request)
    user = visit.user
    made = await _erased(user, fields, dry_run=True)
    what, which = _asked(fields)
    word = user.name if what == ErasureScope.USER else which
    return visit.page("rehearsal.html", user=user.name, certificate=made, what=what, which=which, word=word, wrong="")


async def erase(visit: Visit) -> Response:
    """Erase, where the word was typed that names it; lead to the certificate."""
    fields = await visit.form()
    unhurried(visit.request)
    user = visit.user
    what, which = _asked(fields)
    word = user.name if what == ErasureScope.USER else which
    if fields.get("word", "") != word:
        made = await _erased(user, fields, dry_run=True)
        wrong = "That is not what it is called: nothing was erased."
        told = {"user": user.name, "certificate": made, "what": what, "which": which, "word": word, "wrong": wrong}
        return visit.page("rehearsal.html", status=HTTPStatus.UNPROCESSABLE_ENTITY, **told)
    done = await _erased(user, fields, dry_run=False)
    return seen(links.to("users", user.name, *(("erase",) if done.id is None else ("erasures", done.id))))


async def certificate(visit: Visit) -> Response:
    """Give a certificate."""
    user = visit.user
    return visit.page("certificate.html", user=user.name, certificate=await _kept(user, visit.id()))


async def as_json(visit: Visit) -> Response:
    """Give a certificate as a file, as `memstore verify-erasure` reads it."""
    found = await _kept(visit.user, visit.id())
    name = quote(f"certificate-{found.id}.json")
    return JSONResponse(found.as_dict(), headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def _kept(user: AsyncUserScope, id: UUID) -> Certificate:
    found = next((one for one in await user.erasures(limit=MOST) if one.id == id), None)
    if found is None:
        raise NotFound("There is no certificate of this id.")
    return found


async def _erased(user: AsyncUserScope, fields: Mapping[str, str], *, dry_run: bool) -> Certificate:
    what, which = _asked(fields)
    if what == ErasureScope.USER:
        return await user.erase(dry_run=dry_run)
    if what == ErasureScope.CONVERSATION:
        return await user.conversation(which).erase(dry_run=dry_run)
    if what == ErasureScope.MESSAGE:
        return await user.erase_message(_id(which), dry_run=dry_run)
    if what == ErasureScope.FACT:
        return await user.erase_fact(_id(which), dry_run=dry_run)
    raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", "Say what is to be erased.")


def _asked(fields: Mapping[str, str]) -> tuple[str, str]:
    """Give what kind of thing a form names, and which one: blanks around a conversation's name are its own."""
    what, which = fields.get("what", ""), fields.get("which", "")
    return what, which if what == ErasureScope.CONVERSATION else which.strip()


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", f"{text:.60} is no id.") from None
