"""Rewriting: a statement that stands for itself, with who is meant named, and without what only fills.

    "Yeah, I just moved here with my kids, it's really great!"
    "Alice just moved here with their kids, it's great."

What leaves its subject out is given one ("Looking for a flat" -> "Alice is looking for a flat"); what never
names the speaker is put behind the name ("Alice: The concert was wonderful.").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memstore.ingest.rules.asides import closed_up
from memstore.ingest.rules.languages import language_of
from memstore.ingest.rules.statements import without_lead_in
from memstore.ingest.rules.thirdperson import is_past, third_person

_SHORT_FORMS = {
    "i'm": "I am", "i've": "I have", "i'll": "I will", "i'd": "I would", "i": "I", "ive": "I have",
    "you're": "you are", "you've": "you have", "you'll": "you will", "you'd": "you would",
    "we're": "we are", "we've": "we have", "we'll": "we will", "we'd": "we would", "y'all": "you", "ya": "you",
    "gonna": "going to", "wanna": "want to", "gotta": "have to", "'cause": "because", "cuz": "because",
    "cos": "because",
    "'em": "them", "u": "you", "ur": "your",
}  # fmt: skip
_SHORT = re.compile(
    rf"(?<![\w'])(?:{'|'.join(re.escape(form) for form in sorted(_SHORT_FORMS, key=len, reverse=True))})(?![\w'])",
    re.IGNORECASE,
)
# "im vegan": a subject where a clause begins, and what it is. In German "im" is a preposition: "Im Mai", "im training".
_IM = re.compile(
    r"(?P<before>^|[,;:.!?] |(?i:\b(?:and|but|so|because|cause|since|that|think|yes|yeah|when|now|hi|hey)) )"
    r"(?i:im) (?=(?P<next>[a-z'-]+|\d+)(?![\w-]))"
)
_WHAT_ONE_IS = re.compile(
    r"\d+|an?|the|not|no|so|too|very|really|just|also|still|now|always|from|in|at|on|into|back|allergic|intolerant"
    r"|vegan"
    r"|vegetarian|single|married|divorced|pregnant|retired|glad|happy|sad|tired|sorry|sure|sick|ill|fine|ok|okay|good"
    r"|afraid|left-handed|[a-z]{2,}ing|[a-z]{2,}ed"
)
_HAD = re.compile(r"\b(I|you|we) would (?=(?:been|had|never been|always|already|just|\w{3,}ed|better)\b)")
_COMPANION = re.compile(
    r"^((?:[^,]{0,30}[,:] )?)(my (?:(?!(?:is|are|was|has|have)\b)[\w'-]+ ){0,3}[\w'-]+|[A-Z]\w+) and I (?=\w)",
    re.IGNORECASE,
)
_DEGREE = "|".join(rf"(?<=\b{verb} )" for verb in ("is", "am", "are", "was", "were", "be", "been", "feel", "felt"))
_FILLER = re.compile(
    r"(?<!not )(?<!n't )\b(?:really|actually|definitely|totally|honestly|literally|basically|super|pretty|kinda|sorta"
    rf"|kind of|sort of|absolutely|truly|(?:{_DEGREE})so(?! (?:that|I|far|much|many|long|is|am|are)\b)) (?=\w)"
    r"|,? you know(?=[,.!]|$)|\b(?:I (?:have to|must) (?:say|admit)|I mean|I guess|to be honest"
    r"|as you know),? (?:that )?",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:[\s,]+(?:too|as well|though|tho|lol|haha+|btw|by the way|you know|huh|for sure|as usual|anyway|actually"
    r"|please|(?<=, )(?:man|right)|ya know|already))+$",
    re.IGNORECASE,
)
_NO_WORD_AT_START = re.compile(r"^[^\w\"“„«(]+")
_NO_WORD_AT_END = re.compile(r"[^\w)\"'%€$£°+]+$")

# A sentence without a subject: what the speaker does, did or feels.
_LEFT_OUT = re.compile(
    r"(?P<adverb>(?:(?:just|recently|finally|still|currently|also|always|never|even|only) )*)(?:(?P<going>going to )"
    r"|(?P<feels>(?:so |very |really |super |pretty )?(?:glad|happy|excited|proud|thankful|grateful|thrilled|stoked"
    r"|lucky|sorry|sad|busy|ready|determined|blessed|passionate|keen|tired|honou?red) )|(?P<been>been |had |got )"
    r"|(?P<modal>can't |cannot |couldn't |didn't |won't |never )|(?P<present>love|like|hate|need|want|prefer|enjoy"
    r"|miss|hope|agree|appreciate|know|plan(?= (?:to|on)\b)|(?:believe|guess|think|see)(?= (?:I|we|he|she|they|it"
    r"|that|my|our"
    r"|so|there)\b|$)) (?!(?:is|are|was|and)\b)"
    r"|(?P<verb>[a-z]{2,})\b(?! (?:is|are|was|were|by)\b))",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"(?:\b(?:is|are|was|were|isn't|aren't|wasn't|has|can|will|must|should|could|makes?|helps?|gives?|brings?|keeps?"
    r"|takes|feels?|means?|does|doesn't|reminds?|gets|really|lets|became|made|helped|gave|brought)\b|\w's\b"
    r"|\b\w{3,}s (?:the|me|us|you|my|our|your|people|it)\b)",
    re.IGNORECASE,
)
_NOT_ING = re.compile(r"\w*thing|morning|evening|king|bring|during|being")

# What is said to the other and states nothing: thanks, good wishes, commands.
_NO_STATEMENT = re.compile(
    r"(?:what an? |which |thanks|thank you|thx|congrat\w*|good (?:luck|morning|night|evening|to (?:see|hear))"
    r"|nice to (?:see|hear|meet)|great to (?:see|hear from)|bye|see (?:you|ya)|take care|talk (?:to you )?soon|later"
    r"|cheers|you're welcome|no problem|no worries|way to go|long time no|welcome|for (?:the|your)\b|a lot\b[,.!]"
    r"|so much\b[,.!]|got it|i see\b|(?:have|enjoy|wish\w*) (?:you |a |an |the |your )|sounds? |looks? (?:like|so"
    r"|great|amazing|good|nice)|\w+ (?:any|your|yourself)\b)",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:please |just |always |never |and )?(?:keep|let|remind|do not|don't|be(?! \w+ed)|check|look(?! forward)"
    r"|remember"
    r"|stay|go|try|make|tell|give|say|push|hang|follow|send|show|write|imagine|wait|cherish|come|help|stop|use|take"
    r"|cheer|embrace|trust|focus|find|ask|call|put|set|hold|watch|listen|read|live|rock|crush|kick|choose|bring"
    r"|never mind|get|feel free|start|add|create|explain|provide|plan (?!to\b|on\b|[A-Z] |was|is)|think (?:of|about"
    r"|up)\b|see (?:if|what|whether|the)\b|guess (?:what|who)\b|can|could|would|will|do|does|did|is|are|was"
    r"|should)\b(?! (?:is|was|are)\b)",
    re.IGNORECASE,
)


_OF_SPEAKER = re.compile(r"\b(?:I|me|my|mine|myself)\b")
# Of whom "us" are, "the user and others" says nothing here: "the five of us", "on our own", "She'll tell us".
_OF_US = re.compile(r"\b(?:of|between|among|both|all) us\b|\bour own\b", re.IGNORECASE)
_OF_OTHERS = re.compile(r"(?:he|she|they|it)\b(?!.*\bwe\b)", re.IGNORECASE)
_OF_ANYBODY = re.compile(
    r"\b(?:when|if|once|whenever|where|until|wherever) you(?:r|'re)?\b|\byou (?:never know|can|can't|cannot|could"
    r"|have to|get to|need|must|should)\b"
    r"|\b(?:makes|helps|lets|gives|takes|keeps|reminds|boosts|allows|like (?:\w+ing"
    r"|an?) (?:\w+ )?) ?you(?:r|rself)?\b"
    r"|\b(?:can|to) \w+ (?:out )?you(?:r|rself)\b|\byourself\b|^\w+ing\b.*\byour?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Talk:
    """Who speaks, to whom, if that is one named person, and what that person has just asked."""

    speaker: str | None
    partner: str | None = None
    question: str | None = None

    @property
    def subject(self) -> str:
        """How a fact names the speaker at its beginning."""
        return self.speaker or "The user"

    @property
    def inside(self) -> str:
        """How a fact names the speaker elsewhere."""
        return self.speaker or "the user"


@dataclass(frozen=True, slots=True)
class Standing:
    """A statement that stands for itself, without its last stop.

    `plain` are the speaker's words in long forms; `named` says that the text has the speaker in its grammar,
    `left_out` that the words had no subject, `to_you` that "you" is still in it, `of_us` that its first person is "we".
    """

    text: str
    plain: str
    named: bool
    left_out: bool
    to_you: bool
    of_us: bool


def without_address(words: str, partner: str | None) -> str:
    """Take away "…, Anna" and "Ann, …"; other names are not known to be addressed."""
    if not partner:
        return words
    shortest = 2 if len(partner) <= 40 else len(partner)
    short = "|".join(re.escape(partner[:length]) for length in range(len(partner), min(shortest, len(partner)) - 1, -1))
    name = rf"(?:{short})(?!\w)"
    return re.sub(rf"^{name}[,!.]+(?: |$)|, {name}(?=[!,.]|$)(?!, (?:and|or)\b)|(?<=, ){name}, ", "", words)


def long_forms(words: str) -> str:
    """Write "I'm gonna" as "I am going to"."""
    words = _IM.sub(lambda found: f"{found['before']}I am " if _is_english_im(found) else found[0], words)
    words = _SHORT.sub(lambda found: _SHORT_FORMS.get(found[0].lower(), found[0]), words)
    return _HAD.sub(r"\1 had ", words)


def _is_english_im(found: re.Match[str]) -> bool:
    language = language_of(f"{found.string[: found.start()]} {found.string[found.end() :]}")
    return language == "en" or (language == "und" and bool(_WHAT_ONE_IS.fullmatch(found["next"])))


def trimmed(words: str) -> str:
    """Take away the stops at the end and the words that add nothing there."""
    words = _NO_WORD_AT_END.sub("", words)
    return _NO_WORD_AT_END.sub("", _TAIL.sub("", words))


def stand_alone(statement: str, talk: Talk) -> Standing | None:
    """Rewrite a statement; None where nothing is left of it."""
    plain = closed_up(without_lead_in(without_address(statement, talk.partner)))
    plain = _NO_WORD_AT_START.sub("", plain)
    if _NO_STATEMENT.match(plain):
        return None
    plain = _FILLER.sub("", _COMPANION.sub(_with_companion, trimmed(long_forms(plain))))
    if not plain or _IMPERATIVE.match(plain):
        return None
    if talk.speaker and plain.startswith(f"I am {talk.speaker}, "):
        plain = f"I am {plain.removeprefix(f'I am {talk.speaker}, ')}"
    completed = with_subject(plain)
    told = third_person(completed, talk.inside, None if _is_of_anybody(completed) else talk.partner)
    text = told.text
    if _OF_US.search(completed) or (told.of_us and _OF_OTHERS.match(completed)):
        text = f"{talk.subject}: {completed[0].upper()}{completed[1:]}"
    elif not told.named:
        text = f"{talk.subject}: {text[0].upper()}{text[1:]}"
    text = text[0].upper() + text[1:]
    return Standing(text, completed, told.named, completed is not plain, told.to_you, told.of_us)


def _is_of_anybody(words: str) -> bool:
    """Whether "you" is people in general: "Running can boost your mood"."""
    return bool(_OF_ANYBODY.search(words)) and not _OF_SPEAKER.search(words)


def with_subject(words: str) -> str:
    """Put "I" before a sentence without a subject; the same object where it has one."""
    found = _LEFT_OUT.match(words)
    if not found:
        return words
    rest = words[0].lower() + words[1:]
    if found["going"] or found["feels"]:
        return f"I am {rest}"
    if found["been"] and found["been"].lower() == "been ":
        return f"I have {rest}"
    if found["been"] or found["modal"] or found["present"]:
        return f"I {rest}"
    verb = found["verb"].lower()
    if (
        verb.endswith("ing")
        and not _NOT_ING.fullmatch(verb)
        and not _FINITE.search(words[:60])
        and ":" not in words[:40]
    ):
        return f"I am {rest}"
    if is_past(verb) and verb not in ("put", "set", "read", "let", "cut", "hit", "left", "shut", "beat", "bet"):
        return f"I {rest}"
    return words


def _with_companion(found: re.Match[str]) -> str:
    verb = any(is_past(word) for word in found[2].split())  # "my laptop crashed and I …" is two clauses
    return found[0] if verb else f"{found[1]}{found[2]} & I "
