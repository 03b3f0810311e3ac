"""Facts by rule, without a model: the sentences in which a person says something lasting about themself.

    message -> sentences -> clauses -> the first rule that fits -> the third person, with its dates resolved

A rule is a row of `rulebook`: the kind of fact, how far it is to be trusted, and what a clause looks like after its
subject. Rules ask for much and so find little: a fact that was never said does more harm than one that was missed.

| confidence | said as |
|---|---|
| 0.95 | name, age, origin, allergy; a standing instruction |
| 0.9  | residence, job, family, diet: "I live in …", "My sister is …" |
| 0.85 | likes and dislikes, pets, belongings, turning points of a life |
| 0.75 | plans with a date, habits, skills, events with a date or a place |
| 0.6  | intentions and wishes without a date |

0.1 less where the subject was left out ("Just moved to Porto") or is "we", since who else is meant is not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memstore.ingest.rules.dates import anchor
from memstore.ingest.rules.rulebook import FIRST, GERMAN, INSTRUCTIONS, MINE, NAMED, Rule
from memstore.ingest.rules.thirdperson import agreeing_verb, is_modal, is_past, third_person
from memstore.ingest.sentences import sentences

_LONGEST = 600  # characters of a sentence; what is longer is a paste, not a statement
_MOST_WORDS = 36

# What a person typed but did not assert: code, quoted lines and quoted speech, stage directions. Each form is bounded
# or runs to the end of the text, so that one that is never closed is read once.
_UNSAID = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,200}`|^[ \t]{0,3}>[^\n]*|\[[^\[\]\n]{0,400}\]|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{0,500})[\"”“»]")
_SPEECH = re.compile(r"\b(?:I|I'm|I'll|I've|my|me|we|you|ich|mein|wir)\b|[.!?](?:\s|$)", re.IGNORECASE)
_FORMULA = re.compile(r"[\\{}=<>|]")
_APOSTROPHE = {ord(sign): "'" for sign in "’‘ʼ"}

# Where one clause of a sentence ends and the next begins: before a new subject, not between two verbs of one.
_CASUAL = {
    "i'm": "I am",
    "i'd": "I would",
    "i've": "I have",
    "i'll": "I will",
    "i": "I",
    "gonna": "going to",
    "wanna": "want to",
}
_SAID_CASUALLY = re.compile(
    r"\b(?:I'm|I've|I'll|I'd(?= (?:really )?(?:like|love|prefer) )|i(?=[' ])|gonna|wanna)(?=[^\w'])", re.IGNORECASE
)
_SUBJECT = (
    r"(?:(?:I|we|it|it's|he|she|they|you|that|this|that's|there|there's|let|let's|can|could|would|should|shall"
    r"|will|did|any|please|what|how|do"
    r"|does|is|are|who)\b|my (?:[\w'-]+ ){1,3}(?:is|are|was|were|has|have|had|works?|lives?|loves?|moved|got)\b)"
)
_SPLICE = r"(?:the )?\w+ (?:is|are|was|were|has been|have been)\b"
_NEXT_CLAUSE = re.compile(
    rf"\s*(?:;|—|–|-+\s|\s-+|\.\.+|…|[!?](?=\s))\s*|:\s+(?={_SUBJECT})|\s*,\s+(?=(?:which|so|but|right)\b"
    rf"|{_SUBJECT}|{_SPLICE})"
    r"|\s*,?\s+(?:and|but|so|plus|because|cause|cuz|though|although|yet|or)\s+"
    rf"(?:(?:then|now|also|so|yes)\s+)?(?={_SUBJECT})",
    re.IGNORECASE,
)
_COMPANION = re.compile(
    r"^((?:[^,]{0,30}, )?)(my (?:(?!(?:is|are|was|has|have)\b)[\w'-]+ ){0,3}[\w'-]+|[A-Z]\w+) and I (?=\w)",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:(?:well|so|and|but|oh|ok|okay|yeah|yep|yes|yup|no|nope|nah|hey|hi|hello|wow|also|actually|honestly|btw"
    r"|by the way"
    r"|anyways?|fyi|plus|besides|because|though|since|hmm+|haha+|lol|thanks|thank you|sure|(?:remember|note)(?: that)?"
    r"|just so you know|for the record|to be honest|tbh|as you know|like I said|luckily|fortunately|unfortunately|sadly"
    r"|guess what|for context|ps)(?:[ ,:!.-]+|$))+(?:[A-Z]\w+, )?",
    re.IGNORECASE,
)
_TIME_FIRST = (
    r"(?:(?:last|next|this|yesterday|today|tomorrow|tonight|on|in|at|over|recently|lately|a few|two|three|\d+|earlier"
    r"|one day|back in)\b(?:(?!\b(?:is|was|were|has|have|had)\b)[^,]){0,60}"
    r"|(?:when|after|before|during|for|since|growing up|as an?)\b[^,]{0,60})"
)
_WHEN_FIRST = re.compile(_TIME_FIRST, re.IGNORECASE)

# The subjects a clause may have. -------------------------------------------------------------------------------------
_ADVERBS = (
    r"(?P<adverbs>(?:(?:also|really|just|still|already|recently|actually|always|never|usually|often|currently"
    r"|absolutely"
    r"|totally|definitely|finally|originally|now|only|sometimes|rarely|mostly|mainly|truly|especially|both|even|first"
    r"|no longer|kinda|personally|officially|not|once|soon|all|particularly|regularly|generally|typically|later) )*)"
)
_WHEN = rf"(?P<when>(?i:{_TIME_FIRST}), )?"
_I = re.compile(
    rf"{_WHEN}(?P<with>.{{1,48}} & )?I {_ADVERBS}(?P<verb>[\w']+) {_ADVERBS.replace('adverbs', 'more')}(?P<rest>.*)"
)
_WE = re.compile(rf"{_WHEN}we(?P<short>'re|'ve|'ll)? {_ADVERBS}(?P<rest>.*)", re.IGNORECASE)
_MY = re.compile(rf"{_WHEN}my (?P<rest>.*)", re.IGNORECASE)
_NAME = re.compile(r"(?P<name>[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?) (?P<rest>.*)")
_ELIDED = re.compile(
    r"(?:just |recently |finally )?(?:moved|got|bought|adopted|joined|started|finished|went|visited|signed up|came back"
    r"|attended|won|booked|graduated|painted|took|made|met|ran|quit|lost|passed|launched|been) (?!it\b|that\b"
    r"|this\b|you\b)",
    re.IGNORECASE,
)
_SINGULAR = {"are": "am", "were": "was"}  # the tables speak of one person
_NO_NAME = re.compile(
    r"(?:It|That|This|He|She|They|There|Every\w+|Some\w+|Life|Music|Art|Wh\w+|How|Here|Today|Yesterday|Tomorrow|The|An?"
    r"|My|Our|Your|His|Her|Their|No\w*|People|Dance|Love|Work|Home|God)\b"
)

# What makes a clause no assertion, or one that means nothing without the words around it. ----------------------------
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|wish|maybe|perhaps|probably|might|imagine|suppose|supposing|pretend|hypothetically"
    r"|as though"
    r"|would(?! (?:like|love|prefer)\b)|could|should|wonder|almost|supposedly|you|your|yours|yourself|ur?)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:[\w'-]+ ){1,7}?(?:(?:it|them|him|there|here|her(?=$| (?:and|to|in|for|with|on)\b)|on (?:for|and))\b"
    r"|(?:that(?! I\b)|this|these|those)\b(?! (?:year|month|week\w*|summer|spring|fall|autumn|winter|morning|afternoon"
    r"|evening|\w+day|January|February|March|April|May|June|July|August|September|October|November|December)\b))"
    r"|(?:(?:can't|don't) )?(?:\w+ing|\w+ed|love|like|enjoy|adore|hate|prefer|dislike|stand|had|have|made|got|did"
    r"|took|saw|met"
    r"|read|found|gave|wrote) (?:really |so |just |all )?(?:how|what|when|where|why|some|one|being able|a lot|lots"
    r"|the (?:idea|way|sound|look|thought|feel\w*|fact|vibe|same|part|colou?rs?|texture|structure|atmosphere"
    r"|energy|details?"
    r"|support|pic\w*|photos?|view|name|concept|process|challenge|design|style)"
    r"|to (?:see|hear|know|think|say|help|talk|chat|be|add|make sure|get|do))\b",
    re.IGNORECASE,
)
_OPEN_END = re.compile(
    r"\b(?:it|that|this|there|here|them|those|one|so|to|of|and|the|a|what|like|with|about|for|how|few)$", re.IGNORECASE
)
_MOOD = re.compile(
    r".{0,40}\b(?:am|is|are|was|were|has been|have been) (?:\w+ )?(?:sorry|glad|happy|tired|excited|proud|sure"
    r"|here for|good"
    r"|fine|ok|okay|done|back|grateful|feeling|worried|concerned|confident|wondering|struggling|stuck|thankful"
    r"|lucky|blessed|all ears|curious|thrilled|stoked|amazing|awesome|great"
    r"|wonderful|supportive|kind|nice|cool|fun)\b",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:[\s,]+(?:too|as well|though|tho|lol|haha+|btw|by the way|you know|huh|for sure|as usual|anyway|actually"
    r"|please|man"
    r"|right|ya know|already))+$",
    re.IGNORECASE,
)
_NO_WORD_AT_END = re.compile(r"[^\w)\"'%€$£°+]+$")
_NO_WORD_AT_START = re.compile(r"^[^\w\"“„«]+")

_GERMAN_WORDS = re.compile(r"\b(?:ich|mein|meine)\b", re.IGNORECASE)
_GERMAN_CLAUSE = re.compile(
    r"\s*(?:;|—|–|\s-+\s)\s*|,? (?:und|aber|denn|also|doch) (?=(?:ich|wir|meine?|er|sie|es|das|du|kannst|am|im) )"
    r"|, (?=weil|dass|aber|kannst|hast|was|wie)",
    re.IGNORECASE,
)
_GERMAN_LEAD_IN = re.compile(
    r"(?:(?:ach|ja|nein|hallo|hi|hey|also|und|aber|übrigens|nee|naja|danke|denn|gut|okay|ok|genau|merk dir)[ ,:!.-]+)+"
    r"(?:dass )?",
    re.IGNORECASE,
)
_GERMAN_UNREAL = re.compile(
    r"\b(?:wenn|falls|würde|könnte|hätte|wäre|vielleicht|ob|du|dir|dich|dein\w*)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as a rule reads it, before it has a source, an id or an embedding.

    `text` stands for itself: a sentence in the third person with absolute dates, or the speaker's words in quotes
    after the name. `type` is identity, preference, health, relation, plan, possession, skill, habit, event, goal, work
    or instruction. `subject` is whom it is about, as the text names them. `confidence` is from 0 to 1, by the table of
    this module. `valid_from` is when it began to hold, where the speaker said so; never after the message.
    """

    text: str
    type: str
    subject: str
    confidence: float
    valid_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """Who speaks, and when."""

    name: str | None
    at: datetime

    @property
    def subject(self) -> str:
        return self.name or "The user"

    @property
    def inside(self) -> str:
        return self.name or "the user"


def extract(text: str, *, role: str, speaker: str | None, occurred_at: datetime) -> list[FactDraft]:
    """Give the facts that a message says, in its order, each once; none for any role but "user".

    `speaker` is the name that facts are told of; without one they are of "The user". English and German are read, other
    languages give nothing. The same message always gives the same facts, and no text raises an error.
    """
    if role != "user":
        return []
    said = _Said(speaker, occurred_at)
    drafts: dict[str, FactDraft] = {}
    heard = _heard(text)
    for start, stop in sentences(heard):
        if stop - start <= _LONGEST:
            for draft in _of_sentence(heard[start:stop], said):
                drafts.setdefault(draft.text.casefold(), draft)
    return list(drafts.values())


def _heard(text: str) -> str:
    """Leave out what was not said by the speaker."""
    text = _UNSAID.sub(" ", text.translate(_APOSTROPHE))
    return _QUOTED.sub(lambda found: ' "…" ' if _SPEECH.search(found[1]) else found[0], text)


def _of_sentence(sentence: str, said: _Said) -> Iterator[FactDraft]:
    sentence = _NO_WORD_AT_START.sub("", " ".join(sentence.split()))
    if not sentence or sentence[0] in '"“„«' or '"…"' in sentence or _FORMULA.search(sentence):
        return
    german = _GERMAN_WORDS.search(sentence)
    for clause in _german_clauses(sentence) if german else _clauses(sentence):
        if 2 < len(clause.split()) <= _MOST_WORDS:
            draft = _of_german(clause, said) if german else _of_clause(clause, said)
            if draft:
                yield draft


def _clauses(sentence: str) -> Iterator[str]:
    """Give the clauses that assert something. The last one of a question asks, and what follows an "if" is not so."""
    sentence = _SAID_CASUALLY.sub(lambda found: _CASUAL[found[0].lower()], sentence)
    sentence = _COMPANION.sub(_with_companion, _without(_LEAD_IN, sentence))
    pieces = _NEXT_CLAUSE.split(sentence)
    if sentence.rstrip("\"')").endswith("?"):
        pieces.pop()
    when, doubtful = "", False
    for piece in pieces:
        clause = _without(_LEAD_IN, piece).strip()
        unreal = bool(_UNREAL.search(clause))
        if not unreal and _WHEN_FIRST.fullmatch(clause):
            when = f"{clause}, "
            continue
        if not unreal and not doubtful:
            yield _trimmed(when + clause)
        when, doubtful = "", clause[:3].lower() == "if "


def _with_companion(found: re.Match[str]) -> str:
    verb = any(is_past(word) for word in found[2].split())  # "my laptop crashed and I …" is two clauses
    return found[0] if verb else f"{found[1]}{found[2]} & I "


def _german_clauses(sentence: str) -> Iterator[str]:
    pieces = _GERMAN_CLAUSE.split(_without(_GERMAN_LEAD_IN, sentence))
    if sentence.endswith("?"):
        pieces.pop()
    yield from (_trimmed(piece) for piece in pieces if not _GERMAN_UNREAL.search(piece))


def _without(lead_in: re.Pattern[str], words: str) -> str:
    found = lead_in.match(words)
    return words[found.end() :] if found else words


def _trimmed(clause: str) -> str:
    clause = _NO_WORD_AT_END.sub("", clause)
    return _NO_WORD_AT_END.sub("", _TAIL.sub("", clause))


def _first(rules: tuple[Rule, ...], clause: str) -> Rule | None:
    return next((rule for rule in rules if rule.pattern.match(clause)), None)


def _fitting(rules: tuple[Rule, ...], predicate: str) -> Rule | None:
    if _VAGUE.match(predicate) or _MOOD.match(predicate) or _OPEN_END.search(predicate):
        return None
    return _first(rules, predicate)


def _of_clause(clause: str, said: _Said) -> FactDraft | None:
    if _ELIDED.match(clause):
        return _of_i(f"I {clause[0].lower()}{clause[1:]}", said, less=0.1)
    for read in (_of_i, _of_we, _of_my, _of_name, _of_instruction):
        found = read(clause, said)
        if found:
            return found
    return None


def _of_i(clause: str, said: _Said, *, less: float = 0.0) -> FactDraft | None:
    found = _I.fullmatch(clause)
    rule = _of_predicate(found) if found else None
    if not found or not rule:
        return None
    verb, companion = found["verb"], (found["with"] or "").removesuffix(" & ")
    past = is_past(verb)
    bare = not past and not is_modal(verb) and not companion
    when, rest = third_person(found["when"] or "", said.inside), third_person(found["rest"], said.inside, agreeing=bare)
    beside = third_person(companion, said.inside)
    if when is None or rest is None or beside is None:
        return _verbatim(rule, clause.replace(" & I ", " and I "), said, past=past, less=less)
    who = said.inside if when else said.subject
    if companion:
        who, verb = f"{who} and {beside}", {"am": "are"}.get(verb, verb)
    else:
        verb = agreeing_verb(verb) or verb
    if rest == said.name:
        return None  # "I'm Alice", said by Alice
    text = f"{when}{who} {found['adverbs']}{verb} {found['more']}{rest}"
    return _draft(rule, text, said.subject, said, past=past, less=less)


def _of_predicate(found: re.Match[str]) -> Rule | None:
    adverbs = f"{found['adverbs']}{found['more']}".split()
    predicate = f"{_SINGULAR.get(found['verb'], found['verb'])} {found['rest']}"
    if agreeing_verb(found["verb"]) is None:
        return None
    rule = _fitting(FIRST, predicate)
    if not rule and found["verb"] == "have" and is_past(found["rest"].split(" ")[0]):
        rule = _fitting(FIRST, found["rest"])
    if not rule and adverbs and not _VAGUE.match(predicate):
        rule = _first(FIRST, f"{adverbs[-1]} {predicate}")
    return rule


def _of_we(clause: str, said: _Said) -> FactDraft | None:
    found = _WE.fullmatch(clause)
    if not found:
        return None
    auxiliary = {"'re": "am ", "'ve": "have ", "'ll": "will "}.get(found["short"] or "", "")
    predicate = auxiliary + re.sub(r"^(?:are|were)\b", "am", found["rest"])
    rule = _fitting(FIRST, predicate)
    if not rule or rule.type not in ("event", "plan", "relation", "possession", "identity", "habit"):
        return None
    return _verbatim(rule, clause, said, past=is_past(predicate.split()[0]), less=0.1)


def _of_my(clause: str, said: _Said) -> FactDraft | None:
    found = _MY.fullmatch(clause)
    rule = _fitting(MINE, found["rest"]) if found else None
    if not found or not rule:
        return None
    past = any(is_past(word) for word in found["rest"].split()[1:6])
    when, rest = third_person(found["when"] or "", said.inside), third_person(found["rest"], said.inside)
    if when is None or rest is None:
        return _verbatim(rule, clause, said, past=past)
    kin = found["rest"].split()[0].removesuffix("'s")
    whom = f"{said.subject}'s {kin}" if rule.type == "relation" else said.subject
    return _draft(rule, f"{when}{said.inside if when else said.subject}'s {rest}", whom, said, past=past)


def _of_name(clause: str, said: _Said) -> FactDraft | None:
    found = _NAME.fullmatch(clause)
    rule = _first(NAMED, found["rest"]) if found and not _NO_NAME.match(clause) else None
    if not found or not rule:
        return None
    rest = third_person(re.sub(r"\bmy\b", f"{said.inside}'s", found["rest"]), said.inside)
    if rest is None:
        return None
    return _draft(rule, f"{found['name']} {rest}", found["name"], said, past=is_past(rest.split()[0]))


def _of_instruction(clause: str, said: _Said) -> FactDraft | None:
    rule = _first(INSTRUCTIONS, clause)
    return _verbatim(rule, clause, said, past=False) if rule else None


def _of_german(clause: str, said: _Said) -> FactDraft | None:
    rule = _first(GERMAN, clause)
    return _verbatim(rule, clause, said, past=rule.type == "event") if rule else None


def _verbatim(rule: Rule, clause: str, said: _Said, *, past: bool, less: float = 0.0) -> FactDraft:
    anchored, begins = anchor(clause, said.at, past=past and rule.type != "plan")
    text = f'{said.subject}: "{anchored[0].upper()}{anchored[1:]}."'
    return _made(rule, text, said.subject, begins, said, less)


def _draft(rule: Rule, text: str, subject: str, said: _Said, *, past: bool, less: float = 0.0) -> FactDraft:
    anchored, begins = anchor(text, said.at, past=past and rule.type != "plan")
    return _made(rule, f"{anchored[0].upper()}{anchored[1:]}.", subject, begins, said, less)


def _made(rule: Rule, text: str, subject: str, begins: datetime | None, said: _Said, less: float) -> FactDraft:
    # A plan holds from the moment it is told, whatever the day it is for.
    told = begins is None or begins > said.at or rule.type in ("plan", "goal")
    return FactDraft(text, rule.type, subject, round(rule.confidence - less, 2), None if told else begins)
