"""Erasing: a rehearsal, then the name typed to confirm it, then the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from uuid import UUID

from starlette.responses import JSONResponse, Response

from memstore.memory.user import AsyncUserScope
from memstore.models import Certificate, ErasureScope
from memstore.server.http.errors import Problem
from memstore.server.http.middleware import disable_timeout
from memstore.server.ui.request import UIRequest, redirect
from memstore.server.ui.templating import url_to

SHOWN = 20
KINDS = (ErasureScope.USER, ErasureScope.CONVERSATION, ErasureScope.MESSAGE, ErasureScope.FACT)


async def show_erasures(ui: UIRequest) -> Response:
    """Show the certificates of a user, and where it is allowed the form that begins with a rehearsal."""
    user = ui.user
    found = await user.erasures(limit=SHOWN + 1)
    return ui.page(
        "erase.html",
        user=user.name,
        certificates=found[:SHOWN],
        more=len(found) > SHOWN,
        what=ui.param("what") if ui.param("what") in KINDS else ErasureScope.CONVERSATION,
        which=ui.param("which") or "",
    )


async def rehearse(ui: UIRequest) -> Response:
    """Show what would be erased; nothing is."""
    fields = await ui.form()
    disable_timeout(ui.request.scope)
    return await _rehearsal(ui, fields)


async def erase(ui: UIRequest) -> Response:
    """Erase, where its name was typed; lead to the certificate."""
    fields = await ui.form()
    disable_timeout(ui.request.scope)
    user = ui.user
    if fields.get("word", "") != _word(user, fields):
        return await _rehearsal(ui, fields, "That is not what it is called: nothing was erased.")
    done = await _erase(user, fields, dry_run=False)
    return redirect(url_to("users", user.name, *(("erase",) if done.id is None else ("erasures", done.id))))


async def show_certificate(ui: UIRequest) -> Response:
    """Show a certificate."""
    user = ui.user
    return ui.page("certificate.html", user=user.name, certificate=await user.erasure(ui.id))


async def download_certificate(ui: UIRequest) -> Response:
    """Return a certificate as a file, as `memstore verify-erasure` reads it."""
    found = await ui.user.erasure(ui.id)
    kept = f'attachment; filename="certificate-{found.id}.json"'
    return JSONResponse(found.as_dict(), headers={"Content-Disposition": kept})


async def _rehearsal(ui: UIRequest, fields: Mapping[str, str], wrong: str = "") -> Response:
    user = ui.user
    return ui.page(
        "rehearsal.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        user=user.name,
        certificate=await _erase(user, fields, dry_run=True),
        what=fields.get("what", ""),
        which=_which(fields),
        word=_word(user, fields),
        wrong=wrong,
    )


def _word(user: AsyncUserScope, fields: Mapping[str, str]) -> str:
    """Return what has to be typed to erase."""
    return user.name if fields.get("what") == ErasureScope.USER else _which(fields)


def _which(fields: Mapping[str, str]) -> str:
    """Return the conversation's name exactly as typed, or an id without blanks around it."""
    which = fields.get("which", "")
    return which if fields.get("what") == ErasureScope.CONVERSATION else which.strip()


async def _erase(user: AsyncUserScope, fields: Mapping[str, str], *, dry_run: bool) -> Certificate:
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
