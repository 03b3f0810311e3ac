"""The receipt of a context: what it was made of and with, what was left out and why; as JSON, and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.models.decisions import Compression, Decision, Reason, Sent, adapter, as_json
from memstore.models.rows import Json


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one assembly. Tokens are the counter's, of the kind `count`: exact, server, modelled or bound.

    `included` are in the order in which they were chosen, `left_out` the best of each section; how many more were left
    out is in `unlisted`, by reason. `stable_prefix` are the tokens from the start that are the same as in `previous`,
    the context of this conversation before; `cacheable` those that follow from what is stored and not from this
    question. `compressed` is what each strategy did, in order.

    `content_hash` is the SHA-256 of the canonical JSON of what was sent, `sent` its messages. `asked` are the numbers
    of the message that was the question and of those after it. `arguments` and `models` are what the context was made
    with; `texts` what stands nowhere else: `system`, `query`, what a strategy wrote or what was cut, by its
    messages ("3-9"), and the texts of sections of the user's own ("<calendar> 0").
    """

    budget: int
    tokens: int
    counter: str
    sections: Mapping[str, int]
    included: tuple[Decision, ...]
    left_out: tuple[Decision, ...]
    stable_prefix: int
    reserve: int = 0
    compressed: tuple[Compression, ...] = ()
    cacheable: int = 0
    count: str = "exact"
    unlisted: Mapping[str, int] = field(default_factory=dict)
    content_hash: str = ""
    renderer: str = ""
    sent: tuple[Sent, ...] = ()
    asked: tuple[int, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    id: UUID | None = None
    conversation_id: UUID | None = None
    previous: UUID | None = None
    recorded_at: datetime | None = field(default=None, compare=False)

    def as_dict(self) -> Json:
        """Give the receipt as JSON has it: `Receipt.from_dict` gives it back, but for what `says` and `recorded_at`."""
        decisions = {"included", "left_out", "compressed"}
        body = as_json(self, exclude=decisions | {"recorded_at"})
        body = {"budget": self.budget, "reserve": self.reserve, "cacheable": self.cacheable, "count": self.count} | body
        listed = {name: [one.as_dict() for one in getattr(self, name)] for name in sorted(decisions)}
        return body | {name: made for name, made in listed.items() if made or name != "compressed"}

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Receipt:
        """Give the receipt of what `as_dict` gave. Raises `ValueError` for what is none."""
        steps = [
            Compression(one["strategy"], one["tokens_before"], one["tokens_after"], one["turns"])
            for one in body.get("compressed", ())
        ]
        known = {one.name for one in fields(cls)}
        given = {name: value for name, value in body.items() if name in known}
        receipt: Receipt = adapter(Receipt).validate_python(given | {"compressed": steps})
        return receipt

    def decisions(self) -> Iterator[Decision]:
        """Give what is in, then what was left out."""
        yield from self.included
        yield from self.left_out

    def explain(self) -> str:
        """Give the receipt for people: tokens by section, what is in, and what was left out and why."""
        return "\n".join([_headline(self), *_meter(self), *_sections(self), *_notes(self)])


BAR, LISTED, WORDS = 40, 12, 64  # columns of the meter, items of a section, characters of an item
IN_WORDS = {
    Reason.OVER_BUDGET: "did not fit",
    Reason.BELOW_SCORE: "answers less to the question than what was looked at",
    Reason.DUPLICATE: "is said already",
    Reason.SHOWN: "stands among the recent turns",
    Reason.COVERED: "a summary that is in tells it",
    Reason.COMPRESSED: "a strategy compressed it",
    Reason.CUT: "was cut to what fits",
    Reason.SUPERSEDED: "does not hold any more",
    Reason.FILTERED: "has its own place, or is no talk",
    Reason.NOT_VISIBLE: "is not for this viewer",
    Reason.UNPAIRED: "a tool call and its results are not all there",
}


def _headline(receipt: Receipt) -> str:
    kept = f", {receipt.reserve:,} of them kept free" if receipt.reserve else ""
    same = f"{receipt.stable_prefix:,} as in the context before, " if receipt.previous else ""
    used = f"{receipt.tokens:,} of {receipt.budget:,} tokens{kept} ({receipt.counter}, {receipt.count})"
    return f"{used}; {same}{receipt.cacheable:,} whatever is asked"


def _meter(receipt: Receipt) -> Iterator[str]:
    """Give a bar for each section: the whole budget has `BAR` columns."""
    for section, tokens in receipt.sections.items():
        bar = "█" * round(BAR * tokens / receipt.budget)
        yield f"  {section:<10} {tokens:>7,}  {bar}".rstrip()


def _sections(receipt: Receipt) -> Iterator[str]:
    for section in dict.fromkeys(one.section for one in receipt.decisions()):
        inside = [one for one in receipt.included if one.section == section]
        outside = [one for one in receipt.left_out if one.section == section]
        yield f"{section}: {len(inside)} in, {len(outside)} out"
        for sign, decisions in (("+", inside), ("-", outside)):
            yield from (f"  {sign} {_told(one, receipt)}" for one in decisions[:LISTED])
            if len(decisions) > LISTED:
                yield f"  {sign} and {len(decisions) - LISTED:,} more"


def _notes(receipt: Receipt) -> Iterator[str]:
    for one in receipt.compressed:
        yield f"{one.strategy}: {one.turns} turns, {one.before:,} → {one.after:,} tokens"
    if receipt.unlisted:
        counts = ", ".join(f"{receipt.unlisted[reason]:,} {reason}" for reason in sorted(receipt.unlisted))
        yield f"more were looked at and left out: {counts}"
    yield from receipt.hints


def _told(one: Decision, receipt: Receipt) -> str:
    largest = sorted(one.parts.items(), key=lambda part: (-part[1], part[0]))
    parts = ", ".join(f"{name} {value:.2f}" for name, value in largest if value)
    score = "" if one.score is None else f"score {one.score:.3f}" + (f" ({parts})" if parts else "")
    size = f"{one.tokens:,} tokens" if one.tokens or not score else ""  # what does not hold was never counted
    why = "; ".join(filter(None, [IN_WORDS[one.reason] if one.reason else "", one.note, _instead(one, receipt)]))
    return f"{_named(one)} {', '.join(filter(None, [size, score]))}{f': {why}' if why else ''}"


def _named(one: Decision) -> str:
    return f"“{_short(one.says)}”" if one.says else f"[{one.kind} {one.id}]" if one.id else f"[{one.kind}]"


def _instead(one: Decision, receipt: Receipt) -> str:
    """Say which fact took the place of one: in its words, where the receipt has it too."""
    if one.reason != Reason.SUPERSEDED or not one.others:
        return ""
    listed = (other for other in receipt.decisions() if other.id == one.others[0])
    return f"in its place is {_named(next(listed, Decision(one.section, one.kind, one.others[0], 0)))}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WORDS else f"{line[: WORDS - 1].rstrip()}…"
