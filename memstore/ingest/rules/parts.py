"""Clauses that say several things that last, each told for itself: what changes one of them leaves the others.

    "I live in Hamburg with my husband"  -> "I live in Hamburg", "I live with my husband"
    "I'm vegan and allergic to nuts"     -> "I'm vegan", "I'm allergic to nuts"
    "My sister lives in Lyon and works"  -> stays: what she works as would be left out

A part gets the subject, the verb or all that stands before the first of a list, whichever makes it something that a
rule is sure of. What no rule is sure of stays with what is before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from memstore.ingest.rules.medicines import DOSE, MEDICINE
from memstore.ingest.rules.thirdperson import agreeing_verb, is_past, is_present
from memstore.ingest.rules.turns import instead, turned, turns_in
from memstore.ingest.rules.word_lists import GERMAN_JOBS, JOBS, ROLES

Sure = Callable[[str], bool]
MOST = 12  # places at which a clause may be parted: each is tried with every rule


class Part(NamedTuple):
    """What one part of a clause says, with its subject, and where it stands in the clause."""

    words: str
    start: int
    stop: int


class _Joints(NamedTuple):
    """How a language joins what it says of one subject."""

    subject: re.Pattern[str]  # at the start of a clause, with the verb
    joined: re.Pattern[str]  # between two parts
    listed: re.Pattern[str]  # what stands before a list, each thing of which is a fact: "I'm allergic to"
    several: re.Pattern[str]  # such a list with commas
    beside: tuple[re.Pattern[str], ...]  # groups one and two: two things said of one verb


_OPEN = re.compile(
    r"\b(?:it|them|there|that|this|those|these|both|together|either|neither|something|anything|others?|es|sie|das|dort"
    r"|beide|zusammen)\b",
    re.IGNORECASE,
)
_NAME = (
    r"(?!(?:It|That|This|He|She|They|There|The|Ich|Er|Sie|Es|Das|Wir|I|We|You)\b)(?-i:[A-ZÄÖÜÉ][a-zà-ÿß]+)"
    r"(?:'s? [\w-]+)?"
)
_DENIES = re.compile(r"(?:not|n't)$", re.IGNORECASE)
_LISTED = re.compile(r" (?:to|gegen|eat|keine?n?|takes?|taking|(?:am|is) on|nehme|nimmt)$|'m on$", re.IGNORECASE)
# "…, like my sister" compares, "and like hiking" says something.
_COMPARED = (
    r"(?:I|we|he|she|they|you|it|my|our|his|her|their|the|an?|this|that|these|those|most|many|all|every\w*|half|some\w*"
    r"|so|others?|people|kids|children|in|at|on|last|when|before|always|usual)(?!\w)|(?-i:[A-Z])"
)
_NO_PART = re.compile(
    r"(?:sorry|haha|lol|ok(?:ay)?|right|yeah|unfortunately|sadly|luckily|obviously|apparently|actually|probably|maybe"
    r"|perhaps|possibly|etc|leider|vielleicht|wahrscheinlich"
    rf"|if|unless|when(?:ever)?|while|since|because|as(?! an? )|like(?= (?:{_COMPARED}))|just|though|although|until"
    r"|before|after|especially|mainly|mostly|at least|in case|by the|you know|I think|wenn|falls|weil|seit|während"
    r"|obwohl|wie|besonders|zumindest"
    r"|not|but|so|which|who|where|please|thanks|no|yes|nicht|sondern|aber|wo|bitte|kein\w*"
    r"|I|we|he|she|they|you|ich|wir|er|sie|es|du|ihr|man|(?:mein|unser)e?"  # it has a subject itself
    rf"|{DOSE}(?! (?:of|von|{MEDICINE})\b))(?!\w)",  # how much of what stands before it
    re.IGNORECASE,
)
_ADVERB = re.compile(r"(?:just|actually) (?=\w)", re.IGNORECASE)  # "and just adopted a dog"
_EITHER = re.compile(r"\b(?:or|oder)\b", re.IGNORECASE)  # "vegan or vegetarian": one of them; "not … or …": neither
_DENYING = re.compile(r"\b(?:not|no|never|neither|without|nicht|nie|keine?n?|weder|ohne|can't)\b|n't\b", re.IGNORECASE)
# Behind such a word a list goes on with what is not so: "not allergic to peanuts, just to almonds and cashews".
_TURNS = re.compile(
    r"\b(?:only|just|not|but|except\w*|excluding|rather|instead|however|unlike|apart from|other than|unless|without"
    r"|never|though|yes|no|respectively|nur|bloß|nicht|sondern|außer|ausser|ohne|sonst|aber|jedoch|stattdessen|dafür"
    r"|doch|ja|schon|anders)\b|(?:my|our|his|her|their|meine?|unsere?) (?:[\w-]+ ){1,3}?(?:to|gegen)\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:my|our|his|her|their) ", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(r"\S+ (?:is|are|was|were|has|had|does|did)(?!\w)", re.IGNORECASE)
# What follows another subject: "…, red is ugly" is a clause of its own, and nothing that blue is.
_FINITE = re.compile(
    r"\S+(?: (?!which |that |who )\S+){0,5}? (?:(?:is|are|was|were|has|have|had|does|do|did|can|will|must|should)"
    r"(?:n't)?|can't|won't|not|ist|sind|war|waren|hat|haben|kann|wird|nicht)(?!\w)",
    re.IGNORECASE,
)
_STATES = frozenset(
    ("divorced", "engaged", "married", "retired", "separated", "tired", "widowed", "left-handed", "bred")
)
# Behind such a verb a second one may stand that looks like an adjective: "Ich arbeite bei Zeiss und koche gern".
_GERMAN_VERB = re.compile(r" (?:(?:wohn|leb|arbeit|hab)e?[nt]?|hat|esse|isst|spreche|spricht)$")
_OBJECT_IN_GERMAN = re.compile(
    r"(?:als|bei|in|für|mit|an|auf|seit|am|im|gegen|eine?n?|keine?n?|zwei|drei|etwas|fließend|kein\w*)\b|[A-ZÄÖÜ\d]"
)
_OFTEN = r"(?: (?:also|now|still|currently|actually|just|auch|jetzt|nun|inzwischen|aktuell|noch))*"


def _joints(subject: str, verb: str, joined: str, listed: str, *beside: str) -> _Joints:
    own = rf"(?P<subject>{subject}|{_NAME})(?P<verb>'m|'re|'s|{_OFTEN} (?:{verb})){_OFTEN}(?= )"
    compiled = [re.compile(rf"{own} {form}", re.IGNORECASE) for form in beside]
    return _Joints(
        re.compile(own, re.IGNORECASE),
        re.compile(rf"\s*(?:(?<!\d),|,(?!\d))\s*(?:(?:{joined})\s+)?|\s+(?:{joined}|&)\s+", re.IGNORECASE),
        re.compile(listed, re.IGNORECASE),
        re.compile(rf"{listed} [\w-]+(?: [\w-]+)?(?:, [\w-]+(?: [\w-]+)?)+,? (?:{joined}) ", re.IGNORECASE),
        tuple(compiled),
    )


# Where somebody works: "at the weekend" is a time.
_WHERE_EN = (
    r"(?:(?:at|for|with) (?-i:[A-Z])|at the (?!weekends?\b|moment|minute|same|start|beginning|end\b|time|age|top))"
    r"[^,]{1,60}"
)
_WHERE_DE = r"(?:(?:bei|für)(?: der)? |(?:in|an) (?:der|dem) )(?-i:[A-ZÄÖÜ])[^,]{1,40}"
_WORKS = {"am": "work", "are": "work", "is": "works", "'m": " work", "'re": " work", "'s": " works"}
_WORKS |= {"bin": "arbeite", "sind": "arbeiten", "ist": "arbeitet"}
_JOINTS = {
    "en": _joints(
        r"I|we|(?:my|our) (?:[\w-]+ ){0,2}?[\w-]+",
        r"am|is|are|have|has|live|lives|work|works|am living|is living|am working|is working|speak|speaks|do not"
        r"|does not"
        r"|don't|doesn't|can not|can't|teach|teaches|study|studies|moved|relocated|take|takes"
        r"|no longer takes?|(?:stopped|started) taking",
        r"and also|as well as|and|or",
        r"(?:allergic\s+to|not eat|n't eat|never eat|no longer eat|(?<= )takes?|(?<= )taking|(?:am|'m|is) on)(?= )",
        r"(?P<one>(?:in|near|at) [^,]{2,40}?) (?P<two>with (?:my|our|his|her|their|an?|two|three|four) [^,]{2,60})",
        r"(?P<two>with (?:my|our|his|her|their|an?|two|three|four) [^,]{2,60}?) (?P<one>(?:in"
        r"|near) (?-i:[A-Z])[^,]{1,40})",
        rf"(?P<one>as an? [^,]{{2,40}}?) (?P<two>{_WHERE_EN})",
        rf"(?P<two>{_WHERE_EN}?) (?P<one>as an? [^,]{{2,40}})",
        rf"(?!.*\bstudent )(?P<one>(?:an? |the )?(?:(?!of |in |for )[\w-]+ ){{0,3}}?(?:{JOBS}|{ROLES}))"
        rf" (?P<works>{_WHERE_EN})",
    ),
    "de": _joints(
        r"ich|wir|(?:mein|unser)e? (?:[\w-]+ ){0,2}?[\w-]+",
        r"bin|sind|ist|habe|haben|hat|wohne|wohnen|wohnt|lebe|leben|lebt|arbeite|arbeiten|arbeitet|esse|isst|spreche"
        r"|spricht|nehme|nimmt",
        r"und auch|sowie|und|oder",
        r"(?:allergisch\s+gegen|esse keine?n?|isst keine?n?|(?<= )nehme|(?<= )nimmt)(?= )",
        r"(?P<one>(?:in|bei) [^,]{2,40}?) (?P<two>(?:mit|bei) (?:mein|unser|ein|zwei|drei)[^,]{2,60})",
        r"(?P<two>(?:mit|bei) (?:mein|unser|ein|zwei|drei)[^,]{2,60}?) (?P<one>in (?-i:[A-ZÄÖÜ])[^,]{1,40})",
        rf"(?P<one>als [^,]{{2,40}}?) (?P<two>{_WHERE_DE})",
        rf"(?P<two>{_WHERE_DE}?) (?P<one>als [^,]{{2,40}})",
        rf"(?!.*\bstudent)(?P<one>(?:eine? )?(?:[a-zäöüß-]+ ){{0,2}}?(?:{GERMAN_JOBS})) (?P<works>{_WHERE_DE})",
    ),
}  # fmt: skip

# "My address is Lindenweg 4, 04107 Leipzig" says one thing.
_OF_ONE_VALUE = re.compile(
    r"(?:my|our|meine?|unsere?) (?:[\w-]+ ){0,3}?(?:favou?rite|\w*name|\w*address|\w*adresse|anschrift|\w*number"
    r"|\w*nummer"
    r"|e-?mail)\b",
    re.IGNORECASE,
)
_LONG = re.compile(r"'m\b|'re\b|n't\b", re.IGNORECASE)
# "…, my daughter is", "…, but I don't": of what was said before only the subject and the verb are new.
_ELLIPSES = {
    "en": re.compile(
        rf"(?:(?:but|and) )?(?P<subject>I|we|(?:my|our) (?:[\w-]+ ){{0,2}}?[\w-]+|{_NAME}) (?:(?P<be>is|are|am)"
        r"|(?P<do>does|do))(?P<no> not)?(?: too| either| though)?",
        re.IGNORECASE,
    ),
    "de": re.compile(
        rf"(?:(?:aber|und) )?(?P<subject>ich|(?:mein|unser)e? (?:[\w-]+ ){{0,2}}?[\w-]+|{_NAME}) (?P<be>ist"
        rf"|bin)(?: es)?"
        r"(?P<no> nicht)?(?P<do>)",
        re.IGNORECASE,
    ),
}
# "…, but still no meat": the verb of which this is denied stands in the clause before.
_WITHOUT = {
    "en": re.compile(
        r"(?:(?:but|and|though) )?(?P<often>(?:(?:still|also|absolutely|now) )*)(?P<no>no) (?P<what>(?!longer|idea"
        r"|one|way|more|"
        r"problem|luck|doubt|need|thanks)[\w-]+(?: [\w-]+)?)",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"(?:(?:aber|und|doch) )?(?P<often>(?:(?:weiterhin|noch immer|immer noch|nach wie vor|auch|trotzdem|dafür) )*)"
        r"(?P<no>keine?n?) (?P<what>(?!ahnung|problem|lust|zeit|sorge|angst)[\w-]+(?: mehr)?)",
        re.IGNORECASE,
    ),
}
_OBJECT = {
    "en": re.compile(
        rf"(?P<subject>I|we|(?:my|our) (?:[\w-]+ ){{0,2}}?[\w-]+|{_NAME}){_OFTEN} (?P<verb>eats?|drinks?|have|has"
        rf"|speaks?"
        r"|owns?|takes?)(?= )",
        re.IGNORECASE,
    ),
    "de": re.compile(
        rf"(?P<subject>ich|wir|(?:mein|unser)e? (?:[\w-]+ ){{0,2}}?[\w-]+|{_NAME}){_OFTEN} (?P<verb>esse|essen|isst"
        rf"|trinke"
        r"|trinken|trinkt|habe|haben|hat|spreche|spricht|nehme|nimmt|mag|besitze)(?= )",
        re.IGNORECASE,
    ),
}
# What one is said not to be, and the other is: "I'm no longer allergic to nuts, but my son is".
_DENIED = (
    r"(?:not|no longer|never|hardly|rarely|seldom|nicht mehr|nicht|nie(?:mals)?|kaum|selten|keine?n?)"
    r"(?: any ?more| ever| mehr)?"
)
_ANY_MORE = re.compile(r" (?:any ?more|any longer|at all|yet|mehr)$", re.IGNORECASE)
_NONE = re.compile(
    r"(?:(?:have|has|eat|drink|speak|own|take)s? )?(?:no|neither|nothing|none|nichts|weder)\b", re.IGNORECASE
)
_COMPLETE = {
    "en": re.compile(
        rf"(?:.{{1,40}}?(?P<be> am| is| are)|(?:I|we)(?: do(?= not))?) (?:{_DENIED} )?(?P<rest>\S.*)",
        re.IGNORECASE,
    ),
    "de": re.compile(rf".{{1,40}}?(?P<be> bin| ist| sind) (?:{_DENIED} )?(?P<rest>\S.*)", re.IGNORECASE),
}


def parts_of(clause: str, language: str, sure: Sure) -> list[Part]:
    """Give the parts of a clause; one where it says one thing, or not all of them can be told for themselves."""
    both = [Part(*one) for one in turned(clause, language)]
    if both and all(sure(one.words) for one in both):
        return [part for one in both for part in _listed(one, language, sure)]
    return _told_apart(Part(clause, 0, len(clause)), language, sure)


def _listed(part: Part, language: str, sure: Sure) -> list[Part]:
    """Give the parts of one of two things, by their places in the whole clause."""
    shift = part.stop - len(part.words)
    parts = _told_apart(Part(part.words, 0, len(part.words)), language, sure)
    return [Part(one.words, max(part.start, one.start + shift), max(part.start + 1, one.stop + shift)) for one in parts]


def _told_apart(whole: Part, language: str, sure: Sure) -> list[Part]:
    clause, joints = whole.words, _JOINTS.get(language)
    head = joints.subject.match(clause) if joints else None
    if joints is None or head is None or not sure(clause):
        return [whole]
    if _OF_ONE_VALUE.match(clause):
        return [whole]
    parts = list(_in_order(whole, joints, sure)) or [whole]
    return [one for part in parts for one in _side_by_side(part, joints, sure)]


def subjects_of(clause: str, language: str) -> list[str]:
    """Give what may stand before a clause that goes on with the subject of this one, the likeliest first.

    "I am vegan" gives "I" and "I am"; nothing where the language is unread, or the clause has no subject itself.
    """
    joints = _JOINTS.get(language)
    return _subjects(clause, joints) if joints else []


def lists_in(sentence: str, language: str) -> list[re.Match[str]]:
    """Give where a sentence lists things of which each is a fact, or says that it is not this but that."""
    joints = _JOINTS.get(language)
    return [*joints.several.finditer(sentence), *turns_in(sentence, language)] if joints else []


def completed(clause: str, before: str, language: str) -> str:
    """Give "my daughter Mia is vegan" for "my daughter Mia is" behind "I'm not vegan"; else the clause as it is.

    "but still no meat" behind "I eat fish again" is "I still eat no meat".
    """
    told = _denied(clause.strip(" .!"), before, language) or instead(clause, before, language)
    if told:
        return told
    form, past = _ELLIPSES.get(language), _COMPLETE.get(language)
    found = form.fullmatch(_LONG.sub(_long, clause.strip(" .!"))) if form else None
    whole = past.match(_LONG.sub(_long, before)) if found and past else None
    if not found or not whole or bool(found["be"]) != bool(whole["be"]) or _NONE.match(whole["rest"]):
        return clause
    if found["be"]:
        rest = whole["rest"] if found["no"] else _ANY_MORE.sub("", whole["rest"])
        return f"{found['subject']} {found['be']}{' not' if found['no'] else ''} {rest}"
    if found["no"]:
        return f"{found['subject']} {found['do']} not {whole['rest']}"
    verb, _, rest = whole["rest"].partition(" ")
    first = found["subject"].casefold() in ("i", "we")
    return f"{found['subject']} {verb if first else agreeing_verb(verb)} {rest}"


def _denied(clause: str, before: str, language: str) -> str | None:
    form = _WITHOUT.get(language)
    found = form.fullmatch(clause) if form else None
    whole = _OBJECT[language].match(before) if found else None
    if not found or not whole:
        return None
    words = (found["often"], whole["verb"]) if language == "en" else (whole["verb"], found["often"])
    return f"{whole['subject']} {' '.join(word.strip() for word in words if word)} {found['no']} {found['what']}"


def _long(short: re.Match[str]) -> str:
    return {"'m": " am", "'re": " are", "n't": " not"}[short[0].lower()]


def goes_on(piece: str, subjects: list[str], sure: Sure) -> str | None:
    """Give what a piece of a sentence leaves out before its first word; None where nothing makes sense of it."""
    verb = _ADVERB.sub("", piece, count=1).split(" ", 1)[0]
    if not piece or _OPEN.search(piece) or _OTHER_SUBJECT.match(piece):
        return None
    if _NO_PART.match(piece) and not (_ADVERB.match(piece) and _is_verb(verb)):
        return None
    if _is_verb(verb):  # "I teach and prepare all day": not "I teach prepare all day"
        subjects = subjects[:1]
    elif _FINITE.match(piece):
        return None
    elif len(subjects) > 1 and _GERMAN_VERB.search(subjects[1]) and not _OBJECT_IN_GERMAN.match(piece):
        subjects = [subjects[0], *subjects[2:]]
    lower = piece[0].islower() or piece[0].isdigit()
    if _OWN.match(piece):  # "My dog is called Rex, my cat Miso"
        subjects = [one for one in subjects if _LISTED.search(one)]
    if any(is_present(word) or is_present(word.removesuffix("s")) for word in piece.split()[1:-1]):  # "cats make me"
        subjects = [one for one in subjects if not _LISTED.search(one)]
    before = subjects if lower else [one for one in subjects if _LISTED.search(one)]  # "from Trinidad and Tobago"
    first = f" {piece.split()[0].casefold()}"  # "allergic to nuts and to cats"
    once = [one[: -len(first)] if one.casefold().endswith(first) else one for one in before]
    return next((one for one in once if sure(f"{one} {piece}")), None)


def _is_verb(word: str) -> bool:
    return is_present(word) or is_present(word.removesuffix("s")) or (is_past(word) and word not in _STATES)


def _in_order(whole: Part, joints: _Joints, sure: Sure) -> Iterator[Part]:
    """Part what is joined by "and", as far as each part is told for itself."""
    clause = whole.words
    subjects, listed = _subjects(clause, joints), joints.listed.search(clause)
    begin, left_out = 0, ""
    for gap in islice(joints.joined.finditer(clause), MOST):
        if _EITHER.search(gap[0]) and not _DENYING.search(clause, 0, gap.start()):
            break
        if not begin and (is_past(subjects[-1].split()[-1]) or not sure(clause[: gap.start()])):
            return
        piece = joints.joined.split(clause[gap.end() :], maxsplit=1)[0]
        following = goes_on(piece, subjects, sure)
        if listed and following == subjects[-1] and _TURNS.search(clause, listed.end(), gap.end() + len(piece)):
            break  # the rest stays together, as it was said
        if following is not None:
            yield Part(f"{left_out}{clause[begin : gap.start()]}", begin, gap.start())
            begin, left_out = gap.end(), f"{following} "
    if begin:
        yield Part(f"{left_out}{clause[begin:]}", begin, len(clause))


def _subjects(clause: str, joints: _Joints) -> list[str]:
    head, listed = joints.subject.match(clause), joints.listed.search(clause)
    if head is None:
        return []
    own = [head["subject"], *([] if _DENIES.search(head[0]) else [head[0]])]
    return [*own, *([clause[: listed.end()]] if listed else [])]


def _side_by_side(part: Part, joints: _Joints, sure: Sure) -> list[Part]:
    """Part what is said of one verb: where somebody lives and with whom, what they work as and for whom."""
    for form in joints.beside:
        found = form.fullmatch(part.words.rstrip(" .!"))
        if not found:
            continue
        names = ("one", "works") if "works" in form.groupindex else ("one", "two")
        told = [_told(found, name) for name in names]
        if all(told) and all(map(sure, told)):
            shift = part.stop - len(part.words)  # the words end where the part ends, whatever was put before them
            first, second = sorted(names, key=found.start)
            cut = found.start(second) + shift
            spans = {first: (part.start, max(part.start + 1, cut - 1)), second: (cut, part.stop)}
            return [Part(words, *spans[name]) for words, name in zip(told, names, strict=True)]
    return [part]


def _told(found: re.Match[str], name: str) -> str:
    """Give one of two things with the verb: who is a nurse at Siemens works there. Empty where nobody is anything."""
    *adverbs, verb = found["verb"].split(" ")
    if name == "works":
        verb = _WORKS.get(verb.lower(), "")
    return f"{found['subject']}{' '.join([*adverbs, verb])} {found[name]}" if verb else ""
