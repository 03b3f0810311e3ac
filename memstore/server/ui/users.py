"""Users: the list, one user's overview and health; and operations, which are the operator's."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus

from starlette.responses import Response

from memstore.models import BackfillStatus
from memstore.server.http.errors import Problem
from memstore.server.ui import charts, contexts
from memstore.server.ui.request import UIRequest, redirect
from memstore.server.ui.templating import url_to

PAGE_SIZE, LATEST, LATEST_CONTEXTS = 25, 6, 4
DEAD_LETTERS, BACKFILLS, JOBS = 30, 8, 30


async def home(ui: UIRequest) -> Response:
    """Show the users, sorted; a user's token leads to that user."""
    if ui.principal is not None and ui.principal.user_id is not None:
        return redirect(url_to("users", ui.principal.user_name))
    position = ui.position(tuple[str])
    names: list[str] = []
    async for name in ui.store.users(after=position[0] if position else ""):
        names.append(name)
        if len(names) > PAGE_SIZE:
            break
    shown = [(name, await ui.store.user(name).conversations(limit=LATEST)) for name in names[:PAGE_SIZE]]
    return ui.page("users.html", users=shown, more=len(names) > PAGE_SIZE, first=position is None)


async def overview(ui: UIRequest) -> Response:
    """Show a user: how much there is, when it was said, what came last."""
    user = ui.user
    receipts = await user.receipt_page(limit=LATEST_CONTEXTS)
    names = await contexts.conversation_names(user, receipts)
    timeline = await user.timeline(parts=charts.TIMELINE_PARTS)
    return ui.page(
        "user.html",
        user=user.name,
        counts=await ui.store.stats(user=user.name),
        timeline=None if timeline is None else charts.timeline_lanes(timeline),
        conversations=await user.conversations(limit=LATEST),
        facts=await user.fact_page(limit=LATEST),
        receipts=[(receipt, await contexts.question(user, receipt, names)) for receipt in receipts],
    )


async def health(ui: UIRequest) -> Response:
    """Show what waits, answers of models that could not be used, and the drift of counters."""
    user = ui.user
    letters = await user.dead_letters(limit=DEAD_LETTERS + 1)
    return ui.page(
        "health.html",
        user=user.name,
        counts=await ui.store.stats(user=user.name),
        letters=letters[:DEAD_LETTERS],
        more=len(letters) > DEAD_LETTERS,
        names=await user.conversation_names(list({letter.conversation_id for letter in letters})),
        drift=await user.drift(),
    )


async def operations(ui: UIRequest) -> Response:
    """Show backfills, jobs that were given up, and embedders."""
    if not ui.is_operator:
        detail = "This is the operator's: sign in with a token of the operator."
        raise Problem(HTTPStatus.FORBIDDEN, "operators-only", detail)
    store = ui.store
    jobs = await store.jobs(failed=True, limit=JOBS + 1)
    backfills = await store.backfills.all(limit=BACKFILLS)
    return ui.page(
        "operations.html",
        backfills=[await store.backfills.status(backfill.id) for backfill in backfills],
        share=_share_done,
        counts=asdict(await store.job_counts()),
        jobs=jobs[:JOBS],
        more=len(jobs) > JOBS,
        embedders=await store.embeddings.status(),
    )


def _share_done(status: BackfillStatus) -> float:
    left = sum(status.left.values())
    return status.done / (status.done + left) if status.done + left else 1.0
