"""Whether a date without a year lies behind or ahead, by the words beside it: "met in August", "booked for August".

The clause with the date decides, and where it has no verb, the whole text.
"""

from __future__ import annotations

import re

from memstore.ingest.rules.thirdperson import is_past, is_present

# What was settled lies ahead, though it is told in the past: "I booked a hotel from 10 to 19 October".
_SETTLED = re.compile(
    r"\b(?:confirmed|(?:re-?)?booked|reserved|(?:re-?)?scheduled|postponed|planned|upcoming|will|shall|must"
    r"|need(?:s)? to"
    r"|signed up|invited"
    r"|supposed to|tickets?|registered|enrolled|(?:am|is|are|'m|'s|'re) (?:not )?(?:due|\w{2,}ing)|departs?|departing"
    r"|departure"
    r"|arrives?|arriving|arrival|expires?|check-?(?:in|out)|deadline|(?:was|were|been|got) (?:moved|delayed|pushed"
    r"|brought forward|put off)"
    r"|eingeladen|angemeldet|verabredet|gebucht|umgebucht|bestätigt|reserviert|geplant|verschoben|verlegt|vorgezogen"
    r"|wird"
    r"|werde[nt]?|soll(?:en)?|muss|müssen"
    r"|startet|beginnt|abfahrt|abflug|ankunft|fällig|frist)\b|\w'll\b",
    re.IGNORECASE,
)  # fmt: skip
_FOR = re.compile(r"\b(?:for|für(?: den)?) (?:the )?$", re.IGNORECASE)  # nobody is invited for a day that has passed
# "We moved the wedding to 3 June": nobody moves a thing to a day that has passed. "I moved to York" is of a place.
_MOVED_TO = re.compile(
    r"\bauf den $|\b(?:mov(?:ed?|ing)|push(?:ed)?|(?:re-?)?schedul(?:ed?|ing)|postponed?|shift(?:ed)?|chang(?:ed?|ing)"
    r"|delay(?:ed)?|put (?=off|back)|brought|bring|set|rebook(?:ed)?|bump(?:ed)?|extend(?:ed)?) (?!to |into |in |out "
    r"|away )"
    r"(?:(?!\b(?:and|but)\b|[,;:!?]|(?<!\bdr)\.).){1,80}?\b(?:to|until|till)(?: the)? $",
    re.IGNORECASE,
)
_SINCE = re.compile(r"\b(?:since|seit(?: dem)?) (?:the )?$", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till|til|bis)\b", re.IGNORECASE)
_PAST_DE = re.compile(
    r"\b(?:war(?:en|st)?|hatten?|wurden?|gab|ging(?:en)?|kam(?:en)?|fuhr(?:en)?|flog(?:en)?|zog(?:en)?|begann"
    r"|starb(?:en)?"
    r"|seit|vergangene\w*|(?:\w{2,6})?ge(?!fäll|hör|winn|nieß|schieh|gen|nau|rade|rn|sund|burts|stern|hen|ben"
    r"|räte)\w{2,}(?:t|en)"
    r"|(?:hat|habe|hab|haben|bin|ist|sind)\b[^.;!?]*\b(?:(?:be|er|ver|zer|ent)\w{3,}(?:t|en)|\w{3,}iert))(?=\W|$)",
    re.IGNORECASE,
)
# "Ich habe am 2. Dezember einen Termin": a present without a participle behind it.
_PRESENT_DE = re.compile(
    r"\b(?:habe?|haben|hat|ist|sind|findet|geht|gehen?|fängt|fliege[nt]?|fliegt|fahren?|fährt|reisen?|reist|ziehen?"
    r"|zieht"
    r"|kommen?|kommt|heiraten?|heiratet|besuchen?|besucht|treffen?|trifft|feiern?|feiere|feiert|bekommen?|bekommt"
    r"|arbeiten?|arbeitet|machen?|macht|läuft)\b",
    re.IGNORECASE,
)
_SETTLED_ELSEWHERE = re.compile(
    r"confirmée?s?|réservée?s?|reportée?s?|confirmad[oa]s?|reservad[oa]s?|aplazad[oa]s?|确认|预订|订了|推迟",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_NEAR = 120  # characters before a date in which a verb may say that something is moved to it
_BREAK = re.compile(r"[,;:.!?…](?=\s|$)|\s(?:and|but|und|aber|because|weil)\s|\s[-–—]\s", re.IGNORECASE)
_BE = frozenset({"am", "is", "are", "be", "i'm", "it's", "we're", "he's", "she's", "that's", "they're"})
_OF_NO_TENSE = frozenset(
    {"put", "set", "read", "hit", "cut", "hurt", "beat", "burst", "shut", "spread", "upset", "bed"}
)
_OF_NO_TENSE |= {"red", "wed", "hundred", "used", "better", "bred", "led", "shed", "sacred", "naked"}


def is_past_at(text: str, start: int, stop: int, *, german: bool) -> bool | None:
    """Say whether what stands at `start` to `stop` of a text is told of the past; None where no word tells."""
    if _FOR.search(text, max(0, start - 12), start):
        return False
    if _MOVED_TO.search(text, max(0, start - _NEAR), start):
        return False
    if _SINCE.search(text, max(0, start - 12), start) or text[start:stop].lower().startswith(("since ", "seit ")):
        return True
    begin = max((gap.end() for gap in _BREAK.finditer(text, 0, start)), default=0)
    gap = _BREAK.search(text, stop)
    clause = f"{text[begin:start]} {text[stop : gap.start() if gap else len(text)]}"
    return next((way for part in (clause, text) if (way := _past(part, german)) is not None), None)


def lies_ahead(text: str) -> bool:
    """Whether a French, Spanish or Chinese text tells of something settled, which is still to come."""
    return bool(_SETTLED_ELSEWHERE.search(text))


def _past(words: str, german: bool) -> bool | None:
    if _SETTLED.search(words):
        return False
    if german and _PAST_DE.search(words):
        return True
    if german:
        return False if _PRESENT_DE.search(words) or _UNTIL.search(words) else None
    present = False
    previous = ""
    for word in map(str.lower, _WORD.findall(words)):
        if word not in _OF_NO_TENSE:
            if is_past(word) and previous not in _BE:
                return True
            present |= word in _BE or is_present(word) or is_present(word.removesuffix("s"))
        previous = word
    return False if present or _UNTIL.search(words) else None
