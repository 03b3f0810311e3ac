"""The receipt of a context: its items, the reasons for leaving out others, and the sent messages, packed. Pure."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from typing import Any

from memstore.context.items import FACTS, RECENT, ContextItem, Rendering, count_prompt
from memstore.context.selection import ContextPlan, Selection
from memstore.errors import DatabaseError, NotFound
from memstore.formats import OPENAI, as_openai, memory_messages
from memstore.formats.parts import PartKind, PromptContent, RenderedPrompt
from memstore.models import MAX_PREVIEW_CHARS, Context, Decision, Hit, Json, Reason, Receipt, Replay, Summary
from memstore.strategies.base import Block, Turn

# Sections of other parts are the user's own.
SECTION_OF_PART = {
    PartKind.SYSTEM: "system",
    PartKind.STANDING_FACTS: "facts",
    PartKind.SUMMARIES: "summaries",
    PartKind.RECORD: "recent",
    PartKind.MESSAGE: "recent",
    # With the facts for this question, which are taken off again.
    PartKind.MEMORY: "hits",
    PartKind.QUESTION: "question",
}


def write_receipt(plan: ContextPlan, selection: Selection, rendering: Rendering) -> Receipt:
    target = plan.target
    left_out = [
        *plan.candidates.left_out,
        *_turns_left_out(plan, selection, rendering.content),
        *_items_left_out(plan, selection),
    ]
    listed, unlisted = _list_first(left_out)
    return Receipt(
        budget=target.budget,
        reserve=target.reserve,
        tokens=int(rendering.tokens),
        counter=target.counter.name,
        count=rendering.tokens.kind,
        sections=count_sections(plan, rendering),
        included=tuple(decision_of(item) for items in selection.chosen.values() for item in items),
        left_out=tuple(listed),
        unlisted={str(reason): count for reason, count in sorted(unlisted.items())},
        static_tokens=_count_static(plan, selection, rendering),
        relevance=plan.candidates.relevance,
        compressed=tuple(plan.candidates.compressed),
        content_hash=content_hash(rendering.prompt.sent),
    )


def decision_of(item: ContextItem, reason: Reason | None = None) -> Decision:
    content = item.content
    values: dict[str, Any]
    if isinstance(content, Hit):
        values = {"parts": content.parts, "start": content.start, "preview": content.text[:MAX_PREVIEW_CHARS]}
        values |= {"note": content.later or item.note, "others": content.later_ids, "space": content.space}
    elif isinstance(content, Summary):
        values = {"seqs": (content.from_seq, content.to_seq), "preview": content.text[:MAX_PREVIEW_CHARS]}
    elif isinstance(content, Block):
        reason = reason or Reason.COMPRESSED
        values = {"seqs": (content.first_seq, content.last_seq), "preview": content.text[:MAX_PREVIEW_CHARS]}
    elif isinstance(content, Turn):
        first, *rest = content.messages
        values = {
            "seqs": (first.seq, content.messages[-1].seq),
            "others": tuple(message.id for message in rest),
            "preview": f"{first.name or first.role}: {(first.text or '')[:MAX_PREVIEW_CHARS]}",
        }
    else:
        values = {"preview": str(content)[:MAX_PREVIEW_CHARS]}
    about = (item.section, item.kind, item.id, item.tokens, reason, item.score)
    return Decision(*about, standing=item.standing, **{"note": item.note, **values})


def _list_first(decisions: Iterable[Decision]) -> tuple[list[Decision], Counter[Reason]]:
    """Return the first 24 of each section, and how many others there are by reason."""
    listed, unlisted, seen = [], Counter[Reason](), Counter[str]()
    for decision in decisions:
        seen[decision.section] += 1
        if seen[decision.section] <= 24:
            listed.append(decision)
        elif decision.reason is not None:
            unlisted[decision.reason] += 1
    return listed, unlisted


def _items_left_out(plan: ContextPlan, selection: Selection) -> Iterator[Decision]:
    # A fact is offered as a standing one and for the question.
    facts = {item.id for item in selection.chosen[FACTS]}
    for section, items in plan.items.items():
        for item in items if section != RECENT else ():
            if item not in selection and not (section == FACTS and item.id in facts):
                if section == FACTS:
                    facts.add(item.id)
                yield decision_of(item, selection.rejection_reason(item))


def _turns_left_out(plan: ContextPlan, selection: Selection, content: PromptContent) -> Iterator[Decision]:
    """Yield the turns that are not in, of which there may be thousands, together by reason."""
    first = min((summary.from_seq for summary in content.summaries), default=0)
    # From `first` to there the summaries have no gap.
    last = max((summary.to_seq for summary in content.summaries), default=-1)
    by_reason: dict[Reason, list[ContextItem]] = {}
    for item in plan.items[RECENT]:
        if item not in selection:
            covered = first <= item.first_seq <= last
            by_reason.setdefault(Reason.COVERED if covered else Reason.OVER_BUDGET, []).append(item)
    for reason, items in sorted(by_reason.items()):
        items.sort(key=lambda item: -item.first_seq)
        oldest, newest = items[-1].content.first_seq, items[0].content.last_seq
        note = f"{len(items)} older turns, messages {oldest} to {newest}"
        tokens = sum(item.tokens for item in items)
        yield Decision("recent", "turns", items[0].id, tokens, reason, note=note, seqs=(oldest, newest))


def count_sections(plan: ContextPlan, rendering: Rendering) -> dict[str, int]:
    """Return the tokens of each section, and of what is around them; together they are those of the context."""
    content, target, counter = rendering.content, plan.target, plan.target.counter
    custom_sections = (*content.static_sections, *content.custom_sections)
    names = [
        *(section.name for section in custom_sections),
        "system",
        "summaries",
        "recent",
        "facts",
        "hits",
        "question",
    ]
    sections = dict.fromkeys(names, 0)
    shown = iter([section.name for section in custom_sections if section.texts])
    ends = {message.id for turn in plan.candidates.ending for message in turn.messages}
    # Others may merge messages, or be one text.
    sent = rendering.prompt.sent if target.format == OPENAI else map(as_openai, content.parts)
    for part, message in zip(content.parts, sent, strict=True):
        name = SECTION_OF_PART.get(part.kind) or next(shown)
        name = "question" if part.stored and part.stored.id in ends else name
        sections[name] += counter.count_message(message)
    facts = sum(map(counter.count_message, memory_messages(content.facts, ())))
    sections["facts"] += facts
    sections["hits"] = max(0, sections["hits"] - facts)
    tools = int(rendering.tokens - count_prompt(rendering.prompt, counter)) if target.tools else 0
    left = rendering.tokens - tools - sum(sections.values())
    # What is around messages may be less in another format or a model's own template: the largest sections have that.
    beyond = max(0, -left)
    for name in sorted(sections, key=lambda name: -sections[name]):
        taken = min(beyond, sections[name])
        sections[name], beyond = sections[name] - taken, beyond - taken
    return sections | ({"tools": tools} if target.tools else {}) | {"overhead": max(0, left)}


def _count_static(plan: ContextPlan, selection: Selection, rendering: Rendering) -> int:
    """Return the tokens before the first message that another question about the same conversation might change."""
    content, target, prompt = rendering.content, plan.target, rendering.prompt
    if not plan.candidates.static or not selection.is_static:
        content = PromptContent(system=content.system)
    static = target.format.render(replace(content, custom_sections=(), facts=(), hits=(), question=None))
    if prompt.text is None or static.text is None:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(prompt.sent, static.sent, strict=False))
        return min(int(rendering.tokens), sum(target.counter.count_message(message) for message, _ in same))
    lines = zip(prompt.text.splitlines(keepends=True), static.text.splitlines(keepends=True), strict=False)
    return target.counter.count("".join(line for line, _ in takewhile(lambda pair: pair[0] == pair[1], lines)))


def content_hash(messages: Sequence[Json]) -> str:
    """Return the SHA-256 of the canonical JSON of what is sent: keys sorted, no blanks, UTF-8."""
    return sha256(_as_json([*messages], sort_keys=True)).hexdigest()


def pack(context: Context) -> bytes:
    """Return what a context sends as compressed JSON, its keys in their order."""
    return zlib.compress(_as_json([context.messages, context.system, context.text]))


def unpack(receipt: Receipt, packed: bytes | None) -> Replay:
    """Return what was sent with a receipt.

    Raises `NotFound` where an older memstore kept nothing of it, and `DatabaseError` where it is no longer the same.
    """
    if packed is None:
        raise NotFound(
            f"The receipt {receipt.id} has no replay: the memstore that made it did not keep what was sent. Receipts "
            "made since the upgrade to schema 0021 have one."
        )
    try:
        messages, system, text = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
        is_same = content_hash(RenderedPrompt(messages, system, text).sent) == receipt.content_hash
    except (zlib.error, ValueError, TypeError, RecursionError):
        is_same = False
    if not is_same:
        raise DatabaseError(
            f"The receipt {receipt.id} keeps other bytes than were sent, by their SHA-256. The row was changed or "
            "damaged; restore it from a backup."
        )
    return Replay(receipt, messages, system, text)


def _as_json(sent: list[Any], *, sort_keys: bool = False) -> bytes:
    text = json.dumps(sent, ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")
