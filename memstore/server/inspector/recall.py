"""The recall playground: a question, what narrows it, and what each signal was worth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from memstore.errors import MemstoreError
from memstore.models import Hit, HitGroup, Role, Tier
from memstore.server.http.problems import problem_of
from memstore.server.inspector import pictures
from memstore.server.inspector.visit import Visit

LIMITS = (5, 10, 20, 40)
MOST_IN_GROUPS = 60
LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)  # after which there is none


async def page(visit: Visit) -> Response:
    """Ask what is remembered, and show it with the parts of its scores."""
    user = visit.user
    given = visit.request.query_params
    tiers = [one for one in Tier if one in given.getlist("tier")] or list(Tier)
    roles = [one for one in Role if one in given.getlist("role")]
    asked = {name: visit.asked(name) for name in ("q", "conversation", "tags", "since", "until", "as_of", "viewer")}
    order = "time" if visit.asked("order") == "time" else "score"
    group_by = visit.asked("group_by") if visit.asked("group_by") in ("session", "fact") else None
    limit = visit.number("limit", 10, most=LIMITS[-1])
    found: Sequence[Hit] | Sequence[HitGroup] = []
    wrong, status = "", 200
    if asked["q"]:
        try:
            chosen: Any = {"order": order, "group_by": group_by, "limit": limit, "tiers": tiers}
            found = await user.recall(asked["q"], roles=roles or None, **chosen, **_narrowed(asked))
        except MemstoreError as error:
            problem = problem_of(error)
            wrong, status = problem.detail, problem.status
    groups = [one for one in found if isinstance(one, HitGroup)]
    hits = [one for one in found if isinstance(one, Hit)]
    inside = [hit for group in groups for hit in ([group.fact] if group.fact else []) + list(group.hits)]
    names = await user.conversation_names(list({one.conversation_id for one in hits + inside if one.conversation_id}))
    return visit.page(
        "recall.html",
        status=status,
        user=user.name,
        asked=asked | {"tiers": tiers, "roles": roles, "order": order, "group_by": group_by, "limit": limit},
        wrong=wrong,
        hits=hits,
        groups=_bounded(groups),
        names=names,
        highest=pictures.highest(one.parts for one in hits + inside),
        score=pictures.score,
        every={"tiers": list(Tier), "roles": list(Role), "limits": LIMITS},
    )


def _narrowed(asked: dict[str, str | None]) -> dict[str, Any]:
    """Give what narrows a question; days are those of UTC, the last one included."""
    tags = [one.strip() for one in (asked["tags"] or "").split(",") if one.strip()]
    until = _moment(asked["until"])
    whole = until is not None and len(asked["until"] or "") == len("2026-01-31")
    return {
        "conversation": asked["conversation"],
        "viewer": asked["viewer"],
        "tags": tags or None,
        "since": _moment(asked["since"]),
        "until": until + timedelta(days=1) if until is not None and whole and until < LAST_DAY else until,
        "as_of": _moment(asked["as_of"]),
    }


def _moment(text: str | None) -> datetime | None:
    """Give a day, or a moment, in UTC where no zone is said; None for what is none."""
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def _bounded(groups: Sequence[HitGroup]) -> list[tuple[HitGroup, Sequence[Hit]]]:
    """Give groups with as many of their hits as a page has room for."""
    each = max(1, MOST_IN_GROUPS // max(1, len(groups)))
    return [(one, one.hits[:each]) for one in groups]
