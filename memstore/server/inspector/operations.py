"""Operations: backfills, jobs of workers, embedders. Live where the browser runs the script; else looked at again."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from memstore.models import BackfillStatus
from memstore.server.http.problems import Problem
from memstore.server.inspector import links, live
from memstore.server.inspector.visit import Visit, seen

BACKFILLS, JOBS = 8, 30
LOOK = 1.0  # seconds between two looks
STEPS = ("pause", "resume", "cancel")


async def page(visit: Visit) -> Response:
    """Give how backfills, jobs and embedders are."""
    visit.check_operator()
    return live.again(visit, visit.page("operations.html", **await _found(visit)))


async def changes(visit: Visit) -> Response:
    """Give the same each time that it changes."""
    visit.check_operator()
    return live.stream(visit, "_operations.html", _found, seconds=LOOK)


async def steer(visit: Visit) -> Response:
    """Pause, resume or cancel a backfill."""
    await visit.form()
    visit.check_operator()
    backfills, what, id = visit.store.backfills, visit.request.path_params["what"], visit.id()
    if what not in STEPS:
        raise Problem(HTTPStatus.NOT_FOUND, "not-found", "There is nothing like that to be done to a backfill.")
    steps = {"pause": backfills.pause, "resume": backfills.resume, "cancel": backfills.cancel}
    await steps[what](id)
    return seen(links.to("operations"))


async def retry(visit: Visit) -> Response:
    """Have the jobs that were given up tried again."""
    await visit.form()
    visit.check_operator()
    await visit.store.retry_jobs()
    return seen(links.to("operations"))


async def _found(visit: Visit) -> dict[str, Any]:
    store = visit.store
    backfills = await store.backfills.all(limit=BACKFILLS)
    jobs = await store.jobs(failed=True, limit=JOBS + 1)
    return {
        "backfills": [await store.backfills.status(one.id) for one in backfills],
        "share": share,
        "counts": asdict(await store.job_counts()),
        "jobs": jobs[:JOBS],
        "more": len(jobs) > JOBS,
        "embedders": await store.embeddings.status(),
    }


def share(status: BackfillStatus) -> float:
    """Give how much of a backfill is done, from 0 to 1."""
    left = sum(status.left.values())
    return status.done / (status.done + left) if status.done + left else 1.0
