"""What a message asserts: its sentences without questions, quotations, requests and what is only supposed.

    message -> what its author said -> sentences -> clauses -> runs of clauses that assert something

A clause that a precise rule trusts stands alone; other clauses of a sentence stay together, as they were said.
Every step keeps the places of the characters, so that a statement knows the span of the message that says it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from memstore.ingest.rules.parts import completed, parts_of
from memstore.ingest.rules.questions import asking
from memstore.ingest.sentences import sentences

LONGEST = 600  # characters of a sentence; what is longer is a paste, not a statement

# What a person typed but did not assert: code, quoted lines and quoted speech, stage directions; a single word in
# backquotes is a name. Each form is bounded
# or runs to the end of the text, so that one that is never closed is read once.
_UNSAID = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`(?P<name>[^`\s]{1,40})`|`[^`\n]{1,200}`|^[ \t]{0,3}>[^\n]*"
    r"|\[[^\[\]\n]{0,400}\]|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{0,500})[\"”“»]")
# In single quotation marks, which are apostrophes too: only what somebody says of themself, behind a blank.
_IN_SINGLE = re.compile(
    r"(?<![\w'])'(?!(?:cause|cuz|em|til|tis|twas|bout|n|s|d)\b)(?=[^\s'])((?:[^'\n]|'(?=\w)){1,500}?[.!?,]?)'(?![\w'])",
    re.IGNORECASE,
)
_SPEECH = re.compile(r"\b(?:I|I'm|I'll|I've|my|me|we|you|ich|mein|wir)\b|[.!?]\s+\w", re.IGNORECASE)
_NOT_PROSE = re.compile(r"[\\{}=<>|]|\"…\"")
_SIGNS = {ord(sign): "'" for sign in "’‘ʼ"}

# Where one clause of a sentence ends and the next begins: before a new subject, not between two verbs of one.
_SUBJECT = (
    r"(?:(?:I|we|it|it's|he|she|they|you|that|this|that's|there|there's|let|let's|can|could|would|should|shall|will"
    r"|did|any|please|what|how|do|does|is|are|who)\b|(?:my|our) (?:[\w'-]+ ){1,3}(?:is|are|was|were|has|have|had"
    r"|works?|lives?|loves?|moved|got|does|doesn't|isn't)\b)"
)
_SPLICE = r"(?:the )?\w+ (?:is|are|was|were|has been|have been)\b"
_NEXT_CLAUSE = re.compile(
    rf"\s*(?:;|—|–|-+\s|\s-+|\.\.+|…|[!?](?=\s))\s*|:\s+(?={_SUBJECT}|(?-i:[A-Z])\w+ (?:is|was|has|will)\b)"
    rf"|\s*,\s+(?=(?:which|so|but|right)\b|{_SUBJECT}"
    rf"|{_SPLICE})"
    r"|\s*,?\s+(?:and|but|so|plus|because|cause|cuz|though|although|yet|or)\s+"
    rf"(?:(?:then|now|also|so|yes)\s+)?(?={_SUBJECT})",
    re.IGNORECASE,
)
# "Since Monday I work at Siemens" says since when; "since I work" leads in.
_TIME = (
    r" (?:(?:about|early|late|mid|the|at least|around) )*(?:\d+|this|last|yesterday|today|then|birth|childhood|school"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|spring|summer|autumn|fall|winter|christmas|easter|new year|(?:a|two|three|four|five) \w+ ago"
    r"|(?:start|beginning|middle|end) of)\b"
)
_LEAD_IN = re.compile(
    r"(?:(?:well|so|and|but|oh|ok|okay|yeah|yep|yes|yup|no|nope|nah|hey|hi|hello|wow|also|actually|honestly|btw"
    r"|by the way|anyways?|fyi|plus|besides|because|cause|'cause|cuz|though|since(?!<time>)|hmm+|ha(?:ha)+|lol"
    r"|(?:thanks"
    r"|thank you)(?! (?:for|to|so|a)\b)|sure|(?:please )?(?:remember|note|keep in mind|be aware)(?: that)?"
    r"|just so you know|for the record|to be honest"
    r"|tbh|as you know|like I said|luckily|fortunately|unfortunately|sadly|guess what|for context|ps|aw+|ah"
    r"|(?:(?:big|good|great|bad|sad|happy|exciting|amazing|quick|small|other|more|the|some|latest|fun|a) )*(?:news"
    r"|update|reminder"
    r"|side note|fun fact|heads[- ]up)(?=[:!,])"
    r"|absolutely|definitely|totally|exactly|of course|for sure|right|indeed|true|cool|nice|great|awesome"
    r"|ugh|(?:\w+ ){1,2}things?(?: before I forget)?(?=:|$)|first(?=:|$)|second(?=:|$))(?:[ ,:!.-]+"
    r"|$))+(?:[A-Z]\w+[,!] (?=[A-Za-z]))?".replace("<time>", _TIME),
    re.IGNORECASE,
)
TIME_FIRST = (
    r"(?:(?:last|next|this|yesterday|today|tomorrow|tonight|on|in|at|over|recently|lately|a few|two|three|\d+|earlier"
    r"|one day|back in)\b(?:(?!\b(?:is|was|were|has|have|had)\b)[^,]){0,60}|(?:when|after|before|during|for|since"
    r"|growing up|as an?)\b[^,]{0,60})"
)
# The mark of a list before it, too; "5. Mai" is a date.
_NO_WORD_AT_START = re.compile(
    r"[^\w\"“„«]*(?:\d{1,2}[.)]\s+(?=(?:I|my|we|our|please|ich|wir|mein\w*)\b))?", re.IGNORECASE
)
_NOT_MEANT = re.compile(r"(?<!no )(?<!not )\b(?:kidding|joking)\b|(?:^|\s)/s[.!]*$", re.IGNORECASE)
_WHITE = re.compile(r"\s")
_WHEN_FIRST = re.compile(TIME_FIRST, re.IGNORECASE)
# "Tom and I broke up": no clause ends before the "and".
_WHO = re.compile(
    r"(?:.{1,40}[,;:] )?(?:(?:my|our)(?: (?!(?:is|are|was|were|has|have|had|\w+ed)\b)[\w-]+){1,3}"
    r"|(?!(?:yes|no|yeah|true|okay|sure|great|thanks|sorry)$)(?-i:[A-Z])\w+)",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\?[\"')\s]*$")

# What makes a clause no assertion: it is supposed, proposed or asked, whether or not a question mark follows.
_UNREAL = re.compile(
    r"^(?:if|unless|whether|assum(?:e|ing)|for (?:the sake of (?:the )?argument|argument's sake)|let's"
    r"|let us|let me|not sure|wondering)\b|^(?:how|what|where|why|who|which) (?:do|does"
    r"|did|can|could|should|would|will|is|are|was|were|about)\b|^(?:how|what|where|who)'s\b|^(?:(?:how|what|which"
    r"|whose)(?: (?!(?:I|we|you|he|she|they|it)\b)[\w'-]+){1,3}?|when|why) (?:do|does|did|can|could|should|would"
    r"|will|am"
    r"|are|have|has) (?:I|we|you|he|she|they|it|my|our)\b|^(?:can|could|would|will"
    r"|do|does|is|are|should|did) (?:you|I|we|it|there|that|this|the)\b|\b(?:wish I|maybe|perhaps|might|imagine"
    r"|suppose|supposing|pretend|hypothetically|as though|wonder\w*|supposedly|would(?! (?:like|love|prefer)\b)|could"
    r"|should)\b",
    re.IGNORECASE,
)
_WHO_ASKS = re.compile(r"who (?!(?:I|we|he|she|they)\b)[a-z]+", re.IGNORECASE)  # where a sentence begins so
# What is said to an assistant about the task at hand. It lasts as long as the task.
_REQUEST = re.compile(
    r"(?:so |but |and |well )?(?:(?:need|want|looking for) (?:an?|the|you|some|help)\b|(?:I'm|I am|I've been|I have"
    r" been|been) (?:\w+ )?(?:trying to|not sure|unsure"
    r"|looking for|asking|stuck|confused|curious|working with|having (?:trouble|issues?|problems?|difficult\w*)"
    r"|getting (?:an?|this|the)|using the following)|here(?:'s| is| are)\b|I (?!(?:always|never|only"
    r"|usually) )(?:\w+ )?(?:want to (?:make sure|know"
    r"|understand|see)\b|want (?:you|an?|the)\b|need (?:an?|the|you|help|some|to (?:know|understand|make sure|see))\b"
    r"|would (?:like|love) (?:you|an?|some|help|to (?:know|see|understand|hear|get your|further))\b|(?:don't|do not"
    r"|can't) (?:know|understand|get|see|seem)\b|have (?:an?|another|one|some|this"
    r"|the following) (?:\w+ )?(?:question|error|issue|problem|bug|code|function|file|table|list)s?\b)|I'd (?:like"
    r"|love) (?:you|an?|some|help|to (?:know|see|understand|hear|get your|further))\b)",
    re.IGNORECASE,
)
# What somebody is asked to do, once. `alone` knows what is to be done always.
_ASKED = re.compile(
    r"(?:please|pls|kindly)\b|.*\bplease$|(?:remind|book|reserve|order|schedule|cancel|buy|pay|print|translate"
    r"|summari[sz]e|rewrite|draft|compare|recommend|suggest|generate|fix|find|email|text|message|call|ask|tell|list"
    r"|show|plan|organi[sz]e|arrange|prepare|design|pack|cook|bake|invite|water|clean|pick up|look up|search for"
    r"|write|create"
    r"|make|give|explain|describe|outline|calculate|convert|check|review|edit|improve|build|set up|add) (?:me|us|him"
    r"|her|them|my|our|the|an?|some|this|that|it|two|three|\d+)\b",
    re.IGNORECASE,
)
# What follows its colon somebody else says: "Bob said: I'm not allergic to nuts".
_TELLS = re.compile(
    r"\b(?!I\b|we\b)[\w'-]+ (?:said|says|told (?:me|us|him|her|them|\w+)|wrote|writes|texted|answered|answers|replied"
    r"|replies|claimed|claims|announced|insisted|insists|joked|goes|was like)(?: (?:to )?[\w'-]+){0,3}$",
    re.IGNORECASE,
)
# What follows its colon are words of a text that is asked for.
_DICTATES = re.compile(
    r"(?:(?:please|can you|could you|now|then) )*(?:translate|write|draft|say|tell|text|e-?mail|message|reply|proofread"
    r"|correct|rewrite|rephrase|summari[sz]e|improve|shorten)\b",
    re.IGNORECASE,
)

_WORD = re.compile(r"[^\W\d_]+(?:['-]\w+)*")  # "e-mail" has no word "e"


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ENGLISH = _listed(
    "the of is are was were my and that for with you we have has had at this so but not it i i'm i've it's to they he"
    " she be can will been a an in on your his her their our from as just me like love always never got all"
)
_OTHER = _listed(
    "der die das und ist nicht ein eine einen ich war auf mit sehr le la les et est une des pas je tu il elle nous"
    " wir zum zur nach bei bis sind haben wird noch auch uns von dem den dans mon"
    " ma c'est j'ai el los las que es una por para con yo mi de en un se muy mis o e di che sono non ho een"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a sentence, from `start` to `stop` in the message, its white space made single blanks."""

    text: str
    start: int
    stop: int


def heard(text: str) -> str:
    """Blank what was not said by the author; every character keeps its place."""
    text = _UNSAID.sub(lambda found: (found["name"] or "").center(len(found[0])), text.translate(_SIGNS))
    for quoted in (_QUOTED, _IN_SINGLE):
        text = quoted.sub(lambda found: '"…"'.ljust(len(found[0])) if _SPEECH.search(found[1]) else found[0], text)
    return text


def sentences_of(text: str) -> Iterator[Clause]:
    """Give the sentences of a message that its author said, questions included."""
    said = heard(text)
    for start, stop in sentences(said):
        if stop - start > LONGEST:
            continue
        sentence = _clause(said, start, stop)
        if sentence and sentence.text[0] not in '"“„«' and not _NOT_PROSE.search(sentence.text):
            yield sentence


def is_english(sentence: str) -> bool:
    """Whether the little words are English ones, or there are none and the letters are Latin."""
    words = _WORD.findall(sentence.lower())
    english, other = sum(word in _ENGLISH for word in words), sum(word in _OTHER for word in words)
    return english > other or (english == other == 0 and all(word.isascii() for word in words))


def is_question(sentence: str) -> bool:
    """Whether it asks; what stands before its last clause may still be asserted."""
    return bool(_ASKS.search(sentence))


def without_lead_in(words: str) -> str:
    """Take away "Well, yes, …" and "Thanks, Anna! …" before what is said."""
    found = _LEAD_IN.match(words)
    return words[found.end() :] if found else words


def clauses_of(statement: str) -> list[str]:
    """Give the clauses of a statement, without what leads into them."""
    return [without_lead_in(clause) for clause in _NEXT_CLAUSE.split(statement) if clause]


def assertions(sentence: Clause, alone: Callable[[str], bool], *, assisted: bool = False) -> Iterator[Clause]:
    """Give the statements of a sentence: clauses for which `alone` is true, and the runs of the others between them.

    The last clause of a question asks; what is only supposed is left out, and so is what follows from it.
    `assisted`: it is said to an assistant, whose tasks are left out too, except where `alone` knows better.
    """
    run: list[Clause] = []
    for clause in _asserted(sentence):
        words = without_lead_in(clause.text) if clause else ""
        sure = bool(clause) and alone(words)
        if clause and not sure and not _ASKED.match(words) and not (assisted and _REQUEST.match(words)):
            run.append(clause)
            continue
        yield from _joined(sentence, run)
        run = []
        if clause and sure:
            yield from _parts(clause, alone)
    yield from _joined(sentence, run)


def _parts(clause: Clause, alone: Callable[[str], bool]) -> Iterator[Clause]:
    lead_in = len(clause.text) - len(without_lead_in(clause.text))
    parts = parts_of(clause.text[lead_in:], "en", alone)
    if len(parts) == 1 or len(clause.text) != clause.stop - clause.start:
        yield clause
        return
    for part in parts:
        yield Clause(part.words, clause.start + lead_in + part.start, clause.start + lead_in + part.stop)


def _asserted(sentence: Clause) -> Iterator[Clause | None]:
    """Give the clauses, None in the place of one that asserts nothing."""
    if _NOT_MEANT.search(sentence.text):
        return
    clauses = list(_completed(_clauses(sentence)))
    if is_question(sentence.text):
        clauses[-asking([one.text for one in clauses]) :] = []
    doubtful = False
    for clause in clauses:
        words = without_lead_in(clause.text)
        colon = sentence.text[clause.stop - sentence.start :].lstrip().startswith(":")
        if colon and (_DICTATES.match(words) or _TELLS.search(words)):
            return
        unreal = bool(_UNREAL.search(words) or (clause.start == sentence.start and _WHO_ASKS.match(words)))
        yield None if unreal or doubtful else clause
        doubtful = words[:3].lower() == "if "


def _completed(clauses: Iterable[Clause]) -> Iterator[Clause]:
    """Say what a clause leaves out because the one before it has said so: "…, my daughter is"."""
    before = ""
    for clause in clauses:
        before = completed(clause.text, before, "en")
        yield replace(clause, text=before)


def _clauses(sentence: Clause) -> Iterator[Clause]:
    text, begin = sentence.text, 0
    for gap in _NEXT_CLAUSE.finditer(text):
        beside = text.startswith(("I are ", "I were "), gap.end())  # of two, wherever the first is named
        beside = beside or (text.startswith("I ", gap.end()) and _WHO.fullmatch(text, begin, gap.start()) is not None)
        if gap.start() > begin and not beside and not _WHEN_FIRST.fullmatch(text, begin, gap.start()):
            yield _part(sentence, begin, gap.start())
            begin = gap.end()
    if begin < len(text):
        yield _part(sentence, begin, len(text))


def _joined(sentence: Clause, run: list[Clause]) -> Iterator[Clause]:
    if run:
        yield _part(sentence, run[0].start - sentence.start, run[-1].stop - sentence.start)


def _part(sentence: Clause, start: int, stop: int) -> Clause:
    return Clause(sentence.text[start:stop], sentence.start + start, sentence.start + stop)


def _clause(said: str, start: int, stop: int) -> Clause | None:
    begin = _NO_WORD_AT_START.match(said, start, stop)
    start = begin.end() if begin else start
    while said.endswith(")", start, stop) and "(" not in said[start:stop]:  # of "(I'm vegan.)"
        stop -= 1
    return Clause(_WHITE.sub(" ", said[start:stop]), start, stop) if start < stop else None
