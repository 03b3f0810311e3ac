"""A profile: who somebody is, what holds, what is planned, how to answer them, within a budget. No model, no clock.

Facts in sentences come by their types, and quotations where they stand alone: of those the ones that say most of what
comes up again and again.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from memstore.context.items import ProfileSource
from memstore.context.layout import content_hash
from memstore.derive.facts.normalization import content_words
from memstore.formats.parts import clean_name, list_line
from memstore.models import (
    ALWAYS,
    FACT_TYPES,
    LONGEST_PREVIEW,
    PROFILE_HEADINGS,
    Decision,
    Fact,
    Message,
    Profile,
    ProfileLine,
    Reason,
    Receipt,
    latest_first,
)
from memstore.providers import TokenCounter
from memstore.text import format_day

ANSWERS, WHO, HOLDS, PLANNED, SAID = "answers", "identity", "holds", "planned", "said"
TYPES = {
    "procedure": ANSWERS,
    "identity": WHO,
    "relationship": WHO,
    "plan": PLANNED,
    "task": PLANNED,
    "goal": PLANNED,
    "event": PLANNED,
}
ANSWER_STYLE, ALLERGY, NAME = "answer_style", "allergy", "name"
SPOKEN = re.compile(r'^[^"\n]{1,300}: "(?P<words>.+)"$', re.DOTALL)  # a quotation, as the reader writes it
# Of quotations: what protects somebody and how to answer count as they stand, and so do types of one's own.
SPOKEN_TYPES = frozenset(FACT_TYPES) - {"constraint", "procedure"}
FRESH = timedelta(days=60)  # before what was said last: a plan or a state without a date that is older may be over
ALIKE = 1 / 3  # of the content words of the shorter of two lines
LONGEST_QUOTATION = 25  # words of a quotation
MOST_SPOKEN = 150  # quotations that are weighed against one another
SHARED = 2  # of them at least: a word alone is a topic
SHORTEST_QUOTATION, TELLING = 3, 4  # content words of a quotation; with fewer than the second it comes after all others
LISTED, MISSES = 50, 8  # what was left out, in a receipt; lines of a section that did not fit, before it is given up

# What says nothing alone: it needs what was said before, who listens, or a thing that both look at.
_LEANING = re.compile(
    r"\b(?:it|its|this|that|these|those|them|they|their|he|she|his|her|him|there|here|you|your|yours|ya|u|we'll|let's|"
    r"one|ones|both|too|same|such|similar|another|else|what|how|thanks|thank|look at|the way|"
    r"picture|pics?|photos?|last (?:talked|spoke|met)|a few more|speaking of|I mean|actually|"
    r"(?:some|any|every|no)(?:thing|one|body|where)|"
    r"es|dies\w*|jene\w*|ihn|ihm|ihr|ihnen|dort|du|dich|dir|dein\w*|auch|danke|"
    r"ça|cela|ceci|celui|celle|lui|leur|toi|tu|te|ton|ta|tes|vous|votre|vos|merci|"
    r"eso|esto|ese|esa|ello|ellos|ellas|usted|tú|tus|gracias)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"^(?:\W*\w+(?:['’]\w+)?,?\s+){0,3}?(?:I|I['’]\w+|my|ich|mein\w*|je|j['’]\w+|mon|ma|mes|mi|mis|soy|estoy|tengo|vivo|trabajo)\b",
    re.IGNORECASE,
)
# How somebody feels at the moment, what they wish or think: nothing that lasts.
_MOOD = re.compile(
    r"\b(?:glad|happy|happier|excited|stoked|thrilled|grateful|thankful|proud|sorry|feel\w*|felt|sure|determined|confident|"
    r"motivated|hope\w*|hoping|guess|think|thought|know|wish|agree|appreciate\w*|can['’]?t wait|looking forward|pumped|"
    r"positive|amazing|awesome|blast|quit|give up|gonna keep|keep (?:going|pushing)|impressed|believ\w+|wanna|curious|"
    r"remind\w*|bet|definitely|totally|inspir\w+|forget|come true|come see|"
    r"can (?:see|picture)|wanted|should|re[ck]+om+end|vibes?|stuff|probably|maybe|perhaps|"
    r"off to \w+ (?:\w+ )?(?:with|some)|I['’]d|"
    r"(?:great|good|bad|special|cool|tough|unexpected)[\w -]* (?:experience|incident|day|time)|"
    r"froh|glücklich|dankbar|stolz|hoffe|glaube|denke|content|heureux|heureuse|"
    r"fier|fière|espère|pense|crois|feliz|contento|contenta|orgulloso|orgullosa|espero|creo|pienso)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:I['’]m (?:\w+ )?\w+ing|I am (?:\w+ )?\w+ing|currently|right now|lately|these days|still|need|"
    r"gerade|zurzeit|momentan|noch|en ce moment|actuellement|encore|ahora|todavía|actualmente)\b",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"\b(?:next (?:week|month|year|summer|spring|fall|autumn|winter|weekend)|tomorrow|going to|gonna|planning|plan to|"
    r"plans to|will(?! always| never)|I['’]ll|upcoming|"
    r"nächst\w+|morgen|werde|demain|prochain\w*|vais|mañana|próxim\w+|voy a)\b",
    re.IGNORECASE,
)
# What holds for longer than a day.
_LASTING = re.compile(
    r"\b(?:I am|I['’]m (?:a|an|from|learning|working|studying|writing|passionate|starting|offering)|"
    r"I['’]ve (?:been|always)|I (?:have|own|work|live|play|teach|run|study|started|joined|love|enjoy)|"
    r"my (?:\w+ )?(?:goal|dream|job|art|favou?rite|mom|mum|mother|dad|father|wife|husband|son|daughter|kids|family|dog|"
    r"cat|partner)|ich bin|ich habe|ich arbeite|ich wohne|mein\w* \w+|je suis|je travaille|j['’]habite|j['’]ai|soy|"
    r"tengo|vivo|trabajo)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b\w+(?=[,!])|(?<=, )\w+")
# A statement begins and ends with its sentence, or where ", and" joins two: "My son is five, and I work at night."
_BEGINS = re.compile(r"(?:^|[.!?…:\n\"]|, (?:and|but)) *$")
_ENDS = re.compile(r"[.!…]\s*$")
_JOINS = re.compile(r", (?:and|but)\b")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A line that may be in a profile: `words` is what it says, `key` its slot where it has one, `rank` its place."""

    section: str
    fact: Fact
    text: str
    words: frozenset[str]
    key: tuple[str, str] | None
    rank: tuple[object, ...]
    sources: tuple[UUID, ...]
    recency: float = 1  # from a half for the oldest to one for the latest

    @property
    def is_quoted(self) -> bool:
        """Whether the line is in the speaker's own words."""
        return self.text.startswith('"')

    @property
    def kind(self) -> str:
        """The kind of slot: "likes" of "likes/chess"."""
        return (self.fact.attribute or "").partition("/")[0]

    @property
    def object(self) -> frozenset[str]:
        """The words of what a slot of many values is about: "chess" of "likes/chess"."""
        return frozenset(content_words((self.fact.attribute or "").partition("/")[2]))


def compose_profile(source: ProfileSource, counter: TokenCounter, budget: int) -> Profile:
    """Return the profile of at most `budget` tokens. Blocking: a counter may ask a server, many times.

    Lines of each section are taken in turn, pinned ones before all else, while the finished text is within the budget.
    Of quotations that say nothing alone the receipt says so.
    """
    subject = source.subject
    candidates, unclear = _candidates(source)
    queues: dict[str, list[_Candidate]] = {name: [] for name in PROFILE_HEADINGS}
    for one in candidates:
        queues[one.section].append(one)
    first = [one for one in candidates if one.fact.importance == ALWAYS]
    chosen: list[_Candidate] = []
    left_out: list[tuple[_Candidate, Reason]] = []
    misses: Counter[str] = Counter()
    for one in [*first, *_in_turn({name: [c for c in some if c not in first] for name, some in queues.items()})]:
        if any(_says_the_same(one, other) for other in chosen):
            left_out.append((one, Reason.DUPLICATE))
        elif misses[one.section] < MISSES and counter.count(_text(subject, [*chosen, one])) <= budget:
            chosen.append(one)
        else:
            misses[one.section] += 1
            left_out.append((one, Reason.OVER_BUDGET))
    text = _text(subject, chosen)
    chosen = [one for name in PROFILE_HEADINGS for one in chosen if one.section == name]  # as in the text
    lines = tuple(ProfileLine(one.section, one.text, one.fact.id, one.sources, one.fact.occurred_at) for one in chosen)
    left_out += [(one, Reason.SAYS_NOTHING) for one in unclear]
    tokens = counter.count(text)
    receipt = Receipt(
        budget=budget,
        tokens=tokens,
        counter=counter.name,
        sections={
            name: sum(counter.count(f"{_line(one)}\n") for one in chosen if one.section == name)
            for name in PROFILE_HEADINGS
        },
        included=tuple(_decision(one, counter) for one in chosen),
        left_out=tuple(_decision(one, counter, reason) for one, reason in left_out[:LISTED]),
        unlisted=dict(Counter(str(reason) for _, reason in left_out[LISTED:])),
        content_hash=content_hash([{"content": text}]),
        arguments={"subject": subject} | ({} if source.as_of is None else {"as_of": source.as_of.isoformat()}),
    )
    return Profile(subject, lines, text, tokens, receipt)


def _in_turn(queues: Mapping[str, Sequence[_Candidate]]) -> Iterator[_Candidate]:
    """Yield the first of each section, then the second of each; of how to answer and who somebody is two at a time."""
    rest = {name: list(some) for name, some in queues.items()}
    while any(rest.values()):
        for name, some in rest.items():
            for _ in range(2 if name in (ANSWERS, WHO) else 1):
                if some:
                    yield some.pop(0)


def _text(subject: str, chosen: Sequence[_Candidate]) -> str:
    if not chosen:
        return ""
    blocks = [f"{clean_name(subject)}:"]
    for name, heading in PROFILE_HEADINGS.items():
        if some := [one for one in chosen if one.section == name]:
            blocks += [f"{heading}:", *map(_line, some)]
    return "\n".join(blocks)


def _line(one: _Candidate) -> str:
    return list_line(one.text, format_day(one.fact.occurred_at))


def _decision(one: _Candidate, counter: TokenCounter, reason: Reason | None = None) -> Decision:
    about = (one.section, "fact", one.fact.id, counter.count(f"{_line(one)}\n"), reason)
    fact = one.fact
    standing = fact.importance == ALWAYS
    return Decision(
        *about, said_at=fact.occurred_at, valid_to=fact.valid_to, standing=standing, preview=one.text[:LONGEST_PREVIEW]
    )


def _says_the_same(one: _Candidate, other: _Candidate) -> bool:
    """Whether two lines fill the same slot, or one tells of the other's, or one of no slot shares much of its words."""
    if one.text == other.text or (one.key is not None and one.key == other.key):
        return True
    if one.is_quoted or other.is_quoted:
        if (one.object and one.object <= other.words) or (other.object and other.object <= one.words):
            return True
    elif one.key is not None and other.key is not None:
        is_list = bool(one.object and other.object) and one.kind == other.kind
        return is_list and (one.object <= other.object or other.object <= one.object)
    return len(one.words & other.words) >= max(SHARED, ALIKE * min(len(one.words), len(other.words)))


# -- what may be in


def _candidates(source: ProfileSource) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return what may be in a profile, the best first, and quotations that may not."""
    about, read, names = source.facts, source.messages, _names_of_others(source)
    times = [fact.occurred_at for fact in about] or [datetime.min]
    oldest, newest = min(times), max(times)
    span = max(newest - oldest, timedelta(days=1))
    frequencies = Counter(word for fact in about for word in set(_words(fact)))
    typed, spoken, brief, unclear = (list[_Candidate]() for _ in range(4))
    for fact in latest_first(about):
        is_fresh = fact.occurred_at >= newest - FRESH
        quotation = SPOKEN.match(fact.text)
        words = quotation["words"] if quotation else ""
        is_spoken = fact.type in SPOKEN_TYPES or words.startswith("@")
        if words and is_spoken and fact.importance != ALWAYS:
            may_be_over = bool(_AHEAD.search(words)) or bool(_NOW.search(words))
            said = _candidate(PLANNED if _AHEAD.search(words) else SAID, fact, f'"{words.strip()}"', ())
            if not _stands_alone(words, names) or not _is_whole(fact, words, read):
                unclear.append(said)
            elif is_fresh or not may_be_over:
                said = replace(said, recency=0.5 + 0.5 * (fact.occurred_at - oldest) / span)
                (spoken if len(said.words) >= TELLING else brief).append(said)
        else:
            section = _section_of(fact)
            if section != PLANNED or fact.importance == ALWAYS or fact.valid_to is not None or is_fresh:
                typed.append(_candidate(section, fact, fact.text, _rank(fact)))
    quoted = [one for some in (spoken, brief) for one in _order_by_topic(some, frequencies, len(about))]
    return [*_merge_twins(sorted(typed, key=lambda one: one.rank)), *quoted], unclear


def _names_of_others(source: ProfileSource) -> frozenset[str]:
    """Return the first words of the other subjects, without case: "jon" of "Jon Snow", but no "the" of "The user"."""
    own, *others = (name.split()[0].casefold() for name in (source.subject, *source.subjects))
    return frozenset(name for name in others if name != own and content_words(name))


def _words(fact: Fact) -> tuple[str, ...]:
    return content_words(fact.text.removeprefix(f"{fact.subject}:").removeprefix(f"{fact.subject} "))


def _candidate(section: str, fact: Fact, text: str, rank: tuple[object, ...]) -> _Candidate:
    key = (fact.attribute, fact.value.casefold()) if fact.attribute and fact.value else None
    words = frozenset(content_words(text) if text.startswith('"') else _words(fact))
    return _Candidate(section, fact, text, words, key, rank, tuple(fact.sources))


def _section_of(fact: Fact) -> str:
    return ANSWERS if fact.attribute == ANSWER_STYLE else TYPES.get(fact.type, HOLDS)


def _rank(fact: Fact) -> tuple[object, ...]:
    attribute = (fact.attribute or "").split("/")[0]
    place = 0 if attribute in (ALLERGY, NAME) else 1 if fact.type == "constraint" else 2
    return fact.importance != ALWAYS, place, -round(fact.confidence, 2), -fact.occurred_at.timestamp(), fact.id


def _merge_twins(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the first of those that fill the same slot with the same value, in whatever language, with all sources."""
    kept: dict[object, _Candidate] = {}
    for one in candidates:
        key = one.key or one.fact.id
        twin = kept.get(key)
        kept[key] = replace(twin, sources=tuple(dict.fromkeys((*twin.sources, *one.sources)))) if twin else one
    return list(kept.values())


def _is_whole(fact: Fact, words: str, read: Mapping[UUID, Message]) -> bool:
    """Whether a quotation is not cut: "I went to Oregon" of "When I was younger, my family and I went to Oregon"."""
    span = fact.spans[0] if fact.spans else None
    message = None if span is None else read.get(span.message_id)
    if span is None or message is None or span.start is None:
        return bool(_ENDS.search(words))
    before, after = (message.text or "")[: span.start], (message.text or "")[span.stop :]
    return bool(_BEGINS.search(before) and (_ENDS.search(words) or _JOINS.match(after)))


def _stands_alone(words: str, names: Collection[str]) -> bool:
    """Whether a quotation says something lasting of its speaker without what was said before it."""
    return bool(
        _FIRST_PERSON.match(words)
        and not _LEANING.search(words)
        and not any(name.casefold() in names for name in _ADDRESS.findall(words))
        and not _MOOD.search(words)
        and words[:1].upper() == words[:1]
        and not words.startswith(("Since ", "Because ", "Although ", "Unless "))
        and len(words.split()) <= LONGEST_QUOTATION
        and len(set(content_words(words))) >= SHORTEST_QUOTATION
    )


def _order_by_topic(spoken: Sequence[_Candidate], frequencies: Counter[str], count: int) -> list[_Candidate]:
    """Return quotations by how much each adds of what its speaker comes back to, the latest first where that is equal.

    Words of few facts are no topic, and words of all of them are none either.
    """
    weights = {word: math.log(n) * math.log(1 + count / n) for word, n in frequencies.items()}
    seen: defaultdict[str, int] = defaultdict(int)
    rest = sorted(spoken, key=lambda one: -round(_gain(one, weights, seen), 6))[:MOST_SPOKEN]
    ordered: list[_Candidate] = []
    while rest:
        best = max(rest, key=lambda one: (round(_gain(one, weights, seen), 6), one.fact.occurred_at, one.fact.id))
        rest.remove(best)
        ordered.append(best)
        for word in best.words:
            seen[word] += 1
    return ordered


def _gain(one: _Candidate, weights: Mapping[str, float], seen: Mapping[str, int]) -> float:
    new = sum(weights[word] / (1 + 3 * seen.get(word, 0)) for word in sorted(one.words))
    lasting = 1.5 if _LASTING.search(one.text) else 1
    return lasting * one.recency * new / math.sqrt(3 + len(one.words))
