"""What a question's words tell about where its answer is. Pure.

Whether it asks for an overview or for an assistant's words, the questions that it consists of, the question in the
first person of the speaker whom it names, and the dates that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from babel import Locale

from memstore.store.tokenize import is_english, terms

_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|i[sz]e|ies)|overview|recap\b)|zusammenfass|\bfass\w*\b[^.?!]{1,80}\bzusammen\b|überblick",
    re.IGNORECASE,
)
_TELL = r"say|tell|recommend|suggest|advise|mention|propose|explain|list|write|give|answer|show|warn|come up with"
_TOLD = (
    r"said|told|recommended|suggested|advised|mentioned|proposed|explained|listed|wrote|written|given|answered|shown"
    r"|warned|c[ao]me up with"
)
_GESAGT = r"gesagt|empfohlen|vorgeschlagen|geraten|genannt|erwähnt|erklärt|geschrieben|aufgelistet|gegeben|gezeigt"
_DIT = r"dit|(?:recommand|conseill|suggér|propos|expliqu|mentionn|donn)ée?s?"
_WORDS_OF_ASSISTANT = re.compile(
    rf"\bdid you (?:\w+ )?(?:{_TELL})\b|\byou(?:'ve|'d)? (?:(?:once|just|already|then|had|have) )?(?:{_TOLD})\b"
    rf"|\b(?:du|(?-i:Sie))\b[^.?!]{{0,60}}\b(?:{_GESAGT})\b"
    r"|\b(?:tu (?:m'|nous )?(?:as|avais)|as-tu|vous (?:m'|nous )?(?:avez|aviez)|avez-vous)\b"
    rf"[^.?!]{{0,30}}\b(?:{_DIT})\b"
    r"|\b(?:dijiste|recomendaste|sugeriste|aconsejaste|propusiste|explicaste|mencionaste|diste)\b"
    r"|\bhas (?:dicho|recomendado|sugerido|aconsejado|propuesto|explicado|mencionado|dado)\b"
    r"|你[^。？！?]{0,10}(?:推荐|建议|说过|说的|提到|告诉)",
    re.IGNORECASE,
)


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks for a summary of what was said, in English or German."""
    return _OVERVIEW.search(question) is not None


def asks_for_assistant_words(question: str) -> bool:
    """Return whether a question asks for what an assistant said: "Which hotel did you recommend?"

    In English, German, French, Spanish and Chinese. To such a question an assistant's words are as likely an answer as
    a person's.
    """
    return _WORDS_OF_ASSISTANT.search(question) is not None


MOST_PARTS = 3
LONGEST_QUESTION = 1000  # characters: what is longer tells something, and asks at its end
FEWEST_WORDS = 3  # "and why?" asks nothing by itself
_ASKS = (
    r"(?:what|when|where|who|whom|whose|which|why|how)\b"
    r"|(?:am|is|are|was|were|do|does|did|has|have|had|can|could|should|will|would) (?:I|we|you|my|our|your)\b"
    r"|(?:wann|wo|woher|wohin|wer|wen|wem|wessen|was|welche[mnrs]?|warum|wieso|wie)\b"
    r"|(?:bin|ist|sind|war|waren|habe|haben|kann|können|soll|sollen|muss|müssen) (?:ich|wir|meine?|unsere?)\b"
)
_NEXT_QUESTION = re.compile(
    rf"(?<=\?)\s+(?=[^?]+\?)|(?:,\s*|\s+)(?:and|but|und|aber)\s+(?:(?:also|auch)\s+)?(?={_ASKS})", re.IGNORECASE
)
# "How long was it between when I began and when I ended?" is one question, "zwischen" likewise.
_ONE_QUESTION = re.compile(r"\b(?:between|zwischen)\b", re.IGNORECASE)


def split_question(question: str) -> tuple[str, ...]:
    """Return the questions that a question consists of; none where it is one, or more than three.

    The vector of a question of two things is near to the one of which more was said, and so are its words: of the other
    nothing is among the first. Worth 0.2 points on BEAM, where 5 of 179 questions have parts.
    """
    if len(question) > LONGEST_QUESTION or _ONE_QUESTION.search(question):
        return ()
    parts = [part.strip(" ,") for part in _NEXT_QUESTION.split(" ".join(question.split()))]
    if len(parts) < 2:  # as a rule: its words are looked at where it is made ready
        return ()
    asking = tuple(part for part in parts if len(part.split()) >= FEWEST_WORDS and any(terms(part)))
    return asking if 1 < len(asking) <= MOST_PARTS else ()


def to_first_person(question: str, speakers: Iterable[str]) -> str:
    """Return a question in the first person of the speakers whom it names: "What is Ann's job?" is "What is my job?".

    For the embedder alone: people say "I painted a lake", and that is nearer to "What did I paint?" than to "What did
    Ann paint?". Worth 0.9 points, all on LoCoMo. A question in another language than English stays as it is.
    """
    names = sorted((name for name in speakers if name in question), key=len, reverse=True)
    if not names or not is_english(question):
        return question
    anyone = "|".join(map(re.escape, names))
    question = re.sub(rf"\b(?:{anyone})(?:['’]s\b|(?<=s)['’](?=\s))", "my", question)
    return re.sub(rf"\b(?:{anyone})\b", "I", question)


# Dates: "in May 2023", "am 8. Mai", "2023年5月", "on 2023-05-08". Only what needs no clock: "last week" is another one
# every week, and a store gives the same answer to the same question. Names of months are the Unicode CLDR's, by Babel.
_LANGUAGES = ("en", "de", "fr", "es")
# Words of another meaning as well: they are months beside a number, and after what a time is said with.
_AMBIGUOUS = r"may|march|mars|august"
_TIME_WORDS = (
    "in|of|since|during|by|until|till|before|after|last|this|early|mid|late|from|through|im|seit|ab|bis|vom|letzten"
    "|diesen|en|de|depuis|avant|après|desde|hasta|antes|durante"
)
_YEAR = r"(?:19|20)\d\d"
_BETWEEN = r"(?:,|\.)?\s+(?:of\s+|de[l]?\s+)?"


class NamedDate(NamedTuple):
    """A year, a month (1 to 12), a day, or some of them."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


def named_dates(text: str) -> list[NamedDate]:
    """Return the dates that a text names, in their order."""
    numbers = _months()
    folded = text.casefold()
    if not any(map(str.isdecimal, text)) and not any(name in folded for name in numbers):
        return []  # most questions: a tenth of a millisecond is much of what recall takes
    found = []
    for match in _pattern().finditer(text):
        said = {name.rstrip("_0123456789"): value for name, value in match.groupdict().items() if value}
        month = said.get("name")
        number = numbers[month.casefold().rstrip(".")] if month else int(said["month"]) if "month" in said else None
        year, day = said.get("year"), said.get("day")
        if number is None or 1 <= number <= 12:
            found.append(NamedDate(int(year) if year else None, number, int(day) if day else None))
    return found


@cache
def _months() -> dict[str, int]:
    """Return the number of each month's name and abbreviation."""
    return {
        name.casefold().rstrip("."): number
        for language in _LANGUAGES
        for width in ("abbreviated", "wide")
        for number, name in Locale(language).months["format"][width].items()
    }


@cache
def _pattern() -> re.Pattern[str]:
    any_name = "|".join(sorted(map(re.escape, _months()), key=len, reverse=True))
    wide = {name.casefold() for one in _LANGUAGES for name in Locale(one).months["format"]["wide"].values()}
    alone = "|".join(sorted(wide, key=len, reverse=True))
    day = r"(?P<day{n}>[0-3]?\d)(?:st|nd|rd|th|er)?"
    forms = [
        rf"\b(?P<year_2>{_YEAR})-(?P<month_2>\d\d)(?:-(?P<day_2>\d\d))?\b",
        rf"\b(?P<day_3>[0-3]?\d)\.\s?(?P<month_3>[01]?\d)\.\s?(?P<year_3>{_YEAR})\b",
        rf"(?P<year_4>{_YEAR})年(?:(?P<month_4>[01]?\d)月)?(?:(?P<day_4>[0-3]?\d)[日号])?",
        rf"\b{day.format(n='')}{_BETWEEN}(?P<name>{any_name})\b(?:{_BETWEEN}(?P<year>{_YEAR})\b)?",
        rf"\b(?P<name_2>{any_name})\.?\s+{day.format(n='_5')}(?!\d)(?:,?\s+(?P<year_5>{_YEAR})\b)?",
        rf"\b(?P<name_3>{any_name}){_BETWEEN}(?P<year_22>{_YEAR})\b",
        rf"(?:(?<=\s)|^)(?!(?:{_AMBIGUOUS})\b)(?P<name_4>{alone})\b",
        rf"\b(?:{_TIME_WORDS})\s+(?P<name_5>{_AMBIGUOUS})\b(?:{_BETWEEN}(?P<year_24>{_YEAR})\b)?",
        rf"\b(?P<year_23>{_YEAR})\b",
    ]
    return re.compile("|".join(forms), re.IGNORECASE)
