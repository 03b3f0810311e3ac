"""Gemini in Google's Takeout: "My Activity" of "Gemini Apps" as JSON; the zip, the folder, or the file out of it.

It is a list of single activities, newest first, and knows no conversations. Here they are put in the order of time,
and a conversation ends where nothing is said for half an hour; it is named by the time of its first prompt.
An activity is a prompt ("Prompted …", "Asked …", "Said …") and mostly the answer, as HTML, which becomes text; both
have its time. Activities that are no prompts ("Used …", "Gave feedback …") are left out and counted. A title in another
language keeps its first word, which nobody can tell from the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from .files import Part, first_head, names, read_parts
from .html_text import html_text
from .json_stream import keys_in, numbered_elements
from .reading import PLAINLY, Reading
from .records import INHERITED, Found, LeftOut, Record, Skipped, moment, shown, storable, time_or_none
from .scratch import Occurrences, in_order

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


@dataclass(frozen=True, slots=True)
class Gemini:
    """Reads Gemini's activities, put in the order of time."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "gemini"

    def sniff(self, path: Path) -> float:
        """Give 0.9 for a list of activities of Gemini's, a little where they are HTML, so that it can be said."""
        start = first_head(path, _MEMBER)
        if _is_json(start):
            return 0.9
        return 0.2 if _is_html(path, start) else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give the prompts and the answers, the oldest first."""
        start = first_head(path, _MEMBER) if path.exists() else b""
        if path.exists() and not _is_json(start) and _is_html(path, start):
            yield Skipped(shown(path.name), AS_HTML)
            return
        last, conversation = None, ""
        with Occurrences() as seen:
            for time, activity in in_order(_rows(read_parts(path, _MEMBER, reading, _activities, AGAIN))):
                if not time:
                    yield Skipped(*activity) if isinstance(activity, list) else LeftOut(activity)
                    continue
                when = moment(time)
                if last is None or when - last > GAP:
                    conversation = f"gemini {when:%Y-%m-%d %H:%M:%S}Z"
                last = when
                for message in _messages(activity, when, seen.count(time)):
                    at = activity["where"]
                    yield Record(user=None, conversation=conversation, message=message, channel="gemini", where=at)


def _is_json(start: bytes) -> bool:
    return start.startswith(b"[") and {"title", "time"} <= keys_in(start) and _PRODUCTS.search(start) is not None


def _is_html(path: Path, start: bytes) -> bool:
    if path.is_file() and start[:200].lower().startswith((b"<html", b"<!doctype html")):
        return b"Gemini Apps" in start
    return any(_HTML.fullmatch(name) for name in names(path))


def _activities(part: Part) -> Iterator[tuple[str, Any] | Skipped]:
    return numbered_elements(part, "activity", AGAIN)


def _rows(found: Iterator[tuple[str, Any] | Skipped]) -> Iterator[tuple[str, Any]]:
    """Give the activities under their times, and under no time, so that it comes first, what is none of them."""
    for one in found:
        if isinstance(one, Skipped):
            yield "", [one.where, one.reason]
            continue
        where, given = one
        time = time_or_none(given.get("time")) if isinstance(given, dict) else None
        title = given.get("title") if isinstance(given, dict) else None
        if time is None or not isinstance(title, str):
            yield "", [where, f"it has no time with a zone, or no title; {AGAIN}"]
        elif _OTHER.match(title):
            yield "", "activities that are no prompts"
        else:
            yield time.isoformat(), {"title": title, "html": _html(given), "where": where}


def _html(given: dict[str, Any]) -> str:
    items = given.get("safeHtmlItem")
    texts = [item.get("html") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


def _messages(activity: dict[str, Any], when: datetime, count: int) -> Iterator[dict[str, Any]]:
    """Give the prompt and the answer; of equally old activities, `count` tells them apart."""
    prompt = _PROMPT.fullmatch(activity["title"])
    number = f"#{count}" if count > 1 else ""
    for role, text, metadata in (
        ("user", prompt[1] if prompt else activity["title"], {}),
        ("assistant", html_text(activity["html"]), INHERITED),
    ):
        said, kept = storable(text)
        if said.strip():
            yield {
                "role": role,
                "content": said,
                "occurred_at": when,
                "external_id": f"{when.isoformat()}{number}/{role}",
                "metadata": kept | metadata,
            }
