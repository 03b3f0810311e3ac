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
from functools import partial
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
    Record,
    Skipped,
    make_storable,
    parse_time,
    printable,
    report_damage,
)
from .files import first_head, list_names, read_parts
from .json_stream import convert_values, find_keys

AGAIN = "ask Google Takeout again for My Activity of Gemini Apps, in the format JSON"
AS_HTML = "it holds the activities as HTML, which is what Takeout gives unless asked; " + AGAIN
GAP = timedelta(minutes=30)

_MEMBER = re.compile(r"(?:.*/)?[^/]*(?:Gemini|Bard)[^/]*/[^/]*\.json|(?:[^/]*/)?My ?Activity\.json", re.IGNORECASE)
_HTML = re.compile(r"(?:.*/)?[^/]*(?:Gemini|Bard)[^/]*/[^/]*\.html", re.IGNORECASE)
_PROMPT = re.compile(
    r"(?:Prompted(?: with)?|Asked(?: Gemini| Bard)?|Said|Branched|Answered)(?::\s*|\s+)(.*)", re.DOTALL
)
_OTHER = re.compile(r"(?:Created|Used|Gave|Added|Selected|Shared|Deleted|Viewed|Changed|Turned|Listened)\b")
_PRODUCTS = re.compile(rb'"(?:Gemini|Bard)\b|Gemini"')


def sniff(path: Path) -> float:
    """Return 0.9 for a list of Gemini's activities, a little where they are HTML, so that reading can say so."""
    start = first_head(path, _MEMBER)
    if _is_json(start):
        return 0.9
    return 0.2 if _is_html(path, start) else 0.0


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield the prompts and the answers, the oldest first: they are held until all are read."""
    if not _is_json(start := first_head(path, _MEMBER)) and _is_html(path, start):
        yield Skipped(printable(path.name), AS_HTML)
        return
    convert = partial(convert_values, unit="activity", again=AGAIN, convert=_activity)
    activities: list[tuple[datetime, str, dict[str, Any]]] = []
    for one in read_parts(path, _MEMBER, options, convert, AGAIN):
        if isinstance(one, tuple):
            activities.append(one)
        else:
            yield one
    conversation, last, same_time = "", None, 0
    for when, where, given in sorted(activities, key=lambda activity: activity[0]):
        if last is None or when - last > GAP:
            conversation = f"gemini {when:%Y-%m-%d %H:%M:%S}Z"
        same_time = same_time + 1 if when == last else 1
        last = when
        for message in report_damage(_messages(given, when, same_time), where, AGAIN):
            if isinstance(message, dict):
                yield Record(conversation=conversation, message=message, channel="gemini", where=where)
            else:
                yield message


def _is_json(start: bytes) -> bool:
    return start.startswith(b"[") and {"title", "time"} <= find_keys(start) and _PRODUCTS.search(start) is not None


def _is_html(path: Path, start: bytes) -> bool:
    is_page = start[:200].lower().startswith((b"<html", b"<!doctype html")) and b"Gemini Apps" in start
    return is_page or any(_HTML.fullmatch(name) for name in list_names(path))


def _activity(given: dict[str, Any], where: str) -> Iterator[tuple[datetime, str, dict[str, Any]] | Ignored]:
    if _OTHER.match(given["title"]):
        yield Ignored("activities that are no prompts")
    else:
        yield parse_time(given["time"]), where, given


def _messages(activity: dict[str, Any], when: datetime, count: int) -> Iterator[dict[str, Any]]:
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
                "occurred_at": when,
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


GEMINI = Importer("gemini", sniff, read)
