"""Hits that hold no longer say what holds now, and of hits about now the newest comes first. Pure.

They are messages whose facts were superseded or taken back, answers to these, and all that was said earlier of the same
subject with the words of a value that has ended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import UUID

from memstore.language import load_days, load_words
from memstore.models import FactStep, Hit, Role, Tier
from memstore.text import format_day

NEWEST_LEAD = 0.2

_WORD = re.compile(r"\w(?:[\w.@+]*\w)?")
_PAST = re.compile(
    r"\b(?:did|(?<!^)was|were|had|ago|used to|(?:first|last)(?! name)|ever|before|would|might|likely|could|happened"
    r"|considered|been|waren?|hatten?|wurden?|damals|früher|zuerst)\b"
    r"|^\W*(?:who|what|which \w+) \w+ed\b|\bwhen (?:I|we|you|he|she|they|it)\b"
    r"|\bha[sv]e? .{0,200}\w{2}ed\b|\b(?:hat|haben|ist|sind)\b.{0,200}\bge\w{1,40}(?:t|en)\b",
    re.IGNORECASE,
)


def asks_what_holds(question: str) -> bool:
    """Whether a question asks for what holds now: "Where does Sven work?", and not "Where did Sven work?"."""
    return _PAST.search(question) is None


@dataclass(frozen=True, slots=True)
class EndedValue:
    """A value of a subject that no longer holds, and the fact that holds `now`.

    A text has the value if at least `least` of its words are found, and none of the `new_names`. These are the names of
    what holds: a sentence with both says which is which. A summary may have them in two sentences.
    """

    subject: str
    words: Sequence[re.Pattern[str]]
    least: int
    new_names: Sequence[re.Pattern[str]]
    now: FactStep

    def is_in(self, hit: Hit) -> bool:
        if hit.occurred_at >= self.now.at or not self._is_about(hit):
            return False
        if sum(word.search(hit.text) is not None for word in self.words) < self.least:
            return False
        return hit.tier == Tier.SUMMARIES or not any(word.search(hit.text) for word in self.new_names)

    def _is_about(self, hit: Hit) -> bool:
        if hit.tier == Tier.FACTS:
            return hit.text.startswith(f"{self.subject} ")
        owner = self.subject.partition("'s ")[0].casefold()
        is_thing = self.subject[:1].islower()  # everybody speaks of "the app"
        named = is_thing or owner in (f"{hit.speaker}".casefold(), "the user") or owner in hit.text.casefold()
        return named or hit.role != Role.USER


@dataclass(frozen=True, slots=True)
class Changes:
    """The facts that hold in place of those that messages say, by a message's id, and the values that have ended."""

    replaced: Mapping[UUID, Sequence[FactStep]]
    ended: Sequence[EndedValue]

    @classmethod
    def of(cls, said: Iterable[tuple[UUID, UUID]], fact_ids: Iterable[UUID], steps: Sequence[FactStep]) -> Changes:
        """Return the changes of facts that messages `said` and of those of `fact_ids`; `steps` begin with all these."""
        return cls(last_of_each(said, steps), ended_values(fact_ids, steps))

    @property
    def facts(self) -> set[UUID]:
        replacing = {step.fact_id for ends in self.replaced.values() for step in ends}
        return replacing | {value.now.fact_id for value in self.ended}

    def restrict(self, facts: Collection[UUID]) -> Changes:
        shown = {id: [step for step in ends if step.fact_id in facts] for id, ends in self.replaced.items()}
        ended = [value for value in self.ended if value.now.fact_id in facts]
        return Changes({id: ends for id, ends in shown.items() if ends}, ended)

    def leaves_out(
        self, hit: Hit, is_outdated: bool, holding: Collection[UUID], *, asks_what_holds: bool, is_small: bool
    ) -> bool:
        """Whether a hit is left out: an outdated summary, whose messages say the rest too, and of a small context more.

        That is what holds no longer, but for messages that are `holding`, since they say what holds, too. A question
        about a time asks for what held then.
        """
        if hit.tier == Tier.SUMMARIES:
            return asks_what_holds and (is_outdated or any(value.is_in(hit) for value in self.ended))
        return is_small and hit.id in self.replaced and hit.id not in holding and not hit.parts.get("date")

    def mark(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return hits, where those that do not hold, and have no mark yet, say what does."""
        return [hit if hit.later else _mark(hit, self._now(hit)) for hit in hits]

    def _now(self, hit: Hit) -> Sequence[FactStep]:
        return self.replaced.get(hit.id) or _latest(value.now for value in self.ended if value.is_in(hit))


def ended_values(first: Iterable[UUID], steps: Iterable[FactStep]) -> list[EndedValue]:
    by_id = {step.fact_id: step for step in steps}
    ended = []
    for fact in (by_id[id] for id in first if id in by_id):
        now = _last(fact, by_id)
        if now is None or now.is_taken_back or now is fact or _root(fact) != _root(now):
            continue
        value = _words(_value(fact)) or _told_names(fact.text)
        new = _words(_value(now) or now.text)
        if fresh := set(value).difference(_words(fact.subject), new):
            names = sorted(fresh & _names(fact.text))
            least = (len(names) + 1) // 2 if names else len(value)
            new_names = sorted(set(new).difference(value) & _names(now.text))
            words = [_pattern(word) for word in names or value]
            ended.append(EndedValue(fact.subject, words, least, [_pattern(word) for word in new_names], now))
    return ended


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(text.casefold())))


def _names(text: str) -> set[str]:
    """Return the words with a capital within a text, in small letters."""
    return {word.casefold() for word in _WORD.findall(text)[1:] if len(word) > 1 and word != word.lower()}


def _told_names(text: str) -> list[str]:
    """Return the names that a fact in plain words tells; a quotation may begin with any word, and have any case."""
    return [] if '"' in text else sorted(_names(text) - load_words("months") - load_days("en"))


def _pattern(word: str) -> re.Pattern[str]:
    """Return what finds a word, a long one with another ending too."""
    is_long = len(word) > 5 and word.isalpha()
    stem = rf"{re.escape(word[:-2])}\w{{1,4}}" if is_long else rf"{re.escape(word)}s?"
    return re.compile(rf"(?<!\w){stem}(?!\w)", re.IGNORECASE)


def last_of_each(said: Iterable[tuple[UUID, UUID]], steps: Iterable[FactStep]) -> dict[UUID, list[FactStep]]:
    """Return what holds in place of the facts of messages, or was taken back, the latest first, by a message's id."""
    by_id = {step.fact_id: step for step in steps}
    last: dict[UUID, list[FactStep]] = {}
    for message, fact in said:
        end = _last(by_id[fact], by_id) if fact in by_id else None
        if end is not None and (end.fact_id != fact or end.is_taken_back):
            last.setdefault(message, []).append(end)
    return {id: _latest(ends) for id, ends in last.items()}


def _latest(steps: Iterable[FactStep]) -> list[FactStep]:
    once = {step.fact_id: step for step in steps}
    return sorted(once.values(), key=lambda step: (step.at, step.fact_id), reverse=True)


def _last(fact: FactStep, by_id: Mapping[UUID, FactStep]) -> FactStep | None:
    """Return the fact that took the place of this one in the end; None where that is gone."""
    seen = {fact.fact_id}
    while fact.next_id is not None:
        if fact.next_id not in by_id or fact.next_id in seen:
            return None
        fact = by_id[fact.next_id]
        seen.add(fact.fact_id)
    return fact


def mark_outdated(
    hits: Sequence[Hit],
    facts: Sequence[Hit],
    changes: Changes,
    *,
    rank_behind: bool,
    sources: Mapping[UUID, Sequence[UUID]] = MappingProxyType({}),
) -> list[Hit]:
    """Return hits, the best first, where those that do not hold say what does.

    With `rank_behind` those whose fact was replaced, and summaries of such messages, rank behind it, and behind the
    messages that are its `sources`: the question is what holds. Another question may ask for just what they say.
    """
    by_id = {hit.id: hit.score for hit in hits}
    scores = {fact.id: max([fact.score, *(by_id.get(message, 0.0) for message in fact.sources)]) for fact in facts}
    for fact_id, messages in sources.items():
        if message_scores := [by_id[message] for message in messages if message in by_id]:
            scores[fact_id] = max(*message_scores, scores.get(fact_id, 0.0))
    replaced = changes.replaced
    asked = {(hit.conversation_id, hit.seq): replaced[hit.id] for hit in hits if hit.id in replaced}
    marked = []
    for hit in hits:
        told = replaced.get(hit.id, ())
        # An assistant's hit answers the message before it.
        if hit.role == Role.ASSISTANT and hit.seq is not None:
            told = told or asked.get((hit.conversation_id, hit.seq - 1), ())
        if hit.tier == Tier.SUMMARIES and rank_behind:
            told = _latest(step for message in hit.sources for step in replaced.get(message, ()))
        outdated = _mark(hit, told)
        if rank_behind and outdated.later:
            outdated = _rank_behind(outdated, max(scores.get(id, hit.score) for id in outdated.later_ids))
        marked.append(outdated)
    return changes.mark(sorted(marked, key=lambda hit: -hit.score))


def lead_newest(hits: Sequence[Hit], question: str) -> list[Hit]:
    """Return hits, the best first: of the first ones that score nearly as much as the best the newest has a lead.

    Of what answers a question about now as well, the newest is the likeliest to hold. The lead grows by the days on
    which they were said. The question itself, asked before, answers nothing.
    """
    asked = _plain(question)
    answers = [hit for hit in hits[:10] if _plain(hit.text) != asked]
    near = [hit for hit in answers if hit.score >= answers[0].score - 0.2]
    days = sorted({hit.occurred_at.date() for hit in near})
    if len(days) < 2:
        return list(hits)
    leads = {id(hit): round(NEWEST_LEAD * days.index(hit.occurred_at.date()) / (len(days) - 1), 6) for hit in near}
    led = []
    for hit in hits:
        lead = leads.get(id(hit), 0.0)
        parts = {**hit.parts, "recency": lead}
        led.append(replace(hit, score=round(hit.score + lead, 6), parts=parts) if lead else hit)
    return sorted(led, key=lambda hit: -hit.score)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _mark(hit: Hit, now: Iterable[FactStep]) -> Hit:
    """Return a hit with the latest of these facts that were said after it."""
    later = [step for step in now if hit.occurred_at < step.at][:2]
    told = []
    for step in later:
        text = " ".join(step.text.split()).rstrip(".")
        told.append(f"{'taken back: ' if step.is_taken_back else ''}{text}, {format_day(step.at)}")
    return replace(hit, later="; ".join(told), later_ids=tuple(step.fact_id for step in later)) if later else hit


def _rank_behind(hit: Hit, score: float) -> Hit:
    less = min(0.0, score - 1e-6 - hit.score)
    parts = {**hit.parts, "superseded": round(less, 6)} if less else hit.parts
    return replace(hit, score=round(hit.score + less, 6), parts=parts)


def _value(fact: FactStep) -> str:
    """Return what a fact says of its subject in a few words: the value, or what is yes or no."""
    value = fact.value or ""
    return (fact.attribute or "").rpartition("/")[2] if value in ("yes", "no") else value


def _root(fact: FactStep) -> str:
    return (fact.attribute or "").partition("/")[0]
