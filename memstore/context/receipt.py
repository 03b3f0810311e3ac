"""The receipt of a context: what was considered and what became of it, tokens, what of it stays the same. Pure."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, chain, takewhile
from typing import Any

from memstore.context import formats
from memstore.context.formats import OPENAI, PartKind, PromptContent, RenderedPrompt
from memstore.context.items import CUT_MARK, BudgetSpec, Candidates, ContextItem
from memstore.context.sections import RECENT
from memstore.context.selection import Selection
from memstore.context.strategies.base import Block, Turn
from memstore.models import Decision, Hit, Json, MessageDigest, Reason, Receipt, Summary, Tier
from memstore.providers import Count

OVERHEAD, TOOLS = "overhead", "tools"
SECTIONS = {  # of parts; the others are the user's own
    PartKind.SYSTEM: "system",
    PartKind.PINNED_FACTS: "facts",
    PartKind.SUMMARIES: "summaries",
    PartKind.RECORD: "recent",
    PartKind.MESSAGE: "recent",
    PartKind.MEMORY: "hits",  # with the facts for this question, which are taken off again
    PartKind.QUESTION: "question",
}
RENDERER = 4  # another number gives other bytes of the same items
LISTED = 24  # of what was left out, the best of each section; the others are counted by reason
DIGITS = 16  # of a digest
PREVIEW = 160  # characters of what an item says
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class BuiltContext:
    """A finished context, and how it came about: of the `items` of the candidates, `selection` took what is `content`,
    which was rendered as `prompt`, of so many `tokens`."""

    candidates: Candidates
    target: BudgetSpec
    items: Mapping[str, Sequence[ContextItem]]
    selection: Selection
    content: PromptContent
    prompt: RenderedPrompt
    tokens: Count

    @cached_property
    def counts(self) -> list[int]:
        """The tokens of each message that is sent."""
        return [self.target.counter.count_message(message) for message in self.prompt.sent]

    @cached_property
    def sections(self) -> dict[str, int]:
        """The tokens of each section; they add up to the whole, with what belongs to none as `overhead`."""
        return _section_tokens(self)


def write_receipt(built: BuiltContext) -> Receipt:
    """Return the receipt of a context."""
    candidates, target, content = built.candidates, built.target, built.content
    messages = [_canonical(message) for message in built.prompt.sent]
    listed, unlisted = _left_out(built)
    texts = _written_texts(built.selection)
    if content.question is not None and content.question_seq is None:
        texts = {"query": str(content.question["content"])} | texts
    if content.system is not None:
        texts = {"system": content.system} | texts
    question_seqs: list[int] = []
    if content.question_seq is not None:
        ending = (message.seq for turn in candidates.ending for message in turn.messages)
        question_seqs = [content.question_seq, *ending]
    return Receipt(
        budget=target.budget,
        reserve=target.reserve,
        tokens=int(built.tokens),
        counter=target.counter.name,
        count=built.tokens.kind,
        sections=built.sections,
        included=tuple(decision_of(item) for items in built.selection.chosen.values() for item in items),
        left_out=tuple(listed),
        unlisted={str(reason): count for reason, count in sorted((unlisted + Counter(candidates.unlisted)).items())},
        stable_prefix=0,
        cacheable=_cacheable(built),
        compressed=tuple(candidates.compressed),
        content_hash=_hash(messages),
        renderer=f"{target.format.name}/{RENDERER}",
        sent=tuple(_sent(messages, built.counts)),
        asked=tuple(question_seqs),
        texts=texts,
    )


def stable_prefix(now: Sequence[MessageDigest], before: Sequence[MessageDigest]) -> int:
    """Return the tokens of the first messages that are the same in both contexts."""
    same = takewhile(lambda pair: pair[0].digest == pair[1].digest, zip(now, before, strict=False))
    return sum(sent.tokens for sent, _ in same)


def content_hash(messages: Sequence[Json]) -> str:
    """Return the SHA-256 of the canonical JSON of what is sent: keys sorted, no blanks, UTF-8."""
    return _hash([_canonical(message) for message in messages])


def _canonical(message: Json) -> bytes:
    return _CANONICAL.encode(message).encode("utf-8", "surrogatepass")


def _hash(messages: Sequence[bytes]) -> str:
    return sha256(b"[" + b",".join(messages) + b"]").hexdigest()


def _sent(messages: Sequence[bytes], counts: Sequence[int]) -> Iterator[MessageDigest]:
    """Yield each message's tokens and the digest of all messages up to it."""
    so_far = sha256()
    for message, tokens in zip(messages, counts, strict=True):
        so_far.update(message + b"\n")
        yield MessageDigest(so_far.hexdigest()[:DIGITS], tokens)


def decision_of(item: ContextItem, reason: Reason | None = None, note: str = "") -> Decision:
    """Return what became of an item: in, or left out for a reason."""
    content = item.content
    cut = reason or (Reason.CUT if item.note else None)
    values: dict[str, Any]
    if isinstance(content, Hit):
        said_at = content.occurred_at if content.tier == Tier.FACTS else None
        values = {"parts": content.parts, "start": content.start, "said_at": said_at, "valid_to": content.valid_to}
        text = content.text.removesuffix(CUT_MARK)
        cut = reason or (Reason.CUT if text != content.text else None)
        values |= {"length": len(text), "preview": text[:PREVIEW]}
    elif isinstance(content, Summary):
        cut = reason
        values = {"seqs": (content.from_seq, content.to_seq), "preview": content.text[:PREVIEW]}
    elif isinstance(content, Block):
        cut = reason or Reason.COMPRESSED
        values = {"seqs": (content.first_seq, content.last_seq), "preview": content.text[:PREVIEW]}
    elif isinstance(content, Turn):
        first, *others = content.messages
        values = {
            "seqs": (first.seq, content.messages[-1].seq),
            "others": tuple(message.id for message in others),
            "preview": f"{first.name or first.role}: {(first.text or '')[:PREVIEW]}",
        }
    else:
        values = {"preview": str(content)[:PREVIEW]}
    about = (item.section, item.kind, item.id, item.tokens, cut, item.score)
    return Decision(*about, note="; ".join(filter(None, [item.note, note])), pinned=item.pinned, **values)


def _written_texts(selection: Selection) -> dict[str, str]:
    """Return what stands in the context and nowhere else: what strategies wrote, what was cut, the user's sections."""
    texts = {}
    for section, items in selection.chosen.items():
        for place, item in enumerate(items):
            content = item.content
            if isinstance(content, Block):
                texts[block_key(content.first_seq, content.last_seq)] = content.text
            elif isinstance(content, Turn) and item.note:
                texts[block_key(content.first_seq, content.first_seq)] = content.messages[0].text or ""
            elif isinstance(content, str):
                texts[text_key(section, place)] = content
    return texts


def text_key(section: str, place: int) -> str:
    """Return the key of a text of the user's own section in a receipt's texts; `place` in the order chosen."""
    return f"<{section}> {place}"


def block_key(first_seq: int, last_seq: int) -> str:
    """Return the key of what a strategy wrote in a receipt's texts."""
    return f"{first_seq}-{last_seq}"


def _left_out(built: BuiltContext) -> tuple[list[Decision], Counter[Reason]]:
    """Return the first of each section that are left out, and how many others there are by reason."""
    listed, unlisted, seen = [], Counter[Reason](), Counter[str]()
    for decision in chain(built.candidates.left_out, _older_turns(built)):
        seen[decision.section] += 1
        if seen[decision.section] <= LISTED:
            listed.append(decision)
        elif decision.reason is not None:
            unlisted[decision.reason] += 1
    selection = built.selection
    begun = {item.whole for items in selection.chosen.values() for item in items}
    rejected = (
        item
        for section, items in built.items.items()
        if section != RECENT
        for item in items
        if item not in selection and item not in begun
    )
    for item in rejected:
        seen[item.section] += 1
        if seen[item.section] <= LISTED:
            listed.append(decision_of(item, *selection.why_not(item)))
        else:  # nobody asks whether something else says the same: that it did not fit is enough
            unlisted[selection.why_not(item, compare=False)[0]] += 1
    return listed, unlisted


def _older_turns(built: BuiltContext) -> Iterator[Decision]:
    """Yield the turns that are not in, of which there may be thousands, together by reason."""
    ranges = sorted((summary.from_seq, summary.to_seq) for summary in built.content.summaries)
    starts, reach = [start for start, _ in ranges], [0, *accumulate((stop for _, stop in ranges), max)]
    by_reason: dict[Reason, list[ContextItem]] = {}
    for item in built.items[RECENT]:
        if item not in built.selection:
            covered = item.first_seq <= reach[bisect_right(starts, item.first_seq)]
            by_reason.setdefault(Reason.COVERED if covered else Reason.OVER_BUDGET, []).append(item)
    for reason, items in sorted(by_reason.items()):
        items.sort(key=lambda item: -item.first_seq)
        newest = items[0].content
        seqs = (int(items[-1].first_seq), newest.messages[-1].seq if isinstance(newest, Turn) else newest.last_seq)
        note = f"{len(items)} older turns, messages {seqs[0]} to {seqs[1]}"
        tokens = sum(item.tokens for item in items)
        yield Decision("recent", "turns", items[0].id, tokens, reason, note=note, seqs=seqs)


def _section_tokens(built: BuiltContext) -> dict[str, int]:
    content, counter, ending = built.content, built.target.counter, built.candidates.ending
    tools = int(built.tokens - formats.count_prompt(built.prompt, counter)) if built.target.tools else 0
    beside = {TOOLS: tools} if built.target.tools else {}
    if built.target.format != OPENAI:
        return formats.count_sections(content, ending, built.target.format, counter) | beside
    own = (*content.static_sections, *content.custom_sections)
    names = [*(section.name for section in own), "system", "summaries", "recent", "facts", "hits", "question"]
    sections = dict.fromkeys(names, 0)
    shown = iter([section.name for section in own if section.texts])
    ends = {message.id for turn in ending for message in turn.messages}
    for part, tokens in zip(content.parts, built.counts, strict=True):
        name = SECTIONS.get(part.kind) or next(shown)
        sections["question" if part.stored and part.stored.id in ends else name] += tokens
    facts = sum(map(counter.count_message, formats.memory_messages(content.facts, ())))
    sections["facts"] += facts
    sections["hits"] = max(0, sections["hits"] - facts)
    left = built.tokens - tools - sum(sections.values())
    # A model's own template may put less around some messages than around most: the largest sections have that.
    beyond = max(0, -left)
    for name in sorted(sections, key=lambda name: -sections[name]):
        taken = min(beyond, sections[name])
        sections[name], beyond = sections[name] - taken, beyond - taken
    return sections | beside | {OVERHEAD: max(0, left)}


def _cacheable(built: BuiltContext) -> int:
    """Return the tokens before the first message that another question about the same conversation might change."""
    content, target = built.content, built.target
    is_static = built.candidates.static and built.selection.is_static()
    if target.format == OPENAI:
        before = content if is_static else PromptContent(system=content.system)
        return min(int(built.tokens), sum(built.counts[: len(before.static_parts)]))
    static = replace(content, facts=(), hits=(), question=None) if is_static else PromptContent(system=content.system)
    return formats.count_shared(built.prompt, target.format.render(static), target.counter)
