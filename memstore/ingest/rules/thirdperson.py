"""From "I love my sister" to "Alice loves their sister": who is meant by I, we and you, and the verbs that agree.

One pass over the words; nothing is parsed. Nobody's gender is guessed: the speaker's things are "their" things. "We"
are the speaker "and others", since who else is meant is not said, and "they" after that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IRREGULAR = {"am": "is", "have": "has", "haven't": "hasn't", "do": "does", "don't": "doesn't", "go": "goes"}
_OF_YOU = {"are": "is", "aren't": "isn't", "were": "was", "weren't": "wasn't"}
_MODAL = _words(
    "will won't can can't cannot could couldn't would wouldn't should shouldn't must may might did didn't had hadn't"
    " was wasn't used better"
)
_PAST = _words(
    "was were had went took got met saw made gave found came left won ran wrote built began quit broke hurt lost told"
    " said felt knew thought grew became bought drew flew drove spent learnt taught sold held led ate drank slept swam"
    " sang spoke woke wore chose fell caught kept put set read did hit cut heard brought fought rode stood understood"
    " sent paid hung bred freed agreed tore sat been done gone seen taken given written driven known grown shown forgot"
    " forgotten threw thrown hid bit dealt dug fed fled froze laid lay lit meant proved rang rose sank shook shot shut"
    " slid stole struck stuck swept swung withdrew wound wove beat blew burnt burst dreamt leapt lent overcame"
    " overheard sewn sought sped spilt spread sprang swore undertook upset split"
)
_PRESENT = _words(
    "live work love like enjoy hate prefer own eat drink play speak teach study run read write paint want need know"
    " think feel see get make take go have do come grow say use cook bake swim hike collect adore dislike avoid suffer"
    " earn volunteer rent plan intend hope aim wish dream fly leave arrive land start move travel meet miss sing dance"
    " ride train try help keep watch walk listen practise practice knit garden meditate stay look find believe remember"
    " call buy sell visit spend care feed manage struggle sleep wake surf journal code prepare agree appreciate value"
    " deserve understand seem give tell show talk inspire motivate bring mean guess understand believe relate wear"
)
_ADVERBS = (
    "also really just still already recently actually always never usually often currently absolutely totally"
    " definitely finally originally now only sometimes rarely mostly mainly truly especially both even first once soon"
    " all particularly regularly generally typically later personally officially not ever probably kinda too honestly"
    " certainly simply deeply greatly firmly fully strongly genuinely sure myself almost"
)
_ADVERB = "|".join([*_ADVERBS.split(), "no longer"])
_BASE_VERB = (
    r"(?= (?:an?|the|my|in|at|as|for|to|with|on|some|every|near|about|all|no|it|them|their|two|three|four|five"
    r"|several|many|\d+|\w+ing|from|not)\b)"
)
_PERSON = re.compile(
    rf"(?P<beside>& )?\bI (?P<adverbs>(?:(?:{_ADVERB}) )*)(?P<verb>[a-z][a-z']*)"
    rf"|\byou (?P<your_adverbs>(?:(?:{_ADVERB}) )*)(?P<your_verb>[a-z][a-z']*)"
    r"|\b(?P<self>I|me|my|mine|myself)\b|\b(?P<we>we|us|our|ours|ourselves)\b|\b(?P<you>you|your|yours|yourself)\b"
    rf"|\b(?P<joint>(?:and|or|but) (?:also |then |now )?)(?P<joined>[a-z]+){_BASE_VERB}",
    re.IGNORECASE,
)
_OBJECT_BEFORE = re.compile(
    r"(?:to|for|with|of|about|from|at|on|like|than|by|in|behind|without|and|love|see|tell|told|miss|thank|give|gave"
    r"|wish|help|let|make|made|makes|show|ask|support|admire|believe in|proud of|hear|got) $",
    re.IGNORECASE,
)
_CLAUSE_BEFORE = re.compile(
    r"(?:\b(?:when|if|that|what|as|because|how|where|why|once|while|whenever)) $", re.IGNORECASE
)
_TURNED = re.compile(r"\b(?:can|could|do|did|should|will|would|may|might) $", re.IGNORECASE)
_NO_VERB = re.compile(rf"and|or|to|in|at|on|{_ADVERB}|(?!fly|apply|rely|supply|reply|comply|imply)[a-z]+ly")
# "Our dog …" is the speaker's; what "our" is inside a sentence, is told when all of it has been read.
_OPENS = re.compile(r"^(?:[^,]{0,50}, )?(?:(?:and|but) )?$")
_OUR = "\0"
_OURS = re.compile(rf"{_OUR}(ours?(?:elves)?)", re.IGNORECASE)
_WE = {"we": "they", "us": "them", "our": "their", "ours": "theirs", "ourselves": "themselves"}


def is_past(verb: str) -> bool:
    """Whether the form is of the past: it stays as it is for every person."""
    low = verb.lower()
    return low in _PAST or (low.endswith("ed") and not low.endswith("eed"))


def is_modal(verb: str) -> bool:
    """Whether the form is the same for every person and a bare verb or a participle follows it."""
    return verb.lower() in _MODAL


def is_present(verb: str) -> bool:
    """Whether the form is known to be one of the present, as it stands after "I"."""
    low = verb.lower()
    return low in _PRESENT or low in _IRREGULAR


def agreeing_verb(verb: str) -> str:
    """Give the form of the third person singular."""
    low = verb.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if is_modal(low) or is_past(low):
        return verb
    if low.endswith("y") and low[-2:-1] not in "aeou":
        return f"{low[:-1]}ies"
    return low + ("es" if low.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


@dataclass(frozen=True, slots=True)
class Told:
    """A text in the third person; whether it names the speaker, still says "you", and was said of "us"."""

    text: str
    named: bool
    to_you: bool
    of_us: bool


class _Teller:
    """The state of one pass: whom the words so far have named, and whether the last subject was the speaker alone."""

    def __init__(self, words: str, speaker: str, partner: str | None) -> None:
        self.words, self.speaker, self.partner = words, speaker, partner
        self.named = self.to_you = self.of_us = False
        self.agrees_from: int | None = None

    def __call__(self, found: re.Match[str]) -> str:
        if found["joined"]:
            return self._joined(found)
        if found["verb"]:
            return self._i(found)
        self.agrees_from = None if found["we"] else self.agrees_from
        if found["self"]:
            return self._self(found["self"].lower())
        if found["we"]:
            return self._we(
                found["we"], opens=bool(_OPENS.search(self.words, max(0, found.start() - 60), found.start()))
            )
        return self._you(found)

    def _i(self, found: re.Match[str]) -> str:
        adverbs, verb = found["adverbs"], found["verb"]
        self.named = True
        if found["beside"]:
            self.agrees_from = None
            return f"and {self.speaker} {adverbs}{ {'am': 'are', 'was': 'were'}.get(verb, verb) }"
        if verb.lower() in ("are", "were"):  # "said that Jonas and I are"
            self.agrees_from = None
            return f"{self.speaker} {adverbs}{verb}"
        turned = _TURNED.search(self.words, max(0, found.start() - 12), found.start())
        if turned or _NO_VERB.fullmatch(verb):
            return f"{self.speaker} {adverbs}{verb}"
        self.agrees_from = None if is_modal(verb) or is_past(verb) else found.end()
        return f"{self.speaker} {adverbs}{agreeing_verb(verb)}"

    def _self(self, word: str) -> str:
        named, self.named = self.named, True
        if word == "my":
            return "their" if named else f"{self.speaker}'s"
        if word == "mine":
            return "theirs" if named else f"{self.speaker}'s"
        return "themself" if word == "myself" else self.speaker

    def _we(self, word: str, *, opens: bool) -> str:
        if self.named:
            return _WE.get(word.lower(), word)
        self.of_us = True
        if word.lower() == "our" and opens:
            self.named = True
            return f"{self.speaker}'s"
        if word.lower() not in ("we", "us"):
            return _OUR + word
        self.named = True
        return f"{self.speaker} and others"

    def _you(self, found: re.Match[str]) -> str:
        word = (found["you"] or "you").lower()
        if self.partner is None:
            self.to_you = True
            return found[0]
        if not found["your_verb"]:
            return {"your": f"{self.partner}'s", "yours": f"{self.partner}'s", "yourself": "themself"}.get(
                word, self.partner
            )
        adverbs, verb = found["your_adverbs"], found["your_verb"]
        known = verb in _OF_YOU or is_present(verb) or is_modal(verb) or is_past(verb)
        known |= bool(_CLAUSE_BEFORE.search(self.words, max(0, found.start() - 12), found.start()))
        if known and not _OBJECT_BEFORE.search(self.words, max(0, found.start() - 12), found.start()):
            self.agrees_from = None
            verb = _OF_YOU.get(verb) or agreeing_verb(verb)
        return f"{self.partner} {adverbs}{verb}"

    def _joined(self, found: re.Match[str]) -> str:
        verb = found["joined"]
        if self.agrees_from is None or not is_present(verb) or " to " in self.words[self.agrees_from : found.start()]:
            return found[0]
        return found["joint"] + agreeing_verb(verb)


def _theirs(word: str, teller: _Teller) -> str:
    """Give "our" as it was said where nothing names the speaker: it may be everybody's."""
    if not teller.named:
        return word
    return "themselves" if word.lower() == "ourselves" else f"{teller.speaker}'s"


def third_person(words: str, speaker: str, partner: str | None = None) -> Told:
    """Rewrite what the speaker says of themself, and of the partner, if it is known who "you" is.

    A companion of the subject is marked by the caller with "&": "My husband & I are". In the first mention the speaker
    is named; what is theirs after that is "their".
    """
    teller = _Teller(words, speaker, partner)
    text = _OURS.sub(lambda found: _theirs(found[1], teller), _PERSON.sub(teller, words))
    return Told(text, teller.named, teller.to_you, teller.of_us)
