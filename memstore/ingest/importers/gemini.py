"""Gemini in Google's Takeout: "My Activity" of "Gemini Apps" as JSON; the zip, the folder, or the file out of it.

It is a list of single activities, newest first, and knows no conversations. Here they are put in the order of time,
and a conversation ends where nothing is said for half an hour; it is named by the time of its first prompt.
An activity is a prompt ("Prompted …", "Asked …", "Said …") and mostly the answer, as HTML, which becomes text; both
have its time. Activities that are no prompts ("Used …", "Gave feedback …") are ignored and counted. A title in another
language keeps its first word, which nobody can tell from the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from .base import (
    DEFAULTS,
    INHERITED,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    Message,
    make_storable,
    parse_time,
)
from .files import Skipped, find_keys, first_head, list_names, printable

GAP = timedelta(minutes=30)

_HTML = re.compile(r"(?:.*/)?[^/]*(?:Gemini|Bard)[^/]*/[^/]*\.html", re.IGNORECASE)
_PROMPT = re.compile(
    r"(?:Prompted(?: with)?|Asked(?: Gemini| Bard)?|Said|Branched|Answered)(?::\s*|\s+)(.*)", re.DOTALL
)
_OTHER = re.compile(r"(?:Created|Used|Gave|Added|Selected|Shared|Deleted|Viewed|Changed|Turned|Listened)\b")
_PRODUCTS = re.compile(rb'"(?:Gemini|Bard)\b|Gemini"')


class Gemini(Importer):
    """Gemini's activities in Google's Takeout."""

    name = "gemini"
    again = "ask Google Takeout again for My Activity of Gemini Apps, in the format JSON"
    files = re.compile(r"(?:.*/)?[^/]*(?:Gemini|Bard)[^/]*/[^/]*\.json|(?:[^/]*/)?My ?Activity\.json", re.IGNORECASE)
    unit = "activity"

    def __init__(self, path: Path, options: ImportOptions = DEFAULTS) -> None:
        super().__init__(path, options)
        self._activities: list[tuple[datetime, str, dict[str, Any]]] = []

    @classmethod
    def sniff(cls, path: Path) -> float:
        """Return 0.9 for a list of Gemini's activities, a little where they are HTML, so that reading can say so."""
        likeness = cls.likeness(first_head(path, cls.files))
        return likeness or 0.2 * _is_html(path)

    @staticmethod
    def likeness(head: bytes) -> float:
        """Return 0.9 for a list of Gemini's activities."""
        fits = head.startswith(b"[") and {"title", "time"} <= find_keys(head) and _PRODUCTS.search(head)
        return 0.9 if fits else 0.0

    def read(self) -> Iterator[Found]:
        """Yield the prompts and the answers, the oldest first: they are held until all are read."""
        if self.sniff(self.path) == 0.2:
            reason = f"it holds the activities as HTML, which is what Takeout gives unless asked; {self.again}"
            yield Skipped(printable(self.path.name), reason)
            return
        yield from super().read()
        conversation, last, same_time = "", None, 0
        for when, where, given in sorted(self._activities, key=lambda activity: activity[0]):
            if last is None or when - last > GAP:
                conversation = f"gemini {when:%Y-%m-%d %H:%M:%S}Z"
            same_time = same_time + 1 if when == last else 1
            last = when
            yield from self.records(_messages(given, when, same_time), where, conversation, when, channel=self.name)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[Found]:
        """Hold an activity until all are read."""
        if _OTHER.match(value["title"]):
            yield Ignored("activities that are no prompts")
        else:
            self._activities.append((parse_time(value["time"]), where, value))


def _is_html(path: Path) -> bool:
    head = first_head(path, Gemini.files)
    is_page = head[:200].lower().startswith((b"<html", b"<!doctype html")) and b"Gemini Apps" in head
    return is_page or any(_HTML.fullmatch(name) for name in list_names(path))


def _messages(activity: dict[str, Any], when: datetime, count: int) -> Iterator[Message]:
    """Yield the prompt and the answer; `count` tells activities of the same time apart."""
    prompt = _PROMPT.fullmatch(activity["title"])
    number = f"#{count}" if count > 1 else ""
    html = "\n".join(item["html"] for item in activity.get("safeHtmlItem") or () if item.get("html"))
    for role, said, metadata in (
        ("user", prompt[1] if prompt else activity["title"], {}),
        ("assistant", html_text(html), INHERITED),
    ):
        text, kept = make_storable(said)
        if text.strip():
            yield {
                "role": role,
                "content": text,
                "external_id": f"{when.isoformat()}{number}/{role}",
                "metadata": kept | metadata,
            }


_BLOCKS = {"address", "article", "blockquote", "div", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol"}
_BLOCKS |= {"p", "pre", "section", "table", "ul"}
_LINES = {"br", "dd", "dt", "li", "tr"}
_UNSEEN = {"head", "script", "style", "template", "title"}


def html_text(html: str) -> str:
    """Return HTML as text: blocks with a blank line between, entries of lists behind a dash, cells of tables apart."""
    reader = _HtmlReader()
    reader.feed(html)
    reader.close()
    text = "".join(reader.texts)
    if not reader.has_code:
        text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class _HtmlReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.has_code = False  # whose indents count
        self._pre = 0
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self._pre += tag == "pre"
        self.has_code |= tag == "pre"
        self._break(tag)
        self.texts.append({"li": "- ", "td": " ", "th": " "}.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(self._unseen - (tag in _UNSEEN), 0)
        self._pre = max(self._pre - (tag == "pre"), 0)
        if tag not in _LINES:
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.texts.append(data if self._pre else re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if next((text for text in reversed(self.texts) if text), "") == "- ":
            return  # a paragraph that begins an entry
        self.texts.append("\n\n" if tag in _BLOCKS else "\n" if tag in _LINES else "")
