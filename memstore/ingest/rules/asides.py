"""Asides: what is said beside a statement and is no part of it, made blanks, so that every character keeps its place.

    "I'm allergic to latex, by the way, if we do the experiment"  ->  "I'm allergic to latex"
    "I live in Bern, as I said, with my sister"                   ->  "I live in Bern with my sister"

A condition is cut off where it cannot be meant of what is stated: a remark of politeness ("if that matters") anywhere,
and of what somebody has or cannot have, whatever "we" or "you" may do: the allergy is there without the experiment. Of
what somebody does not eat, only behind a comma: "vegetarian when we travel" is no more than that. "… unless they are
cooked" and "… only if you roast them" stay, since they say more exactly what is.
"""

from __future__ import annotations

import re

from memstore.ingest.rules.conditions import HAS, IS

APOSTROPHES = {ord(sign): "'" for sign in "’‘ʼ`´"}
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
# Of an "it" only in brackets or behind a comma: "I work late if it is important" says when.
_POLITE = (
    r"(?:just )?(?:if|in case) (?:that|this|any of (?:that|this)|(?(apart)it|this))(?: ever)?(?: (?:matters|helps"
    r"|counts"
    r"|interests you|makes (?:a|any) difference|changes anything|plays a role)|(?:'s| is| should be| might be"
    r"| may be|(?: ever)? becomes)(?: ever)? (?:of (?:any )?(?:use|help|interest|importance)|any help|relevant"
    r"|important|useful|helpful"
    r"|what you (?:mean|meant|ask)))(?: (?:at all|here|to you|for (?:you|this|that|the \w+)|(?:some|one) day"
    r"|at some point))?"
    r"|(?:if|in case|since) you(?:'re| are| were) (?:wondering|asking|curious|interested)"
    r"|(?:if|since|because) you (?:ask(?:ed)?(?: me)?|mention(?:ed)? it|brought it up)"
    r"|(?:if|in case) you (?:(?:must|want to|need to|care to|would like to|didn't|did not|don't|do not) know(?: (?:it"
    r"|that|this))?|forgot|wondered|care)|since we(?:'re| are) (?:talking|speaking)(?: (?:about|of) [^,.;!?\n]{1,30})?"
    r"|if I (?:may(?: (?:say|add)(?: (?:so|that))?)?|am honest|'m honest)|if I'm honest"
    r"|(?:nur )?falls (?:das|es|dies|dir das)(?: (?:mal|einmal|irgendwann|je|jemals|später|dafür|hier|für dich))*"
    r" (?:(?:wichtig|relevant|von belang|hilfreich|nützlich) (?:ist|wird|werden sollte|sein sollte)|eine rolle spielt"
    r"|hilft|interessiert|zählt)"
    r"|si (?:ça|cela) (?:aide|peut aider|compte|t'intéresse|vous intéresse)|si (?:eso )?(?:importa|ayuda|sirve)"
)
# Begun behind a letter: runs of blanks are what earlier asides left, and are not to be tried from each of them.
_BEFORE = r"(?:(?<=\S)\s{0,400},\s{0,9}|(?<=\S)\s{1,9}[-–—]\s{1,9})"
# The second comma goes with it, but where it parts two clauses.
_AFTER = (
    r"(?:,(?=\s+(?:to|in|at|for|with|from|on|of|as|and|or|gegen|und|et|à|aux|y|a (?:l[ao]s?|el))\s"
    r"(?![^,.;:!?\n]{0,60}\b(?:I|we|he|she|they|it)\b)))?"
)
_ENDS = r"(?=\s{0,400}(?:[,.;:!?)\n]|\s[-–—]\s|$))"
_SET_OFF = re.compile(rf"{_BEFORE}(?:{_PHRASES}){_ENDS}{_AFTER}", re.IGNORECASE)
_IN_BRACKETS = re.compile(rf"(?<=\S)\s?(?P<apart>\()(?:{_PHRASES}|{_POLITE})[.!]?\)", re.IGNORECASE)
_BEHIND_AND = re.compile(rf"(?:(?<=\band)|(?<=\bbut)|(?<=\bthat)), (?:{_PHRASES}),(?= )", re.IGNORECASE)
_UNMARKED = re.compile(
    rf"(?:(?P<apart>{_BEFORE})|(?<=\S)(?<!\bonly)(?<!\beven)\s{{1,400}})"
    rf"(?:{_POLITE}|by the way|btw|fyi|just so you know|as I said|like I said)"
    rf"(?:{_ENDS}|(?=\s+(?:if|in case)\s)){_AFTER}",
    re.IGNORECASE,
)

_GAP = re.compile(r"\s{2,}(?=[:;])")  # left by an aside; a single blank there is French
# Of what somebody has or is, whatever happens; of what they do not eat, there may be exceptions.
_STATE = (
    rf"\b(?:allergic|intolerant|c(?:o)?eliac|allergisch|allergique|alérgic[oa])\b|\b(?:am|is|are|'m|'s) {IS}|\b{HAS}"
)
_CANNOT = r"\b(?:can't|can ?not) eat\b"
_HABIT = r"\b(?:vegan|vegetarian|vegetarier(?:in)?|(?:don't|do not|doesn't|does not) eat)\b"
# What "we" or "you" do, or what there will be, has no part in it; "they" may be what one is allergic to.
_OTHERS = r"(?:we|you(?! (?:do not |don't )?(?:count|ignore|call|consider))|your|anyone|anybody|someone|somebody)\b"
_IF_OTHERS = (
    rf"(?:(?:if|in case)\s+there\b|(?:if|in case|when(?:ever)?|should)\s+{_OTHERS}"
    r"|(?:falls|wenn|sofern)\s+(?:wir|ihr|du|jemand)\b|(?:si|au cas où|quand)\s+(?:on|nous|tu|vous|quelqu'un)\b"
    r"|(?:si|por si|cuando)\s+(?:vamos|cocinamos|comemos|hacemos|alguien|vais|hay)\b)"
)
# A condition of another clause, or one that is meant, is not looked for behind these.
_NOT_BEYOND = (
    r"\b(?:if|in case|when(?:ever)?|should|falls|wenn|sofern|si|au cas où|por si|cuando|quand|but|only|even|especially"
    r"|mainly|mostly|particularly|except|I|we|he|she|they|you|aber|nur|ich|wir|mais|je|pero|yo)\b"
)
_STOP = (
    r"(?:[.!?;\n)\"“”„«»]|$|,?\s{1,400}(?:so|but|and|aber|und|also|donc|mais|pero|así)\s{1,9}(?:I|my|we|our|you|please"
    r"|pls|no|don't|do not|can|could|what|which|that's|ich|bitte|mein\w*|wir|(?-i:[A-Z])\w+ (?:is|has|can))\b"
    r"|,\s{1,400}(?:I|my|our|he|she|ich|mein\w*|je|mon|ma|yo|mi|(?-i:[A-Z])\w+ (?:is|has|can)|and to|and also"
    r"|und gegen|please|pls|so|but|can|could|what|which|bitte|also|aber)\b)"
)
_CONDITION = re.compile(
    rf"(?:{_STATE}|{_CANNOT}|(?P<habit>{_HABIT}))(?:(?!{_NOT_BEYOND})[^.!?;:\n()\"“”„«»]){{0,60}}?"
    rf"(?P<cut>(?(habit)(?:{_BEFORE}|\s(?=\())|{_BEFORE}?)\s{{0,400}}(?<!\w)(?P<open>\()?(?:just )?{_IF_OTHERS}"
    rf"(?:(?!{_STOP}).){{1,200}}+(?={_STOP})(?(open)\)))",
    re.IGNORECASE,
)
_CONDITION_FIRST = re.compile(
    rf"(?:^|(?<=[.!?;\n])[ \t]{{0,9}})(?P<cut>(?:(?P<if>if|in case)\s+(?:there\b|{_OTHERS})|when(?:ever)?\s+{_OTHERS})"
    r"[^.!?;,\n\"“”„«»]{1,80},)(?=\s+(?:(?:please )?(?:remember|note|keep in mind) (?:that )?)?"
    r"(?:I|(?:my|our) \w+(?: \w+)?)(?:'m|'s| am| is| has| have)?(?: \w+)? ?"
    rf"(?:{_STATE}|(?(if){_HABIT}|(?!))))",
    re.IGNORECASE,
)


def without_asides(text: str) -> str:
    """Blank the asides of a text; the same text where it has none, and always of the same length."""
    told = plain = text.translate(APOSTROPHES)
    for pattern in (_IN_BRACKETS, _BEHIND_AND, _SET_OFF, _UNMARKED):
        told = pattern.sub(lambda found: " " * len(found[0]), told)
    for pattern in (_CONDITION, _CONDITION_FIRST):
        told = pattern.sub(_without_condition, told)
    if told == plain:
        return text
    return "".join(" " if left == " " else was for was, left in zip(text, told, strict=True))


def _without_condition(found: re.Match[str]) -> str:
    start, stop = found.span("cut")
    kept = found.string[found.start() : start], found.string[stop : found.end()]
    return f"{kept[0]}{' ' * (stop - start)}{kept[1]}"


def closed_up(words: str) -> str:
    """Give words without the gaps that asides have left between them."""
    return " ".join(_GAP.sub("", words).split()).replace(" ,", ",")
