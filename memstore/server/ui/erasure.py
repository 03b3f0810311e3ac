"""Erasing: a rehearsal, then the name typed to confirm it, then the certificate."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

from starlette.responses import JSONResponse, Response

from memstore.models import Certificate, ErasureScope
from memstore.server.http.errors import Problem
from memstore.server.http.middleware import disable_timeout
from memstore.server.ui.request import UIRequest, redirect, url_to

CERTIFICATES = 20
SCOPES = (ErasureScope.USER, ErasureScope.CONVERSATION, ErasureScope.MESSAGE, ErasureScope.FACT)


async def show_erasures(ui: UIRequest) -> Response:
    """Show the certificates of a user, and where it is allowed the form that begins with a rehearsal."""
    user = ui.user
    certificates = await user.erasures(limit=CERTIFICATES + 1)
    return ui.page(
        "erase.html",
        user=user.name,
        certificates=certificates[:CERTIFICATES],
        more=len(certificates) > CERTIFICATES,
        what=ui.param("what") if ui.param("what") in SCOPES else ErasureScope.CONVERSATION,
        which=ui.param("which") or "",
    )


async def rehearse(ui: UIRequest) -> Response:
    """Show what would be erased; nothing is."""
    return await _show_rehearsal(ui, *_target(await ui.form()))


async def erase(ui: UIRequest) -> Response:
    """Erase, where its name was typed; lead to the certificate."""
    user, fields = ui.user, await ui.form()
    what, which = _target(fields)
    if fields.get("word", "") != (user.name if what == ErasureScope.USER else which):
        return await _show_rehearsal(ui, what, which, "That is not what it is called: nothing was erased.")
    certificate = await _erase(ui, what, which, dry_run=False)
    place = ("erase",) if certificate.id is None else ("erasures", certificate.id)
    return redirect(url_to("users", user.name, *place))


async def show_certificate(ui: UIRequest) -> Response:
    """Show a certificate."""
    user = ui.user
    return ui.page("certificate.html", user=user.name, certificate=await user.erasure(ui.id))


async def download_certificate(ui: UIRequest) -> Response:
    """Return a certificate as a file, as `memstore verify-erasure` reads it."""
    certificate = await ui.user.erasure(ui.id)
    disposition = f'attachment; filename="certificate-{certificate.id}.json"'
    return JSONResponse(certificate.as_dict(), headers={"Content-Disposition": disposition})


def _target(fields: dict[str, str]) -> tuple[str, str]:
    """Return what a form names: a conversation exactly, for " a" and "a" are two; an id without blanks around it."""
    what, which = fields.get("what", ""), fields.get("which", "")
    return what, which if what == ErasureScope.CONVERSATION else which.strip()


async def _show_rehearsal(ui: UIRequest, what: str, which: str, wrong: str = "") -> Response:
    user = ui.user
    return ui.page(
        "rehearsal.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        user=user.name,
        certificate=await _erase(ui, what, which, dry_run=True),
        what=what,
        which=which,
        word=user.name if what == ErasureScope.USER else which,
        wrong=wrong,
    )


async def _erase(ui: UIRequest, what: str, which: str, *, dry_run: bool) -> Certificate:
    disable_timeout(ui.request.scope)
    user = ui.user
    if what == ErasureScope.USER:
        return await user.erase(dry_run=dry_run)
    if what == ErasureScope.CONVERSATION:
        return await user.conversation(which).erase(dry_run=dry_run)
    try:
        id = UUID(which)
    except ValueError:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", f"{which:.60} is no id.") from None
    if what == ErasureScope.MESSAGE:
        return await user.erase_message(id, dry_run=dry_run)
    return await user.erase_fact(id, dry_run=dry_run)
