"""What people want to become or do with their lives, and no longer want: rows of English slots.

Only what a life is made of is read: what somebody wants of an assistant is the task at hand.
"""

from __future__ import annotations

_LIFE = (
    r"(?:(?:be|become) (?:an? |the |)(?!an? |the |more|less|able|bit|lot|little|sure|honest|clear|careful|like|with|in"
    r"|on|there|here)|(?=(?:study|learn|move|live|work|travel|retire|emigrate|get married|have (?:kids|children)|open"
    r"|adopt|go to (?:uni|university|college|art school|medical school)|run a|buy a (?:house|flat|dog|cat|car"
    r"|farm))\b))"
)
_STOP = r"any ?more|because|since|but|and|so|when|after|before|now|one day|some ?day|later"
# What is wanted is the task at hand.
_OF_NOW = r"today|tonight|tomorrow|this|these|it|that|them|here|there|right now|with you"
_WISHED = (
    rf"(?P<t>(?>(?!(?:study|learn|move|live|work|travel)(?: (?:{_OF_NOW}))?(?:[.,!]|$| any))[\w'-]+"
    rf"(?: (?!(?:{_STOP}|{_OF_NOW})\b)[\w'-]+){{0,4}}))(?! (?:{_OF_NOW})\b)"
)
_OFTEN = r"(?:(?:still|also|always|really|actually|now|just|definitely) )*"
WISHES = (
    ("wants/{t}", "no", rf"I {_OFTEN}(?:do not {_OFTEN}want to|no longer (?:want|wish|plan) to|do not (?:wish|plan) to"
     rf"|have stopped wanting to) {_LIFE}{_WISHED}(?: any ?more)?"),
    ("wants/{t}", "yes", rf"I(?:'d {_OFTEN}(?:like|love) to| {_OFTEN}(?:want to|would {_OFTEN}(?:like|love) to|wish"
     rf" to|plan to|hope to))"
     rf" {_LIFE}{_WISHED}"),
)  # fmt: skip
