"""The content words of a fact's sentence, and whether it protects somebody. Pure.

Cosines cannot tell "prefers tea over coffee" from "prefers coffee over tea" (0.997), nor a left arm from a right one
(0.990). So two statements are one only if their content words agree: function words and fillers left out, numbers as
digits, endings cut, and a few words that mean the same written as one. English, German, French and Spanish at once, for
a fact does not always know its language; in others every word counts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memstore.derive.facts.slots import root_of
from memstore.language import NUMBER, load_groups, load_numbers, load_phrases, load_words
from memstore.models import FactColumns

NOT = "not"
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’](?=t\b)t)?", re.UNICODE)
_CONTRACTION = re.compile(r"\bcan(?:not|['’]t)\b|n['’]t\b|\bn['’](?=\w)|\b[jlmdsct]['’](?=\w)", re.IGNORECASE)
_NUMBERS = {word: str(number) for word, number in load_numbers().items() if number <= 12 and word != "un"}
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|en|e)$")
# Each group is one meaning, the first word its name; all after their endings were cut.
_MEANING = {word: group[0] for group in load_groups("meanings") for word in group}


@lru_cache(maxsize=4096)
def content_words(text: str) -> tuple[str, ...]:
    """Return the content words of a statement, in order; denials, however many, are one "not" at the end."""
    text = _CONTRACTION.sub(lambda match: f" {NOT} " if "n" in match[0].casefold() else " ", text)
    denials, fillers = load_words("denials"), load_words("fillers")
    words, denied = [], False
    for word in _WORD.findall(text.casefold()):
        if word in denials:
            denied = True
        elif word in _NUMBERS:
            words.append(_NUMBERS[word])
        elif word in _MEANING:
            words.append(_MEANING[word])
        elif word not in fillers:
            words.append(_ENDING.sub("", word))
    return (*words, NOT) if denied else tuple(words)


def is_denied(text: str) -> bool:
    return content_words(text)[-1:] == (NOT,)


def names_time(text: str) -> bool:
    return NUMBER.search(text) is not None or load_phrases("times_named").search(text) is not None


def adds_nothing(text: str, other: str, *, subject: str) -> bool:
    """Whether `other` says nothing beyond `text` and the name of the `subject`."""
    words, other_words = set(content_words(text)), set(content_words(other))
    return (NOT in words) == (NOT in other_words) and other_words <= words | set(content_words(subject))


STEM_LETTERS = 4


def plain(word: str) -> str:
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFKD", word.translate(str.maketrans("ßłøđ", "slod")))
    return "".join(part for part in parts if not unicodedata.combining(part))


CONSTRAINT = "constraint"
PLAN = "plan"
PLANNED_TYPES = (PLAN, "task", "goal", "decision")
DIETS = load_phrases("diets")
_GUARDS = ("allergy", "condition", "diet", "health", "medication", "dose")
_OF_HEALTH = frozenset([*_GUARDS, "intolerance", "avoid", "eats", "regimen", "restriction", "pregnancy", "caution"])


def protects(type: str, attribute: str | None) -> bool:
    """Return whether a fact protects somebody, so that it does harm where it is lost or ends by mistake.

    A preference does not, such as "eats meat every day".
    """
    root = root_of(attribute)
    return type == CONSTRAINT or (root in _GUARDS and (root, type) != ("diet", "preference"))


def is_protection(fact: FactColumns) -> bool:
    """Whether a fact tells what harms somebody: an allergy, an illness, a medicine, a diet, and not that there is none.

    "Does not eat fish" tells it, "is not allergic to peanuts" does not.
    """
    is_of_health = root_of(fact.attribute) in ("", "other", *_OF_HEALTH)
    return (
        is_of_health and protects(fact.type, fact.attribute) and not takes_away_protection(fact.attribute, fact.value)
    )


_ALLERGIC = re.compile(
    r"\b(?:allerg(?:ic|isch)|allergique|alérgic\w*|co?eliac|zöliakie|\w*intolerant)\b"
    r"|\b(?:has|have|hat|got) (?:[\w'’]+ ){0,4}?\w*(?:allerg(?:y|ies|ie)|intolerance|intoleranz)\b"
    r"(?! (?:book|clinic|season|shots?|tests?|ward)\b)",
    re.IGNORECASE,
)
_MUST_NOT_EAT = re.compile(
    r"\b(?:can(?:['’]?t|not| no(?:t| longer))|must(?:n['’]?t| not| never)|(?:is|are)(?:n['’]?t| not) allowed to"
    r"|not supposed to) (eat|drink|have|take)\b(?! (?:out|with|at|in|from)\b)"
    r"|\b(?:darf|dürfen) (?:\w+ ){0,3}?(?:keine?[nr]?|nicht)\b (?:\w+ ){0,4}?(essen|trinken|nehmen)\b",
    re.IGNORECASE,
)
_NO_SURE_ALLERGY_NOW = re.compile(
    r"\b(?:again|used to|(?:was|were)(?! diagnosed)|outgr[eo]wn?|free of|negative|might|maybe|früher|hatte|war|wieder"
    r"|vielleicht)\b",
    re.IGNORECASE,
)


def is_dietary_restriction(attribute: str | None, text: str) -> bool:
    if "?" in text:
        return False
    allergic, ban = _ALLERGIC.search(text), _MUST_NOT_EAT.search(text)
    if allergic and not is_denied(begins := text[: allergic.end()]) and not _NO_SURE_ALLERGY_NOW.search(begins):
        return True
    if ban is None or _NO_SURE_ALLERGY_NOW.search(text[: ban.end()]):
        return False
    # Who "can't take" something may speak of criticism.
    is_of_food = (ban[1] or ban[2]).casefold() in ("eat", "drink", "essen", "trinken")
    return is_of_food or root_of(attribute) in (*_GUARDS, "medicine")


def takes_away_protection(attribute: str | None, value: str | None) -> bool:
    """Whether a value says that somebody is not allergic, not ill, or eats something."""
    root = root_of(attribute)
    return root in _OF_HEALTH and value == ("yes" if root == "eats" else "no")


_NO_ALLERGY = re.compile(
    r"\b(?:not|nicht|pas|no (?:es|soy|está)) (?!only|just|nur|seulement|solo)(?:\w+ ){0,2}(?:allergi|alérgi)"
    r"|\b(?:no|keine|aucune|ninguna) (?:[\w-]+ ){0,2}(?:\w*allerg|alergia)",
    re.IGNORECASE,
)


def denies_allergy(attribute: str | None, value: str | None, text: str) -> bool:
    """Whether a fact says that somebody is not allergic, and not of what they are."""
    if (attribute or "").startswith("allergy/"):
        return value == "no"
    has_more = ":" in text or ";" in text or load_phrases("exceptions").search(text) is not None
    return _NO_ALLERGY.search(text) is not None and not has_more
