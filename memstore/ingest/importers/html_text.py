"""What a reader sees of HTML, as plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = {"address", "article", "blockquote", "div", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol"}
_BLOCKS |= {"p", "pre", "section", "table", "ul"}
_LINES = {"br", "dd", "dt", "li", "tr"}
_UNSEEN = {"head", "script", "style", "template", "title"}


def html_text(html: str) -> str:
    """Give the text: blocks with a blank line between, entries of lists behind a dash, cells of tables apart."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", "".join(reader.found)) if not reader.verbatim else "".join(reader.found)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.verbatim = False  # whether there is code, whose indents count
        self._pre = 0
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self._pre += tag == "pre"
        self.verbatim |= tag == "pre"
        self._break(tag)
        self.found.append({"li": "- ", "td": " ", "th": " "}.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(self._unseen - (tag in _UNSEEN), 0)
        self._pre = max(self._pre - (tag == "pre"), 0)
        if tag not in _LINES:
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.found.append(data if self._pre else re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if next((one for one in reversed(self.found) if one), "") == "- ":
            return  # a paragraph that begins an entry
        self.found.append("\n\n" if tag in _BLOCKS else "\n" if tag in _LINES else "")
