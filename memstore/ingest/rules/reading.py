"""What a clause is a fact of: the first precise rule that fits it, else a type by light cues.

| confidence | said as |
|---|---|
| 0.95 | name, age, origin, allergy; a standing instruction |
| 0.9  | residence, job, family, diet: "I live in …", "My sister is …" |
| 0.85 | likes and dislikes, pets, belongings, turning points of a life |
| 0.75 | plans with a date, habits, skills, events with a date or a place |
| 0.6  | intentions and wishes without a date; by no rule, but the speaker is its subject |
| 0.5  | by no rule, of something else |

0.1 less where the subject was left out ("Just moved to Porto") or is "we", since who else is meant is not said.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memstore.ingest.rules.conditions import CONDITION
from memstore.ingest.rules.rulebook import FIRST, FOODS, INSTRUCTIONS, KIN, MINE, NAMED, PETS, Rule
from memstore.ingest.rules.statements import TIME_FIRST
from memstore.ingest.rules.thirdperson import is_modal, is_past, is_present
from memstore.ingest.rules.word_lists import MONTHS, WEEKDAYS

_ADVERB = (
    r"(?:also|really|just|still|already|recently|actually|always|never|usually|often|currently|absolutely|totally"
    r"|definitely|finally|originally|now|only|sometimes|rarely|mostly|mainly|truly|especially|both|even|first"
    r"|no longer|kinda|personally|officially|not|once|soon|all|particularly|regularly|generally|typically|later)"
)
_WHEN = rf"(?:(?i:{TIME_FIRST}), )?"
_I = re.compile(
    rf"{_WHEN}(?:.{{1,48}} & )?I (?P<adverbs>(?:{_ADVERB} )*)(?P<verb>[\w']+) (?P<more>(?:{_ADVERB} )*)(?P<rest>.*)"
)
_WE = re.compile(rf"{_WHEN}we (?:{_ADVERB} )*(?P<rest>.*)", re.IGNORECASE)
_MY = re.compile(rf"{_WHEN}(?:my|our) (?P<rest>.*)", re.IGNORECASE)
_NAME = re.compile(rf"(?P<name>[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?(?:'s? (?:{KIN})(?: [A-Z][a-zà-ÿ]+)?)?) (?P<rest>.*)")
_KIN_OF_KIN = re.compile(rf"(?:{KIN})'s? (?:{KIN}|{PETS})\b", re.IGNORECASE)  # "My brother's wife"
_THEIRS = re.compile(rf"(?:[\w-]+ ){{0,2}}?(?:{KIN}|{PETS})\b(?!-)", re.IGNORECASE)  # "maths teacher"
_LIKE = re.compile(  # which of them it is
    r"^(?:(?:little|big|older|younger|elder|eldest|oldest|youngest|twin|best|new|old|late|current|former|dear|own"
    r"|other)"
    r" )+",
    re.IGNORECASE,
)
_SINGULAR = {"are": "am", "were": "was"}  # the tables speak of one person
_NO_NAME = re.compile(
    r"(?:It|That|This|He|She|They|There|Every\w+|Some\w+|Life|Music|Art|Wh\w+|How|Here|Today|Yesterday|Tomorrow|The"
    r"|An?|My|Our|Your|His|Her|Their|No\w*|People|Dance|Love|Work|Home|God|We|You|I)\b"
)
_OF_US = frozenset({"constraint", "event", "plan", "relationship", "identity", "interest", "decision"})
_VAGUE = re.compile(
    r"(?:[\w'-]+ ){1,7}?(?:(?:it|them|him|there|here|her(?=$| (?:and|to|in|for|with|on)\b)|on (?:for|and))\b"
    r"|(?:that(?! I\b)|this|these|those)\b(?! (?:year|month|week\w*|summer|spring|fall|autumn|winter|morning"
    rf"|afternoon|evening|\w+day|{MONTHS})\b))"
    r"|(?:(?:can't|don't) )?(?:\w+ing|\w+ed|love|like|enjoy|adore|hate|prefer|dislike|stand|had|have"
    r"|made|got|did|took|saw|met|read|found|gave|wrote) (?:really |so |just |all )?(?:how|what|when|where|why|some"
    r"|one|being able|a lot|lots|the (?:idea|way|sound|look|thought|feel\w*|fact|vibe|same|part|colou?rs?|texture"
    r"|structure|atmosphere|energy|details?|support|pic\w*|photos?|view|name|concept|process|challenge|design|style)"
    r"|to (?:see|hear|know|think|say|help|talk|chat|be|add|make sure|get|do))\b",
    re.IGNORECASE,
)
_OPEN_END = re.compile(
    r"\b(?:it|that|this|there|here|them|those|one|so|to|of|and|the|a|what|like|with|about|for|how|few)$", re.IGNORECASE
)
_MOOD = re.compile(
    r".{0,40}\b(?:am|is|are|was|were|has been|have been) (?:\w+ )?(?:sorry|glad|happy|tired|excited|proud|sure"
    r"|here for|good|fine|ok|okay|done|back|grateful|feeling|worried|concerned|confident|wondering|struggling|stuck"
    r"|thankful|lucky|blessed|all ears|curious|thrilled|stoked|amazing|awesome|great|wonderful|supportive|kind|nice"
    r"|cool|fun)\b",
    re.IGNORECASE,
)

# Types by light cues, of what the speaker says of themself; the first that is found decides.
_CUES = tuple(
    (type, re.compile(rf"\b(?:{cue})\b", re.IGNORECASE))
    for type, cue in (
        ("constraint", r"allergi\w+|anaphyla\w+|epipens?|intolerant|vegan|vegetarian|diagnosed|medication|injured"
             r"|not allowed|on an? [\w-]+ diet"),
        ("decision", r"decid\w+|chose|made up my mind|agreed (?:to|on)|settled on"),
        ("weakness", r"struggl\w+|bad at|afraid|scared|nervous about|can't seem to|hard for me|have trouble"
             r"|difficult for me"),
        ("strength", r"good at|skilled|talent\w*|know how to|learn(?:ed|t) (?:to|how)|mastered"),
        ("goal", r"goals?|dreams? (?:is|are|of|to)|my dreams?|want to|would (?:love|like) to|hop(?:e|ing) to|aim\w*"
             r"|aspir\w+"
         r"|trying to|working (?:on|towards?)|determined to|saving (?:for|up)"),
        ("plan", r"going to|plan(?:s|ning)?|will|next (?:week|month|year|\w+day)|tomorrow|looking forward"
             r"|thinking (?:of|about)"
         r"|considering|looking into|preparing|upcoming"),
        ("preference", r"love|like|enjoy|hate|prefer|favou?rites?|adore|can't stand|fan of|miss"),
        ("interest", r"into|passion\w*|interested|hobb\w+|keen on|usually|often|every \w+|been \w+ing|practi[cs]\w+"
             r"|collect"),
        ("relationship", r"my (?:\w+ )?(?:mom|mum|mother|dad|father|sister|brother|son|daughter|kids?|children"
             r"|husband|wife"
         r"|partner|girlfriend|boyfriend|friends?|family|fam|parents|grand\w+|aunt|uncle|cousins?|colleagues?"
         r"|neighbou?rs?)"),
    )
)  # fmt: skip
# What happens, has happened or is felt now: it lasts no longer than that.
_OF_NOW = re.compile(
    r"^(?:I|we) (?:\w+ )?(?:(?:have|has) (?:\w+ )?(?:\w+ed|been|got|had|done|made|seen|taken|found|met|won|written"
    r"|started|gone)\b|(?:am|are) (?:\w+ )?(?:\w+ing|worried|stressed|concerned|overwhelmed|excited|glad|happy|proud"
    r"|tired|grateful|thankful|nervous|sorry|sad|busy|ready|thrilled|stoked|lucky|torn|stuck|motivated)\b)",
    re.IGNORECASE,
)
# "Mum lands on Friday": what is to come, whoever does it; "I get up at six" says no day.
_AHEAD = re.compile(
    r"\b(?:tomorrow|tonight|next (?:week|month|year|\w+day)|(?:on|by) "
    rf"(?:(?:{WEEKDAYS})day\b(?!s)|the \d{{1,2}}(?:st|nd|rd|th)\b))",
    re.IGNORECASE,
)
# "My rent is 900 euros": what is said to be so, where no cue says that it is liked.
_IS_SOMETHING = re.compile(
    r"(?:(?:my|our) (?:[\w'-]+ ){1,4}?(?:is|are) (?:now )?(?:an?\b|\d|[$€£]\d|(?-i:[A-Z])\w)|I am"
    r" (?:an?\b|\d))",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b(?:I|me|my|we|us|our)\b")
_WORD = re.compile(r"[A-Za-z']+")


# An allergy, a diet, what somebody cannot do: it matters to all who cook for them or travel with them. A test does not.
ALLERGY = re.compile(
    r"\ballergi(?:c|es)\b|\ballergy\b(?! (?:test|clinic|season|appointment|doctor|specialist|check))"
    r"|\bintoleran(?:t|ce)\b|allergisch|allergie(?!test|zentrum|praxis|ambulanz)|intolerant|\bco?eliac\b|zöliakie"
    r"|\bdiabetic\b|\b(?:can't|can ?not|mustn't|must not|isn't allowed to|is not allowed to)"
    rf" (?:eat|drink|(?:have|tolerate) (?:any )?(?:{FOODS}))\b"
    r"|\bvertr(?:age|ägt|agen)\b|\b(?:am|is|are|bin|ist|sind) (?:\w+ )?(?:vegan|vegetarian|pescatarian|vegetarisch"
    r"|(?:vegetarier|veganer)(?:in)?)\b(?! (?:restaurant|caf|chef|cook|food))|\bdarf (?:\w+ ){0,2}kein|\b(?:a|in a"
    r"|the) wheelchair\b|\brollstuhl",
    re.IGNORECASE,
)


class Reading(NamedTuple):
    """The type of a fact, how far it is to be trusted, whom else than the speaker it is about, and its tense.

    `about` is None for the speaker, "'s …" for somebody of theirs, else a name.
    """

    type: str
    confidence: float
    about: str | None
    past: bool


def precisely(clause: str) -> Reading | None:
    """Read a clause of first-person words in long forms by the first precise rule that fits, if one does."""
    found = _of_i(clause) or _of_we(clause) or _of_my(clause) or _of_name(clause)
    lasts = bool(found) and (ALLERGY.search(clause) or CONDITION.match(clause))
    return found._replace(type="constraint") if found and lasts else found


def loosely(statement: str) -> Reading:
    """Read a statement by what it mentions."""
    of_speaker = bool(_SPEAKER.search(statement))
    past = _told_in_the_past(statement)
    confidence = 0.6 if re.match(r"(?:I|My)\b", statement) else 0.5
    for type, cue in _CUES if of_speaker else ():
        if cue.search(statement):
            return Reading(type, confidence, None, past)
    if past or _OF_NOW.search(statement):
        return Reading("event", confidence, None, past)
    if _AHEAD.search(statement):
        return Reading("plan", confidence, None, past)
    if _IS_SOMETHING.match(statement):
        return Reading("identity", confidence, None, past)
    return Reading("preference", confidence, None, past)


def _told_in_the_past(statement: str) -> bool:
    """Whether the first form that shows a tense is of the past."""
    for word in _WORD.findall(statement[:200]):
        low = word.lower()
        if low in ("am", "is", "are", "has", "have") or (is_present(low) and not is_past(low)):
            return False
        if is_past(low):
            return True
    return False


def _first(rules: tuple[Rule, ...], clause: str) -> Rule | None:
    return next((rule for rule in rules if rule.pattern.match(clause)), None)


def _fitting(rules: tuple[Rule, ...], predicate: str) -> Rule | None:
    if _VAGUE.match(predicate) or _MOOD.match(predicate) or _OPEN_END.search(predicate):
        return None
    return _first(rules, predicate)


def _of_i(clause: str) -> Reading | None:
    found = _I.fullmatch(clause)
    if not found or not (
        found["verb"] in _SINGULAR or is_present(found["verb"]) or is_past(found["verb"]) or is_modal(found["verb"])
    ):
        return None
    predicate = f"{_SINGULAR.get(found['verb'], found['verb'])} {found['rest']}"
    rule = _fitting(FIRST, predicate)
    if not rule and found["verb"] == "have" and is_past(found["rest"].split(" ")[0]):
        rule = _fitting(FIRST, found["rest"])
    adverbs = f"{found['adverbs']}{found['more']}".split()
    if not rule and adverbs and not _VAGUE.match(predicate):
        rule = _first(FIRST, f"{adverbs[-1]} {predicate}")
    return Reading(rule.type, rule.confidence, None, is_past(found["verb"])) if rule else None


def _of_we(clause: str) -> Reading | None:
    found = _WE.fullmatch(clause)
    predicate = re.sub(r"^(?:are|were)\b", "am", found["rest"]) if found else ""
    rule = _fitting(FIRST, predicate) if predicate else None
    if not found or not rule or rule.type not in _OF_US:
        return None
    return Reading(rule.type, rule.confidence, None, is_past(predicate.split()[0]))


def _of_my(clause: str) -> Reading | None:
    found = _MY.fullmatch(clause)
    favourite = found and found["rest"].lower().startswith("favo")  # "… is the blue one" says enough
    rule = (_first if favourite else _fitting)(MINE, found["rest"]) if found else None
    if not found or not rule:
        return None
    words = found["rest"].split()
    theirs = _KIN_OF_KIN.match(found["rest"]) or _THEIRS.match(found["rest"])
    whose = _LIKE.sub("", theirs[0]) if theirs else words[0].removesuffix("'s")
    kin = f"'s {whose}" if rule.type == "relationship" else None
    return Reading(rule.type, rule.confidence, kin, any(is_past(word) for word in words[1:6]))


def _of_name(clause: str) -> Reading | None:
    found = _NAME.fullmatch(clause)
    rule = _first(NAMED, found["rest"]) if found and not _NO_NAME.match(clause) else None
    return (
        Reading(rule.type, rule.confidence, found["name"], is_past(found["rest"].split()[0]))
        if found and rule
        else None
    )


def instructed(clause: str) -> Reading | None:
    """Read a clause that tells what to do from now on."""
    rule = _first(INSTRUCTIONS, clause)
    return Reading(rule.type, rule.confidence, None, False) if rule else None
