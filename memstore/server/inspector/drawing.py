"""How pages are drawn: the templates, every value escaped; texts clipped, so that a page stays small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from memstore.server.http.pages import encoded
from memstore.server.http.paths import PAGES
from memstore.server.inspector import links

HERE = "memstore.server.inspector"
KINDS = {
    "inspector.css": "text/css; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
IN_WORDS = {
    "semantic": "meaning",
    "semantic_around": "meaning around",
    "lexical": "words",
    "lexical_around": "words around",
}


class File(NamedTuple):
    """A file that pages load."""

    body: bytes
    kind: str
    version: str


@cache
def file(name: str) -> File:
    """Give a file that pages load; raises `KeyError` for any other name."""
    kind = KINDS[name]
    body = files(HERE).joinpath("static", name).read_bytes()
    return File(body, kind, sha256(body).hexdigest()[:12])


def drawn(template: str, told: Mapping[str, Any]) -> str:
    """Give a page as HTML."""
    return _environment().get_template(template).render(told)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.globals |= {"to": links.to, "cursor": _cursor, "asset": _asset}
    made.filters |= {
        "clip": clipped,
        "when": when,
        "day": day,
        "n": counted,
        "lasting": lasting,
        "bytes": bytes_of,
        "pretty": pretty,
        "signal": lambda name: IN_WORDS.get(name, name),
    }
    return made


def clipped(text: object, most: int) -> str:
    """Give the beginning of a text: at most so many bytes of HTML, so that quotes and the like do not swell a page."""
    whole = "" if text is None else str(text)
    kept = whole[:most]
    while (size := bytes_of(kept)) > most:
        kept = kept[: min(len(kept) - 1, len(kept) * most // size)]
    return kept if len(kept) == len(whole) else f"{kept.rstrip()}…"


def bytes_of(text: str) -> int:
    """Give how many bytes a text has on a page."""
    return len(str(escape(text)).encode("utf-8", "replace"))


def when(moment: datetime | None) -> Markup:
    """Give a moment for people, in UTC as all of these pages."""
    return Markup("") if moment is None else _time(moment, f"{moment.day} {moment:%b %Y, %H:%M}")


def day(moment: datetime | None) -> Markup:
    """Give the day of a moment."""
    return Markup("") if moment is None else _time(moment, f"{moment.day} {moment:%b %Y}")


def _time(moment: datetime, text: str) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(moment.isoformat(timespec="seconds"), text)


def counted(number: float | None) -> str:
    """Give a number with its thousands parted."""
    return "–" if number is None else f"{number:,}"


def lasting(seconds: float | None) -> str:
    """Give how long something takes."""
    if seconds is None:
        return "unknown"
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def pretty(value: object) -> str:
    """Give a value as JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _cursor(*place: object) -> str:
    return encoded([one.isoformat() if isinstance(one, datetime) else one for one in place])


def _asset(name: str) -> str:
    return f"{PAGES}/static/{name}?v={file(name).version}"
