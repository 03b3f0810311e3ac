"""What was said and holds no longer: hits that a later one replaces. Pure.

Where a fact was superseded the store knows it. Else it is told from what was said, for a question about what holds now:
a later message of another day, that says of something that it is over or new, names what the earlier one named, or has
another number of the same unit, or another address. A wrong mark is worse than none: of LoCoMo's 997 questions, whose
talk has hardly any changes, none has a mark.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from memstore.models import FactStep, Hit, Role, SaidFact, Tier
from memstore.store.tokenize import is_english, terms
from memstore.text import format_day

EARLIER, LATER = 12, 16  # of the best hits: those that may be outdated, and those that may tell it
CLOSE = 4  # the best hits, of which one that tells of an exchange replaces another whatever either names
APART = timedelta(hours=12)  # at least, between what held and what holds
TOLD = 2  # of the facts that hold in place of what a message says, the latest
OFTEN = 0.3  # of the hits: what so many name is their subject, and no value of it

_PAST = re.compile(
    r"\b(?:did|(?<!^)was|were|had|ago|used to|(?:first|last)(?! name)|ever|before|would|might|likely|could|happened"
    r"|considered|been|waren?|hatten?|wurden?|damals|früher|zuerst)\b"
    r"|^\W*(?:who|what|which \w+) \w+ed\b|\bwhen (?:I|we|you|he|she|they|it)\b"
    r"|\bha[sv]e? .*\w{2}ed\b|\b(?:hat|haben|ist|sind)\b.*\bge\w+(?:t|en)\b",
    re.IGNORECASE,
)
_AMOUNTS = re.compile(
    r"\bhow (?:much|many|often|long|old|tall|big)\b|\b(?:dose|size|time|number|amount|weight|phone|address)\b"
    r"|e-?mail|wie ?(?:viel|oft|lang|alt|groß)|adresse|nummer",
    re.IGNORECASE,
)
# These are searched in lower-cased text, which takes half the time of ignoring case.
_CHANGE = re.compile(
    r"\b(?:no longer|any ?more|any longer|used to|left|quit|gone|died|passed away|g[ai]ve .{0,20}away|found .{0,12}home"
    r"|sold|swapp?ed|switch(?:ed|ing)?|replaced?|changed|split up|broke up|divorced|resigned|fired|got rid"
    r"|cancell?ed|stopped|renamed?|closed|shut|retired|expired|deleted|hacked|the old|my old|our old|ex|former(?:ly)?"
    r"|still at|nicht mehr|kein(?:e[nrm]?)? .{0,20}mehr|gekündigt|gewechselt|umgezogen|gestorben|verkauft|abgegeben"
    r"|früher|ehemalig\w*|(?:die|der|das|den|dem|mein|meine|unser) alten?|gab(?:['’]s| es)?|zu(?:ge)?sperrt|zugemacht"
    r"|geschlossen|gelöscht|getrennt|doch (?:lieber|nicht)|umgestiegen|ersetzt|geändert|gehackt)\b",
)
_END = re.compile(
    r"\b(?:died|dead|passed away|no longer|sold|gave \w+ away|found a (?:new )?home|swapped|gestorben|verkauft"
    r"|abgegeben|nicht mehr)\b",
)
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_EXCHANGE = re.compile(
    r"\b(?:swapp?ed|switch(?:ed|ing)|replac(?:ed|ing)|renam(?:e|ed|ing)|upgraded|traded|moved|quit|left|dropped"
    r"|stopped|sold|returned|cancell?ed|instead|no longer|no more|used to|these days|as of|from now on|the old|ex"
    r"|(?:am|is|are|'m|'s|'re|went|go(?:ne)?|going) back (?:on|to|at|with)|put (?:me|him|her|us) on"
    r"|not .{0,30}any ?more|now,? not|not .{0,30}but now|(?:am|is|are|'m|'s|'re) now|now (?:in|at|with|on|by|from)"
    r"|have (?:a|it|them) now"
    rf"|start(?:ed|ing) (?:at|with)|since (?:{_MONTHS}|last|monday|summer|spring)"
    r"|(?:first|second|third|fourth|\d+) (?:day|week|month)s? (?:at|in|with|on)"
    r"|umgestiegen|umgezogen|umbenannt|ersetzt|gewechselt|gekündigt|verkauft|nicht mehr|statt|stattdessen|ab jetzt"
    r"|ab sofort|neuerdings|inzwischen|mittlerweile|seit|erst seit|jetzt (?:in|im|bei|beim|mit|am|an|auf|über)"
    r"|früher|(?:die|der|das|den|dem|mein|meine) alten?)\b",
)
_BACK = re.compile(r"\bback (?:on|to|at|with|in)\b|\bwieder (?:bei|beim|zu|zum|zur|mit|auf|in|im)\b")
_MAIL = r"[\w.+-]+@[\w.-]+\w"
_NAME = re.compile(rf"{_MAIL}|(?:\b[^\W\d_a-zß-ÿ]|\d+[A-Z])[\w-]*\w|\b[A-Z]+\d+")
_WITHIN = re.compile(r"[\w,;:)„“\"'] [„“\"']?$")  # before a name: where a sentence begins every word has a capital
_NO_NAME = re.compile(r"I|I['’]\w+|OK|Ok|Sie|Ihr\w*")
_AMOUNT = re.compile(r"(?<![\w.])(\d+(?:[.,]\d+)?)\s?([^\W\d_]{1,14}|[%€$£])(?!\w)")
_WORD = re.compile(r"[\w@][\w.@+-]*\w")
_ENDING = re.compile(r"(?<=\w{3})(?:en|er|es|e|n|s)$")
_SENTENCES = re.compile(r"(?<=[.!?;…])\s+|\n+")


def mark_outdated(hits: Sequence[Hit], question: str, speakers: Collection[str]) -> list[Hit]:
    """Return hits, the best first, where those that another one replaces say when, and rank behind it."""
    replaced = _compare(hits, question, speakers)
    marked = []
    for hit in hits:
        if not hit.later and (later := replaced.get(hit.id)):
            hit = _rank_behind(hit, later.score, f"see {format_day(later.occurred_at)}", later.id)
        marked.append(hit)
    return sorted(marked, key=lambda hit: -hit.score)


def mark_restated(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Return facts, of which those that were made from nothing but outdated hits say so, and rank with them."""
    outdated = {hit.id: hit for hit in hits if hit.later}
    marked = []
    for fact in facts:
        if fact.sources and outdated.keys() >= {*fact.sources}:
            hit = max((outdated[id] for id in fact.sources), key=lambda hit: hit.score)
            fact = _rank_behind(fact, hit.score, hit.later, *hit.later_ids)
        marked.append(fact)
    return marked


def asks_what_holds(question: str) -> bool:
    """Whether a question asks for what holds now: "Where does Sven work?", and not "Where did Sven work?"."""
    return _PAST.search(question) is None


def last_of_each(said: Iterable[SaidFact], steps: Iterable[FactStep]) -> dict[UUID, list[FactStep]]:
    """Return what holds in place of the facts of messages, or was taken back, the latest first, by a message's id."""
    by_id = {one.fact_id: one for one in steps}
    last: dict[UUID, dict[UUID, FactStep]] = {}
    for one in said:
        seen, end = {one.fact_id}, by_id.get(one.fact_id)
        while end is not None and end.next_id in by_id and end.next_id not in seen:
            end = by_id[end.next_id]
            seen.add(end.fact_id)
        if end is not None and end.next_id is None and (end.fact_id != one.fact_id or end.is_taken_back):
            last.setdefault(one.message_id, {})[end.fact_id] = end
    return {id: sorted(ends.values(), key=lambda end: (end.at, end.fact_id), reverse=True) for id, ends in last.items()}


def mark_replaced(
    hits: Sequence[Hit], facts: Sequence[Hit], replaced: Mapping[UUID, Sequence[FactStep]], *, behind: bool
) -> list[Hit]:
    """Return hits, the best first, where those whose fact does not hold say what does.

    They rank `behind` that where the question is what holds: another one may ask for just what they say.
    """
    said = {hit.id: hit.score for hit in hits}
    scores = {fact.id: max([fact.score, *(said.get(one, 0.0) for one in fact.sources)]) for fact in facts}
    asked = {(hit.conversation_id, hit.seq): replaced[hit.id] for hit in hits if hit.id in replaced}
    marked = []
    for hit in hits:
        told = replaced.get(hit.id, ())
        if hit.role == Role.ASSISTANT and hit.seq is not None:  # it answers the message before it
            told = told or asked.get((hit.conversation_id, hit.seq - 1), ())
        if now := [one for one in told if hit.occurred_at < one.at][:TOLD]:
            most = max(scores.get(one.fact_id, hit.score) for one in now) if behind else math.inf
            hit = _rank_behind(hit, most, "; ".join(map(_tell, now)), *(one.fact_id for one in now))
        marked.append(hit)
    return sorted(marked, key=lambda hit: -hit.score)


def _tell(now: FactStep) -> str:
    text = " ".join((now.text or "").split()).rstrip(".")
    return f"{'taken back: ' if now.is_taken_back else ''}{text}, {format_day(now.at)}"


def _rank_behind(hit: Hit, score: float, later: str, *ids: UUID) -> Hit:
    """Return a hit that is outdated, with what is told of it and by what, and at most this score."""
    less = min(0.0, score - 1e-6 - hit.score)
    parts = {**hit.parts, "superseded": round(less, 6)} if less else hit.parts
    return replace(hit, score=round(hit.score + less, 6), parts=parts, later=later, later_ids=ids)


@dataclass
class _Said:
    """What a message says, as far as it is compared: most are not."""

    hit: Hit
    known: frozenset[str]  # words that say nothing here: of the question, and who speaks

    @cached_property
    def lower(self) -> str:
        """The text in which cues are searched."""
        return self.hit.text.lower()

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word."""
        return _words(self.hit.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """What it names within its sentences."""
        return _names(self.hit.text, within=True) - self.known

    @cached_property
    def changed(self) -> frozenset[str]:
        """What it names where it tells of an end."""
        return _names(_around_change(self.hit.text)) if _CHANGE.search(self.lower) else frozenset()

    @cached_property
    def ended(self) -> frozenset[str]:
        """The words of what it says is over."""
        return _ended(self.hit.text) if _END.search(self.lower) else frozenset()

    def follows(self, other: _Said) -> bool:
        """Whether it was said on another day, later."""
        return self.hit.occurred_at - other.hit.occurred_at >= APART


def _compare(hits: Sequence[Hit], question: str, speakers: Collection[str]) -> dict[UUID, Hit]:
    """Return what is outdated by its id, each with the last of the best messages that tells it."""
    known = _words(" ".join([question, *speakers]))
    said = [_Said(hit, known) for hit in _of_people(hits)]
    often = max(5, OFTEN * len(said))
    common: set[str] | None = None
    whose = set(terms(" ".join([*speakers, *(_names(question, within=True) if is_english(question) else ())])))
    asked = set(terms(question)) - whose
    asks_amount = _AMOUNTS.search(question) is not None
    replaced: dict[UUID, Hit] = {}
    for place, told in enumerate(said):
        others = [(n, one) for n, one in enumerate(said[:EARLIER]) if told.follows(one)]
        exchanges = any(n < CLOSE for n, _ in others) and _EXCHANGE.search(told.lower) is not None
        if not (others and (exchanges or asks_amount or told.changed or told.ended)):
            continue
        if common is None:
            counts = Counter(word for one in said for word in one.words)
            common = {word for word, count in counts.items() if count > often}
        about = set(terms(told.hit.text)) if exchanges else set[str]()
        earlier = frozenset[str]().union(*(one.names for n, one in others if n < CLOSE))
        returns = not told.names.isdisjoint(earlier) and _BACK.search(told.lower) is not None
        talk = frozenset[str]().union(*(one.names for one in said[:CLOSE] if _same_talk(one.hit, told.hit)))
        for n, one in others:
            values = one.names & told.changed
            if told.hit.speaker == one.hit.speaker:
                values |= (one.words & told.ended) - known
                if asks_amount:
                    values |= _other_amounts(one.hit.text, told.hit.text)
            values -= common
            if exchanges and n < CLOSE:
                values |= (one.names & talk) - common
                is_about = place < CLOSE and (about & asked or len(about & set(terms(one.hit.text)) - whose) > 1)
                if told.hit.speaker == one.hit.speaker and (is_about or returns):
                    values |= one.names - told.words
            if values:
                if is_english(one.hit.text):  # German has a capital for every noun
                    values |= one.names - told.words
                for hit in (one.hit, *(h for h in hits if _same_talk(h, one.hit) and values & _words(h.text))):
                    if hit.id not in replaced or replaced[hit.id].occurred_at < told.hit.occurred_at:
                        replaced[hit.id] = told.hit
    return replaced


def _of_people(hits: Sequence[Hit]) -> list[Hit]:
    return [hit for hit in hits if hit.tier == Tier.MESSAGES and hit.role == Role.USER][:LATER]


def _around_change(text: str) -> str:
    """Return the sentences that tell of a change, and those next to them, without those that only address somebody."""
    sentences = _SENTENCES.split(text)
    tells = [n for n, one in enumerate(sentences) if _CHANGE.search(one.lower())]
    near = [one for n, one in enumerate(sentences) if any(abs(n - place) < 2 for place in tells)]
    return " ".join(one for one in near if one.count(" ") > 1)


def _same_talk(one: Hit, other: Hit) -> bool:
    return abs(one.occurred_at - other.occurred_at) < APART


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without case and the commonest endings of English and German."""
    return frozenset(_ENDING.sub("", word) for word in _WORD.findall(text.casefold()))


def _names(text: str, *, within: bool = False) -> frozenset[str]:
    """Return the words of what a text names, which has capitals, a number or an address; `within` its sentences."""
    names = [
        match[0]
        for match in _NAME.finditer(text)
        if not _NO_NAME.fullmatch(match[0])
        and not (within and match[0].isalpha() and not _WITHIN.search(text[max(0, match.start() - 3) : match.start()]))
    ]
    return frozenset(word for word in _words(" ".join(names)) if len(word) > 2)


def _ended(text: str) -> frozenset[str]:
    """Return the words of sentences that say that something is over, and of the sentence before each."""
    sentences = _SENTENCES.split(text)
    ended = [" ".join(sentences[max(0, n - 1) : n + 1]) for n, one in enumerate(sentences) if _END.search(one.lower())]
    return frozenset(word for word in _words(" ".join(ended)) if len(word) > 3)


def _other_amounts(earlier: str, later: str) -> set[str]:
    """Return the words of amounts and addresses of one text in whose place another one has others."""
    before, after = dict(_amounts(earlier)), dict(_amounts(later))
    other = [before[unit] for unit in before.keys() & after.keys() if before[unit] != after[unit]]
    return set(_words(" ".join(other)))


def _amounts(text: str) -> Iterator[tuple[str, str]]:
    for number, unit in _AMOUNT.findall(text):
        yield unit.casefold().rstrip("s"), number
    for address in re.findall(_MAIL, text):
        yield "@", address.casefold()
