"""Medicines as people name them: by the stems that their names end in, common brands, and what they are for.

"I take the bus twice a day" says when as well: how often something is taken does not make it a medicine.
"""

from __future__ import annotations

_STEMS = (
    r"\w{2,}(?:formin|gliptin|gliflozin|glutide|glitazone|cillin|mycin|micin|cycline|oxacin|statin|prazole|sartan|olol"
    r"|dipine|zepam|zolam|oxetine|triptyline|pramine|triptan|parin|xaban|gatran|profen|codone|codeine|morphine|conazole"
    r"|cyclovir|lukast|sterone|solone|sonide|thiazide|semide|lactone|afil|tadine|rizine|apine|idone|barbital|racetam"
    r"|pentin|gabalin|thyroxine?|dronate|tinib|zumab|ximab|limumab|cept|methasone|triptorelin|azepine|trigine|faxine)"
    r"|(?:lisino|rami|enala|perindo|capto|bena|quina|fosino)pril"
)
_NAMES = (
    r"insulin|aspirin|ibuprofen|paracetamol|acetaminophen|naproxen|diclofenac|metamizole?|warfarin|heparin|clopidogrel"
    r"|lithium|prednisone|cortisone|hydrocortisone|prednisolone|digoxin|methotrexate|tamoxifen|letrozole|sertraline"
    r"|citalopram|escitalopram|bupropion|trazodone|mirtazapine|lamotrigine|valproate|topiramate|methylphenidate"
    r"|salbutamol|albuterol|estradiol|oestrogen|estrogen|progesterone|melatonin|tramadol|oxycodone|methadone|naltrexone"
    r"|ozempic|wegovy|mounjaro|zepbound|saxenda|trulicity|victoza|rybelsus|jardiance|januvia|lantus|humalog|novorapid"
    r"|prozac|zoloft|lexapro|cipralex|celexa|paxil|cymbalta|effexor|wellbutrin|xanax|valium|ativan|ambien|seroquel"
    r"|abilify|adderall|ritalin|concerta|vyvanse|elvanse|strattera|medikinet|lipitor|crestor|eliquis|xarelto|marcumar"
    r"|plavix|synthroid|levothyroxin|euthyrox|ventolin|symbicort|singulair|humira|enbrel|remicade|dupixent|imuran"
    r"|advil|tylenol|aleve|motrin|nurofen|voltaren|zyrtec|claritin|benadryl|nexium|omeprazole?|viagra|cialis|accutane"
    r"|roaccutane|botox"
)
_KINDS = (
    r"antibiotics|anti-?depressants?|anti-?histamines?|blood (?:thinners?|pressure (?:tablets|pills|meds|medication))"
    r"|beta[- ]?blockers?|statins|painkillers?|sleeping (?:pills|tablets)|steroids|anti-?psychotics|ssris?|immuno"
    r"suppressants|chemo(?:therapy)?|hormone replacement(?: therapy)?|hrt|birth control(?: pills?)?|iron (?:tablets"
    r"|pills)"
)
MEDICINE = rf"(?:{_STEMS}|{_NAMES}|{_KINDS})(?!\w)(?! (?:research|shares?|stocks?|trial|study|class(?:es)?|course)\b)"
DOSE = (
    r"(?:\d+(?:[.,]\d+)?|an?|one|two|three|half an?|eine?|zwei|drei|eine halbe) ?(?:mg|mcg|µg|g|ml|iu|units?"
    r"|milligrams?"
    r"|milligramm|tablets?|pills?|capsules?|drops?|puffs?|tabletten?|kapseln?|tropfen)"
)
# In German its names have the same stems, mostly without the last letter.
GERMAN_MEDICINE = (
    rf"(?:{_STEMS}|{_NAMES}|\w{{2,}}(?:statin|cyclin|oxetin|triptylin|pramin|prazol|mycin|dipin|codein|thiazid|solon"
    r"|semid|lacton|tadin|rizin|apin|azepin|faxin)|antibiotika|antidepressiva|blutverdünner|betablocker|schmerzmittel"
    r"|schlaftabletten|kortison|cortison|antihistaminika|statine|lithium|eisentabletten|blutdrucktabletten)(?!\w)"
)
