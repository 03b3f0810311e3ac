"""The receipt of a packing: what was considered and what became of it, tokens, what of it stays the same. Pure."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, chain, takewhile
from typing import Any

from memstore.context import formats as render
from memstore.context.cut import MARK
from memstore.context.formats import OPENAI, PartKind, PromptContent, RenderedPrompt
from memstore.context.material import Material, Target
from memstore.context.pack import Packing, Piece
from memstore.context.sections import RECENT
from memstore.context.strategies.view import Block, Entry
from memstore.context.turns import Turn
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
GIST = 160  # characters of what an item says
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Composed:
    """A finished context, and how it came about: of the `offers` made of the material, `packing` took what is `chosen`,
    which was `rendered`, to so many `tokens`."""

    material: Material
    target: Target
    offers: Mapping[str, Sequence[Piece]]
    packing: Packing
    chosen: PromptContent
    rendered: RenderedPrompt
    tokens: Count

    @cached_property
    def counts(self) -> list[int]:
        """The tokens of each message that is sent."""
        return [self.target.counter.count_message(message) for message in self.rendered.sent]

    @cached_property
    def sections(self) -> dict[str, int]:
        """The tokens of each section; they add up to the whole, with what belongs to none as `overhead`."""
        return _section_tokens(self)


def receipt_of(made: Composed) -> Receipt:
    """Give the receipt of a context."""
    material, target = made.material, made.target
    written = [canonical(message) for message in made.rendered.sent]
    listed, unlisted = _left_out(made)
    return Receipt(
        budget=target.budget,
        reserve=target.reserve,
        tokens=int(made.tokens),
        counter=target.counter.name,
        count=made.tokens.kind,
        sections=made.sections,
        included=tuple(decision_of(piece) for pieces in made.packing.chosen.values() for piece in pieces),
        left_out=tuple(listed),
        unlisted={str(reason): count for reason, count in sorted((unlisted + Counter(material.unlisted)).items())},
        stable_prefix=0,
        cacheable=_cacheable(made),
        compressed=tuple(material.compressed),
        content_hash=_hash(written),
        renderer=f"{target.format.name}/{RENDERER}",
        sent=tuple(_sent(written, made.counts)),
        asked=_asked(made),
        texts=_given(made.chosen) | _written(made.packing),
    )


def _given(chosen: PromptContent) -> dict[str, str]:
    """Give what was given for this context alone."""
    texts = {} if chosen.system is None else {"system": chosen.system}
    if chosen.question is not None and chosen.question_seq is None:
        texts["query"] = str(chosen.question["content"])
    return texts


def stable_prefix(now: Sequence[MessageDigest], before: Sequence[MessageDigest]) -> int:
    """Give the tokens of the first messages that are the same in both contexts."""
    same = takewhile(lambda pair: pair[0].digest == pair[1].digest, zip(now, before, strict=False))
    return sum(one.tokens for one, _ in same)


def content_hash(messages: Sequence[Json]) -> str:
    """Give the SHA-256 of the canonical JSON of what is sent."""
    return _hash([canonical(message) for message in messages])


def canonical(value: object) -> bytes:
    """Give the JSON that is the same for equal values: keys sorted, no blanks, UTF-8."""
    return _CANONICAL.encode(value).encode("utf-8", "surrogatepass")


def _hash(written: Sequence[bytes]) -> str:
    """Give the SHA-256 of a list's canonical JSON, of that of its members."""
    return sha256(b"[" + b",".join(written) + b"]").hexdigest()


def _sent(written: Sequence[bytes], counts: Sequence[int]) -> Iterable[MessageDigest]:
    """Give for each message, written as canonical JSON, its tokens and the digest of all up to it."""
    so_far = sha256()
    for message, tokens in zip(written, counts, strict=True):
        so_far.update(message + b"\n")
        yield MessageDigest(so_far.hexdigest()[:DIGITS], tokens)


def decision_of(piece: Piece, reason: Reason | None = None) -> Decision:
    """Give what became of a piece: in, or left out for a reason."""
    content = piece.content
    cut = reason or (Reason.CUT if piece.note else None)
    if isinstance(content, Hit):
        at = content.occurred_at if content.tier == Tier.FACTS else None
        found = {"parts": content.parts, "start": content.start, "said_at": at, "valid_to": content.valid_to}
        text = content.text.removesuffix(MARK)
        why = reason or (Reason.CUT if text != content.text else None)
        return _decision(piece, why, length=len(text), preview=text[:GIST], **found)
    if isinstance(content, Summary):
        return _decision(piece, reason, seqs=(content.from_seq, content.to_seq), preview=content.text[:GIST])
    if isinstance(content, Block):
        seqs = (content.first_seq, content.last_seq)
        return _decision(piece, reason or Reason.COMPRESSED, seqs=seqs, preview=content.text[:GIST])
    if isinstance(content, Turn):
        first, *others = content.messages
        says = f"{first.name or first.role}: {(first.text or '')[:GIST]}"
        seqs = (first.seq, content.messages[-1].seq)
        return _decision(piece, cut, seqs=seqs, others=tuple(message.id for message in others), preview=says)
    return _decision(piece, cut, preview=str(content)[:GIST])


def _decision(piece: Piece, reason: Reason | None, **found: Any) -> Decision:
    about = (piece.section, piece.kind, piece.id, piece.tokens, reason, piece.score)
    return Decision(*about, note=piece.note, pinned=piece.pinned, **found)


def _written(packing: Packing) -> dict[str, str]:
    """Give what stands in the context and nowhere else: what strategies wrote, what was cut, the user's sections."""
    texts = {}
    for section, pieces in packing.chosen.items():
        for place, piece in enumerate(pieces):
            content = piece.content
            if isinstance(content, Block):
                texts[block_key(content.first_seq, content.last_seq)] = content.text
            elif isinstance(content, Turn) and piece.note:
                texts[block_key(content.first_seq, content.first_seq)] = content.messages[0].text or ""
            elif isinstance(content, str):
                texts[text_key(section, place)] = content
    return texts


def text_key(section: str, place: int) -> str:
    """Give the name of a text of the user's own section among the texts of a receipt; `place` in the order chosen."""
    return f"<{section}> {place}"


def block_key(first_seq: int, last_seq: int) -> str:
    """Give the name of what a strategy wrote, among the texts of a receipt."""
    return f"{first_seq}-{last_seq}"


def _asked(made: Composed) -> tuple[int, ...]:
    if made.chosen.question_seq is None:
        return ()
    return (made.chosen.question_seq, *(message.seq for turn in made.material.ending for message in turn.messages))


def _left_out(made: Composed) -> tuple[list[Decision], Counter[Reason]]:
    """Give the first of each section that are left out, and how many others there are by reason.

    Of those that are only counted nobody asks whether something else says the same: that they did not fit is enough.
    """
    listed, unlisted, seen = [], Counter[Reason](), Counter[str]()
    for one in chain(made.material.left_out, _older(made)):
        seen[one.section] += 1
        if seen[one.section] <= LISTED:
            listed.append(one)
        elif one.reason is not None:
            unlisted[one.reason] += 1
    for piece in _outside(made):
        seen[piece.section] += 1
        if seen[piece.section] <= LISTED:
            listed.append(_refused(piece, *made.packing.why_not(piece)))
        else:
            unlisted[made.packing.why_passed(piece)] += 1
    return listed, unlisted


def _outside(made: Composed) -> Iterator[Piece]:
    """Give what was offered and not chosen, nor is the beginning of it, but for turns."""
    begun = {piece.whole for pieces in made.packing.chosen.values() for piece in pieces}
    for section, pieces in made.offers.items():
        if section != RECENT:
            yield from (piece for piece in pieces if piece not in made.packing and piece not in begun)


def _older(made: Composed) -> Iterable[Decision]:
    """Give the turns that are not in, of which there may be thousands, together by reason."""
    told = _tells(made.chosen.summaries)
    by_reason: dict[Reason, list[Piece]] = {}
    for piece in made.offers[RECENT]:
        if piece not in made.packing:
            by_reason.setdefault(Reason.COVERED if told(piece.first_seq) else Reason.OVER_BUDGET, []).append(piece)
    for why, pieces in sorted(by_reason.items()):
        yield _together(sorted(pieces, key=lambda piece: -piece.first_seq), why)


def _refused(piece: Piece, why: Reason, note: str) -> Decision:
    found = decision_of(piece, why)
    return replace(found, note="; ".join(filter(None, [found.note, note])))


def _tells(summaries: Iterable[Summary]) -> Callable[[float], bool]:
    """Give what says whether one of the summaries has a message under it."""
    ordered = sorted((one.from_seq, one.to_seq) for one in summaries)
    starts, reach = [start for start, _ in ordered], [0, *accumulate((stop for _, stop in ordered), max)]
    return lambda seq: seq <= reach[bisect_right(starts, seq)]


def _together(pieces: Sequence[Piece], reason: Reason) -> Decision:
    newest, oldest = pieces[0].content, pieces[-1].content
    seqs = (oldest.first_seq, _last(newest))
    tokens = sum(piece.tokens for piece in pieces)
    note = f"{len(pieces)} older turns, messages {seqs[0]} to {seqs[1]}"
    return Decision("recent", "turns", pieces[0].id, tokens, reason, note=note, seqs=seqs)


def _last(entry: Entry) -> int:
    return entry.last_seq if isinstance(entry, Block) else entry.messages[-1].seq


def _section_tokens(made: Composed) -> dict[str, int]:
    chosen, counter, ending = made.chosen, made.target.counter, made.material.ending
    tools = int(made.tokens - render.count_prompt(made.rendered, counter)) if made.target.tools else 0
    beside = {TOOLS: tools} if made.target.tools else {}
    if made.target.format != OPENAI:
        return render.count_sections(chosen, ending, made.target.format, counter) | beside
    own = (*chosen.static_sections, *chosen.custom_sections)
    sections = dict.fromkeys(
        [*(one.name for one in own), "system", "summaries", "recent", "facts", "hits", "question"], 0
    )
    shown = iter([one.name for one in own if one.texts])
    ends = {message.id for turn in ending for message in turn.messages}
    for part, tokens in zip(chosen.parts, made.counts, strict=True):
        name = SECTIONS.get(part.kind) or next(shown)
        sections["question" if part.stored and part.stored.id in ends else name] += tokens
    facts = sum(map(counter.count_message, render.memory_messages(chosen.facts, ())))
    sections["facts"] += facts
    sections["hits"] = max(0, sections["hits"] - facts)
    left = made.tokens - tools - sum(sections.values())
    # A model's own template may put less around some messages than around most: the largest sections have that.
    beyond = max(0, -left)
    for name in sorted(sections, key=lambda name: -sections[name]):
        taken = min(beyond, sections[name])
        sections[name], beyond = sections[name] - taken, beyond - taken
    return sections | beside | {OVERHEAD: max(0, left)}


def _cacheable(made: Composed) -> int:
    """Give the tokens before the first message that another question about the same conversation might change."""
    chosen, target = made.chosen, made.target
    is_settled = made.material.steady and made.packing.is_settled()
    if target.format == OPENAI:
        before = chosen if is_settled else PromptContent(system=chosen.system)
        return min(int(made.tokens), sum(made.counts[: len(before.static_parts)]))
    stable = replace(chosen, facts=(), hits=(), question=None) if is_settled else PromptContent(system=chosen.system)
    return render.count_shared(made.rendered, target.format.render(stable), target.counter)
