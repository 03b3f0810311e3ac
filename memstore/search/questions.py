"""What a question asks for: a list, an overview, the course of something, an assistant's words. By its form. Pure."""

from __future__ import annotations

import re

from memstore.language import load_phrases, load_words
from memstore.search.dates import NamedDate, asked_time
from memstore.search.outdated import asks_what_holds
from memstore.store.tokenize import terms

_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|i[sz]e|ies)|overview|recap\b|sum (?:\w+ )?up\b)"
    r"|zusammenfass|\bfass\w*\b[^.?!]{1,80}\bzusammen\b|überblick",
    re.IGNORECASE,
)
# An assistant's words are asked for where "you" is the subject of a past verb ("did you offer", "you'd noted"), and by
# what speech leaves: "your advice". Any verb may be one of saying or giving, so those are listed that are not: what
# somebody takes in, knows or wants. "I told you" and "to you" have another subject.
_TAKING_IN = (
    r"know|knew|known|remember\w*|recall\w*|see|saw|seen|hear|heard|get|got|gotten|receiv\w+|notic\w+|lik\w+|lov\w+"
    r"|want\w*|need\w*|understand|understood|forg[eo]t\w*|feel|felt|ha[vds]\w*|been|liv\w+|and|not|ever|also|sleep|slept"
    r"|eat|ate|help\w*|enjoy\w*|us(?:e|ed|ing)|supposed|learn\w*"
)
_OTHER_SUBJECT = (
    r"(?<!\bto )(?<!\bwith )(?<!\bfor )(?<!\bfrom )(?<!\bof )(?<!\babout )(?<!\bby )(?<!\bat )(?<!\bon )(?<!\bthan )"
    r"(?<!\w\wed )(?<!\btold )(?<!\bgave )(?<!\bsent )(?<!\blet )(?<!\bsee )(?<!\btell )(?<!\bask )(?<!\bgive )"
    r"(?<!\bshow )(?<!\bthank )(?<!\bmade )(?<!\bsaid )"
    r"(?<!\bcan )(?<!\bcould )(?<!\bwill )(?<!\bwould )(?<!\bshould )(?<!\bdo )(?<!\bmight )"
)
_ADVERB = r"(?:(?:\w+ly|once|just|already|then|also|ever|first|last|again|even|originally|both|all) ){0,2}"
_PAST = (
    r"(?:\w+(?<!ne)ed|said|told|gave|given|wrote|written|spoken?|made|put|drew|drawn|c[ao]me up|laid|chose|brought"
    r"|showed|shown|taught|led|held|broken? down|(?:went|gone) (?:over|through|with)|set|found|spelled|picked|built)"
)
_SPEECH = "|".join(sorted(load_words("speech")))
_RAT = (
    r"rat|ratschl\w+|empfehlung|vorschl[aä]g|tipp|meinung|antwort|einschätzung|erklärung|hinweis|idee|warnung|begründung"
    "|anleitung|formulierung|entwurf"
)
_PARTIZIP = (
    r"(?!(?:gesehen|gehört|gewusst|gedacht|gewollt|gelesen|bekommen|erhalten|verstanden|vergessen|erinnert|gemerkt|gegessen"
    r"|gemocht|gehabt|gebraucht)\b)(?:(?:\w{2,})?ge\w{2,}(?:t|en)|\w+iert|(?:\w{2,})?(?:be|emp|ent|er|ver|zer)\w{3,}(?:t|en)"
    r"|unter\w+t|über\w+t|wider\w+)"
)
_PARTICIPE = (
    r"(?!(?:vu|entendu|compris|su|pensé|reçu|voulu|pu|dû|eu|lu|oublié|cru|aimé|mangé|été)e?s?\b)"
    r"(?:\w+(?:é|[mp]is|crit|fert|ndu)e?s?|dite?s?|faite?s?|fourni|choisi|averti)"
)
# Most questions address nobody, and are not looked at further: that takes a tenth of the time.
_SECOND_PERSON = re.compile(
    r"\b(?:your?|du|deine?[rnms]?|sie|ihre?[rnms]?|tus?|vous|ton|ta|tes|votre|vos|as-tu|avais-tu|habías)\b|\byou['’]|[ai]ste\b"
    r"|\bhas \w+o\b|你",
    re.IGNORECASE,
)
_WORDS_OF_ASSISTANT = re.compile(
    rf"\bdid you {_ADVERB}(?!(?:{_TAKING_IN})\b)[a-z]{{2,}}"
    rf"|{_OTHER_SUBJECT}\byou(?:'ve|’ve|'d|’d| have| had)? {_ADVERB}(?!(?:{_TAKING_IN})\b){_PAST}\b"
    rf"|\b(?:have|had) you {_ADVERB}(?!(?:{_TAKING_IN})\b){_PAST}\b"
    rf"|{_OTHER_SUBJECT}\b(?:you were|were you) (?!(?:{_TAKING_IN})\b)\w+ing\b"
    rf"|\byour (?:[\w-]+ ){{0,2}}?(?:{_SPEECH})s?\b|\baccording to you\b|\w+(?:ed|en|id|ade) by you\b"
    r"|\b(?:get|got|hear|heard|learn\w*|receive\w*|tips?|advice|answer|recommendations?|suggestions?) from you\b"
    rf"|\b(?:hast|hattest) du\b[^.?!]{{0,80}}\b{_PARTIZIP}\b|\bdu\b[^.?!]{{0,80}}\b{_PARTIZIP} (?:hast|hattest)\b"
    rf"|\b(?:haben|hatten) (?-i:Sie)\b[^.?!]{{0,80}}\b{_PARTIZIP}\b"
    rf"|\b(?-i:Sie)\b[^.?!]{{0,80}}\b{_PARTIZIP} (?:haben|hatten)\b"
    r"|\b(?!(?:woll|konn|soll|muss|durf|möch|moch|wuss|dach|brauch|könn|müss|dürf|hat|hät)test)(?:\w{3,}test|rietst|gabst|schriebst"
    r"|schlugst|sprachst|empfahlst|mein\w+test) du\b"
    rf"|\b(?:deine?[rnms]?|(?-i:Ihre?[rnms]?)) (?:\w+ )?(?:{_RAT})\w{{0,3}}\b"
    r"|\b(?:tu (?:m['’]|nous |l['’])?(?:as|avais)|as-tu|avais-tu|vous (?:m['’]|nous |l['’])?(?:avez|aviez)"
    rf"|avez-vous|aviez-vous)\b[^.?!]{{0,30}}\b{_PARTICIPE}\b"
    r"|\b(?:ton|ta|tes|votre|vos) (?:\w+ )?(?:conseil|avis|recommandation|suggestion|réponse|proposition|explication"
    r"|idée)s?\b"
    r"|\b(?!(?:existe|consiste|insiste|resiste|persiste|asiste|chiste|triste|contraste|desgaste|viste|fuiste|tuviste|pudiste"
    r"|supiste|quisiste|entendiste|recibiste|escuchaste|olvidaste|pensaste)\b)[a-záéíóúñ]{2,}(?:aste|iste)\b"
    r"|\b(?:has|habías) \w+(?:ado|ido|icho|uesto|crito|ierto)\b"
    r"|\btus? (?:consejo|recomendación|recomendaciones|sugerencia|opinión|respuesta|propuesta|explicación|idea)s?\b"
    r"|(?<![跟对给向和与])你(?![的们])[^。？！?我]{0,10}(?:推荐|建议|说的|提到|告诉|.过|.了)|你的(?:建议|意见|回答|推荐|看法)",
    re.IGNORECASE,
)
# A plural just behind "which"; a count; all of something, or what two share; and what somebody has done so far.
_PLURAL = r"(?!(?:this|his|was|is|does|has|us|yes|always|\w*(?:ss|us|is))\b)[a-z]{3,}s"
_LIST = re.compile(
    rf"\b(?:what|which) (?:[\w+&/-]+ ){{0,3}}?(?:{_PLURAL}|people|children)\b"
    r"(?= (?:has|have|had|do|does|did|are|were|is|was|can|could|will|would|might|should|in|of|at|for|with|on|[a-z]+ed)"
    r"\b|[?]|$)"
    rf"|\b(?:what|which|who) (?:are|were|all)\b(?: [\w'’.-]+){{1,4}}? {_PLURAL}\b"
    r"|\b(?:what|which|where|who)(?: kinds?| types?| sorts?)?(?: of)?(?: [\w-]+){0,2} (?:has|have)\b"
    r"|\bhow (?:many|often)\b|\b(?:kinds|types|sorts) of\b|\b(?:both|in common|altogether|so far)\b"
    r"|\b(?:all|each|every) (?:of|the|my|his|her|their|our)\b|\b(?:list|name|enumerate) (?:all|every|some|my)\b"
    r"|\bwie (?:viele|oft)\b|\bwelche [\w-]+(?<!ung)(?<!heit)(?<!keit)(?:[snr]|en|e)\b(?= (?:haben|hat|sind|waren)\b)"
    r"|\bwelche [\w-]+(?<!ung)(?<!heit)(?<!keit)(?:s|n|er)\b|\bwas (?:alles|haben|hat)\b|\bwo überall\b"
    r"|\b(?:beide[nrms]?|sämtliche[nrms]?|gemeinsam|insgesamt|bisher)\b|\bwas für \w+(?:s|n|er)\b"
    r"|\balle[ns]? (?:die|der|den|mein|unser|sein|ihr)\w*\b|\b(?:liste|zähle?|nenne?)\b[^.?!]{0,60}\b(?:auf|alle)\b",
    re.IGNORECASE,
)

# The order of events, or how something went on: as of an overview, the topic stands all over a talk.
_COURSE = re.compile(
    r"\b(?:in (?:what|which)|the|chronological) order (?:in which|that|did|do|have|has|we|i)\b|\bchronolog"
    r"|\b(?:throughout|across|over) (?:all )?(?:of )?(?:our|my|these) (?:\w+ )?(?:conversation|session|chat|talk)s?\b"
    r"|\btimeline\b|\bover time\b|\bover the (?:last |past )?(?:\w+ )?(?:weeks|months|years)\b"
    r"|\bfrom (?:the )?(?:start|first|beginning) to (?:the )?(?:end|last)\b"
    r"|\bhow (?:has|have|did)\b[^.?!]{1,80}\b(?:develop|evolve|progress|unfold|change)(?:ed|d)?\b"
    r"|reihenfolge\b|\b(?:der reihe nach|nacheinander|mit der zeit|im (?:lauf|verlauf)\w*|zeitleiste)\b"
    r"|\bin (?:all )?unseren gesprächen\b|\büber die (?:letzten )?(?:wochen|monate|jahre)\b"
    r"|\bwie (?:hat|haben)\b[^.?!]{1,80}\b(?:entwickelt|verändert|gewandelt)\b",
    re.IGNORECASE,
)
# What is not the topic of such a question: "Can you give me a short summary of how".
_REQUEST = re.compile(
    r"^(?:[\w'’]+,? ){0,8}?(?:summar(?:y|ies|i[sz]e)|overview|recap|timeline|order|reihenfolge|zusammenfassung"
    r"|überblick|zusammen|sum(?: \w+)? up)\b,?"
    r"(?: (?:of|on|in which|that|how|what|von|über|davon|der|die|wie|was)\b,?){0,3}(?= \S+ \S)"
    r"|^(?:bitte )?fass\w*(?: (?:bitte|mir|uns|mal|kurz)\b)*",
    re.IGNORECASE,
)
# What begins and ends within hours or days, by the last word of what the request is for.
_EVENTS, _EREIGNISSE = ("|".join(sorted(load_words("events", code))) for code in ("en", "de"))
_EVENT = re.compile(
    rf"(?:my|our|the|that|this|his|her|their|[\w-]+['’]s) (?:[\w'’-]+ ){{0,4}}?(?:{_EVENTS})\b"
    rf"(?! (?:prep\w*|plan\w*|schedule|series|history|process|search|ideas|industry|business|season))"
    r"|(?:mein|dein|unser|sein|ihr|de[rnms]|das|die|diese)\w{0,2} (?:[\w-]+ ){0,3}?"
    rf"[\w-]*(?:{_EREIGNISSE})(?:e?s)?\b",
    re.IGNORECASE,
)
_OF_TALK = load_phrases("talk")
# Terms of a request for what was said, whatever it was about: the latest turns and summaries answer that.
_NO_TOPIC = load_words("request_terms")


def asks_for_list(question: str) -> bool:
    """Return whether a question asks for several things or a count, by its form, in English or German.

    >>> questions = ("Which cities did we visit?", "Wie viele Katzen hat Eva?", "Where is my bus?")
    >>> [asks_for_list(question) for question in questions]
    [True, True, False]
    """
    return _LIST.search(question) is not None and _has_topic(question)


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks for a summary of what was said, and not of one event, in English or German.

    >>> [asks_for_overview(f"Summarize {topic}.") for topic in ("my training", "my keynote speech of 13 October")]
    [True, False]
    """
    return _OVERVIEW.search(question) is not None and not _names_one_event(question)


def _names_one_event(question: str) -> bool:
    """Whether a request for a summary names one event or a day: what was said of it stands in one place."""
    topic = _REQUEST.sub("", question).lstrip(" ,:")
    if _OF_TALK.search(topic):
        return False
    return _EVENT.match(topic) is not None or any(
        isinstance(date, NamedDate) and date.day for date in asked_time(topic).inside
    )


def asks_for_overview_or_order(question: str) -> bool:
    """Return whether a question asks for an overview, an order of events or the course of something, and of what.

    >>> questions = ("In what order did we visit them?", "Wie hat sich Ida entwickelt?", "Recap!")
    >>> [asks_for_overview_or_order(question) for question in questions]
    [True, True, False]
    """
    return (asks_for_overview(question) or _COURSE.search(question) is not None) and _has_topic(question)


def _has_topic(question: str) -> bool:
    return not _NO_TOPIC.issuperset(terms(_REQUEST.sub("", question)))


def asks_for_now(question: str) -> bool:
    """Return whether a question asks for one thing, and neither for what was nor for a time.

    >>> [asks_for_now(question) for question in ("Where do I live?", "Where did I live?", "Where do I live in May?")]
    [True, False, False]
    """
    time = asked_time(question)
    of_a_time = bool(time.inside or time.outside) or not asks_what_holds(question)
    of_several = asks_for_list(question) or asks_for_overview_or_order(question)
    return not (of_a_time or of_several or asks_for_assistant_words(question))


def without_request(question: str) -> str:
    """Return the topic of a question for an overview or a course; any other question as it is.

    >>> without_request("Could you give me a short summary of how the garden changed?")
    'the garden changed'
    """
    is_request = (_OVERVIEW.search(question) or _COURSE.search(question)) is not None and _has_topic(question)
    return _REQUEST.sub("", question).strip(" ,.?!") if is_request else question


def asks_for_assistant_words(question: str) -> bool:
    """Return whether a question asks for what an assistant said: "Which hotel did you recommend?"

    In English, German, French, Spanish and Chinese. To such a question an assistant's words are as likely an answer as
    a person's.
    """
    return _SECOND_PERSON.search(question) is not None and _WORDS_OF_ASSISTANT.search(question) is not None
