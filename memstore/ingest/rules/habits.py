"""What people do every week, and no longer do: rows of English slots.

Two days of one habit stand beside each other; "from now on" puts the new one in the place of the old. A day that is
denied ends nothing else: who does not go on Mondays may go on Tuesdays.
"""

from __future__ import annotations

_DONE = (
    r"(?:go(?:es)?|going)(?: to)?(?: the| my)? (?P<t>(?!(?:morning|evening|being|everything|something|anything"
    r"|nothing|shopping for)\b)(?:[a-z]{2,}ing|gym|church|choir|yoga|pilates|zumba|crossfit)"
    r"(?: practice| training| classe?s?| lessons?)?)|(?:play(?:s|ing)?) (?:the )?(?P<t>(?!(?:a|an|in|with|on|for|at"
    r"|it|that|this|games?|my|the)\b)"
    r"[a-z]{3,})|(?:do(?:es)?|doing) (?P<t>yoga|pilates|karate|judo|aikido|zumba|crossfit|ballet|gymnastics|athletics)"
)
_WHEN = r"(?P<v>(?:<day>)day(?: (?:and|&) (?:<day>)day)?)s?(?: (?:morning|afternoon|evening|night)s?)?"
_ON = rf"(?:\w+ ){{0,2}}?(?:every|each|on)(?: other)? {_WHEN}"
_OFTEN = r"(?:(?:now|usually|always|normally|regularly|also|still|generally|mostly|often) )*"
# "My piano lessons are on Mondays": the plural is what makes it a habit, and no appointment.
_COURSE = (
    r"(?P<t>(?:(?!no |new |next |first |last |my |our )[\w-]+ ){0,2}?(?:lessons|classes|training|practice|rehearsals"
    r"|therapy))"
)
_DAYS = r"(?:(?:on |every )(?P<v>(?:<day>)day(?:s? (?:and|&) (?:<day>)day)?)s|every (?P<v>(?:<day>)day))"
_NEW = r"(?:from now on|starting (?:now|next week)|as of now|going forward|nowadays)"
_ENDED = r"(?=[.,!]|$| (?:last|this|because|since|in|a|two|three|\d+|now|any ?more|so|but)\b)"
_SPORT = (
    r"swimming|running|jogging|cycling|climbing|bouldering|dancing|riding|skiing|surfing|rowing|boxing|fencing|hiking"
    r"|skating|singing|painting|drawing|knitting|fishing|volunteering|coaching"
)
HABITS_OVER = (
    ("former/habit/{t}!", "*", rf"(?:I|we) {_OFTEN}(?:(?:have )?(?:stopped|quit|given up|gave up)|no longer)"
     rf" (?:{_DONE}){_ENDED}"),
    ("former/habit/{t}!", "*", rf"(?:I|we) {_OFTEN}(?:have )?(?:stopped|quit|given up|gave up) (?P<t>{_SPORT})"
     rf"{_ENDED}"),
    ("former/habit/{t}!", "*", rf"(?:I|we) {_OFTEN}do not {_OFTEN}(?:{_DONE}) (?:at all )?any ?more"),
    ("former/habit/{t}!", "", rf"(?:I|we) {_OFTEN}(?:no longer|do not(?=.{{1,60}} any ?more)) (?:{_DONE}) {_ON}"),
)  # fmt: skip
HABITS = (
    ("habit/{t}!", "", rf"{_NEW},? (?:I|we) {_OFTEN}(?:will )?have (?:my |our )?{_COURSE} {_DAYS}"),
    ("habit/{t}!", "", rf"(?:my|our) {_COURSE} (?:are|is) {_OFTEN}{_DAYS} (?:now|instead|from now on)"),
    ("habit/{t}!", "", rf"(?:my|our) {_COURSE} (?:are|is) now {_DAYS}"),
    ("+habit/{t}", "", rf"(?:I|we) {_OFTEN}have (?:my |our )?{_COURSE} {_DAYS}"),
    ("+habit/{t}", "", rf"(?:my|our) {_COURSE} (?:are|is) {_OFTEN}{_DAYS}"),
    ("habit/{t}!", "", rf"{_NEW},? (?:I|we) {_OFTEN}(?:will )?(?:{_DONE}) {_ON}"),
    ("habit/{t}!", "", rf"(?:I|we) {_OFTEN}(?:{_DONE}) {_ON} (?:now|instead|from now on)"),
    ("+habit/{t}", "", rf"(?:I|we) {_OFTEN}(?:{_DONE}) {_ON}"),
    ("+habit/{t}", "yes", rf"(?:I|we) {_OFTEN}(?:{_DONE}) (?:once|twice|three times|every|each|regularly|most)(?!\w)"),
)  # fmt: skip
