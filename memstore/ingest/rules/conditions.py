"""Conditions of health as people name them: by their endings, and the common ones that have none.

"Dyslexia" and "arthritis" are told by their form, "asthma" is not. Endings are only those that nothing else has: by
"-ia" alone a media exam would be an illness, by "-ic" an artist.
"""

from __future__ import annotations

import re

# As a noun, behind "I have": in any of its spellings.
ILLNESS = (
    r"\w{3,}itis|\w*(?:lexia|calculia|praxia|phobia|algia|plegia|rexia|limia|somnia|rhythmia|phrenia|phasia|trophia"
    r"|apn(?:o)?ea|thyroidism|philia)|dysgraphia|an(?:a)?emia|leuk(?:a)?emia|hypoglyc(?:a)?emia"
    r"|asthma|hay fever|diabetes|anxiety|depression|migraines?|adhd|add(?! to\b)|autism|asd|asperger'?s?(?: syndrome)?"
    r"|epilepsy|narcolepsy|eczema|psoriasis|rosacea|acne|c(?:o)?eliac(?: disease)?|cancer|ulcers?|lupus|scoliosis"
    r"|osteoporosis|endometriosis|(?:multiple |ms )?sclerosis|cystic fibrosis|glaucoma|cataracts?|tinnitus|vertigo"
    r"|dementia|parkinson'?s|alzheimer'?s|crohn'?s|tourette'?s?|cerebral palsy|ptsd|ocd|ibs|ibd|pcos|copd|pots|hiv"
    r"|pneumonia|long covid|a pacemaker|a (?:bad |weak )?heart(?= [cdp])|a (?:stutter|stammer|hernia|slipped disc"
    r"|prosthe(?:sis|tic \w+))|(?:heart|thyroid|skin|knee|back|kidney|liver|lung|eye|blood|bleeding|eating|sleep"
    r"|panic|anxiety|bipolar|mental health) (?:condition|problems?|disease|issues?|disorder|attacks?)|bipolar disorder"
    r"|(?:high|low) blood pressure|high cholesterol|chronic (?!pleasure)\w+|\w+ intolerance|\w+ deficiency"
    r"|(?!metabolic |same )\w+(?:'s)? syndrome|\w{4,}'s disease|low vision|a (?:visual|hearing|learning|physical)"
    r" (?:impairment|disability|difficulty)"
)
# As what somebody is.
ILL = (
    r"\w*(?:lexic|calculic|praxic|rexic|limic|phrenic|plegic|leptic|thmatic|[ao]cho?phobic)|claustrophobic|agoraphobic"
    r"|diabetic|(?:pre-?|hypo)diabetic|autistic|an(?:a)?emic|h(?:a)?emophiliac|insomniac|bipolar|c(?:o)?eliac"
    r"|on the (?:autism |autistic )?spectrum|colou?r[- ]?blind|deaf|blind|hard of hearing|hearing[- ]impaired|visually"
    r" impaired|partially sighted|short[- ]?sighted|long[- ]?sighted|neurodivergent|dysgraphic|arthritic"
    r"|immuno(?:suppressed|compromised)"
)
# Words between "have" and the illness: "a mild form of", "type 1".
DEGREE = (
    r"(?:(?:an?|the|my|some|both|really|very|quite|mild|severe|bad|slight|serious|chronic|seasonal|acute|terrible"
    r"|childhood|adult|type (?:1|2|one|two)|bit of|touch of|form of|case of|kind of|history of) )*"
)
_NOT_ILL = r"(?!an? \w*(?:itis|philia) )"
HAS = rf"(?:have|has) (?:got )?{DEGREE}{_NOT_ILL}(?:{ILLNESS})(?!\w)(?! (?:awareness|research|charity|exam|test))"
IS = rf"(?:\w+ )?(?:an? )?(?:{ILL})(?!\w)(?! (?:restaurant|people|children|kids|students?|patients?|friend|to\b|man))"

# What stands before a condition that somebody has, or is said to be, in the languages that facts are read in.
HAS_CONDITION = (
    rf"\b(?:allergic|intolerant|vegan|vegetarian|coeliac|celiac)\b|\b(?:am|is|are|'m|'s) (?:{ILL})\b"
    rf"|\b(?:have|has) {DEGREE}(?:{ILLNESS}|\w+ allergy)\b|\b(?:can't|can ?not|don't|do not) eat\b|\ballergisch\b"
    rf"|\bvegetarier(?:in)?\b|\ballergique\b"
    r"|\balérgic[oa]\b"
)
CONDITION = re.compile(
    rf"(?:I|we|(?:my|our) (?:[\w'-]+ ){{0,3}}?[\w'-]+|(?-i:[A-Z])[\w'-]+(?: [\w'-]+)?) (?:(?:also|both|really|still) )?"
    rf"(?:(?:am|is|are) (?:not )?{IS}|{HAS}|suffers? from (?!(?:the|this|that|being|not)\b)\w)",
    re.IGNORECASE,
)
