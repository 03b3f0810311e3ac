"""Whether what a chat model says is grounded in the messages that it quotes. Pure.

A sentence is compared with its quotes: surely wrong ones are refused, possibly wrong ones are doubted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from memstore.derive.facts.entities import KIN, PARTNERS, find_strange_name
from memstore.derive.facts.normalization import NOT, STEM_LETTERS, content_words, is_denied, plain, protects
from memstore.derive.facts.quotes import MARKS, Span, tokens
from memstore.derive.llm import Passage
from memstore.language import WORD, german_compounds, has_word, load_numbers, load_phrases, load_words, number_words
from memstore.language.detection import UNKNOWN, language_of
from memstore.models import FactColumns

IDLE_DENIAL = re.compile(
    r"\b(?:not (?:only|just|to mention)|nicht (?:nur|bloß)|(?:do not|don['’]t|nicht) (?:forget|worry|vergessen)"
    r"|no (?:problem|worries|doubt|thanks)|why not|can['’]t wait|keine sorge|pas seulement|no solo"
    r"|not (?:so |too |that |very )?long ago|(?<=,)\s*\w+n['’]t (?:i|you|we|they|he|she|it)(?=\W*\Z))\b",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"[.,;:!?()\n]|\b(?:and|but|so|und|aber|et|mais|y|pero)\b", re.IGNORECASE)
# Words by which somebody says that something has changed; not as an opening, "Now, where was I?".
_CHANGE = re.compile(
    r"\w\W+(?:now|nun|jetzt)\b|\b(?:instead|chang(?:ed|ing)|switch|swapp|replac|stattdessen|neuerdings|inzwischen"
    r"|mittlerweile|gewechselt|umgestiegen|maintenant|désormais|à la place|changé|ahora|en (?:vez|lugar) de|cambi[éa])",
    re.IGNORECASE,
)
HOLLOW = content_words("any anymore more longer mehr plus yet noch even all after either again wieder please bitte")
_MONTHS = "|".join(number_words("months"))
_DATE = re.compile(
    rf"\b(?:19|20)\d\d(?:-\d\d){{0,2}}\b"
    r"|\b(?:\d{1,2}(?:\.|st|nd|rd|th)?\s*(?:to|and|bis|und|au|et|al|y|[-–])\s*(?:the |zum )?)?"
    rf"\d{{1,2}}(?:\.|st|nd|rd|th|er|º)?\s+(?:of |de )?(?:{_MONTHS})\b"
    rf"|\b(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}[./]\d{{1,2}}[./](?:\d\d)?\d\d\b",
    re.IGNORECASE,
)
_NUMBER_WORDS = dict.fromkeys(load_words("a_single"), "1") | {
    word.casefold(): str(number)
    for word, number in (
        load_numbers() | german_compounds() | number_words("zero", start=0) | number_words("times")
    ).items()
}
_NUMBER = re.compile(r"(?:(?<![\w.,])[.,])?\d+(?:[.,:]\d+)*")
_HOUR = re.compile(r"\s?(?:(?P<half>[ap])\.?m\b|uhr|h\b|o.cl)", re.IGNORECASE)
_TIME = re.compile(r"([01]?\d|2[0-4])[:.]([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt about a fact: if it `is_refused` it is not stored, else it waits to be confirmed."""

    why: str
    is_refused: bool = False


def find_doubt(
    text: str,
    subject: str,
    spans: Sequence[Span],
    shown: Sequence[Passage],
    background: str,
    trusted: Collection[str],
    *,
    has_slot: bool,
    name: str = "",
    replaced: str = "",
    guards: bool = False,
) -> Doubt | None:
    """Return the doubt about a fact with these sources; None without one.

    `background` is what the model has read besides the messages `shown`, `trusted` whose words carry a fact, `name` a
    value that is a name, `replaced` the text of known facts that the fact ends. One that `guards` somebody does not
    wait for a name that is only written out, "Penicillin" for "PCN".
    """
    first = next(tokens(text), None)
    opening = text[first.start : first.stop].casefold().replace("’", "'") if first else ""
    is_pronoun = opening in load_words("third_person") | load_words("pronouns")
    if is_pronoun and not text.casefold().startswith(subject.casefold()):
        return Doubt("its text begins with a pronoun", is_refused=True)
    material = "\n".join([background, *(f"{passage.speaker}: {passage.text}" for passage in shown)])
    undated = _DATE.sub(" ", text)
    if (number := _find_strange_number(undated, numbers(material))) is not None:
        return Doubt(f"nobody has said the number {number}")
    quotes = [span.text for span in spans]
    spoken = language_of(text)
    spoken = language_of("\n".join(span.passage.text for span in spans)) if spoken == UNKNOWN else spoken
    if (strange := find_strange_name("" if guards else undated, f"{subject} {name}", material, spoken)) is not None:
        return Doubt(f"nobody has said the name {strange}")
    trusted_spans = [span for span in spans if span.passage.role in trusted]
    answered = any(find_answered(span.passage, text, subject, shown) for span in trusted_spans)
    if not answered and not _may_say(" ".join(span.text for span in trusted_spans), text, subject):
        return Doubt("it shares no word with its quote")
    if not is_negative(text) and any(_denies(quote, text, subject) for quote in quotes):
        return Doubt("its quote denies what it says")
    if is_denied(text) and not is_negative(basis := find_basis(text, subject, spans, shown, trusted)):
        is_reversed = has_slot or {*content_words(text)} <= {NOT, *HOLLOW, *content_words(f"{basis} {subject}")}
        if is_reversed and not _denies_replaced(text, replaced, " ".join(span.text for span in trusted_spans), subject):
            return Doubt("it denies what nobody has denied")
    if all(_is_about_another(span, text, subject, shown) for span in spans):
        return Doubt("its quote is about somebody else")
    return None


def _denies_replaced(text: str, replaced: str, quote: str, subject: str) -> bool:
    known_words, new = [plain(word) for word in content_words(f"{replaced} {subject}")], []
    for clause in CLAUSE.split(text):
        words = [word for word in content_words(clause) if word not in HOLLOW and word != NOT]
        words = [word for word in words if not any(is_akin(each, word) for each in known_words)]
        if words and is_denied(clause):
            return False
        new += words
    return shares_word(" ".join(new), quote, subject)


def numbers(text: str) -> set[str]:
    keys = [token.key for token in tokens(text)]
    digits = {_NUMBER_WORDS[key] for key in keys if key in _NUMBER_WORDS}
    digits.update(*(_readings(match) | _times(match) for match in _NUMBER.finditer(text)))
    values = [int(_NUMBER_WORDS.get(key, 0)) for key in keys if key not in ("y", "et", "and", "und")]
    # "twenty-five", "two hundred"
    for value, following in pairwise(values):
        if 0 < following < 10 and value in range(20, 101, 10):
            digits.add(str(value + following))
        elif following == 100 and 0 < value < 10:
            digits.add(str(value * 100))
    halves = re.findall(r"\b(\w+) (?:and a half|y medi[ao]|et demie?)\b", text.casefold())
    digits.update(f"{_NUMBER_WORDS.get(whole, whole)}.5" for whole in halves)
    return digits | ({"30", "15", "45"} if load_phrases("part_of_hour").search(text) else set())


def _readings(written: re.Match[str]) -> set[str]:
    """Return what a written number may be: a price and a time have other marks in other countries."""
    number = f"0{written[0]}" if written[0][0] in ".," else written[0]
    if number.isdigit():
        is_time = len(number) == 4 and int(number[:2]) < 24 and int(number[2:]) < 60
        return {number.lstrip("0") or "0", *([f"{int(number[:2])}:{number[2:]}"] if is_time else [])}
    if ":" in number:
        return _times(written) or {number}
    if re.fullmatch(r"[1-9]\d{0,2}(?:(?:(?:,\d\d)*,\d{3})+(?:\.\d+)?|(?:\.\d{3})+(?:,\d+)?)", number):
        number = re.sub(r"[.,](?=\d{3})|,(?=\d\d,)", "", number)
    decimal = number.replace(",", ".")
    whole, _, part = decimal.partition(".")
    is_same = not part.strip("0") or whole == "0"
    return {decimal.rstrip("0").rstrip(".") if part and is_same else decimal}


def _times(written: re.Match[str]) -> set[str]:
    """Return the times of day that a number may be; "5:30" is one of two where nobody says which."""
    time = _TIME.fullmatch(written[0])
    if time is None:
        return set()
    hours, minutes = int(time[1]), time[2]
    hour = _HOUR.match(written.string, written.end())
    if hour and hour["half"]:
        return {f"{hours % 12 + 12 * (hour['half'] in 'pP')}:{minutes}"}
    is_open = ":" in written[0] and 0 < hours < 13 and not hour
    return {f"{hours}:{minutes}", *([f"{(hours + 12) % 24}:{minutes}"] if is_open else [])}


def is_negative(text: str) -> bool:
    """Whether a text denies something, be it without a "not": "stopped"."""
    return is_denied(text) or load_phrases("ends").search(text) is not None


def _find_strange_number(text: str, said: Collection[str]) -> str | None:
    """Return a number that nobody has said; hours may be counted to 12 or to 24."""
    for match in _NUMBER.finditer(text):
        number, readings, time = match[0], _readings(match), _TIME.fullmatch(match[0])
        is_hour = _HOUR.match(text, match.end())
        if is_hour:
            readings |= _times(match)
        hours, minutes = (int(time[1]), time[2].lstrip("0")) if time else (int(number) if number.isdigit() else 25, "")
        if hours < 25 and (minutes in said and (is_hour or ":" in number) if minutes else time or is_hour):
            readings |= {str(hours - 12), str(hours), str(hours + 12)}
            readings |= set() if minutes else {f"{hour}:00" for hour in (hours - 12, hours, hours + 12)}
        if readings.isdisjoint(said):
            return number
    return None


def find_basis(
    text: str, subject: str, spans: Sequence[Span], shown: Sequence[Passage], trusted: Collection[str]
) -> str:
    """Return the basis of a fact: messages of trusted speakers, and questions to which they say yes."""
    passages = list(dict.fromkeys(span.passage for span in spans if span.passage.role in trusted))
    return "\n".join(
        each for passage in passages for each in (passage.text, find_answered(passage, text, subject, shown))
    )


def find_answered(passage: Passage, text: str, subject: str, shown: Sequence[Passage]) -> str:
    """Return the question before a message that says yes to it, if that can be the basis of a fact; else nothing."""
    place = next((place for place, each in enumerate(shown) if each is passage), 0)
    if not place or not _YES.match(passage.text) or is_denied(passage.text):
        return ""
    asked = re.search(r"[^.!?\n]*\?(?=[^.!?\w]*\Z)", shown[place - 1].text[-500:])
    text = " ".join(word for word in text.split() if not numbers(word))
    return asked[0] if asked and shares_word(text, asked[0], subject) else ""


# Not the beginning of a question, "Exactly how much?", nor of a condition, "si quieres".
_YES = re.compile(
    r"\W*(?:yes|yeah|yep|yup|exactly|(?:that['’]?s |that is )?(?:right|true|correct)|ja|jep|genau|richtig"
    r"|(?:das )?(?:stimmt|ist richtig)|oui|ouais|si(?!['’]? \w)|exactement|c['’]est (?:ça|vrai|exact|juste)|sí|exacto"
    r"|correcto|así es|claro)\b(?! now)(?![^.!?,;:\n]*\?)",
    re.IGNORECASE,
)


def shares_word(text: str, quote: str, subject: str) -> bool:
    """Whether a sentence and its quote have a word in common, but for the name of the subject."""
    said = {plain(word) for word in content_words(quote)} | {token.key for token in tokens(quote)}
    words = _words_about(text, subject)
    characters = [token.key for token in tokens(text) if len(token.key) == 1 and token.key.lower() == token.key.upper()]
    if sum(character in said for character in characters) > 1:
        return True
    return any(is_akin(word, other) for word in words for other in said)


def _may_say(quote: str, text: str, subject: str) -> bool:
    """Whether a quote has a word of a sentence, or nearly the same one in another language: "celíaca" for "coeliac"."""
    if shares_word(text, quote, subject):
        return True
    words = _words_about(text, subject)
    return any(_are_cognates(word, said) for word in words for said in content_words(quote))


def _words_about(text: str, subject: str) -> set[str]:
    subject_keys = {token.key for token in tokens(subject)}
    return {plain(word) for word in content_words(text) if word.casefold() not in subject_keys}


def _are_cognates(word: str, other: str) -> bool:
    """Whether two words, the first without accents, begin alike or are nearly the same."""
    if is_akin(word, other):
        return True
    is_near = min(len(word), len(other)) >= 6 and abs(len(word) - len(other)) <= 2
    return is_near and SequenceMatcher(None, word, plain(other)).ratio() >= 0.8


def is_repeated(text: str, subject: str, span: Span, shown: Sequence[Passage], trusted: Collection[str]) -> bool:
    """Whether a message repeats a known fact: it could be a source of it, and has no other number."""
    strange = any(each.isdigit() for each in text) and _find_strange_number(_DATE.sub(" ", span.text), numbers(text))
    if strange or span.passage.role not in trusted:
        return False
    whole = [span._replace(start=0, stop=len(span.passage.text))]
    return find_doubt(text, subject, whole, shown, f"{subject}: {text}", trusted, has_slot=True) is None


def may_end(
    prior: FactColumns, subject: str, attribute: str | None, text: str, spans: Sequence[Span], basis: str, more: str
) -> bool:
    """Whether a statement concerns the fact that it is to end: by its slot, its words, or a denial of it.

    For a fact without a slot a quote that says that something has changed is as good as a denial.
    A fact that protects somebody ends by two of slot, words and denial, the last two only of the `basis`: not by the
    model alone. `attribute` is the slot of what is said, in `text` and the `spans` of those who are trusted. Other
    facts end by the words of `more` as well: the value, and what else ends.
    """
    old, now = prior.attribute or "", attribute or ""
    root, _, key = old.partition("/")
    is_ended, guards = is_negative(text), protects(prior.type, prior.attribute)
    # Another dose of the same ends one.
    texts = [basis, text if root == "dose" else ""] if guards else [text, more]
    words = " ".join([*(span.text for span in spans), *texts])
    stated = {word for word in content_words(_DATE.sub(" ", words)) if not word[0].isdigit()}
    is_vague = old in ("", "other", "event", "plan", "decision", "task", "likes", "dislikes")
    is_same = not is_vague and (f"{old}/".startswith(f"{now}/") or f"{now}/".startswith(f"{old}/"))
    is_same = is_same or (is_ended and now in ("", "other") and any(is_akin(root, word) for word in stated))
    # Another's name says enough to end what they plan, or what is known of them: "Inès and I broke up".
    by_name = not guards and (prior.subject != subject or prior.type in ("goal", "plan"))
    idle = {*_IDLE_WORDS, *content_words(subject.partition("'s ")[0] if by_name else f"{prior.subject} {subject}")}
    known_text = key if guards and key else f"{prior.subject} {_DATE.sub(' ', prior.text)} {prior.value}"
    own_words = {word for word in content_words(known_text) if not (word[0].isdigit() or is_akin(word, root))}
    is_named = any(is_akin(plain(word), other) for word in own_words - idle for other in stated - idle)
    if guards:
        return is_same + is_named + (is_ended and is_negative(basis)) > 1
    return is_same or is_named or (old in ("", "other") and (is_ended or says_change(spans)))


def is_taken_over(prior: FactColumns, text: str, spans: Sequence[Span]) -> bool:
    """Whether a statement says of another subject what a fact says, and its quotes that this has changed.

    "Tobias waters the plants" ends "Mrs Petrakis waters the plants", where somebody says that he does it now.
    """
    words = {*content_words(prior.text)} - {*content_words(prior.subject)} - _IDLE_WORDS
    shared = words & {*content_words(text)}
    is_predicate = len(shared) > 1 and 2 * len(shared) >= len(words)
    return is_predicate and says_change(spans) and not protects(prior.type, prior.attribute)


def says_change(spans: Sequence[Span]) -> bool:
    return any(_CHANGE.search(span.text) for span in spans)


_IDLE_WORDS = {NOT, *content_words(" ".join(sorted(load_words("takes"))))}


def is_akin(word: str, other: str) -> bool:
    """Whether two words, the first without accents, begin alike."""
    other = plain(other)
    return word == other or (
        len(word) >= STEM_LETTERS and len(other) >= STEM_LETTERS and word[:STEM_LETTERS] == other[:STEM_LETTERS]
    )


def _denies(quote: str, text: str, subject: str) -> bool:
    subject_keys = {token.key for token in tokens(subject)}
    said = {word for word in content_words(text) if word not in subject_keys}
    for clause in CLAUSE.split(IDLE_DENIAL.sub(" ", quote)):
        words = content_words(clause)
        if words[-1:] == (NOT,):
            denied = {word for word in words[:-1] if word not in HOLLOW and word not in subject_keys}
            if denied and {word for word in said if any(_are_cognates(plain(word), each) for each in denied)}:
                # "No nuts, I'm allergic": the quote has the rest of the text as well.
                rest = {word for word in content_words(quote) if word != NOT} - denied
                if not {word for word in said if any(is_akin(plain(word), each) for each in rest)}:
                    return True
    return False


def _is_about_another(span: Span, text: str, subject: str, shown: Sequence[Passage]) -> bool:
    """Whether a quote is about somebody else: another speaker, or another person."""
    words = [token.key for token in tokens(span.text)]
    speaker, about = span.passage.speaker.casefold(), subject.casefold()
    speaks_of_self = any(word in FIRST_KEYS for word in words)
    if about != speaker:
        other_speakers = {passage.speaker.casefold() for passage in shown if passage.role == "user"} - {speaker}
        return speaks_of_self and about in other_speakers and not has_word(text, speaker)
    kin = _KIN_QUOTE.match(span.text)
    if kin and kin["kin"].casefold() in RELATIVES:
        named = [kin["kin"], *filter(None, [kin["name"]])]
        return not any(
            is_akin(plain(word.casefold()), plain(name.casefold())) for word in WORD.findall(text) for name in named
        )
    # "He died", of their cat.
    of_theirs = re.match(rf"{re.escape(subject)}(?:['’]s|s|['’]) ", text, re.IGNORECASE)
    return not (speaks_of_self or of_theirs) and any(word in THIRD_KEYS for word in words[:2])


FIRST_KEYS = frozenset(word.translate(MARKS) for word in load_words("speaker"))
THIRD_KEYS = frozenset(word.translate(MARKS) for word in load_words("third_person"))
_KIN_QUOTE = re.compile(
    r"\W*(?:my|our|mein|meine|unser|unsere|mon|ma|mi)\s+(?:\w+\s+)??(?P<kin>\w+)(?:,?\s+(?P<name>(?-i:[A-ZÀ-ÖØ-Þ])\w+))?",
    re.IGNORECASE,
)
RELATIVES = KIN | PARTNERS | load_words("more_kin")
