"""Templates of pages, every value escaped; and the addresses that they link to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memstore.server.http.middleware import UI
from memstore.server.http.pagination import encode_cursor

SIGNAL_LABELS = {
    "semantic": "meaning",
    "semantic_around": "meaning around",
    "lexical": "words",
    "lexical_around": "words around",
}


def url_to(*parts: object, at: str | None = None, **query: Any) -> str:
    """Return the path of a page: names are encoded, empty values of the query left out; `at` is an anchor."""
    path = "/".join([UI, *(quote(str(part), safe="", errors="replace") for part in parts)]) if parts else f"{UI}/"
    values = urlencode({name: value for name, value in query.items() if value not in (None, "", [])}, doseq=True)
    return path + (f"?{values}" if values else "") + (f"#{at}" if at else "")


def safe_redirect_target(path: str) -> str:
    """Return a path of these pages unchanged, and their first page for anything else."""
    is_own = path.startswith(f"{UI}/") and "\\" not in path and path.isprintable() and path.isascii()
    return path if is_own else f"{UI}/"


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a page as HTML."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("memstore.server.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"to": url_to, "cursor": _cursor, "asset": _asset}
    environment.filters |= {
        "clip": clip,
        "when": lambda moment: _time(moment, "%b %Y, %H:%M"),
        "day": lambda moment: _time(moment, "%b %Y"),
        "n": lambda number: "–" if number is None else f"{number:,}",
        "lasting": _duration,
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False, default=str),
        "signal": lambda name: SIGNAL_LABELS.get(name, name),
    }
    return environment


def clip(text: object, limit: int) -> str:
    """Return the beginning of a text."""
    whole = "" if text is None else str(text)
    return whole if len(whole) <= limit else f"{whole[:limit].rstrip()}…"


def _time(moment: datetime | None, format: str) -> Markup:
    if moment is None:
        return Markup("")
    label = f"{moment.day} {moment:{format}}"
    return Markup('<time datetime="{}">{}</time>').format(moment.isoformat(timespec="seconds"), label)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def _cursor(*position: object) -> str:
    return encode_cursor([value.isoformat() if isinstance(value, datetime) else value for value in position])


def _asset(name: str) -> str:
    return f"{UI}/static/{name}?v={version('memstore')}"
