"""Gemini in Google's Takeout: "My Activity" of "Gemini Apps" as JSON; the zip, the folder, or the file out of it.

It is a list of single activities, newest first. An activity is a prompt ("Prompted …") and mostly the answer, as HTML,
which becomes text; both have its time. A title in another language keeps its first word, which nobody can tell from the
prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
from typing import Any

from memstore.language import WORD, word_set

from .base import INHERITED, IgnoredContent, Importer, ImportItem, Message, make_storable, parse_time


class Gemini(Importer):
    name = "gemini"
    advice = "ask Google Takeout again for My Activity of Gemini Apps, in the format JSON"
    files = ("*gemini*/*.json", "*bard*/*.json", "/myactivity.json", "/my activity.json")
    unit = "activity"

    @staticmethod
    def recognizes(value: Any) -> bool:
        return isinstance(value, dict) and {"title", "time"} <= value.keys() and _is_geminis(value)

    def read(self) -> Iterator[ImportItem]:
        # They are held until all are read: the newest comes first.
        self._activities: list[tuple[datetime, str, dict[str, Any]]] = []
        yield from super().read()
        talk, last_of_talk, last, same_time = "", None, None, 0
        for when, where, value in sorted(self._activities, key=lambda activity: activity[0]):
            same_time = same_time + 1 if when == last else 1
            last = when
            if key := _conversation_id(value):
                conversation = f"gemini {key}"
            else:
                if last_of_talk is None or when - last_of_talk > timedelta(minutes=30):
                    talk = f"gemini {when:%Y-%m-%d %H:%M:%S}Z"
                conversation, last_of_talk = talk, when
            yield from self.records(_messages(value, when, same_time), where, conversation, when, channel=self.name)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        other_verbs = word_set("Cleared Created Used Gave Added Selected Shared Deleted Viewed Changed Turned Listened")
        if not _is_geminis(value):
            yield IgnoredContent("activities of other products")
        elif not other_verbs.isdisjoint(WORD.findall(value["title"])[:1]):
            yield IgnoredContent("activities that are no prompts")
        else:
            self._activities.append((parse_time(value["time"]), where, value))


def _is_geminis(activity: dict[str, Any]) -> bool:
    names = " ".join(map(str, (activity.get("header"), *(activity.get("products") or ()))))
    return not {"Gemini", "Bard"}.isdisjoint(WORD.findall(names))


def _conversation_id(activity: dict[str, Any]) -> str | None:
    conversation = r"https://gemini\.google\.com/(?:u/\d+/)?(?:app|gem/[^/?#]+)/([\w-]+)"
    matches = (re.match(conversation, str(detail.get("url"))) for detail in activity.get("details") or ())
    return next((url[1] for url in matches if url), None)


def _messages(activity: dict[str, Any], when: datetime, count: int) -> Iterator[Message]:
    """Yield the prompt and the answer; `count` tells activities of the same time apart."""
    number = f"#{count}" if count > 1 else ""
    html = "\n".join(item["html"] for item in activity.get("safeHtmlItem") or () if item.get("html"))
    for role, said, metadata in (
        ("user", _prompt(activity["title"]), {}),
        ("assistant", html_text(html), INHERITED),
    ):
        text, kept = make_storable(said)
        if text.strip():
            id = f"{when.isoformat()}{number}/{role}"
            yield {"role": role, "content": text, "external_id": id, "metadata": kept | metadata}


def _prompt(title: str) -> str:
    """Return a title without the verb before the prompt."""
    verbs = ("Prompted with", "Prompted", "Asked Gemini", "Asked Bard", "Asked", "Said", "Branched", "Answered")
    for verb in verbs:
        rest = title.removeprefix(verb)
        if rest != title and (rest[:1] == ":" or rest[:1].isspace()):
            return rest.removeprefix(":").lstrip()
    return title


def html_text(html: str) -> str:
    """Return HTML as text: blocks with a blank line between, entries of lists behind a dash, cells of tables apart."""
    seen = re.sub(r"(?is)<(head|script|style|template|title)\b.*?</\1>|<!--.*?-->", "", html)
    texts = []
    for place, piece in enumerate(re.split(r"(?is)(<pre\b.*?</pre>)", seen)):
        is_code = place % 2 == 1
        text = re.sub(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*>", _break, piece if is_code else re.sub(r"\s+", " ", piece))
        texts.append(text if is_code else re.sub(r"\n-\s+", "\n- ", re.sub(r" *\n *", "\n", text)))
    return re.sub(r"\n{3,}", "\n\n", unescape("".join(texts))).strip()


def _break(tag: re.Match[str]) -> str:
    name = tag[2].lower()
    if name in word_set("address article blockquote div dl figure h1 h2 h3 h4 h5 h6 hr ol p pre section table ul"):
        return "\n\n"
    breaks = {"br": "\n", "dd": "\n", "dt": "\n", "li": "\n- ", "tr": "\n", "td": " ", "th": " "}
    return "" if tag[1] else breaks.get(name, "")
