"""Statements that nobody understands without the message beside them: "they" with nobody named, "until then".

Of what friends say to each other the sentence before may say who is meant, and it is joined; an assistant's user who
says "they switched me to it" leaves a fact about nobody.
"""

from __future__ import annotations

import re

from memstore.ingest.rules.word_lists import MONTHS, WEEKDAYS

# A time that was named before.
_THEN = re.compile(
    r"^(?:until|till|by|since|before|after|from) (?:then|that(?! (?:day|time) [A-Z\d]))\b|\b(?:until|till) then$",
    re.IGNORECASE,
)
_THEY = re.compile(r"(?<![\w'])they(?:'(?:re|ve|ll|d))?(?!\w)", re.IGNORECASE)
_FOUND = re.compile(r" (?:have |had )?(?:just |recently |finally )?diagnosed\b", re.IGNORECASE)
_LEAD = re.compile(r"^(?:(?:yesterday|today|last \w+|this \w+|on \w+|now|then|also|so|and|but),? )*", re.IGNORECASE)
# Who "they" may be: names, one's own people and things, several of anything, and bodies of people.
_NAMED = re.compile(
    r"(?:(?<=[\w,;:'’)] )|^(?=[A-Z]\w+ (?:and|&|is|was|has|said|called|wrote)\b))(?!I\b|They\b)(?-i:[A-Z])[\w'’-]+"
    r"|\b(?:my|our|his|her|their|your)(?! own\b) \w+|\b(?!(?:is|was|has|does|as|us|its|this|always|yes|thus|plus|goes"
    r"|sometimes|\w+ss|thinks|says|gets|feels|seems|makes|takes|comes|needs|wants|works|looks|starts|went|news|across"
    r"|perhaps|besides|afterwards|towards|unless|hours|days|weeks|months|years|minutes)\b)[a-z]{2,}s\b|\b(?:people"
    r"|children"
    r"|men|women|kids|family|team|staff|police|crew|couple|company|firm|school|hospital|clinic|surgery|bank|office"
    r"|agency"
    r"|landlord|doctor|gp|dentist|teacher|boss|nurse|manager|somebody|someone|anybody|anyone|everybody|everyone|nobody"
    r"|who|(?:a|the|one) friend|and)\b",
    re.IGNORECASE,
)
# "We move in on the 12th of December": neither where nor with whom.
_PARTICLE = r"(?:in|out|up|on|off|over|back|away|there|here|together|again|soon|now|then|early|late|home)"
_GOING = (
    r"(?:mov(?:e|ed|ing)|check(?:ed|ing)?|set(?:ting)?|arriv(?:e|ed|ing)|leav(?:e|ing)|left|start(?:ed|ing)?|stay(?:ed"
    r"|ing)?|g(?:o|oing|et|etting|ot)|went|com(?:e|ing)|came|meet(?:ing)?|met|head(?:ed|ing)?|land(?:ed|ing)?)"
)
_BARE = re.compile(
    rf"we (?:(?:will|are|were|have|had|can|just|finally|also|all|both|going to|then) )*{_GOING}(?: {_PARTICLE})*"
    r"(?:(?:,| on| at| in| by| this| next| last| tomorrow| yesterday| today| tonight| every| before| after| until| from"
    rf"| the| of| early| mid| late|(?: \d[\w:.]*)| (?:{WEEKDAYS})day| {MONTHS.replace('|', '| ')}"
    r"| week| month| year| weekend| morning| afternoon| evening| night| noon| spring| summer| autumn| winter)(?!\w))*",
    re.IGNORECASE,
)


def dangles(plain: str) -> bool:
    """Whether a statement, in the speaker's words, is about somebody or some time that only the talk before tells."""
    words = _LEAD.sub("", plain, count=1)
    if _THEN.search(words) or _BARE.fullmatch(words):
        return True
    found = _THEY.search(plain)
    if found is None or _FOUND.match(plain, found.end()):  # whoever found it, it is so
        return False
    return not _NAMED.search(plain, 0, found.start())
