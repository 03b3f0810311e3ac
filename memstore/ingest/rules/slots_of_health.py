"""The slots of English that are of the body: what somebody takes, which diet they are on, which baby they expect.

A diet that is for losing weight or for living long takes the place of another; one without gluten or milk takes none,
since who has coeliac disease may eat few carbohydrates too. A baby that is expected is "due", and "due in may" where
that is said: the one tells the other more exactly, another month takes its place.
"""

from __future__ import annotations

import re

from memstore.ingest.rules.medicines import MEDICINE

HEALTH_WORDS = {
    "regimen": r"low[- ](?:carb|fat|calorie)|high[- ]protein|keto(?:genic)?|paleo|atkins|whole ?30|(?:mediterranean"
    r"|dash"
    r"|zone|carnivore|south beach|raw[- ]food)(?= diet)",
    "restriction": r"(?:gluten|dairy|lactose|sugar|nut|egg|soy)[- ]free|low[- ](?:sodium|salt|sugar|fodmap|histamine"
    r"|fibre"
    r"|fiber|potassium)|fodmap|renal|diabetic|liquid|soft|bland|kosher|halal",
    "opening": r"(?:(?:last|this) \w+,? |(?:yesterday|today|sadly|unfortunately|so|well|and|but|oh|no|then),? )*",
    "closing": r"(?=[.,;:!?)]|$| (?:now|again|any ?more|any longer|and|but|because|since|as|so|for|at|this|last|to"
    r"|from|instead"
    r"|right|with|without|currently|these|two|three|a|in|on|yesterday|today|these|after|until|which|already|too|or"
    r"|before)(?!\w))",
    "for_a_while": r"(?! (?:for (?:an?|one|two|three|four|a few|the|this|\d+)|until|during|before|after|while|when|with"
    r"|without|on|at|in the|every|unless|except|more than|once|twice|as|in (?:19|20)\d\d)(?!\w))",
    "years_ago": r"(?!(?: [\w']+){0,6}? (?:(?:19|20)\d\d|years? (?:ago|back)|last year|before|once|when)(?!\w))",
    "term": r"(?:early |late |mid[- ]|the (?:end|middle|beginning) of )?(?:<month>)(?: \d{1,2}(?:st|nd|rd|th)?)?"
    r"|(?:the )?"
    r"\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:<month>)|(?:next |the )?(?:spring|summer|autumn|winter)|(?:next|this)"
    r" (?:week|month|year)",
    "first_name": r"(?!(?:It|That|This|He|She|They|There|The|A|An|My|Our|Your|His|Her|Their|I|We|You|Who|What|Nobody"
    r"|Mum|Mom|Dad)\b)(?-i:[A-Z][a-zà-ÿ]+)",
    "pregnant": r"(?:(?:\w+ )?(?:weeks?|months?) )?(?:pregnant|expecting(?: a (?:baby|child)| twins)?)(?=[.,;:!?)]|$"
    r"| (?:and|but|now|again|with|so|because|at|since|too)(?!\w))",
    "bore": r"(?:lost (?:the|our|my|her) (?:baby|pregnancy)<closing>|had (?:an?|another) (?:miscarriage|stillbirth"
    r"|abortion)"
    r"|miscarried|gave birth|given birth|had (?:the|our|my|her) baby<closing>)",
}
# What is over comes first, before what gives up meat or sugar.
DIETS = (
    ("former/regimen!", "", r"<S:no longer (?:on|following|doing)|not (?:on|following|doing)|off|no longer (?:follow"
     r"|do)"
     r"|do not (?:follow|do)|(?:<stopped>)(?: following| doing| with)?|came off|went off|finished|dropped"
     r"|abandoned/no longer"
     r" (?:on|follows|following|does|doing)|off|not on|(?:<stopped>)(?: following| doing)?|came off>(?:my |the |an? "
     r"|his |her )?"
     r"(?:strict )?(?P<v><regimen>)(?: diet| thing)?<closing><for_a_while>"),
    ("regimen", "", r"<S:on|back on|follow|following|doing|started|went on|gone on|switched to|changed to|moved to"
     r"|went back"
     r" to/on|follows|following|doing|started|went on|switched to>(?:my |the |an? )?(?:strict |very |new |modified )*"
     r"(?P<v><regimen>)(?: diet)?<closing>"),
    ("restriction/{t}!", "no", r"<S:no longer (?:on|following)|not on|off|no longer follow|do not (?:follow|need)"
     r"|(?:<stopped>)"
     r"(?: following)?|came off/no longer (?:on|follows)|off|not on|(?:<stopped>)(?: following)?>(?:my |the |an? )?"
     r"(?P<t><restriction>) diet<for_a_while>"),
    ("restriction/{t}", "yes", r"<S:on|follow|following|started|need|keep to/on|follows|following|needs|keeps"
     r" to>(?:my |the"
     r" |an? )?(?:strict )?(?P<t><restriction>) diet"),
    ("diet", "", r"I have (?:now |always )?been (?:an? )?(?:strict |lifelong )?(?P<v><diet>)(?! (?:before|once|in the"
     r" past))"),
)  # fmt: skip
MEDICATION = (
    ("medication/{t}!", "no", rf"<S:no longer (?:take|use|taking|on)|do not (?:take|use)|never take|not (?:taking|on)"
     rf"|off"
     rf"|(?:<stopped>)(?: taking| using)?|came off|come off|went off|gone off|was taken off|taken off/no longer"
     rf" (?:takes"
     rf"|uses|on|taking)|does not (?:take|use)|stopped (?:taking|using)|came off|not (?:taking|on)|off>(?:my |the "
     rf"|any |his"
     rf" |her )?(?P<t>{MEDICINE})<for_a_while>"),
    ("medication/{t}", "yes", rf"<S:take|taking|on|use|using|started(?: taking| on| using)?|put on|was put on|was"
     rf" prescribed"
     rf"|prescribed|went back on|back on/takes|on|taking|uses|using|started(?: taking| on)?|was prescribed|was put on>"
     rf"(?:my |some |(?:\d+ ?(?:mg|mcg|µg|g|units)|a (?:low|high|small) dose)(?: of)? |the )?(?P<t>{MEDICINE})"),
    ("medication/{t}", "yes", r"<S:take|taking|on/takes|taking|on>(?P<t>(?!about|only|up|some|another)[a-z-]{4,}) \d+"
     r" ?(?:mg"
     r"|mcg|µg|ml)"),
)  # fmt: skip
# Of somebody who is named the slot is the speaker's: "my sister Hanna" is Hanna.
PREGNANCY = (
    ("expecting/{t}!", "no", r"^<opening>(?:(?:my|our) (?:\w+ )?(?:<kin>) )?(?P<t><first_name>) (?:has )?<bore>"
     r"<years_ago>"),
    ("pregnancy!", "no", r"^<opening>(?:(?:I|we)(?: have)?|(?P<who>(?:my|our) (?:\w+ )?(?:<kin>))(?: has)?)(?: just"
     r"| recently|"
     r" sadly"
     r"| unfortunately)* <bore><years_ago>|(?:I am |<S:am/is>)(?:no longer|not) pregnant"),
    ("expecting/{t}", "", r"(?:(?:my|our) (?:\w+ )?(?:<kin>) )?(?P<t><first_name>)(?:'s baby)? is (?:now |actually )?"
     r"(?P<v>due (?:in |on |by |at )?(?:the )?<term>)"),
    ("expecting/{t}", "due", r"(?:(?:my|our) (?:\w+ )?(?:<kin>) )?(?P<t><first_name>) is <pregnant>"),
    ("pregnancy", "", r"(?:I am|we are|(?:my|our|the) (?:baby|twins) (?:is|are)|(?P<who>(?:my|our) (?:\w+ )?(?:<kin>))"
     r"(?:'s baby)? is) (?:now |actually )?(?P<v>due (?:in |on |by |at )?(?:the )?<term>)|my (?P<v>due date is (?:now"
     r" |on |in )*(?:the )?"
     r"<term>)"),
    ("pregnancy", "due", r"(?:(?:I am|we are)(?: now| also| finally)? |<S:am/is>)<pregnant>"),
)  # fmt: skip
# What stands before what others say of the speaker: "The doctor says I'm allergic to nuts".
_NO_DENIAL = r"(?!(?:not|never|no|longer|nor|hardly|does|do|did|is|was|has|have|that|who|which)\b|\w+n't\b)[\w'-]+"
HEARSAY = re.compile(
    r"(?:(?:so|well|and|but|yes|now|also|actually|unfortunately|sadly|yesterday|today|recently"
    r"|(?:last|this) \w+),? )*(?:(?:(?:the|my|our|an?|his|her)"
    r" (?:<word> ){0,2}?<word>|they|he|she|every(?:one|body)|some(?:one|body)|(?:dr\.? )?"
    r"(?!(?:I|No|Nobody|Nothing|Who)\b)(?-i:[A-Z])[\w'-]+) (?:(?:has|have"
    r"|had|also"
    r"|always|still|just|now|all) )*(?:says?|said|tells? (?:me|us)|told (?:me|us)|thinks?|believes?|insists?"
    r"|confirms?"
    r"|confirmed|found(?: out)?|discovered|suspects?|claims?|claimed|reckons?|shows?|showed)|I (?:was|have been"
    r"|just got)"
    r" told|apparently)(?: that)?,? (?P<own>I)(?:(?=')| )(?P<rest>\S.*)".replace("<word>", _NO_DENIAL),
    re.IGNORECASE,
)
