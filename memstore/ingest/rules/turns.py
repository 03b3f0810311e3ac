"""Not this but that, of what somebody is allergic to or takes: two facts, each of one thing, so that either can end.

    "I'm not allergic to peanuts but to sesame"     -> "I'm not allergic to peanuts", "I'm allergic to sesame"
    "I'm allergic to sesame, not peanuts"           -> "I'm allergic to sesame", "I'm not allergic to peanuts"
    "It's not peanuts, it's sesame I'm allergic to" -> the same
    "I switched from metformin to Ozempic"          -> "I no longer take metformin", "I take Ozempic"
    "I'm not allergic to peanuts after all, it's sesame": the second clause is told as "I'm allergic to sesame"

What is only said to be "it" is an allergen by a list: "I'm not allergic to nuts, it's fine".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memstore.ingest.rules.medicines import GERMAN_MEDICINE, MEDICINE

ALLERGENS = (
    r"(?:(?:tree|cashew|brazil|pine|macadamia|ground) ?)?nuts?|peanuts?|almonds?|cashews?|hazelnuts?|walnuts?|pecans?"
    r"|pistachios?|sesame(?: seeds?)?|mustard|celery|lupins?|soya?|gluten|wheat|rye|barley|oats|lactose|dairy"
    r"|(?:cow'?s )"
    r"?milk|cheese|eggs?(?: whites?| yolks?)?|(?:shell)?fish|seafood|shrimps?|prawns?|crabs?|lobsters?|mussels?"
    r"|oysters?"
    r"|squid|kiwis?|bananas?|strawberr(?:y|ies)|tomato(?:es)?|apples?|citrus|avocados?|mango(?:es)?|peach(?:es)?"
    r"|chickpeas|lentils|peas|garlic|onions?|corn|yeast|cinnamon|cocoa|chocolate|(?:(?:grass|tree|birch|weed) )?pollen"
    r"|grass|birch|ragweed|(?:house )?dust(?: mites?)?|mou?lds?|cats?(?: hair)?|dogs?(?: hair)?|horses?|feathers"
    r"|(?:bee|wasp)(?:s| stings?| venom)?|latex|nickel|perfumes?|penicillin|amoxicillin|ibuprofen|aspirin|sulfa\w*"
    r"|iodine"
    r"|codeine|fur|wool"
)
_DEUTSCH = (
    r"\w*nüsse|\w*nuss|mandeln?|cashews?|sesam|senf|sellerie|lupinen?|soja|gluten|weizen|laktose|milch|eier|ei|fisch"
    r"|meeresfrüchte|krebstiere|garnelen|kiwis?|erdbeeren|tomaten|äpfel|\w*pollen|gräser|birken?|\w*staub|\w*milben"
    r"|schimmel|katzen|hunde|pferde|\w+stiche|latex|nickel|penicillin|duftstoffe"
)


class Turned(NamedTuple):
    """One of the two things that a clause says, with its subject, and where it stands."""

    words: str
    start: int
    stop: int


_THING = r"[^,;:.!?()]{1,60}?"
_WHO = r"(?:I|we|(?:my|our) (?:[\w'-]+ ){0,3}?[\w'-]+|(?-i:[A-Z])[\w'-]+)"
_BE = rf"(?P<own>{_WHO}(?:'m|'re|'s| am| are| is))"
_NOT = r"(?: (?:actually|really|in fact|now))?(?:n't| not| no longer)(?: (?:actually|really|even))? allergic to"
_IT_IS = r"it(?:'s| is)(?: actually| really)?(?: the)?"
_NONE = rf"(?P<no>(?:{ALLERGENS})(?:(?:, | or | and |, or )(?:{ALLERGENS})){{0,5}})"
_AFTER_ALL = r"(?: (?:after all|any ?more|at all|any longer|though|either))?"
_ONLY = r"(?:also|only|just|merely|as well|even)"
_WER = r"(?:ich|wir|(?:mein|unser)e? (?:[\w-]+ ){0,2}?[\w-]+|(?-i:[A-ZÄÖÜ])[\w-]+)"
_ENDE = r"(?=[.!]*\s*$|\s*[,;.!])"
_TURNS = {
    "en": tuple(
        re.compile(form, re.IGNORECASE)
        for form in (
            rf"(?<![\w']){_BE}{_NOT} (?!(?:any|all|every)\b)(?P<no>{_THING}){_AFTER_ALL},? (?:but|rather)(?: (?:rather"
            rf"|instead|actually|in fact))? to (?!{_ONLY}\b)(?P<yes>[^,;:.!?()]{{1,60}})",
            rf"(?<![\w']){_BE}(?: now| actually)? allergic to (?P<yes>[\w', -]{{1,60}}?),? (?:and |but )?not (?:to )?"
            rf"{_NONE}{_AFTER_ALL}(?=[.!]*\s*$|\s*[,;.!])",
            rf"(?<![\w'])(?:it(?:'s| is) )?not (?:the )?{_NONE}{_AFTER_ALL},? (?:but )?(?:{_IT_IS} )?"
            rf"(?P<yes>(?!it\b)[\w'-]+(?: [\w'-]+)?) (?:that |which )?{_BE} allergic to",
            rf"(?<![\w'])(?:it(?:'s| is) not|it isn't)(?: the)? (?P<no>[\w'-]+(?: [\w'-]+)?) (?:that |which )?{_BE}"
            rf" allergic"
            rf" to,? (?:but )?{_IT_IS} (?P<yes>[\w'-]+(?: [\w'-]+)?)(?=[.!]*\s*$|\s*[,;.!])",
            rf"(?<![\w']){_IT_IS} (?P<yes>[\w'-]+(?: [\w'-]+)?) (?:that |which )?{_BE} allergic to,? (?:and |but )?not"
            rf" (?:the )?{_NONE}(?=[.!]*\s*$|\s*[,;.!])",
        )
    ),
    "de": (
        re.compile(
            rf"(?<!\w)(?P<own>{_WER} (?:bin|sind|ist)) (?:(?:doch|aber|eigentlich) )?nicht(?: mehr)? allergisch gegen"
            rf" (?P<no>{_THING}),? sondern (?:gegen )?(?!(?:auch|nur)\b)(?P<yes>[^,;:.!?()]{{1,60}})",
            re.IGNORECASE,
        ),
        re.compile(
            rf"(?<!\w)(?P<own>{_WER} (?:bin|sind|ist)) (?:(?:doch|aber|eigentlich) )?allergisch gegen"
            rf" (?P<yes>(?!nicht\b)"
            rf"[\w -]{{1,60}}?),? (?:und |aber )?nicht (?:gegen )?(?P<no>{_DEUTSCH}){_ENDE}",
            re.IGNORECASE,
        ),
    ),
}  # fmt: skip
_FORMS = {"en": ("{own} not allergic to {no}", "{own} allergic to {yes}"),
          "de": ("{own} nicht allergisch gegen {no}", "{own} allergisch gegen {yes}")}  # fmt: skip
_SWITCHES = {
    "en": re.compile(
        r"(?<![\w'])(?P<own>I|we)(?:'ve| have| was| were| just| recently| finally){0,3} (?:switched|changed|moved"
        r"|gone|went)"
        rf"(?: over)? from (?:my |the )?(?P<no>{MEDICINE}) (?:over )?to (?P<yes>{MEDICINE})",
        re.IGNORECASE,
    ),
    "de": re.compile(
        rf"(?<!\w)(?P<own>ich) (?:bin|habe) (?:\w+ )?von (?P<no>{GERMAN_MEDICINE}) (?:auf|zu)"
        rf" (?P<yes>{GERMAN_MEDICINE})"
        r" (?:umgestiegen|gewechselt|umgestellt)(?: worden)?",
        re.IGNORECASE,
    ),
}
_SWITCHED = {"en": ("{own} no longer take {no}", "{own} take {yes}"),
             "de": ("{own} nehme kein {no} mehr", "{own} nehme {yes}")}  # fmt: skip
# The clause before, and the one that says what it is instead.
_DENIED = {
    "en": re.compile(
        rf".{{0,60}}?(?<![\w']){_BE}{_NOT} {_THING}{_AFTER_ALL}[ .!]*",
        re.IGNORECASE,
    ),
    "de": re.compile(
        rf".{{0,60}}?(?<!\w)(?P<own>{_WER} (?:bin|sind|ist)) (?:\w+ ){{0,2}}?nicht (?:\w+ ){{0,2}}?allergisch gegen"
        rf" {_THING}[ .!]*",
        re.IGNORECASE,
    ),
}
_INSTEAD = {
    "en": re.compile(
        r"(?:(?:but|and|so|no) )?(?:it(?:'s| is| was)|they're|they are)(?: (?:actually|really|just|only|in fact"
        r"|probably"
        rf"(?! not)))*(?: to)?(?: the)? (?P<yes>(?:{ALLERGENS})(?:,? (?:and|or) (?:{ALLERGENS}))?)(?: (?:instead|after"
        r" all|that (?:did|does) it|actually|apparently))?[ .!]*",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"(?:(?:aber|und|sondern) )?(?:es (?:ist|sind|war|waren)|das (?:ist|sind|war|waren))(?: (?:eigentlich|der|die"
        r"|das"
        rf"|nur|wohl))* (?P<yes>(?:{_DEUTSCH})(?: und (?:{_DEUTSCH}))?)[ .!]*",
        re.IGNORECASE,
    ),
}


def turned(clause: str, language: str) -> list[Turned]:
    """Give the two things that a clause says which turns from one allergen to another; nothing for any other."""
    for form, forms in _forms(language):
        found = form.search(clause)
        if not found:
            continue
        no, yes = (told.format(**found.groupdict()) for told in forms)
        first, second = (no, yes) if found.start("no") < found.start("yes") else (yes, no)
        before = clause[: found.start()]
        plain = not before or not found.group().startswith(found["own"])  # "It's not peanuts …" has no words of its own
        cut = max(found.start("no"), found.start("yes"))
        return [Turned(first if plain else before + first, 0, cut), Turned(second, cut, len(clause))]
    return []


def turns_in(sentence: str, language: str) -> list[re.Match[str]]:
    """Give where a sentence says that it is not this but that: no clause ends within."""
    return [found for form, _ in _forms(language) for found in form.finditer(sentence)]


def _forms(language: str) -> list[tuple[re.Pattern[str], tuple[str, str]]]:
    if language not in _TURNS:
        return []
    turns = [(form, _FORMS[language]) for form in _TURNS[language]]
    return [*turns, (_SWITCHES[language], _SWITCHED[language])]


def instead(clause: str, before: str, language: str) -> str | None:
    """Give "I'm allergic to sesame" for "it's sesame" behind "I'm not allergic to peanuts"; None for anything else."""
    form = _INSTEAD.get(language)
    found = form.fullmatch(clause.strip()) if form else None
    denied = _DENIED[language].fullmatch(before.strip()) if found else None
    return _FORMS[language][1].format(own=denied["own"], yes=found["yes"]) if found and denied else None
