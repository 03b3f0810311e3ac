"""The recall playground: a question, what narrows it, and what each signal was worth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from memstore.errors import MemstoreError
from memstore.models import Hit, Tier
from memstore.server.http.errors import problem_from
from memstore.server.ui import charts
from memstore.server.ui.request import UIRequest

LIMITS = (5, 10, 20, 40)
PARAMS = ("q", "conversation", "since", "until", "as_of", "viewer")


async def show_recall(ui: UIRequest) -> Response:
    """Show what is remembered about a question, with the parts of its scores."""
    user, params = ui.user, {name: ui.param(name) for name in PARAMS}
    tiers = [tier for tier in Tier if tier in ui.request.query_params.getlist("tier")] or list(Tier)
    limit = ui.number("limit", 10, most=LIMITS[-1])
    hits: Sequence[Hit] = []
    wrong, status = "", 200
    if params["q"]:
        try:
            hits = await user.recall(params["q"], tiers=tiers, limit=limit, **_filters(params))
        except MemstoreError as error:
            problem = problem_from(error)
            wrong, status = problem.detail, problem.status_code
    ids = {hit.conversation_id for hit in hits if hit.conversation_id}
    return ui.page(
        "recall.html",
        status=status,
        user=user.name,
        asked=params | {"tiers": tiers, "limit": limit},
        wrong=wrong,
        hits=hits,
        names=await user.conversation_names(list(ids)),
        highest=charts.highest_score(hit.parts for hit in hits),
        score=charts.score_bars,
        every={"tiers": list(Tier), "limits": LIMITS},
    )


def _filters(params: dict[str, str | None]) -> dict[str, Any]:
    """Return the filters of a question; days are those of UTC, the last one included."""
    until = _datetime(params["until"])
    return {
        "conversation": params["conversation"],
        "viewer": params["viewer"],
        "since": _datetime(params["since"]),
        "until": until + timedelta(days=1) if until and until.year < datetime.max.year else until,
        "as_of": _datetime(params["as_of"]),
    }


def _datetime(day: str | None) -> datetime | None:
    """Return a day as its first moment in UTC; None for what is none."""
    try:
        return None if day is None else datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
