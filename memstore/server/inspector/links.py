"""Where pages stand: names of users and conversations may be anything, and each is one part of a path.

Browsers take "..", percent-encoded too, for the folder above; so a name of dots alone has a "~" before it, and so has
one that begins with "~".
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote, urlencode

from starlette.convertors import Convertor, register_url_convertor

from memstore.server.http.paths import PAGES

MARK = "~"


class Part(Convertor[str]):
    """A name as a part of a path. What is no UTF-8 becomes what no name may hold."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Give the name."""
        return unquote(value.removeprefix(MARK), errors="surrogateescape")

    def to_string(self, value: str) -> str:
        """Give the part of a path."""
        return part(value)


register_url_convertor("part", Part())


def part(name: str) -> str:
    """Give a name as a part of a path."""
    marked = name.startswith(MARK) or not name.strip(".")
    return (MARK if marked else "") + quote(name, safe="", errors="replace")


def to(*parts: object, at: str | None = None, **query: Any) -> str:
    """Give the path of a page: its parts, names encoded; `query` without what is None or empty; `at` an anchor."""
    path = "/".join([PAGES, *(part(str(one)) for one in parts)]) if parts else f"{PAGES}/"
    told = urlencode({name: value for name, value in query.items() if value not in (None, "", [])}, doseq=True)
    return path + (f"?{told}" if told else "") + (f"#{at}" if at else "")


def own(path: str) -> str:
    """Give a path of these pages as it is, and their first page for anything else: nobody is led elsewhere."""
    is_own = path.startswith(f"{PAGES}/") and "\\" not in path and path.isprintable() and path.isascii()
    return path if is_own else f"{PAGES}/"
