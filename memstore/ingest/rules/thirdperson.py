"""From "I love my sister" to "Caroline loves their sister": the grammar that rewritten facts need, and no more.

What cannot be rewritten safely is said to be so (None), and the caller keeps the speaker's words. Nobody's gender is
guessed: the speaker's things are "their" things.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IRREGULAR = {
    "am": "is",
    "have": "has",
    "haven't": "hasn't",
    "do": "does",
    "don't": "doesn't",
    "go": "goes",
    "are": "are",
}
_MODAL = _words("will won't can can't cannot could would should must may did didn't hadn't wasn't used")
_PAST = _words(
    "was were had went took got met saw made gave found came left won ran wrote built began quit broke hurt lost"
    " told said"
    " felt knew thought grew became bought drew flew drove spent learnt taught sold held led ate drank slept swam sang"
    " spoke woke wore chose fell caught kept put set read did hit cut heard brought fought rode stood understood"
    " sent paid"
    " hung bred freed agreed tore sat"
)
_PRESENT = _words(
    "live work love like enjoy hate prefer own eat drink play speak teach study run read write paint want need"
    " know think"
    " feel see get make take go have do come grow say use cook bake swim hike collect adore dislike avoid suffer earn"
    " volunteer rent plan intend hope aim wish dream fly leave arrive land start move travel meet miss sing dance ride"
    " train try help keep watch walk listen practise practice knit garden meditate stay look find believe remember call"
    " buy sell visit spend care feed manage struggle sleep wake surf journal code prepare"
)
_SELF = re.compile(r"\b(?:me|my|myself|mine)\b", re.IGNORECASE)
_OTHERS = re.compile(r"\b(?:we|us|our|ours|ourselves)\b", re.IGNORECASE)
_I_AGAIN = re.compile(r"\bI (?P<adverb>(?:also|really|just|still|always|never|first|finally) )?(?P<verb>[\w']+)")
_AND_VERB = re.compile(
    r"\b(?P<before>(?:and|or|but) (?:also |then |now )?)(?P<verb>[a-z]+)"
    r"(?= (?:an?|the|my|in|at|as|for|to|with|on|some|every|near|about|all|no|it|them|their|two|three|four|five"
    r"|several|many|\d+|\w+ing|from|not)\b)"
)


def is_past(verb: str) -> bool:
    """Whether the form is of the past: it stays as it is for every person."""
    low = verb.lower()
    return low in _PAST or (low.endswith("ed") and not low.endswith("eed"))


def is_modal(verb: str) -> bool:
    """Whether the form is followed by a bare verb, which then needs no agreement."""
    return verb.lower() in _MODAL


def agreeing_verb(verb: str) -> str | None:
    """Give the form of the third person singular, or None where the word is not known to be a verb."""
    low = verb.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if is_modal(low) or is_past(low):
        return verb
    if low not in _PRESENT:
        return None
    if low.endswith("y") and low[-2] not in "aeou":
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def third_person(words: str, name: str, *, agreeing: bool = False) -> str | None:
    """Rewrite what stands beside the subject; `agreeing` if the verbs that "and" joins must agree with the speaker.

    None where it speaks of "us", or of what "I" do with a verb that is not known.
    """
    if _OTHERS.search(words):
        return None
    if agreeing:
        words = _AND_VERB.sub(_joined, words)
    pieces, position = [], 0
    for found in _I_AGAIN.finditer(words):
        verb = agreeing_verb(found["verb"])
        if verb is None:
            return None
        pieces += [words[position : found.start()], f"{name} {found['adverb'] or ''}{verb}"]
        position = found.end()
    rewritten = _SELF.sub(lambda self: _of_self(self[0].lower(), name), "".join(pieces) + words[position:])
    return None if re.search(r"\bI\b", rewritten) else rewritten


def _of_self(word: str, name: str) -> str:
    return {"my": "their", "myself": "themself", "mine": "theirs"}.get(word, name)


def _joined(found: re.Match[str]) -> str:
    known = found["verb"] in _IRREGULAR or found["verb"] in _PRESENT
    return found["before"] + ((agreeing_verb(found["verb"]) if known else None) or found["verb"])
