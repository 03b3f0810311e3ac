"""The receipt of a packing: what was considered and what became of it, tokens, what of it stays the same. Pure."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import accumulate, takewhile
from typing import Any

from memstore.assemble import render
from memstore.assemble.cut import MARK
from memstore.assemble.pack import Packing, Piece
from memstore.assemble.render import OPENAI, Chosen, Format, Kind, Rendered
from memstore.assemble.render import content as contents
from memstore.assemble.strategies.view import Block, Entry
from memstore.assemble.turns import Turn
from memstore.models import Compression, Decision, Hit, Json, Reason, Receipt, Sent, Summary, Tier
from memstore.providers import Count, TokenCounter

OVERHEAD, TOOLS = "overhead", "tools"
SECTIONS = {  # of parts; the others are the user's own
    Kind.SYSTEM: "system",
    Kind.STANDING: "facts",
    Kind.SUMMARIES: "summaries",
    Kind.RECORD: "recent",
    Kind.MESSAGE: "recent",
    Kind.MEMORY: "hits",  # with the facts for this question, which are taken off again
    Kind.QUESTION: "question",
}
RENDERER = 2  # another number gives other bytes of the same items
LISTED = 24  # of what was left out, the best of each section; the others are counted by reason
DIGITS = 16  # of a digest
GIST = 160  # characters of what an item says


@dataclass(frozen=True, slots=True)
class Composed:
    """What a receipt is made of. `chosen` was `rendered`, to so many `tokens`; `ending` are the last of its turns.

    `steady` says that another question would have found the same turns. `unlisted` counts candidates that were
    looked at and not offered.
    """

    chosen: Chosen
    format: Format
    rendered: Rendered
    tokens: Count
    offers: Mapping[str, Sequence[Piece]]
    packing: Packing
    budget: int
    reserve: int
    tools: Sequence[Json] = ()
    ending: Sequence[Turn] = ()
    left_out: Sequence[Decision] = ()
    compressed: Sequence[Compression] = ()
    steady: bool = True
    unlisted: Mapping[Reason, int] = field(default_factory=dict)


def receipt_of(made: Composed, counter: TokenCounter) -> Receipt:
    """Give the receipt of a context."""
    counts = [counter.count_message(message) for message in made.rendered.sent]
    included = [decision_of(piece) for pieces in made.packing.chosen.values() for piece in pieces]
    listed, unlisted = _bounded([*made.left_out, *_outside(made)])
    texts = {} if made.chosen.system is None else {"system": made.chosen.system}
    if (source := render.template_source(made.format)) is not None:
        texts["template"] = source
    if made.chosen.question is not None and made.chosen.question_seq is None:
        texts["query"] = str(made.chosen.question["content"])
    return Receipt(
        budget=made.budget,
        reserve=made.reserve,
        tokens=int(made.tokens),
        counter=counter.name,
        count=made.tokens.kind,
        sections=section_tokens(made, counts, counter),
        included=tuple(included),
        left_out=tuple(listed),
        unlisted={str(reason): count for reason, count in sorted((unlisted + Counter(made.unlisted)).items())},
        stable_prefix=0,
        cacheable=_cacheable(made, counts, counter),
        compressed=tuple(made.compressed),
        content_hash=content_hash(made.rendered.sent),
        renderer=f"{made.format.name}/{RENDERER}",
        sent=tuple(sent(made.rendered.sent, counts)),
        asked=_asked(made),
        texts=texts | _written(made.packing),
    )


def stable_prefix(now: Sequence[Sent], before: Sequence[Sent]) -> int:
    """Give the tokens of the first messages that are the same in both contexts."""
    same = takewhile(lambda pair: pair[0].digest == pair[1].digest, zip(now, before, strict=False))
    return sum(one.tokens for one, _ in same)


def content_hash(messages: Sequence[Json]) -> str:
    """Give the SHA-256 of the canonical JSON of what is sent."""
    return sha256(canonical(messages)).hexdigest()


def canonical(value: object) -> bytes:
    """Give the JSON that is the same for equal values: keys sorted, no blanks, UTF-8."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def sent(messages: Sequence[Json], counts: Sequence[int]) -> Iterable[Sent]:
    """Give for each message its tokens, and the digest of all up to it."""
    so_far = sha256()
    for message, tokens in zip(messages, counts, strict=True):
        so_far.update(canonical(message) + b"\n")
        yield Sent(so_far.copy().hexdigest()[:DIGITS], tokens)


def decision_of(piece: Piece, reason: Reason | None = None) -> Decision:
    """Give what became of a piece: in, or left out for a reason."""
    content = piece.content
    cut = reason or (Reason.CUT if piece.note else None)
    if isinstance(content, Hit):
        at = content.occurred_at if content.tier == Tier.FACTS else None
        text = content.text.removesuffix(MARK)
        why = reason or (Reason.CUT if text != content.text else None)
        return _decision(
            piece, why, parts=content.parts, start=content.start, length=len(text), said_at=at, says=text[:GIST]
        )
    if isinstance(content, Summary):
        return _decision(piece, reason, seqs=(content.from_seq, content.to_seq), says=content.text[:GIST])
    if isinstance(content, Block):
        seqs = (content.first_seq, content.last_seq)
        return _decision(piece, reason or Reason.COMPRESSED, seqs=seqs, says=content.text[:GIST])
    if isinstance(content, Turn):
        first, *others = content.messages
        says = f"{first.name or first.role}: {(first.text or '')[:GIST]}"
        seqs = (first.seq, content.messages[-1].seq)
        return _decision(piece, cut, seqs=seqs, others=tuple(message.id for message in others), says=says)
    return _decision(piece, cut, says=str(content)[:GIST])


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
    return (made.chosen.question_seq, *(message.seq for turn in made.ending for message in turn.messages))


def _outside(made: Composed) -> Iterable[Decision]:
    """Give what was offered and not chosen; older turns, of which there may be thousands, together."""
    inside = {id(piece) for pieces in made.packing.chosen.values() for piece in pieces}
    told = _tells(made.chosen.summaries)
    by_reason: dict[Reason, list[Piece]] = {}
    for piece in made.offers["recent"]:
        if id(piece) not in inside:
            by_reason.setdefault(Reason.COVERED if told(piece.first_seq) else Reason.OVER_BUDGET, []).append(piece)
    for why, pieces in sorted(by_reason.items()):
        yield _together(sorted(pieces, key=lambda piece: -piece.first_seq), why)
    others = (piece for section, pieces in made.offers.items() if section != "recent" for piece in pieces)
    yield from (_refused(piece, *made.packing.why_not(piece)) for piece in others if id(piece) not in inside)


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


def _bounded(decisions: Sequence[Decision]) -> tuple[list[Decision], Counter[Reason]]:
    """Give the first of each section, and how many others there are by reason."""
    listed, unlisted, seen = [], Counter[Reason](), Counter[str]()
    for one in decisions:
        seen[one.section] += 1
        if seen[one.section] <= LISTED:
            listed.append(one)
        elif one.reason is not None:
            unlisted[one.reason] += 1
    return listed, unlisted


def section_tokens(made: Composed, counts: Sequence[int], counter: TokenCounter) -> dict[str, int]:
    """Give the tokens of each section; they add up to the whole, with what belongs to none as `overhead`."""
    chosen = made.chosen
    tools = made.tokens - render.counted(made.rendered, counter) if made.tools else 0
    beside = {TOOLS: int(tools)} if made.tools else {}
    if made.format != OPENAI:
        return render.section_tokens(chosen, made.ending, made.format, counter) | beside
    added = [one.name for one in (*chosen.steady, *chosen.added)]
    sections = dict.fromkeys([*added, "system", "summaries", "recent", "facts", "hits", "question"], 0)
    shown = iter([one.name for one in (*chosen.steady, *chosen.added) if one.texts])
    ending = {message.id for turn in made.ending for message in turn.messages}
    for part, tokens in zip(render.parts(chosen), counts, strict=True):
        name = SECTIONS.get(part.kind) or next(shown)
        sections["question" if part.stored and part.stored.id in ending else name] += tokens
    facts = sum(map(counter.count_message, render.remembered(chosen.facts, ())))
    sections["facts"] += facts
    sections["hits"] = max(0, sections["hits"] - facts)
    left = made.tokens - tools - sum(sections.values())
    # A model's own template may put less around some messages than around most: the largest sections have that.
    beyond = max(0, -left)
    for name in sorted(sections, key=lambda name: -sections[name]):
        taken = min(beyond, sections[name])
        sections[name], beyond = sections[name] - taken, beyond - taken
    return sections | beside | {OVERHEAD: max(0, left)}


def _another(question: Json) -> Json:
    """Give a question of the same shape in which every word is another one."""
    text = contents.plain_text(contents.content_parts(question.get("content")))
    return {"role": "user", "content": re.sub(r"(\S+)", r"?\1", text) or "?"}


def _cacheable(made: Composed, counts: Sequence[int], counter: TokenCounter) -> int:
    """Give the tokens before the first message that another question about the same conversation might change."""
    stable = Chosen(system=made.chosen.system)
    if made.steady and made.packing.is_settled():
        stable = replace(made.chosen, facts=(), hits=(), question=None)
    if made.chosen.question is not None and render.template_source(made.format) is not None:
        stable = replace(stable, question=_another(made.chosen.question))
    if made.format != OPENAI:
        return render.shared_tokens(made.rendered, made.format.render(stable), counter)
    return min(int(made.tokens), sum(counts[: len(render.parts_before(stable))]))
