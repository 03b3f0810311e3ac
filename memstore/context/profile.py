"""A profile: how to answer somebody, who they are, what holds, is planned and happened. No model, no clock.

It keeps to a budget. Facts come by their types, and of a type first what protects, then what is sure and new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from memstore.context.receipt import content_hash
from memstore.context.utterances import leans, only_comments
from memstore.derive.facts.normalization import content_words, denies_allergy, is_protection
from memstore.derive.facts.quotations import words_of
from memstore.derive.facts.slots import root_of
from memstore.formats.parts import clean_name, list_line
from memstore.models import ALWAYS, MAX_PREVIEW_CHARS, Decision, Fact, Reason, Receipt
from memstore.models.contexts import PROFILE_HEADINGS, Profile, ProfileLine
from memstore.providers import TokenCounter
from memstore.text import format_day

# Of types of facts; what is of another type holds.
SECTIONS = {
    "procedure": "answers",
    "identity": "identity",
    "relationship": "identity",
    "plan": "planned",
    "task": "planned",
    "goal": "planned",
    "event": "happened",
}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A line that may be in a profile: `words` is what it says, `key` its slot where it has one, `rank` its place.

    One that `protects` says that somebody is allergic.
    """

    section: str
    fact: Fact
    text: str
    words: frozenset[str]
    key: tuple[str, str, str] | None
    rank: tuple[object, ...]
    protects: bool
    sources: tuple[UUID, ...]

    @property
    def is_quoted(self) -> bool:
        return self.text.startswith('"')

    @property
    def kind(self) -> str:
        """The kind of slot: "likes" of "likes/chess"."""
        return root_of(self.fact.attribute)

    @property
    def object(self) -> frozenset[str]:
        """The words of what a slot of many values is about: "chess" of "likes/chess"."""
        return frozenset(content_words((self.fact.attribute or "").partition("/")[2]))


def compose_profile(
    subject: str, facts: Sequence[Fact], counter: TokenCounter, budget: int, as_of: datetime | None = None
) -> Profile:
    """Return the profile of at most `budget` tokens. Blocking: a counter may ask a server, many times.

    Lines of each section are taken in turn, pinned ones and an allergy before all else, while the finished text is
    within the budget. Of quotations that say nothing alone the receipt says so.
    """
    candidates, unclear = _candidates(subject, facts)
    first = [candidate for candidate in candidates if candidate.fact.importance == ALWAYS]
    first += [candidate for candidate in candidates if candidate not in first and candidate.protects][:1]
    queues: dict[str, list[_Candidate]] = {name: [] for name in PROFILE_HEADINGS}
    for candidate in candidates:
        if candidate not in first:
            queues[candidate.section].append(candidate)
    chosen: list[_Candidate] = []
    left_out: list[tuple[_Candidate, Reason]] = []
    misses: Counter[str] = Counter()
    for candidate in [*first, *_in_turn(queues)]:
        if any(_says_the_same(candidate, other) for other in chosen):
            left_out.append((candidate, Reason.DUPLICATE))
        # To count more that are too long takes time.
        elif misses[candidate.section] < 8 and counter.count(_text(subject, [*chosen, candidate])) <= budget:
            chosen.append(candidate)
        else:
            misses[candidate.section] += 1
            left_out.append((candidate, Reason.OVER_BUDGET))
    text = _text(subject, chosen)
    # As in the text.
    chosen = [candidate for name in PROFILE_HEADINGS for candidate in chosen if candidate.section == name]
    lines = tuple(
        ProfileLine(candidate.section, candidate.text, candidate.fact.id, candidate.sources, candidate.fact.occurred_at)
        for candidate in chosen
    )
    left_out += [(candidate, Reason.SAYS_NOTHING) for candidate in unclear]
    tokens = counter.count(text)
    included = tuple(_decision(candidate, counter) for candidate in chosen)
    receipt = Receipt(
        budget=budget,
        tokens=tokens,
        counter=counter.name,
        sections={name: sum(line.tokens for line in included if line.section == name) for name in PROFILE_HEADINGS},
        included=included,
        left_out=tuple(_decision(candidate, counter, reason) for candidate, reason in left_out[:50]),
        unlisted=dict(Counter(str(reason) for _, reason in left_out[50:])),
        content_hash=content_hash([{"content": text}]),
        arguments={"subject": subject} | ({} if as_of is None else {"as_of": as_of.isoformat()}),
    )
    return Profile(subject, lines, text, tokens, receipt)


def _in_turn(queues: Mapping[str, list[_Candidate]]) -> Iterator[_Candidate]:
    """Take the first of each section, then the second of each; of how to answer and who somebody is two at a time."""
    while any(queues.values()):
        for name, queue in queues.items():
            for _ in range(2 if name in ("answers", "identity") else 1):
                if queue:
                    yield queue.pop(0)


def _text(subject: str, chosen: Sequence[_Candidate]) -> str:
    if not chosen:
        return ""
    blocks = [f"{clean_name(subject)}:"]
    for name, heading in PROFILE_HEADINGS.items():
        if candidates := [candidate for candidate in chosen if candidate.section == name]:
            blocks += [f"{heading}:", *map(_line, candidates)]
    return "\n".join(blocks)


def _line(candidate: _Candidate) -> str:
    return list_line(candidate.text, format_day(candidate.fact.occurred_at))


def _decision(candidate: _Candidate, counter: TokenCounter, reason: Reason | None = None) -> Decision:
    about = (candidate.section, "fact", candidate.fact.id, counter.count(f"{_line(candidate)}\n"), reason)
    standing = candidate.fact.importance == ALWAYS
    return Decision(*about, standing=standing, preview=candidate.text[:MAX_PREVIEW_CHARS])


def _says_the_same(candidate: _Candidate, other: _Candidate) -> bool:
    """Whether two lines fill the same slot, or one tells of the other's, or one of no slot shares much of its words."""
    if candidate.text == other.text or (candidate.key is not None and candidate.key == other.key):
        return True
    if is_protection(candidate.fact) or is_protection(other.fact):
        return False
    if candidate.is_quoted or other.is_quoted:
        if (candidate.object and candidate.object <= other.words) or (other.object and other.object <= candidate.words):
            return True
    elif candidate.key is not None and other.key is not None:
        is_list = bool(candidate.object and other.object) and candidate.kind == other.kind
        return is_list and (candidate.object <= other.object or other.object <= candidate.object)
    # A word alone is a topic.
    shorter = min(len(candidate.words), len(other.words))
    return len(candidate.words & other.words) >= max(2, shorter / 3)


# -- what may be in


def _candidates(subject: str, facts: Sequence[Fact]) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return what may be in a profile, the best first, and quotations that say nothing alone."""
    times = [fact.occurred_at for fact in facts] or [datetime.min]
    oldest, newest = min(times), max(times)
    span = max(newest - oldest, timedelta(days=1))
    candidates, unclear = list[_Candidate](), list[_Candidate]()
    for fact in facts:
        recency = 0.5 + 0.5 * (fact.occurred_at - oldest) / span
        candidate = _candidate(_section(fact), fact, recency, is_own=fact.subject == subject)
        # An older plan without a date may be over.
        is_fresh = fact.occurred_at >= newest - timedelta(days=60)
        if _says_nothing(candidate):
            unclear.append(candidate)
        elif candidate.section != "planned" or fact.importance == ALWAYS or fact.valid_to is not None or is_fresh:
            candidates.append(candidate)
    return _merge_twins(sorted(candidates, key=lambda candidate: candidate.rank)), unclear


def _section(fact: Fact) -> str:
    """Return the section that a fact belongs in: an event that had not begun when it was said is planned."""
    if fact.attribute == "answer_style":
        return "answers"
    is_ahead = fact.valid_to is not None and (fact.valid_from is None or fact.valid_from > fact.occurred_at)
    return "planned" if fact.type == "event" and is_ahead else SECTIONS.get(fact.type, "holds")


def _candidate(section: str, fact: Fact, recency: float, *, is_own: bool) -> _Candidate:
    said = words_of(fact.text)
    # The question that it answers stands there, too.
    is_answer = fact.text.removesuffix(f'{said}"').count('"') > 1
    text = fact.text if said == fact.text or is_answer else f'"{said}"'
    words = content_words(said.removeprefix(f"{fact.subject} "))
    kind = root_of(fact.attribute)
    place = 0 if kind in ("allergy", "name") else 1 if fact.type == "constraint" else 2
    worth = round(fact.confidence * recency, 4)
    denies = denies_allergy(fact.attribute, fact.value, fact.text)
    rank = (fact.importance != ALWAYS, denies, place, not is_own, -worth, -fact.occurred_at.timestamp(), fact.id)
    key = (fact.subject, fact.attribute, fact.value.casefold()) if fact.attribute and fact.value else None
    protects = kind == "allergy" and not denies
    return _Candidate(section, fact, text, frozenset(words), key, rank, protects, tuple(fact.sources))


def _says_nothing(candidate: _Candidate) -> bool:
    """Whether a quotation leans on what was said before, or tells nothing of its speaker.

    Only English and German are read. A constraint, a procedure and what has an attribute count as they are.
    """
    fact = candidate.fact
    may_lean = candidate.is_quoted and fact.importance != ALWAYS and fact.language in ("en", "de")
    is_told = fact.type in ("constraint", "procedure") or fact.attribute is not None
    return may_lean and not is_told and (leans(candidate.text) or only_comments(candidate.text))


def _merge_twins(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the first of those that fill the same slot with the same value, in whatever language, with all sources."""
    kept: dict[object, _Candidate] = {}
    for candidate in candidates:
        key = candidate.key or candidate.fact.id
        twin = kept.get(key)
        sources = tuple(dict.fromkeys((*twin.sources, *candidate.sources))) if twin else ()
        kept[key] = replace(twin, sources=sources) if twin else candidate
    return list(kept.values())
