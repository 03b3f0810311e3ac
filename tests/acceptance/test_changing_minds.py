"""People who change their minds: short dialogues in English and German, derived, and what is active at the end.

A value holds if an active fact has its words, and has ended if facts have them and no active one does.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore import Fact
from memstore.settings import ONNX_MINILM

FOLDER = Path(__file__).parents[1]
START = datetime(2026, 1, 1, 9, tzinfo=UTC)
OF_ENDS = ("no longer", "not ", "n't", "nicht", "kein", "quit", "died", "broke up")  # words of facts that tell an end
RELATIVES = {
    "en": ("My brother", "My mother", "My wife", "My friend Eva", "My colleague"),
    "de": ("Mein Bruder", "Meine Mutter", "Meine Frau", "Meine Freundin Eva", "Meine Kollegin"),
}
OF_RELATIVES = {
    "en": [
        ("I live in Porto.", "{} lives in Leeds, in a tiny flat by the canal with two old cats."),
        ("I work as a nurse.", "{} became a baker last year and gets up at three every morning for it."),
        ("I work at Bosch.", "{} works at Siemens, in a big open office with far too many people."),
        ("My birthday is 3 May.", "{} was born on 9 June 1990 in a tiny village by the sea."),
        ("My name is Ana.", "{} is called Lou, and everybody in the village knows that name by now."),
        ("My phone number is 0171 555 1234.", "{}'s phone number is 0160 999 8877, please write that down."),
        ("I'm allergic to peanuts.", "{} is no longer allergic to peanuts and eats them by the handful each night."),
        ("I'm vegan.", "{} is no longer vegan and eats steak every Sunday with lots of mustard."),
        ("I'm married to Paul.", "{} got divorced from Paul in March, after nine long years in that big house."),
        ("My dentist appointment is on 5 May at 10:00.", "{}'s dentist appointment has moved to 8 May."),
    ],
    "de": [
        ("Ich wohne in Porto.", "{} wohnt in Leeds, in einer winzigen Wohnung am Kanal mit zwei alten Katzen."),
        ("Ich arbeite als Bäcker.", "{} arbeitet jetzt als Lehrerin an einer kleinen Schule weit draußen."),
        ("Ich arbeite bei Bosch.", "{} arbeitet bei Siemens, in einem großen Büro mit viel zu vielen Leuten."),
        ("Mein Geburtstag ist am 3. Mai.", "{} hat am 9. Juni Geburtstag, da grillen wir immer alle im Garten."),
        ("Ich heiße Ana.", "{} heißt Lou, und im Dorf kennt diesen Namen mittlerweile wirklich jeder."),
        ("Ich bin 34 Jahre alt.", "{} ist 61 Jahre alt und klettert immer noch auf jeden Berg in der Gegend."),
        ("Ich bin allergisch gegen Nüsse.", "{} ist nicht mehr allergisch gegen Nüsse und isst sie jeden Abend."),
    ],
}

OF_OTHERS = [
    ("I live in Lyon.", "Élodie moved to Lille."),
    ("I drive a Golf.", "Eva sold her Golf."),
    ("I work at Shell.", "Åsa just started at Google."),
    ("I live in Porto.", "Tom and Eva moved to Cork."),
]

Said = tuple[datetime, str, str | None]  # when, what, by whom


def lines(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / file).read_text("utf-8").splitlines()]


def facts_of(url: str, histories: Sequence[Sequence[Said]]) -> list[list[Fact]]:
    """Tell histories message by message, each by a user, and give the facts of each."""
    with memstore.open(url, settings={"embedder": ONNX_MINILM}) as store:
        users = [store.user(f"user {number}") for number in range(len(histories))]
        for place in range(max(map(len, histories))):
            for user, history in zip(users, histories, strict=True):
                for at, text, name in history[place : place + 1]:
                    user.conversation("talk").add("user", text, name=name, occurred_at=at)
            store.derive()
        return [user.facts(state="all") for user in users]


def listed(dialogue: dict[str, Any], *keys: str) -> Iterator[str]:
    """Give the words of the values that a dialogue names."""
    for key in keys:
        for slots in dialogue[key].values():
            for attribute, values in slots.items():
                yield from (attribute.rpartition("/")[2] if one in ("yes", "no", "") else one for one in values)


def with_words(facts: Iterable[Fact], words: str) -> list[Fact]:
    return [one for one in facts if all(word.rstrip("s") in one.text.casefold() for word in words.casefold().split())]


def judge(dialogue: dict[str, Any], facts: Sequence[Fact]) -> Iterator[str]:
    """Tell of each value what has become of it."""
    for words in listed(dialogue, "superseded"):
        found = with_words(facts, words)
        holding = [
            one for one in found if one.state in ("active", "ended") and not any(end in one.text for end in OF_ENDS)
        ]
        yield "unread" if not found else "still holds" if holding else "ended"
    for words in listed(dialogue, "active", "untouched"):
        found = with_words(facts, words)
        is_kept = any(one.state in ("active", "ended") for one in found)  # some end by their date
        yield "unread" if not found else "kept" if is_kept else "ended wrongly"


@pytest.mark.slow
def test_minds_are_followed(url: str, record_property: Any) -> None:
    dialogues = lines("changing_minds/dev.jsonl") + lines("changing_minds/held_out.jsonl")
    told = [
        [(datetime.fromisoformat(one["occurred_at"]), one["content"], one["name"]) for one in dialogue["messages"]]
        for dialogue in dialogues
    ]
    counts: Counter[str] = Counter()
    for dialogue, facts in zip(dialogues, facts_of(url, told), strict=True):
        counts.update(judge(dialogue, facts))
    record_property("changing_minds", str(dict(counts)))
    print(dict(counts))
    assert counts["ended wrongly"] <= 9
    assert counts["ended"] >= 45


def pair(first: str, second: str, name: str | None = None) -> list[Said]:
    return [(START, first, name), (START + timedelta(days=31), second, name)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "Ana"])
def test_the_words_of_somebody_else_end_nothing_of_the_speaker(url: str, name: str | None) -> None:
    told = [pair(one["first"], one["second"], name) for one in lines("data/relatives.jsonl")]
    told += [
        pair(first, second.format(who), name)
        for language, pairs in OF_RELATIVES.items()
        for first, second in pairs
        for who in RELATIVES[language]
    ]
    told += [pair(first, second, name) for first, second in OF_OTHERS]
    ended = [one.text for facts in facts_of(url, told) for one in facts if one.state == "superseded"]
    assert ended == []


def test_changes_of_the_speaker_are_noticed(url: str) -> None:
    pairs = lines("data/changes.jsonl")
    facts = facts_of(url, [pair(one["first"], one["second"]) for one in pairs])
    noticed = {
        one["id"] for one, found in zip(pairs, facts, strict=True) if any(each.state == "superseded" for each in found)
    }
    assert {"chg-01", "chg-04", "chg-05", "chg-07"} <= noticed
