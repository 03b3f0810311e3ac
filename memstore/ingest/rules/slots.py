"""What a clause fills: the attribute of its subject, the value it gives to it, and how that is said to hold.

    "Last month I moved to Porto"     -> residence = porto
    "I don't like coffee any more"    -> likes/coffee = no
    "I no longer work at Siemens"     -> former/employer = siemens (ended)
    "This week I'm in Berlin"         -> temporary/residence = berlin
    "I live in Germany"               -> residence/country = germany
    "My sister lives in Lyon"         -> residence = lyon, of whom() = "sister"

What is asked, supposed, quoted or told by others fills nothing: a value that was never said does more harm than one
that was missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import ClassVar, NamedTuple

from memstore.ingest.rules.asides import APOSTROPHES, closed_up
from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.parts import Part, completed, goes_on, lists_in, parts_of, subjects_of
from memstore.ingest.rules.places import COUNTRY, is_country
from memstore.ingest.rules.questions import asking
from memstore.ingest.rules.slotbook import Grammar, SlotRule, caught
from memstore.ingest.rules.turns import instead
from memstore.ingest.rules.until import says_until

FORMER = "former/"  # an attribute of what has ended: "former/residence" is "berlin"
WANTS = "wants/"  # of what somebody wants to become or do: yes, or no more
TEMPORARY = "temporary/"  # of what holds for a while, beside the lasting value
REPORTED = "reported/"  # of the speaker's health as others say it is: ended by what the speaker says, and ends nothing


class Manner(StrEnum):
    """How a value is said to hold."""

    HOLDS = "holds"
    ENDED = "ended"
    TEMPORARY = "temporary"
    CORRECTS = "corrects"


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute with its value; `many` where values stand beside each other, and only yes and no exclude each other.

    A value is in lower case, without articles. What ended has the attribute "former/…", what is for a while
    "temporary/…"; an ended value may be empty: "I quit my job".
    """

    attribute: str
    value: str
    many: bool
    manner: Manner


class Statement(NamedTuple):
    """A clause that fills a slot: `said.text[start:stop]`; its words with the subject that it left out, and of whom.

    `who` is a word of kin or a name, None for the speaker.
    """

    start: int
    stop: int
    slot: Slot
    words: str
    who: str | None


class _Read(NamedTuple):
    slot: Slot
    who: str | None


class _Grammars(Mapping[str, Grammar]):
    """The grammars by language, each compiled when it is first asked for: most commands read no sentence."""

    _modules: ClassVar = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "zh": "chinese"}

    def __getitem__(self, language: str) -> Grammar:
        return _grammar(self._modules[language])

    def __contains__(self, language: object) -> bool:
        return language in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


@cache
def _grammar(name: str) -> Grammar:
    grammar: Grammar = getattr(import_module(f"memstore.ingest.rules.slots_{name}"), name.upper())
    return grammar


GRAMMARS = _Grammars()

_QUOTES = re.compile(r"[\"“”„«»「」『』]")
_SORT = re.compile(
    r"\d|[周月]|星期|礼拜|day\b|tag\b|di\b|mittwoch|lunes|martes|jueves|viernes|sábado|domingo|miércoles", re.IGNORECASE
)
_LONGEST = 600  # characters of a clause
_SHORT = {"'m": " am", "'re": " are", "'ve": " have", "'ll": " will"}
_SHORTENED = re.compile(
    r"(?<=\w)'(?:m|re|ve|ll)\b|\b(?:can't|won't)\b|(?<=\w)n't\b|\b(?<=[iI]t)'s\b"
    r"|(?<=\w)'s(?= (?:(?:not|no longer|also|still|very|severely|really|now) )?(?:allergic|vegan|vegetarian|pregnant"
    r"|diabetic)\b)",
    re.IGNORECASE,
)
# Attributes that may hold for a while only, beside the lasting value; a name or an allergy does not.
_PASSING = frozenset({"residence", "job", "employer", "diet", "eats", "smoking", "drinking", "likes"})
_PASSING |= {"car", "address", "phone", "email", "regimen"}
# Attributes whose value is a name: "in a small flat" is no residence, "at a bank" no employer.
_NAMES = frozenset(["school", "residence", "hometown", "employer", "name", "nickname", "partner"])
PLACES = frozenset(["residence", "hometown"])
_FLIPS = frozenset(
    ["likes", "eats", "allergy", "health", "medication", "restriction", "wants", "pet", "owns", "language"]
)
_HEALTH = frozenset(["allergy", "health"])
_POSSESSIVE = re.compile(
    r"my|our|meine?n?|unsere?[nmr]?|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?|我的?|我们的?", re.IGNORECASE
)
_BEFORE_KIN = frozenset({"little", "big", "older", "younger", "elder", "twin", "best", "new", "old", "late"})
_BEFORE_KIN |= {"kleine", "große", "ältere", "jüngere", "beste", "neue"}
_BEFORE_KIN |= {"kleiner", "großer", "älterer", "jüngerer", "bester", "neuer"}
_BEFORE_KIN |= {"petit", "petite", "grand", "grande", "meilleur", "meilleure", "mejor", "nuevo", "nueva"}
# What others said that somebody was or had, told as they are: "The doctor said I was allergic".
_NOW = {"was": "am", "had": "have"}
_AS_NOW = re.compile(r"^(?:was|had)\b", re.IGNORECASE)
_ADJECTIVE = re.compile(r"due\b", re.IGNORECASE)  # behind "I'm pregnant," it goes on with "I'm"
_BUT = re.compile(r"\b(?:but|although|though|aber|doch)\b", re.IGNORECASE)
_APPOINTMENTS = re.compile(r"\s*\b(?:appointment|termin|rendez-vous|cita)\b\s*", re.IGNORECASE)


def holds_many(attribute: str) -> bool:
    """Whether values of an attribute stand beside each other, where nothing but its name is known of a fact."""
    return attribute.startswith((FORMER, TEMPORARY, REPORTED)) or attribute.split("/")[0] in _FLIPS


def statements_with_slots(said: Said, language: str, before: Sequence[Said] = ()) -> list[Statement]:
    """Give the clauses of a message that fill slots, in its order.

    "Sorry, I meant Tuesday" fills the slot that the speaker filled last, in this message or in those `before` it, if
    the value is of the same sort.
    """
    grammar = GRAMMARS.get(language)
    if grammar is None or said.role != "user":
        return []
    found: list[Statement] = []
    last = ""
    text = said.stated.translate(APOSTROPHES)
    for start, stop in said.sentences:
        if stop - start <= _LONGEST and not _is_quoted(text, start, stop):
            found += _of_sentence(text, start, stop, language, grammar)
            found += _instead(text[start:stop], last, (start, stop), language)
            last = text[start:stop]
            meant = grammar.meant.search(_spelled_out(text[start:stop])) if not found else None
            if meant:
                found += _meant(_value(meant["v"], grammar), start, stop, said, language, before)
    return found


def _instead(sentence: str, last: str, span: tuple[int, int], language: str) -> Iterator[Statement]:
    """Give "I'm allergic to sesame" for "It's sesame." behind "I'm not allergic to peanuts."."""
    told = instead(sentence, last, language)
    read = _read(told, language) if told else None
    if told and read:
        yield Statement(*span, read.slot, told, read.who)


def _of_sentence(text: str, start: int, stop: int, language: str, grammar: Grammar) -> Iterator[Statement]:
    sentence = text[start:stop]
    if grammar.doubtful.search(sentence):
        return
    reported, heard = grammar.reported.search(_spelled_out(sentence)), False
    asks = sentence.rstrip("\"')»” ").endswith(("?", "？"))
    clauses = list(_clauses(sentence, language, grammar))

    def fills(words: str) -> bool:
        return _read(words, language) is not None

    for clause in clauses[: -asking([one.words for one in clauses])] if asks else clauses:
        begin = start + clause.stop - len(clause.words)  # where the clause would begin with all that it leaves out
        found = grammar.hearsay.match(_spelled_out(clause.words))
        heard = heard or found is not None
        if found:
            yield from _heard(found, clause, start, language)
        if found or (reported and not (heard and _BUT.search(sentence, max(0, clause.start - 10), clause.start + 10))):
            continue
        for part in parts_of(clause.words, language, fills):
            read = _read(part.words, language)
            if read is not None:
                first = max(start + clause.start, begin + part.start)
                told = closed_up(part.words)
                yield Statement(first, max(first + 1, begin + part.stop), read.slot, told, read.who)


def _heard(found: re.Match[str], clause: Part, start: int, language: str) -> Iterator[Statement]:
    """Give what a clause says that others say of the speaker's health: "The doctor says I'm allergic to nuts"."""
    told = f"{found['own']} {_AS_NOW.sub(lambda verb: _NOW[verb[0].casefold()], found['rest'])}"
    for part in parts_of(told, language, lambda words: _read(words, language) is not None):
        read = _read(part.words, language)
        if read is not None and read.who is None and read.slot.attribute.split("/")[0] in _HEALTH:
            slot = Slot(f"{REPORTED}{read.slot.attribute}", read.slot.value, True, Manner.HOLDS)
            whole = part.words == told
            words = clause.words if whole else f"{found.string[: found.start('own')]}{part.words}"
            first = max(clause.start, clause.stop - len(told) + part.start) if part.start else clause.start
            last = max(first + 1, clause.stop - len(told) + part.stop)
            yield Statement(start + first, start + last, slot, closed_up(words), None)


def _clauses(sentence: str, language: str, grammar: Grammar) -> Iterator[Part]:
    """Give the clauses of a sentence without those that ask for something, each with the subject that it leaves out.

    What is asked for may be a letter, and then what follows a colon stands in it.
    """
    kept = [one.span() for one in [*lists_in(sentence, language), *_contrasts(sentence, grammar)]]
    kept += [(one.start(), one.end("own")) for one in grammar.hearsay.finditer(sentence)]
    gaps = [one for one in grammar.next_clause.finditer(sentence) if not _within(one.start(), kept)]
    starts, stops = [0, *(gap.end() for gap in gaps)], [*(gap.start() for gap in gaps), len(sentence)]
    subjects: list[str] = []
    before = ""
    for first, last, after in zip(starts, stops, [*(gap[0] for gap in gaps), ""], strict=True):
        words = sentence[first:last]
        if grammar.asks.search(words):
            if ":" in after:
                return
            subjects, before = [], ""
            continue
        own = subjects_of(words, language)
        words = completed(words, before, language)
        first_of = slice(1, 2) if _ADJECTIVE.match(words) else slice(1)
        left_out = (
            goes_on(words, subjects[first_of], lambda told: _read(told, language) is not None) if not own else None
        )
        subjects = own or subjects
        before = f"{left_out} {words}" if left_out else words
        yield Part(before, first, last)


def _contrasts(sentence: str, grammar: Grammar) -> list[re.Match[str]]:
    return [found for contrast in grammar.contrasts for found in contrast.pattern.finditer(sentence)]


def _within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < stop for start, stop in spans)


def _is_quoted(text: str, start: int, stop: int) -> bool:
    """Whether a sentence has quoted words, or is a quoted line or a row of a table: they may be anybody's."""
    return bool(_QUOTES.search(text, start, stop)) or text[start] in ">|"


def _meant(value: str, start: int, stop: int, said: Said, language: str, before: Sequence[Said]) -> Iterator[Statement]:
    for earlier in reversed(before):
        if earlier.speaker != said.speaker or earlier.role != "user":
            continue
        slots = [
            one.slot for one in statements_with_slots(earlier, language) if one.slot.value not in ("yes", "no", "")
        ]
        if slots and value:
            last = slots[-1]
            if (last.manner is not Manner.ENDED and _SORT.search(last.value) is None) or _SORT.search(value):
                slot = Slot(last.attribute, value, False, Manner.CORRECTS)
                yield Statement(start, stop, slot, said.text[start:stop], None)
        return


def _read(clause: str, language: str) -> _Read | None:
    grammar = GRAMMARS.get(language)
    text = _spelled_out(clause[:_LONGEST])
    if grammar is None or text.endswith(("?", "？", "吗", "呢")) or text[:1] in '"“„«「':
        return None
    if grammar.doubtful.search(text) or grammar.reported.search(text) or grammar.asks.search(text):
        return None
    wish = _wish(text, grammar)
    if wish is not None or grammar.unreal.search(text):
        return wish
    left = _without_contrast(text, grammar)
    for rule in grammar.rules:
        for found in rule.pattern.finditer(left):
            if grammar.subordinate.search(left[: found.start()]):
                continue
            slot = _slot(rule, found, left, grammar)
            if slot is not None and left != text and slot.manner is Manner.HOLDS:
                slot = replace(slot, manner=Manner.CORRECTS)
            if slot is not None:
                return _Read(slot, _who(found))
    return None


def _wish(text: str, grammar: Grammar) -> _Read | None:
    """Give what somebody wants to become or do, and no longer wants; None where that is doubted itself."""
    for rule in grammar.wishes:
        found = rule.pattern.match(text)
        if found and not grammar.unreal.search(text[found.end() :]):
            slot = _slot(rule, found, text, grammar)
            return _Read(slot, None) if slot else None
    return None


def _without_contrast(text: str, grammar: Grammar) -> str:
    """Give "I live in Bonn" for "I do not live in Berlin but in Bonn"."""
    for contrast in grammar.contrasts:
        text = contrast.pattern.sub(contrast.left, text, count=1)
    return text


def _spelled_out(clause: str) -> str:
    text = " ".join(clause.split())
    return _SHORTENED.sub(_expanded, text)


def _expanded(found: re.Match[str]) -> str:
    short = found[0].casefold()
    if short.endswith("n't"):
        return {"can't": "can not", "won't": "will not"}.get(short, " not")
    return _SHORT.get(short, " is")


def _slot(rule: SlotRule, found: re.Match[str], text: str, grammar: Grammar) -> Slot | None:
    attribute, indefinite = rule.attribute.lstrip("+@"), rule.attribute.startswith("+")
    root = attribute.removeprefix(FORMER).split("/")[0]
    thing = _thing(caught(found, "t") or "", grammar)
    raw = caught(found, "v") or ("" if rule.value else caught(found, "t")) or ""
    value = {"*": "", "": _value(raw, grammar)}.get(rule.value, rule.value)
    named = root not in _NAMES or "new" in found.groupdict()  # "a new job at a bank" is told of by no name
    if not rule.value and (
        not value or not (named or _is_name(raw, text, grammar, within=root in ("employer", "school")))
    ):
        return None
    if "{t}" in attribute and not thing:
        return None
    attribute = attribute.replace("{t}", thing).replace("{plan}", _plan(thing))
    if root == "regimen":  # one diet, however it is written
        value = value.replace("-", " ").replace("ketogenic", "keto").replace("ketogen", "keto")
    if attribute in PLACES and not rule.lasting and is_country(value):  # who moves to a country has left the town
        attribute += COUNTRY
    return _in_manner(rule, attribute, root, value, text, grammar, many=indefinite or root in _FLIPS)


def _in_manner(
    rule: SlotRule, attribute: str, root: str, value: str, text: str, grammar: Grammar, *, many: bool
) -> Slot | None:
    if attribute.startswith(FORMER):
        return Slot(attribute, value, True, Manner.ENDED)
    passing = root in _PASSING and (says_until(text) if rule.lasting else bool(grammar.temporary.search(text)))
    if attribute.startswith(TEMPORARY) or passing:
        return Slot(f"{TEMPORARY}{attribute.removeprefix(TEMPORARY)}", value, True, Manner.TEMPORARY)
    if rule.attribute.startswith("@"):  # "I'm in Berlin" says nothing that lasts
        return None
    corrects = rule.moves or bool(grammar.corrects.search(text))
    many = many or (root in ("job", "employer") and bool(grammar.also.search(text)))
    return Slot(attribute, value, many, Manner.CORRECTS if corrects else Manner.HOLDS)


def _plan(thing: str) -> str:
    """Give the attribute of an event: "dentist appointment" is appointment/dentist, "exam" is plan/exam."""
    if _APPOINTMENTS.search(thing):
        return f"appointment/{_APPOINTMENTS.sub('', thing) or 'any'}"
    return f"plan/{thing}"


def _value(raw: str, grammar: Grammar) -> str:
    value = " ".join(raw.casefold().split()).strip(" '\"*_-")
    if grammar.no_value.search(value):
        return ""
    for _ in range(2):
        value = grammar.article.sub("", value).strip()
    return value


def _thing(raw: str, grammar: Grammar) -> str:
    thing = _value(raw, grammar)
    if len(thing.split()) > 4:
        return ""
    return re.sub(r"(?<=\w\w\w)(?<![suié])(?<!diabete)s$", "", thing)


def _is_name(raw: str, text: str, grammar: Grammar, *, within: bool) -> bool:
    """Whether a value is a name by its capital; in a clause without any, every value may be one.

    `within`: the capital may stand further on, behind an article: "the university hospital Leipzig".
    """
    words = grammar.article.sub("", raw.strip()).split()
    if not words or len(words) > 4:
        return False
    if within and raw.strip().casefold().startswith("the ") and any(word[0].isupper() for word in words[1:]):
        return True
    return words[0][0].isupper() or (text.casefold() == text and len(words) <= 2)


def _who(found: re.Match[str]) -> str | None:
    """Give the word of kin, "sister" for "my little sister Maria", or the name of somebody else."""
    who = caught(found, "who")
    if who is None:
        return None
    words = who.split()
    if not _POSSESSIVE.fullmatch(words[0]):
        return who
    own = next((place for place, word in enumerate(words) if word.endswith(("'s", "s'"))), 0)
    if own:  # "my brother's wife"
        return f"{words[own]} {words[own + 1]}"
    named = len(words) > 2 and words[-1][0].isupper() and words[-2].casefold() not in _BEFORE_KIN
    kin = words[:-1] if named else words
    return next((word for word in kin[1:] if word.casefold() not in _BEFORE_KIN), kin[-1])
