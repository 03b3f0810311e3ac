"""The parts of a context in their order, and their texts. Pure.

Every format has the parts in the same order:

    system prompt · the user's static sections · standing facts · summaries of this conversation · recent turns │
    the user's other sections · facts and hits for this question · the question

The parts before the bar do not depend on the question.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum, auto
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, Protocol

from memstore.language import LETTERS
from memstore.models import Hit, Json, Message, Role, Summary, Tier, in_order_of_time
from memstore.strategies.base import Block, Entry
from memstore.text import TEXT_PARTS, escape_control_tokens, fence, format_day, remove_controls


@dataclass(frozen=True, slots=True)
class ContentPart:
    """A part of a message's content, in OpenAI's shape or in Anthropic's.

    `data` is in base64, of the media type `media`; `raw` is the part as it was stored.
    """

    kind: Literal["text", "image", "file", "thought", "other"]
    raw: Json
    text: str = ""
    media: str = ""
    data: str = ""
    url: str = ""

    @property
    def placeholder(self) -> str:
        """The text that replaces it in a format without such parts."""
        name = self.url or self.text or self.raw.get("type") or "?"
        label = self.kind if self.kind in ("image", "file") else str(self.raw.get("type") or "part")
        return f"[{label}]" if name == label else f"[{label}: {' '.join(str(name).split())}]"


def content_parts(content: object) -> list[ContentPart]:
    """Return the parts of a content, which may be a text, a list, or None."""
    if isinstance(content, str):
        return [ContentPart("text", {"type": "text", "text": content}, content)]
    return [_content_part(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _content_part(part: Json) -> ContentPart:
    kind = part.get("type")
    if kind in (*TEXT_PARTS, "refusal"):
        return ContentPart("text", part, str(part.get("text") or part.get("refusal") or ""))
    if kind in ("thinking", "redacted_thinking"):
        return ContentPart("thought", part, str(part.get("thinking") or ""))
    if kind in ("image_url", "input_image", "image"):
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return ContentPart("image", part, **_media(part.get("source"), url))
    if kind in ("file", "input_file", "document"):
        inner = part.get("file")
        file = inner if isinstance(inner, dict) else part
        name = str(file.get("filename") or file.get("title") or "")
        return ContentPart("file", part, name, **_media(part.get("source"), file.get("file_data")))
    return ContentPart("other", part)


def _media(source: object, url: object) -> dict[str, Any]:
    """Return `media` and `data`, or `url`, of Anthropic's source or of a URL, which may itself be the data."""
    if isinstance(source, dict):
        if source.get("type") == "base64":
            return {"media": str(source.get("media_type") or ""), "data": str(source.get("data") or "")}
        url = source.get("url")
    if not isinstance(url, str):
        return {"url": ""}
    head, _, data = url.partition(",")
    media = head.removeprefix("data:").partition(";")[0]
    if head.startswith("data:") and head.endswith(";base64") and media:
        return {"media": media, "data": data}
    return {"url": url}


def plain_text(parts: Iterable[ContentPart]) -> str:
    """Return texts, and placeholders for the rest but thoughts, one a line."""
    return "\n".join(part.text if part.kind == "text" else part.placeholder for part in parts if part.kind != "thought")


def _prepend(content: Any, prefix: str) -> Any:
    if isinstance(content, list):
        first = content[0] if content else None
        if isinstance(first, dict) and first.get("type") in TEXT_PARTS[:2] and isinstance(first.get("text"), str):
            return [first | {"text": prefix + first["text"]}, *content[1:]]
        return [{"type": "text", "text": prefix.rstrip()}, *content]
    return prefix + (content or "")


@dataclass(frozen=True, slots=True)
class CustomSection:
    """A section of the user's own, with its texts."""

    name: str
    texts: Sequence[str]


class PartKind(Enum):
    """The kinds of parts."""

    SYSTEM = auto()
    STATIC_SECTION = auto()
    STANDING_FACTS = auto()
    SUMMARIES = auto()
    RECORD = auto()  # what strategies wrote of older turns
    MESSAGE = auto()
    CUSTOM_SECTION = auto()
    MEMORY = auto()
    QUESTION = auto()


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a context as a message in OpenAI's shape; `stored` is the stored message behind it, if any."""

    kind: PartKind
    message: Json
    stored: Message | None = None

    @property
    def role(self) -> str:
        """Who speaks."""
        return str(self.message["role"])


@dataclass(frozen=True)
class PromptContent:
    """What was selected for a context, in the order of selection; `parts` has it in the order of the context."""

    system: str | None = None
    summaries: Sequence[Summary] = ()
    turns: Sequence[Entry] = ()
    facts: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    question: Json | None = None
    question_seq: int | None = None
    static_sections: Sequence[CustomSection] = ()
    standing_facts: Sequence[Hit] = ()
    custom_sections: Sequence[CustomSection] = ()

    @cached_property
    def parts(self) -> list[PromptPart]:
        """The parts of the context in their order."""
        custom = _section_parts(PartKind.CUSTOM_SECTION, self.custom_sections)
        memory = _system_parts(PartKind.MEMORY, memory_text(self.facts, self.hits))
        question = [PromptPart(PartKind.QUESTION, map_texts(self.question, remove_controls))] if self.question else []
        return [*self.static_parts, *custom, *memory, *question, *turn_parts(self.turns_after)]

    @cached_property
    def static_parts(self) -> list[PromptPart]:
        """The parts that do not depend on the question."""
        return [
            *([PromptPart(PartKind.SYSTEM, _system_message(self.system))] if self.system is not None else []),
            *_section_parts(PartKind.STATIC_SECTION, self.static_sections),
            *_system_parts(PartKind.STANDING_FACTS, standing_facts_text(self.standing_facts)),
            *_system_parts(PartKind.SUMMARIES, summaries_text(self.summaries)),
            *turn_parts(self.turns_before),
        ]

    @property
    def turns_before(self) -> list[Entry]:
        """The turns before the question."""
        return [turn for turn in self.turns if self.question_seq is None or turn.first_seq < self.question_seq]

    @property
    def turns_after(self) -> list[Entry]:
        """The turns after the question, such as the results of tools that the model waits for."""
        return [turn for turn in self.turns if self.question_seq is not None and turn.first_seq >= self.question_seq]


def turn_parts(turns: Iterable[Entry]) -> list[PromptPart]:
    """Return the messages of turns in the order of the conversation; adjacent blocks are one record."""
    parts: list[PromptPart] = []
    ordered = sorted(turns, key=lambda turn: turn.first_seq)
    for are_blocks, group in groupby(ordered, key=lambda entry: isinstance(entry, Block)):
        if are_blocks:
            blocks = [entry for entry in group if isinstance(entry, Block)]
            parts += _system_parts(PartKind.RECORD, _fence("record", [indent(block.text) for block in blocks]))
            continue
        for entry in group:
            for chat, message in zip(_with_tool_call_ids(entry.messages), entry.messages, strict=True):
                parts.append(PromptPart(PartKind.MESSAGE, map_texts(chat, remove_controls), message))
    return parts


def map_texts(message: Json, change: Callable[[str], str]) -> Json:
    """Return a message with its texts and name changed, or as it is; a name of which nothing stays is left out."""
    content, changed = message.get("content"), dict[str, Any]()
    if isinstance(content, str):
        changed["content"] = change(content)
    elif isinstance(content, list):
        changed["content"] = list(content)
        for place, piece in enumerate(content):
            if isinstance(piece, dict) and isinstance(piece.get("text"), str):
                changed["content"][place] = piece | {"text": change(piece["text"])}
    if message.get("name"):
        changed["name"] = change(message["name"])
    if all(message[key] == value for key, value in changed.items()):
        return message
    return {key: value for key, value in (message | changed).items() if key != "name" or value}


def _section_parts(kind: PartKind, sections: Iterable[CustomSection]) -> list[PromptPart]:
    return [part for section in sections for part in _system_parts(kind, section_text(section))]


def _system_parts(kind: PartKind, text: str) -> list[PromptPart]:
    return [PromptPart(kind, _system_message(text))] if text else []


def _system_message(text: str) -> Json:
    return {"role": "system", "content": text}


def _with_tool_call_ids(messages: Sequence[Message]) -> list[Json]:
    """Return a turn's messages as they were stored; calls and results without an id get one, from the call's number.

    A server that gives no ids (Ollama's of old) pairs them by their order, and so is it done here.
    """
    chats = [message.as_chat() for message in messages]
    calls = messages[0].tool_calls if messages else None
    if not calls:
        return chats
    results = [chat for chat in chats if chat["role"] == Role.TOOL]
    if len(calls) != len(results):
        return chats
    call_ids, result_ids = [call.get("id") for call in calls], [result.get("tool_call_id") for result in results]
    if None not in call_ids and None not in result_ids:
        return chats
    new_ids = [f"call_{messages[0].seq}_{number}" for number in range(1, len(calls) + 1)]
    ids = [call or result or new for call, result, new in zip(call_ids, result_ids, new_ids, strict=True)]
    chats[0] = chats[0] | {"tool_calls": [call | {"id": id} for call, id in zip(calls, ids, strict=True)]}
    for place, (result, id) in enumerate(zip(results, ids, strict=True), len(chats) - len(results)):
        chats[place] = result | {"tool_call_id": id}
    return chats


class OtherAssistantMessage(Message):
    """A message of another assistant's, shown to the viewer's model as a user's. Its speaker is always named."""


def name_speakers(parts: Iterable[PromptPart], *, users: bool) -> Iterator[PromptPart]:
    """Yield the parts with the speaker before messages of other assistants, and with `users` before those of users.

    An assistant's words must not pass for the user's. A model whose own words have such names begins to write them.
    """
    for part in parts:
        is_named = users or isinstance(part.stored, OtherAssistantMessage)
        if is_named and part.role == Role.USER and part.message.get("name"):
            prefix = f"{speaker_label(Role.USER, part.message['name'])}: "
            part = replace(part, message=part.message | {"content": _prepend(part.message.get("content"), prefix)})
        yield part


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A finished context: chat messages, with the system prompt apart where the format has it so, or one text."""

    messages: list[Json] = field(default_factory=list)
    system: str | None = None
    text: str | None = None

    @property
    def chat(self) -> list[Json]:
        """The messages, the system prompt first: what is counted."""
        return [*([_system_message(self.system)] if self.system is not None else []), *self.messages]

    @property
    def sent(self) -> list[Json]:
        """What is sent, as one list for digests and receipts: a text is one message of a user's."""
        return self.chat if self.text is None else [{"role": "user", "content": self.text}]


class Format(Protocol):
    """A way to write a context. Pure: the same content gives the same bytes."""

    @property
    def name(self) -> str:
        """The name in receipts."""

    def render(self, content: PromptContent, /) -> RenderedPrompt:
        """Return the finished context."""


# What is remembered, as text between fences, each line with its day or its speaker. Every line of what somebody said is
# indented, or behind a dash or a speaker, so that nothing in it can pass for a fence, a heading, a day or another
# speaker. A name cannot pass for a role, nor for more than a name.

FACTS_HEAD = "Facts (where two disagree, the later one holds):"
HITS_HEAD = "Said before"
# One blank is part of the token of the name behind it; a second one would be a token more on each line.
INDENT = " "

_ROLES = frozenset({*map(str, Role), "human", "summary", "record", "function"})
_COLONS = dict.fromkeys(map(ord, ":\u02d0\u2236\ua789\ufe13\ufe55\uff1a"), " ")
_QUOTES = dict.fromkeys(map(ord, '"\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02'), "'")


def clean_name(name: object) -> str:
    """Return a name on one line, without colons or invisible characters; it may become empty."""
    kinds = [(char, unicodedata.category(char)) for char in remove_controls(str(name))]
    invisible = ("Cc", "Cs", "Co", "Cn")
    seen = "".join(" " if char.isspace() or kind in invisible else char for char, kind in kinds if kind != "Cf")
    return escape_control_tokens(" ".join(seen.translate(_COLONS).split()))


def speaker_label(role: str, name: object) -> str:
    """Return the label before what somebody said: a user's name, else the role with the name.

    A name that could pass for a role stands in quotation marks behind the true role: `user "assistant bob"`.
    """
    cleaned = clean_name(name or "")
    if not cleaned:
        return str(role)
    words = LETTERS.findall(unicodedata.normalize("NFKC", cleaned).casefold())
    quotable = cleaned.translate(_QUOTES)
    if {*words[:1]} & _ROLES or "calls" in words or quotable != cleaned:
        return f'{role} "{quotable}"'
    return cleaned if role == Role.USER else f"{role} {cleaned}"


def summaries_text(summaries: Sequence[Summary]) -> str:
    """Return the summaries, the oldest first; "" for none."""
    ordered = sorted(summaries, key=lambda summary: (summary.from_seq, -summary.level))
    return _fence("summaries", [indent(summary.text) for summary in ordered])


def standing_facts_text(facts: Sequence[Hit]) -> str:
    """Return standing facts, which stand in every context, the oldest first; "" without any."""
    return _fence("standing", [fact_line(fact) for fact in in_order_of_time(facts)])


def section_text(section: CustomSection) -> str:
    """Return a section of the user's own under its name; "" for no texts."""
    lines = [section_lines(text) for text in section.texts]
    return "\n".join([f"<{section.name}>", *lines, f"</{section.name}>"]) if lines else ""


def section_lines(text: str) -> str:
    """Return a text of a user's own section as it stands in the context."""
    return f"{INDENT}{indent_further_lines(text)}"


def memory_text(facts: Sequence[Hit], hits: Sequence[Hit]) -> str:
    """Return facts and hits for the question; "" for none."""
    lines = [FACTS_HEAD, *map(fact_line, facts)] if facts else []
    for head, group in groupby(sorted(hits, key=lambda hit: hit.space or ""), key=hits_head):
        lines.append(head)
        last_day = None
        for hit in in_order_of_time(group):
            if (today := format_day(hit.occurred_at)) != last_day:
                lines.append(f"[{today}]")
                last_day = today
            lines.append(hit_line(hit))
    return _fence("memory", lines)


def _fence(name: str, lines: Sequence[str]) -> str:
    head, foot = fence(name)
    return "\n".join([head, *lines, foot]) if lines else ""


def indent(text: str) -> str:
    """Return a text with all lines indented alike."""
    return INDENT + f"\n{INDENT}".join(escape_control_tokens(text).strip().splitlines())


def list_line(text: str, *details: str) -> str:
    """Return a text behind a dash, with details in brackets; no line of it can pass for another one."""
    return f"- {indent_further_lines(text)} ({', '.join(details)})"


def fact_line(fact: Hit) -> str:
    """Return a fact with the day on which it was said, its last day unless its text names it, and its space."""
    last_day = None if fact.valid_to is None else format_day(fact.valid_to - timedelta(microseconds=1))
    until = [f"until {last_day}"] if last_day and last_day not in fact.text else []
    return f"{list_line(fact.text, format_day(fact.occurred_at), *until, *_space(fact))}{_later(fact)}"


def hits_head(hit: Hit) -> str:
    """Return the line above the hits of the user, or of a space."""
    return " ".join([HITS_HEAD, *_space(hit)]) + ":"


def _space(hit: Hit) -> list[str]:
    return [f"in {speaker_label(Role.USER, hit.space)}"] if hit.space else []


def hit_line(hit: Hit) -> str:
    """Return a hit behind its speaker, and with what holds in its place."""
    return f"{INDENT}{_speaker(hit)}: {indent_further_lines(hit.text)}{_later(hit)}"


def _later(hit: Hit) -> str:
    return f" (later: {indent_further_lines(hit.later)})" if hit.later else ""


def _speaker(hit: Hit) -> str:
    """Return the speaker of a hit: by name, unless the name could pass for a role."""
    if hit.tier == Tier.SUMMARIES or not hit.speaker:
        return "summary" if hit.tier == Tier.SUMMARIES else "?"
    role = hit.role or Role.USER
    if hit.speaker == role:
        return role
    label = speaker_label(Role.USER, hit.speaker)
    return speaker_label(role, hit.speaker) if '"' in label else label


def indent_further_lines(text: str) -> str:
    """Return a text whose lines after the first are indented, without control tokens of chat templates.

    Empty lines stay empty: blanks in them would cost tokens.
    """
    first, *rest = escape_control_tokens(text).strip().splitlines() or [""]
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in rest)])
