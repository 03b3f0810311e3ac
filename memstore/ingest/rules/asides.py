"""Asides: what is said beside a statement and is no part of it, made blanks, so that every character keeps its place.

    "I'm allergic to latex, by the way, if we do the experiment"  ->  "I'm allergic to latex"
    "I live in Bern, as I said, with my sister"                   ->  "I live in Bern with my sister"

A condition is cut off where it cannot be meant of what is stated: a remark of politeness ("if that matters") anywhere,
and of what somebody has or cannot have, whatever "we" or "you" may do: the allergy is there without the experiment.
"… unless they are cooked" stays, since it says more exactly what is.
"""

from __future__ import annotations

import re

from memstore.ingest.rules.conditions import HAS_CONDITION

_PHRASES = (
    r"by the (?:way|by)|btw|fyi|(?:just )?so (?:that )?you(?: are|'re)? (?:know|aware)|as (?:I|we)(?:'ve| have)?"
    r" (?:(?:already|once) )?(?:said|say|mentioned|told you|wrote)(?: (?:before|earlier|already|above|last time))?"
    r"|like I (?:said|mentioned)(?: (?:before|earlier))?|as mentioned(?: (?:before|above|earlier))?|as you (?:(?:may"
    r"|might|probably|already) )*(?:know|can (?:see|imagine))|you (?:know|see)|mind you|I (?:should|must|have to|might)"
    r" (?:add|say|mention|admit)|for (?:the record|your information|what it's worth|context)|to be (?:honest|clear|fair"
    r"|safe|precise)|just (?:saying|to be (?:clear|safe|sure)|in case)|believe it or not|needless to say|of course"
    r"|incidentally|frankly|obviously|admittedly|though|tho|I(?:'m| am) afraid"
    r"|übrigens|wie (?:schon )?(?:gesagt|erwähnt)|wie du weißt|nur (?:so|damit du (?:es |das )?weißt)|nebenbei gesagt"
    r"|d'ailleurs|au fait|comme je (?:l'ai|te l'ai|vous l'ai) (?:déjà )?dit|pour info|por cierto|como (?:ya )?(?:te )?"
    r"(?:dije|he dicho)|por si acaso"
)
_POLITE = (
    r"(?:only |just )?(?:if|in case) (?:that|this|it|any of (?:that|this))(?: (?:matters|helps|counts|interests you"
    r"|makes (?:a|any) difference|changes anything|plays a role)|(?:'s| is| should be| might be"
    r"| may be) (?:of (?:any )?(?:use|help|interest|importance)|any help|relevant|important|useful|helpful|needed"
    r"|what you (?:mean|meant|ask)))(?: (?:at all|here|to you|for (?:you|this|that|the \w+)))?"
    r"|(?:if|in case|since|when) you(?:'re| are| were) (?:wondering|asking|curious|interested)"
    r"|(?:if|since|because) you (?:ask(?:ed)?(?: me)?|mention(?:ed)? it|brought it up)"
    r"|(?:if|in case) you (?:(?:must|want to|need to|care to|would like to|didn't|did not|don't|do not) know(?: (?:it"
    r"|that|this))?|forgot|wondered|care)|since we(?:'re| are) (?:talking|speaking)(?: (?:about|of) [^,.;!?\n]{1,30})?"
    r"|if I (?:may(?: (?:say|add)(?: (?:so|that))?)?|am honest|'m honest)|if I'm honest"
    r"|falls (?:das|es) (?:wichtig|relevant|von belang|hilfreich) ist|falls (?:das|es|dir das) (?:hilft|interessiert)"
    r"|si (?:ça|cela) (?:aide|peut aider|compte|t'intéresse|vous intéresse)|si (?:eso )?(?:importa|ayuda|sirve)"
)
# Begun behind a letter: runs of blanks are what earlier asides left, and are not to be tried from each of them.
_BEFORE = r"(?:(?<=\S)\s{0,400},\s{0,9}|(?<=\S)\s{1,9}[-–—]\s{1,9})"
_AFTER = r"(?P<after>,(?=\s+(?:to|in|at|for|with|from|on|of|as|and|or|gegen|in|und|et|à|aux|y|a)\s))?"
_ENDS = r"(?=\s{0,400}(?:[,.;:!?)\n]|\s[-–—]\s|$))"
_SET_OFF = re.compile(rf"{_BEFORE}(?:{_PHRASES}){_ENDS}{_AFTER}", re.IGNORECASE)
_IN_BRACKETS = re.compile(rf"(?<=\S)\s?\((?:{_PHRASES}|{_POLITE})[.!]?\)", re.IGNORECASE)
_BEHIND_AND = re.compile(rf"(?:(?<=\band)|(?<=\bbut)|(?<=\bthat)), (?:{_PHRASES}),(?= )", re.IGNORECASE)
_UNMARKED = re.compile(
    rf"(?:{_BEFORE}|(?<=\S)\s{{1,400}})(?:{_POLITE}|by the way|btw|fyi|just so you know|as I said|like I said)"
    rf"(?:{_ENDS}|(?=\s+(?:if|in case)\s)){_AFTER}",
    re.IGNORECASE,
)
# What "we" or "you" do, or what there will be, has no part in it; "they" may be what one is allergic to.
_OTHERS = (
    r"(?:we|you(?! (?:do not |don't )?(?:count|ignore|call|consider))|your|anyone|anybody|someone|somebody|there|wir"
    r"|ihr|du|jemand|es gibt|on|nous|tu|vous|quelqu'un|vamos|cocinamos|comemos|hacemos|alguien|vais|hay)\b"
)
_UP_TO = (
    r"(?:(?!,?\s+(?:so|but|and|aber|und|also|donc|mais|pero|así)\s+(?:I|I'm|my|we|our|you|please|pls|no|don't|do not"
    r"|can|could|what|which|that's|ich|bitte|mein\w*|wir)\b|,\s+(?:and to|and also|und gegen|please|pls|so|but|can"
    r"|could|what|which|bitte|also|aber)\b)[^.!?;\n]){1,100}"
)
_WHEN = r"(?:if|in case|when(?:ever)?|should|falls|wenn|sofern|si|au cas où|por si|cuando|quand)"
_CONDITION = re.compile(
    rf"(?:{HAS_CONDITION})(?:(?!\b(?:(?:and|but|so|or)\s+)?{_WHEN}\s)[^.!?;:\n]){{0,60}}?"
    rf"(?P<cut>{_BEFORE}?\s{{0,400}}(?<!\w)(?:just |only )?{_WHEN}\s+{_OTHERS}{_UP_TO})",
    re.IGNORECASE,
)
_CONDITION_FIRST = re.compile(
    rf"(?:^|(?<=[.!?;\n])[ \t]{{0,9}})(?P<cut>(?:if|in case"
    rf"|when(?:ever)?)\s+{_OTHERS}[^.!?;,\n]{{1,80}},)(?=\s+(?:(?:please )?"
    rf"(?:remember|note|keep in mind) (?:that )?)?(?:I(?:'m| am| have)|(?:my|our) \w+(?: \w+)? (?:is|has)) "
    rf"(?:\w+ )?(?:allergic|{HAS_CONDITION}))",
    re.IGNORECASE,
)


def without_asides(text: str) -> str:
    """Blank the asides of a text; the same text where it has none, and always of the same length."""
    for pattern in (_IN_BRACKETS, _BEHIND_AND, _SET_OFF, _UNMARKED):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    for pattern in (_CONDITION, _CONDITION_FIRST):
        text = pattern.sub(_without_condition, text)
    return text


def _without_condition(found: re.Match[str]) -> str:
    start, stop = found.span("cut")
    kept = found.string[found.start() : start], found.string[stop : found.end()]
    return f"{kept[0]}{' ' * (stop - start)}{kept[1]}"
