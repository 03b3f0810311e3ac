"""What is over between people, at work and with what they had, and what begins in its place: rows of English slots.

A word of parting is one only of somebody's own: "we broke up the party", "we split up at the station" and "Jonas and I
broke up laughing" end nothing.
"""

from __future__ import annotations

# Behind a parting stands nothing, or when and how it was: not "laughing", "a fight" or "at the station".
_SPAN = (
    r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|several|many|some|\d+) (?:\w+ )?(?:day|week|month"
    r"|year)s?"
)
_OVER = (
    r"(?=\s*(?:[.,;:!?)…—–-]|$)|\s+(?:last|this (?:week|weekend|month|year|spring|summer|autumn|fall|winter)|yesterday"
    r"|today|recently|again|for good|amicably|now|but|so|because|since|already|too|any ?more|years ago|ages ago"
    rf"|(?:after |over )?{_SPAN}|(?:on|last) (?:<day>)day|in (?:the )?(?:(?:early|late) )?(?:<month>|spring|summer"
    r"|autumn|fall|winter|\d{4})|and (?:I|he|she|it))\b)"
)
_NAME = (
    r"(?!(?:It|That|This|He|She|They|There|Who|What|Here|Today|Now|You|One|Everyone|Someone|Somebody|Nobody|And|But|So"
    r"|Yes|No)\b)(?-i:[A-Z])\w+"
)
_LOVED = r"(?:girlfriend|boyfriend|partner|husband|wife|spouse|fianc[ée]e?)"
_THEN = r"(?:(?:have|just|finally|recently|officially|then|also|both|actually) )*"
_PARTED = (
    r"(?:broke up|broken up|split up|separated|parted ways|called it quits|broke it off|broken it off|broke off (?:the"
    r"|our) engagement|(?:are |were )?(?:no longer (?:together|dating|a couple)"
    r"|not (?:together|dating|a couple)(?: with each other)? any ?more))"
)
PARTINGS = (
    ("former/partner!", "", rf"(?P<v>{_NAME}) (?:and|&) I {_THEN}{_PARTED}{_OVER}"),
    ("former/partner!", "", rf"I {_THEN}(?:divorced|dumped|broke it off with|broke off (?:my|the) engagement (?:to"
     rf"|with)|ended (?:it|things) with|broke up with|broken up with|split up with|split up from)"
     rf" (?P<v>{_NAME}){_OVER}"),
    ("former/partner!", "", rf"I am (?:no longer|not) (?:with|dating|seeing|married to|engaged to|together with)"
     rf" (?P<v>{_NAME}){_OVER}"),
    ("former/partner!", "", rf"(?P<v>{_NAME}) is (?:no longer|not) my {_LOVED}{_OVER}"),
    ("former/partner!", "", rf"(?P<v>{_NAME}) (?:divorced|dumped) me{_OVER}"),
    ("former/partner!", "*", rf"(?:my {_LOVED} and I|we) {_THEN}{_PARTED}{_OVER}"),
    ("former/partner!", "*", rf"my {_LOVED} (?:divorced|dumped) me{_OVER}"),
    # Whose wedding is called off are no longer engaged; that of others is only a date that is off.
    ("former/marital_status!", "engaged", rf"(?:I|we) {_THEN}(?:called off|broke off|broken off|cancell?ed) (?:the|our"
     rf"|my) (?:wedding|engagement){_OVER}"),
    ("former/marital_status!", "engaged", r"(?:our|my) (?:wedding|engagement) (?:is|was|has been|got) (?:called off"
     rf"|cancell?ed|off|broken off){_OVER}"),
    ("partner", "", rf"(?P<v>{_NAME}) is my (?:new )?(?:(?:girlfriend|boyfriend|husband|wife|spouse|fianc[ée]e?)"
     r"(?=[.,!;]|$| (?:and|now|since|of|for|who|but|so)\b)|partner(?=[.,!;]|$))"),
    ("former/life!", "*", rf"(?P<who>(?:my|our) (?:old |beloved )?<kin>(?: {_NAME})?"
     rf"|(?:(?<!\w )|(?<=yesterday )|(?<=today )|(?<=sadly )){_NAME})"
     r" (?:has |have )?(?:sadly |just )?(?:died|passed away|had to be put (?:down|to sleep)|was put (?:down|to sleep))"
     r"(?=[.,!;]|$| (?:yesterday|last|this|today|on|in|at (?:the age|home|\d)|of|from|when|after|two|three|four|five"
     r"|a|years|\d+)\b)"),
    # Posts that are not, or no longer, theirs, and a new one, wherever it is.
    ("former/job!", "", r"I (?:will not be|did not become) (?:an? |the )?(?P<v>(?:[\w-]+ ){0,2}?<job>|<role>)"
     r"(?=[.,!]|$| after all| any ?more)"),
    ("former/job!", "", r"I am not (?:an? |the )?(?P<v>(?:[\w-]+ ){0,2}?<job>|<role>) (?:after all|any ?more)"),
    ("former/job!", "", r"I (?:am no longer|(?:have )?(?:stopped being|stepped down as|resigned as)) (?:an? |the )?"
     r"(?P<v>(?:[\w-]+ ){0,2}?<job>|<role>)"),
    ("employer!", "", r"<S:got|found|took|accepted|started|landed/got|found|took|accepted|started>(?:an? |my )"
     r"(?P<new>new) (?:job|position) (?:at|with) (?P<v>(?:the|an?) (?!(?:moment|beginning|start|end|weekend|same"
     r"|age|last|first|top"
     r"|bottom|time|help|right|wrong)\b)(?-i:[a-zà-ÿ])[\w'-]*(?: (?!(?:and|but|so|that|which|because|since|in|on"
     r"|last|this"
     r"|next|yesterday|today|as|with|where|near|for|from|at|to)\b)[\w'-]+){0,3})"),
    ("employer/teaching", "", r"<S:teach|teaching/teaches|teaching>(?:[\w-]+ ){0,3}?at (?-i:(?=[A-Z]))<V>"),
    ("former/car!", "", r"<S:sold|traded in|got rid of|scrapped|totaled/sold|traded in|got rid of|scrapped>(?:my|our"
     r"|the|his|her) (?:old |trusty |little )?(?-i:(?=[A-Z]))(?P<v>[\w-]+(?: (?-i:[A-Z\d])[\w-]*)?)"),
)  # fmt: skip
