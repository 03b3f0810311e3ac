"""A context by a template of the user's: Jinja in a sandbox, given the material as data. Pure.

What a template prints is quoted: each further line of it is indented, and what looks like a tag of the template's own
or like a fence of memstore's is spelled by an entity. So nothing that was said can close a fence, or begin a heading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from jinja2 import Template as Compiled
from markupsafe import Markup

from memstore import templates
from memstore.assemble.render.chosen import Chosen, Kind, Part, spoken_parts
from memstore.assemble.render.content import content_parts, plain_text
from memstore.assemble.render.fenced import in_order, last_day
from memstore.assemble.render.format import Rendered
from memstore.assemble.render.labels import shown
from memstore.assemble.render.text import section_texts
from memstore.assemble.strategies.view import Entry
from memstore.fences import FENCES, defused
from memstore.function_calls import arguments_text, name_of
from memstore.ingest.check import check_text
from memstore.models import Hit, Json, Summary
from memstore.times import day

_TAG = re.compile(r"<[\s/|!?]*([A-Za-z_][\w.:-]*)")
_MARK = re.compile(r"\[/?[A-Z_]{2,32}\]")
_HEADING = re.compile(r"\s*(?:#|---|===|```|~~~)")
_FRAME = {line for head, foot in FENCES for line in (*head.splitlines(), foot)}
_OURS = {found for fence in FENCES for found in _TAG.findall(fence[0])}


@dataclass(frozen=True, slots=True)
class Template:
    """A context as the text that a template makes of `system`, `sections`, `standing`, `facts`, `summaries`, `hits`,
    `turns`, `question` and `after`. Raises `InvalidInput` where the template is wrong, fails, or takes too much.
    """

    source: str

    def __post_init__(self) -> None:
        _compiled(self.source)

    @property
    def name(self) -> str:
        """The name in receipts, with 12 hex digits of the SHA-256 of the source."""
        return f"template:{sha256(self.source.encode()).hexdigest()[:12]}"

    def render(self, chosen: Chosen) -> Rendered:
        """Give the text that the template makes."""
        template, guard = _compiled(self.source)
        text = templates.rendered(template, _data(chosen, guard))
        check_text(text, "what the template makes")
        return Rendered(text=text)


@dataclass(frozen=True, slots=True)
class Guard:
    """Quotes what was said, so that it cannot pass for a part of one template."""

    breaking: re.Pattern[str]

    @classmethod
    def of(cls, source: str) -> Guard:
        """Give the guard of a template: against its own tags, such as <notes> or <|im_end|>, and marks like [INST]."""
        names = "|".join(map(re.escape, sorted({*_TAG.findall(source), *_OURS})))
        marks = "".join(rf"|\[(?={re.escape(mark[1:])})" for mark in sorted(set(_MARK.findall(source))))
        return cls(re.compile(rf"<(?=[\s/|!?]*(?:{names})(?![\w.:-])){marks}", re.IGNORECASE))

    def quoted(self, text: str) -> str:
        """Give a text whose further lines are indented, and in which nothing is a tag of the template's."""
        lines = self.spelled(text).splitlines()
        if lines and _HEADING.match(lines[0]):
            lines[0] = f"\\{lines[0].lstrip()}"
        return "\n    ".join(lines)

    def spelled(self, text: str) -> str:
        """Give a text in which nothing is a tag of the template's, or a control token of a chat template."""
        return defused(self.breaking.sub(lambda found: "&lt;" if found[0] == "<" else "&#91;", text))

    def framed(self, section: str, text: str) -> str:
        """Give a section's text, quoted but for its own fences: what was said never has a line from the margin."""
        frame = {f"<{section}>", f"</{section}>", *_FRAME}
        return "\n".join(line if line in frame else self.spelled(line) for line in text.split("\n"))

    def printed(self, value: Any) -> Any:
        """Give what a template prints for a value: what the template itself made of its own text is not quoted."""
        if isinstance(value, Markup) or value is None:
            return value or ""
        return Markup(self.quoted(str(value)))


class Said(str):
    """A text that somebody said. Wherever Jinja puts it into the template's own text, it is quoted."""

    guard: Guard

    def __html__(self) -> str:
        return self.guard.quoted(str(self))


@lru_cache(maxsize=64)
def _compiled(source: str) -> tuple[Compiled, Guard]:
    guard = Guard.of(source)
    sandbox = templates.sandbox(autoescape=True, finalize=guard.printed, trim_blocks=True, lstrip_blocks=True)
    for name in ("safe", "e", "escape"):  # quoting is not the template's to undo, nor to do twice
        del sandbox.filters[name]
    return templates.compiled(sandbox, source), guard


def _data(chosen: Chosen, guard: Guard) -> Json:
    sections = {name: Markup(guard.framed(name, text)) for name, text in section_texts(chosen)}
    asked = content_parts((chosen.question or {}).get("content"))
    data: Json = {
        "standing": [_hit(fact) for fact in in_order(chosen.standing)],
        "facts": [_hit(fact) for fact in chosen.facts],
        "summaries": [_summary(one) for one in sorted(chosen.summaries, key=lambda one: (one.from_seq, -one.level))],
        "hits": [_hit(hit) for hit in in_order(chosen.hits)],
        "turns": _turns(chosen.before),
        "question": plain_text(asked) if chosen.question else None,
        "after": _turns(chosen.after),
    }
    system = None if chosen.system is None else Markup(chosen.system)
    return {"system": system, "sections": sections, **_guarded(data, guard)}


def _hit(hit: Hit) -> Json:
    told = {"text": hit.text.strip(), "day": day(hit.occurred_at), "time": hit.occurred_at.isoformat()}
    return told | {
        "tier": str(hit.tier),
        "role": hit.role,
        "speaker": hit.speaker and shown(hit.speaker),
        "score": hit.score,
        "until": last_day(hit),
    }


def _summary(summary: Summary) -> Json:
    days = {"day": day(summary.occurred_at), "until": day(summary.occurred_until)}
    return {"text": summary.text.strip(), "level": summary.level, **days}


def _turns(turns: Sequence[Entry]) -> list[Json]:
    return [_turn(part) for part in spoken_parts(turns)]


def _turn(part: Part) -> Json:
    message, stored = part.message, part.stored
    calls = [
        {"id": call.get("id"), "name": name_of(call), "arguments": arguments_text(call)}
        for call in message.get("tool_calls") or ()
    ]
    return {
        "role": "record" if part.kind is Kind.RECORD else part.role,
        "name": shown(message["name"]) if message.get("name") else None,
        "text": plain_text(content_parts(message.get("content"))),
        "day": day(stored.occurred_at) if stored else None,
        "time": stored.occurred_at.isoformat() if stored else None,
        "tool_calls": calls,
        "tool_call_id": message.get("tool_call_id"),
    }


def _guarded(value: Any, guard: Guard) -> Any:
    if isinstance(value, str):
        said = Said(value)
        said.guard = guard
        return said
    if isinstance(value, Mapping):
        return {key: _guarded(one, guard) for key, one in value.items()}
    return [_guarded(one, guard) for one in value] if isinstance(value, list) else value
