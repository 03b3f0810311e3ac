#!/usr/bin/env python3
"""Summaries against those that people wrote, at equal length compared with the first sentences and random ones.

    benchmarks/summaries.py [curve] [weights] [nests] [--data FOLDER] [--embedder KIND:MODEL]
                            [--json FILE] [--plot FILE.svg]
    benchmarks/summaries.py --sessions FILE.json [--show]

curve      every measure below, of every system, over the length of a summary
weights    what the weight of names does, and what the others would choose for each conversation
nests      what covers of the whole data as one conversation keep, by how the nest grows; in brackets sessions covered
--sessions instead of these: which of the listed decisions, dates and numbers of sessions their summaries tell.
           FILE has a list of objects with name, messages, decisions, decision_keys (for each decision groups of
           alternatives "a|b"; one of every group must be in the summaries) and numbers (text, must_contain).
           Where it has a "summary" that somebody else wrote, this is counted instead

Each session of LoCoMo comes with a summary. Ours, of the same session, is held against it:

rouge-1, rouge-L   the share of its words, and of its longest common subsequence, that ours has (recall, stemmed)
entities           the share of its names: capitalised words that do not begin a sentence, days and months apart
dates              the share of its dates and numbers
both               entities and dates together; the goal is 1.5 times what the first sentences keep
said               of both, what is more than who spoke on which day

"lead" are the first sentences of the session that fit into as many tokens, "random" sentences drawn in order (the mean
of five draws). "dressed" is the same in our layout, with days and speakers, which are most of what can be kept: the
difference between it and ours is the choice of sentences, and nothing else.
No model judges anything. The data is not part of memstore: LoCoMo (ACL 2024, CC BY-NC 4.0) as memstore-jsonl,
`locomo-dev.jsonl` and `locomo-dev-gold.jsonl`, one object a line with user, kind "summary", session and text.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from statistics import mean
from uuid import UUID

import numpy as np
from report import Cell, Table, reported

from memstore.derive.chunking import split_segments
from memstore.derive.dependencies import Dependencies
from memstore.derive.summaries import choice, extractive
from memstore.derive.summaries.extractive import ExtractiveSummarizer, Line, abridge, extract_lines, format_lines
from memstore.language.sentences import sentences
from memstore.models import Message, Summary
from memstore.models.messages import SESSION_GAP
from memstore.providers import Embedder, TokenCounter, Vectors, load_counter, load_embedder
from memstore.settings import Settings
from memstore.strategies.base import cover
from memstore.text import MONTHS

LENGTHS = (40, 80, 120, 160, 240, 320)
DRAWS = 5
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
GROWTHS = ((8, 1), (8, 2), (4, 1), (4, 1.25), (4, 1.5), (4, 2))
COVERS = (500, 1000, 2000, 4000, 8000, 16000)
MEASURES = ("rouge-1", "rouge-L", "entities", "dates", "both", "said")
CHOSEN_BY = ("rouge-1", "rouge-L", "said")
_NAME = re.compile(r"[^\W\d_][\w'’.&-]*")
_MONTH = {name.lower(): number for number, name in enumerate(MONTHS, 1)}
_MONTH |= {name[:3]: number for name, number in list(_MONTH.items())}
_DAYS = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
_ANY = "|".join(sorted(_MONTH, key=len, reverse=True))
_FULL = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_ANY})\b|(?P<month_2>{_ANY})\.? (?P<day_2>\d{{1,2}})"
    r"(?:st|nd|rd|th)?\b(?!\d))(?:,? (?P<year>\d{4}))?",
    re.IGNORECASE,
)
_PART = re.compile(rf"\b(?P<month>{_ANY})(?:,? (?P<year>\d{{4}}))?\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b\d{1,2}:\d\d\b(?: ?[ap]\.?m\b\.?)?", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d+(?:[.,:]\d+)*\b")


@dataclass(frozen=True)
class Session:
    """A session, and what people wrote of it."""

    user: str
    messages: list[Message]
    gold: str

    @property
    def start(self) -> datetime:
        return self.messages[0].occurred_at


def entities(text: str) -> set[str]:
    """Return the names of a text: capitalised words that do not begin a sentence, without possessives, lower-cased."""
    found = set()
    for start, stop in sentences(text):
        words = list(_NAME.finditer(text, start, stop))
        for word in words[1:]:
            plain = re.sub(r"['’]s?$", "", word[0].rstrip(".-"))
            low = plain.lower()
            if (
                plain[:1].isupper()
                and low not in _MONTH
                and low not in _DAYS
                and low not in {"i", "i'm", "i've", "i'd"}
            ):
                found.add(low)
    return found


def dates(text: str, said: datetime) -> set[str]:
    """Return the days, months and other numbers of a text, in one form."""
    text = _CLOCK.sub(" ", text)  # no message says at what hour a session began
    found = set()

    def day(match: re.Match[str]) -> str:
        month = _MONTH[(match["month"] or match["month_2"]).lower()]
        found.add(f"{match['year'] or said.year}-{month:02}-{int(match['day'] or match['day_2']):02}")
        return " "

    def month(match: re.Match[str]) -> str:
        if match[0][:1].isupper() and (match["year"] or match[0].lower() != "may"):
            found.add(f"{match['year'] or said.year}-{_MONTH[match['month'].lower()]:02}")
            return " "
        return match[0]

    text = _PART.sub(month, _FULL.sub(day, text))
    return found | set(_NUMBER.findall(text))


def kept(text: str, session: Session) -> dict[str, tuple[int, int]]:
    """Return how many of the gold summary's entities and dates the text has, and how many there are."""
    low = f" {re.sub(r'[^a-z0-9]+', ' ', text.lower())} "
    wanted = entities(session.gold)
    has = {name for name in wanted if f" {re.sub(r'[^a-z0-9]+', ' ', name).strip()} " in low}
    on, said_on = dates(session.gold, session.start), dates(text, session.start)
    there = {one for one in on if one in said_on or any(other.startswith(f"{one}-") for other in said_on)}
    speakers = {word for one in session.messages for word in str(one.name).lower().split()}
    today = {f"{session.start:%Y-%m-%d}", f"{session.start:%Y-%m}", f"{session.start:%Y}"}
    counts = {"entities": (has, wanted), "dates": (there, on), "both": (has | there, wanted | on)}
    counts["said"] = (has - speakers) | (there - today), (wanted - speakers) | (on - today)
    return {name: (len(part), len(whole)) for name, (part, whole) in counts.items()}


def measured(texts: Sequence[str], sessions: Sequence[Session]) -> dict[str, float]:
    """Return every measure: ROUGE as the mean over sessions, what is kept as a share of all there is."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    rouge = [scorer.score(session.gold, text) for text, session in zip(texts, sessions, strict=True)]
    found = {
        "rouge-1": mean(one["rouge1"].recall for one in rouge),
        "rouge-L": mean(one["rougeL"].recall for one in rouge),
    }
    counts = [kept(text, session) for text, session in zip(texts, sessions, strict=True)]
    for name in MEASURES[2:]:
        found[name] = sum(one[name][0] for one in counts) / max(1, sum(one[name][1] for one in counts))
    return found


def bare(lines: Sequence[Line]) -> str:
    """Return lines as plain sentences."""
    return " ".join(line.text for line in lines)


Layout = Callable[[Sequence[Line]], str]


def lead(lines: Sequence[Line], limit: int, counter: TokenCounter, layout: Layout) -> str:
    """Return the first lines that fit."""
    text = ""
    for end in range(1, len(lines) + 1):
        longer = layout(lines[:end])
        if counter.count(longer) > limit:
            break
        text = longer
    return text


def drawn(lines: Sequence[Line], limit: int, counter: TokenCounter, layout: Layout, seed: int) -> str:
    """Return random lines that fit, in order."""
    order = list(range(len(lines)))
    random.Random(seed).shuffle(order)
    text, places = "", []
    for place in order:
        longer = layout([lines[one] for one in sorted([*places, place])])
        if counter.count(longer) > limit:
            break
        places.append(place)
        text = longer
    return text


def plain_lines(messages: Sequence[Message]) -> list[Line]:
    """Return the sentences as they were said: the baselines do not read dates."""
    return [
        Line(f"{one.occurred_at.day} {MONTHS[one.occurred_at.month - 1]} {one.occurred_at.year}", one.name or "?", text)
        for one in messages
        for start, stop in sentences(one.text or "")
        for text in [" ".join((one.text or "")[start:stop].split())]
    ]


def systems(sessions: Sequence[Session], limit: int, resources: Dependencies) -> Iterator[tuple[str, list[list[str]]]]:
    """Return the texts of each system; random ones several times."""
    counter = resources.counter
    plain = [plain_lines(session.messages) for session in sessions]
    yield "memstore", [[abridge(extract_lines(session.messages), limit, counter) for session in sessions]]
    yield "lead", [[lead(lines, limit, counter, bare) for lines in plain]]
    yield "lead, dressed", [[lead(lines, limit, counter, format_lines) for lines in plain]]
    yield "random", [[drawn(lines, limit, counter, bare, seed) for lines in plain] for seed in range(DRAWS)]
    yield (
        "random, dressed",
        [[drawn(lines, limit, counter, format_lines, seed) for lines in plain] for seed in range(DRAWS)],
    )


def read(data: Path) -> list[Session]:
    """Return the sessions that have a summary."""
    said: dict[tuple[str, int], list[Message]] = defaultdict(list)
    counter = load_counter(Settings().counter)
    for number, line in enumerate((data / "locomo-dev.jsonl").read_text(encoding="utf-8").splitlines(), 1):
        one = json.loads(line)
        said[one["user"], one["metadata"]["session"]].append(make_message(number, one, counter))
    gold = map(json.loads, (data / "locomo-dev-gold.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Session(one["user"], said[one["user"], one["session"]], one["text"]) for one in gold if one["kind"] == "summary"
    ]


def curve(sessions: Sequence[Session], resources: Dependencies, file: Path | None) -> Table:
    """Return a row for each system and length; draw them where there is a file."""
    rows: list[list[Cell]] = []
    curves: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    for limit in LENGTHS:
        for name, runs in systems(sessions, limit, resources):
            figures = [measured(texts, sessions) for texts in runs]
            curves[name][limit] = {measure: mean(one[measure] for one in figures) for measure in MEASURES}
        for name, found in curves.items():
            row = found[limit]
            ratio = row["both"] / curves["lead"][limit]["both"]
            rows.append([name, limit, *(round(100 * row[one], 1) for one in MEASURES), round(ratio, 2)])
    if file:
        plot(curves, file)
    return Table("curve", f"{len(sessions)} sessions, in percent", ("", "tokens", *MEASURES, "× lead"), rows)


def plot(curves: dict[str, dict[int, dict[str, float]]], file: Path) -> None:
    """Draw each measure over the length."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(MEASURES), figsize=(16, 3.4), layout="constrained")
    for axis, measure in zip(axes, MEASURES, strict=True):
        for name, found in curves.items():
            axis.plot(list(found), [100 * one[measure] for one in found.values()], marker="o", markersize=3, label=name)
        axis.set(title=f"{measure}, %", xlabel="tokens", ylim=(0, None))
    axes[0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def weights(sessions: Sequence[Session], resources: Dependencies, _: Path | None) -> Table:
    """Return what each weight of names keeps, and what the one keeps that the other conversations would choose."""
    rows: list[list[Cell]] = []
    lines = [extract_lines(session.messages) for session in sessions]
    figures: dict[float, dict[str, dict[str, float]]] = {}
    users = sorted({session.user for session in sessions})
    for choice.NAMES in WEIGHTS:  # type: ignore[misc]
        texts = [abridge(one, 80, resources.counter) for one in lines]
        figures[choice.NAMES] = by_user = {}
        for user in users:
            mine = [(text, one) for text, one in zip(texts, sessions, strict=True) if one.user == user]
            by_user[user] = measured([text for text, _ in mine], [one for _, one in mine])
        means = [mean(found[name] for found in by_user.values()) for name in CHOSEN_BY]
        rows.append([f"{choice.NAMES}", *(round(100 * share, 1) for share in means)])
    for user in users:
        others = [other for other in users if other != user]
        best = max(WEIGHTS, key=lambda weight: sum(merit(figures[weight][other]) for other in others))
        there = figures[best][user]
        rows.append([f"{best}, as others than {user} choose", *(round(100 * there[name], 1) for name in CHOSEN_BY)])
    return Table("weights", "By the weight of names, 80 tokens, in percent", ("weight", *CHOSEN_BY), rows)


def merit(found: dict[str, float]) -> float:
    """Return what a weight is chosen by: words and what was said count the same."""
    return sum(found[name] for name in CHOSEN_BY)


def nests(sessions: Sequence[Session], resources: Dependencies, _: Path | None) -> Table:
    """Return what covers of different sizes keep, of all conversations as one, by how the nest grows."""
    told = one_conversation(sessions)
    every = [message for session in told for message in session.messages]
    rows: list[list[Cell]] = []
    for extractive.GROUP, extractive.GROWTH in GROWTHS:  # type: ignore[misc]
        nest = nest_of(every, resources)
        levels = Counter(one.level for one in nest)
        row: list[Cell] = [f"{extractive.GROUP} × {extractive.GROWTH}", " ".join(map(str, levels.values()))]
        for tokens in COVERS:
            covering = cover(nest, every[-1].seq, tokens)
            texts = [text_over(covering, one) for one in told]
            counts = [kept(text, one)["said"] for text, one in zip(texts, told, strict=True)]
            share = sum(part for part, _ in counts) / sum(whole for _, whole in counts)
            row.append(f"{100 * share:.0f} ({100 * mean(map(bool, texts)):.0f})")
        rows.append(row)
    columns = ("under one × tokens", "summaries by level", *(f"{tokens:,}" for tokens in COVERS))
    return Table("nests", "What a cover of so many tokens keeps, in percent", columns, rows)


def one_conversation(sessions: Sequence[Session]) -> list[Session]:
    """Return the sessions as those of one conversation."""
    numbers = count(1)
    return [
        replace(one, messages=[message.model_copy(update={"seq": next(numbers)}) for message in one.messages])
        for one in sessions
    ]


def tell_sessions(file: Path, resources: Dependencies, *, show: bool) -> Table:
    """Return how many decisions and numbers of each session the summaries of its segments tell, or the one given."""
    summarizer = ExtractiveSummarizer(resources.counter, resources.settings)
    gap, tokens = SESSION_GAP, resources.settings.segment_tokens
    rows: list[list[Cell]] = []
    sums: Counter[str] = Counter()
    for session in json.loads(file.read_text(encoding="utf-8")):
        said = [make_message(number, one, resources.counter) for number, one in enumerate(session["messages"], 1)]
        segments = list(split_segments(said, gap, tokens))
        if rest := said[sum(map(len, segments)) :]:
            segments.append(rest)
        text = session.get("summary")
        if text is None:
            text = "\n".join(
                one.text for one in summarizer.summarize([extractive.make_segment(1, each) for each in segments])
            )
        decisions = [tells(text, groups) for groups in session["decision_keys"]]
        numbers = [tells(text, one["must_contain"]) for one in session["numbers"]]
        before, after = sum(one.tokens for one in said), resources.counter.count(text)
        part = {"decisions": sum(decisions), "of": len(decisions), "numbers": sum(numbers), "of them": len(numbers)}
        part |= {"tokens": after, "of tokens": before}
        sums.update(part)
        rows.append([session["name"], *part.values()])
        if show:
            missing = [one for one, is_in in zip(session["decisions"], decisions, strict=True) if not is_in]
            missing += [one["text"] for one, is_in in zip(session["numbers"], numbers, strict=True) if not is_in]
            print(f"## {session['name']}\n{text}\n", *(f"MISSING {one}" for one in missing), "", sep="\n")
    rows.append(["all", *sums.values()])
    return Table("sessions", "Decisions and numbers told", ("session", *sums), rows)


def tells(text: str, groups: Sequence[str]) -> bool:
    """Return whether a text has one alternative of each group."""
    low = text.casefold()
    return all(any(one.casefold() in low for one in group.split("|")) for group in groups)


def make_message(number: int, said: dict[str, str], counter: TokenCounter) -> Message:
    """Return a message of one line of memstore-jsonl."""
    return Message.model_construct(
        user_id=UUID(int=1),
        conversation_id=UUID(int=2),
        seq=number,
        role=said["role"],
        name=said.get("name"),
        text=said["content"],
        tokens=counter.count(said["content"] or ""),
        occurred_at=datetime.fromisoformat(said["occurred_at"]),
    )


def nest_of(every: Sequence[Message], resources: Dependencies) -> list[Summary]:
    """Return the summaries of every level."""
    gap, tokens = SESSION_GAP, resources.settings.segment_tokens
    ranges = [extractive.make_segment(1, stretch) for stretch in split_segments(every, gap, tokens)]
    nest: list[Summary] = []
    while ranges:
        new = ExtractiveSummarizer(resources.counter, resources.settings).summarize(ranges)
        nest += new
        ranges = extractive.parent_segments(new)
    return nest


def text_over(covering: Sequence[Summary], session: Session) -> str:
    """Return the texts that stand for a session."""
    first, last = session.messages[0].seq, session.messages[-1].seq
    return "\n".join(one.text for one in covering if one.from_seq <= last and one.to_seq >= first)


class Remembering:
    """An embedder that embeds no text twice: the parts try many variants of the same lines."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder, self.known = embedder, dict[str, Vectors]()
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens
        self.count, self.embed_query = embedder.count, embedder.embed_query

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text."""
        new = sorted(set(texts) - self.known.keys())
        self.known |= dict(zip(new, self.embedder.embed_documents(new), strict=True)) if new else {}
        return np.stack([self.known[text] for text in texts]) if texts else np.empty((0, self.dimensions), np.float32)


PARTS: dict[str, Callable[[Sequence[Session], Dependencies, Path | None], Table]] = {
    "curve": curve,
    "weights": weights,
    "nests": nests,
}


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; curve by default")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--embedder", default=Settings().embedder)
    parser.add_argument("--plot", type=Path, help="write the curves as SVG")
    parser.add_argument("--sessions", type=Path, help="sessions with their decisions and numbers listed")
    parser.add_argument("--show", action="store_true", help="with --sessions: print the summaries and what they miss")
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    if options.sessions:
        resources = Dependencies(load_counter(Settings().counter), None, Settings())
        reported([tell_sessions(options.sessions, resources, show=options.show)], options.json)
        return 0
    if not (options.data / "locomo-dev-gold.jsonl").is_file():
        print(f"skipped: {options.data} has no locomo-dev-gold.jsonl; name its folder with --data")
        return 0
    embedder = load_embedder(options.embedder)
    resources = Dependencies(load_counter(Settings().counter), Remembering(embedder) if embedder else None, Settings())
    sessions = read(options.data)
    parts = options.parts or ["curve"]
    reported((PARTS[name](sessions, resources, options.plot) for name in parts), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
