"""The recall playground: a question, what narrows it, and what each signal was worth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from memstore.errors import MemstoreError
from memstore.models import Hit, HitGroup, Role, Tier
from memstore.server.http.errors import problem_from
from memstore.server.ui import charts
from memstore.server.ui.request import UIRequest

LIMITS = (5, 10, 20, 40)
PARAMS = ("q", "conversation", "tags", "since", "until", "as_of", "viewer")


async def show_recall(ui: UIRequest) -> Response:
    """Show what is remembered about a question, with the parts of its scores."""
    user, query = ui.user, ui.request.query_params
    params = {name: ui.param(name) for name in PARAMS}
    tiers = [tier for tier in Tier if tier in query.getlist("tier")] or list(Tier)
    roles = [role for role in Role if role in query.getlist("role")]
    options: dict[str, Any] = {
        "order": "time" if ui.param("order") == "time" else "score",
        "group_by": ui.param("group_by") if ui.param("group_by") in ("session", "fact") else None,
        "limit": ui.number("limit", 10, most=LIMITS[-1]),
        "tiers": tiers,
    }
    results: Sequence[Hit] | Sequence[HitGroup] = []
    wrong, status = "", 200
    if params["q"]:
        try:
            results = await user.recall(params["q"], roles=roles or None, **options, **_filters(params))
        except MemstoreError as error:
            problem = problem_from(error)
            wrong, status = problem.detail, problem.status_code
    groups = [result for result in results if isinstance(result, HitGroup)]
    hits = [result for result in results if isinstance(result, Hit)]
    grouped = [hit for group in groups for hit in ([group.fact] if group.fact else []) + list(group.hits)]
    ids = {hit.conversation_id for hit in hits + grouped if hit.conversation_id}
    return ui.page(
        "recall.html",
        status=status,
        user=user.name,
        asked=params | options | {"roles": roles},
        wrong=wrong,
        hits=hits,
        groups=groups,
        names=await user.conversation_names(list(ids)),
        highest=charts.highest_score(hit.parts for hit in hits + grouped),
        score=charts.score_bars,
        every={"tiers": list(Tier), "roles": list(Role), "limits": LIMITS},
    )


def _filters(params: dict[str, str | None]) -> dict[str, Any]:
    """Return the filters of a question; days are those of UTC, the last one included."""
    tags = [tag.strip() for tag in (params["tags"] or "").split(",") if tag.strip()]
    until = _datetime(params["until"])
    return {
        "conversation": params["conversation"],
        "viewer": params["viewer"],
        "tags": tags or None,
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
