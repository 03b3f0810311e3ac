"""Conditions of health as people name them: by their endings, and the common ones that have none.

"Dyslexia" and "arthritis" are told by their form, "asthma" is not. Endings are only those that nothing else has: by
"-ia" alone a media exam would be an illness, by "-ic" an artist.
"""

from __future__ import annotations

import re

_NAMES = (
    r"\w{3,}itis|\w*(?:lexia|calculia|praxia|phobia|(?<!nost)algia|plegia|rexia|limia|somnia|rhythmia|phrenia|phasia"
    r"|trophia|apn(?:o)?ea|thyroidism|philia)|dysgraphia|an(?:a)?emia|leuk(?:a)?emia|hypoglyc(?:a)?emia"
    r"|asthma|hay fever|diabetes|anxiety|depression|migraines?|adhd|add(?! to\b)|autism|asd|asperger'?s?(?: syndrome)?"
    r"|epilepsy|narcolepsy|eczema|psoriasis|rosacea|acne|c(?:o)?eliac(?: disease)?|cancer|ulcers?|lupus|scoliosis"
    r"|osteoporosis|endometriosis|(?:multiple )?sclerosis|cystic fibrosis|glaucoma|cataracts?|tinnitus|vertigo"
    r"|dementia|parkinson'?s|alzheimer'?s|crohn'?s|tourette'?s?|cerebral palsy|ptsd|ocd|ibs|ibd|pcos|copd|hiv"
    r"|(?-i:POTS|MS(?! (?:Office|Word|Excel|Teams|Windows|Project|Access|Outlook|Paint|DOS)))"
    r"|pneumonia|long covid|a pacemaker|a (?:bad|weak) heart|a (?:stutter|stammer|hernia|slipped disc"
    r"|prosthe(?:sis|tic \w+))|(?:heart|thyroid|skin|knee|back|kidney|liver|lung|eye|blood|bleeding|eating|sleep"
    r"|panic|anxiety|bipolar|mental health) (?:condition|problems?|disease|issues?(?! of)|disorder|attacks?)"
    r"|bipolar disorder|(?:high|low) blood pressure|high cholesterol|chronic \w+|\w+ intolerance|\w+ deficiency"
    r"|(?!same |impost[eo]r )\w+(?:'s)? syndrome|\w{4,}'s disease|low vision|a (?:visual|hearing|learning|physical)"
    r" (?:impairment|disability|difficulty)"
)
# "Breast cancer", "rheumatoid arthritis"; not "have beaten cancer", "that anxiety".
_SORT = (
    r"(?:(?!(?:\w+(?:ed|en)|had|got|done|met|won|lost|read|beat|fought|caught|no|any|not|such|that|this|these|those"
    r"|your|his|her|their|its|with|of|about|for|in|from|against)\b)[\w-]+ )?"
)
_ADJECTIVES = (
    r"\w*(?:lexic|calculic|praxic|rexic|limic|phrenic|plegic|leptic|thmatic)|claustrophobic|agoraphobic|arachnophobic"
    r"|(?:pre-?|hypo)?diabetic|autistic|an(?:a)?emic|h(?:a)?emophiliac|insomniac|bipolar|c(?:o)?eliac"
    r"|on the (?:autism |autistic )?spectrum|colou?r[- ]?blind|deaf|blind|hard of hearing|hearing[- ]impaired|visually"
    r" impaired|partially sighted|short[- ]?sighted|long[- ]?sighted|neurodivergent|dysgraphic|arthritic"
    r"|immuno(?:suppressed|compromised)"
)
# Behind "I have", in any of its spellings; what is about an illness is had by nobody: "a diabetes test".
ILLNESS = (
    rf"{_SORT}(?:{_NAMES})(?!\w)(?! (?:awareness|research|charit(?:y|ies)|exams?|tests?|screenings?|clinics?|wards?"
    r"|nurses?|specialists?|patients?|survivors?|seminars?|lectures?|workshops?|courses?|class(?:es)?|books?|projects?"
    r"|essays?|presentations?|fundraisers?)\b)"
)
# As what somebody is; "my job is helping deaf children" says it of others.
ILL = (
    rf"(?:{_ADJECTIVES})(?!\w)(?! (?:to|people|child(?:ren)?|kids?|students?|patients?|friends?|restaurant|spots?"
    r"|dates?)\b)"
)
# Words between "have" and the illness: "a mild form of", "type 1".
DEGREE = (
    r"(?:(?:an?|the|my|some|both|really|very|quite|mild|severe|bad|slight|serious|chronic|seasonal|acute|terrible"
    r"|childhood|adult|type (?:1|2|one|two)|bit of|touch of|form of|case of|kind of|history of) )*"
)
HAS = rf"(?:have|has) (?:got )?{DEGREE}(?:{ILLNESS}|(?:\w+ )?allerg(?:y|ies)(?!\w))"
IS = rf"(?:(?!\w+ing )[\w-]+ )?(?:an? )?{ILL}"
# A clause that says it of somebody.
CONDITION = re.compile(
    rf"(?:I|we|(?:my|our) (?:[\w'-]+ ){{0,3}}?[\w'-]+|(?-i:[A-Z])[\w'-]+(?: [\w'-]+)?) (?:(?:also|both|really|still) )?"
    rf"(?:(?:am|is|are) (?:not )?{IS}|{HAS}|suffers? from (?!(?:the|this|that|being|not)\b)\w)",
    re.IGNORECASE,
)
