"""What makes a clause worth a place in a summary: its own words, and what it answers. English and German."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ASSISTANT = "Assistant"  # the speaker of lines whose advice is worth less than what people settle


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


_NUMBER = re.compile(r"\d")
_FIGURE = re.compile(  # a number that is an amount, a day or a time
    r"[€$£]\s?\d|\d\s?(?:[€$£%°]|(?:euros?|dollars?|pounds?|per ?cent|prozent|[ck]?m²?|mm|mg|k?g|grams?|gramm|[gm]b|ml|k"
    r"|square|times|hours?|minutes?|min|days?|weeks?|months?|years?|a (?:year|month|week|day|term)|pm|am|stunden?|minuten?|tage"
    r"|wochen?|monate?|jahre?|uhr)\b)|\d[.,:]\d|\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:twice|zweimal|dreimal|three times) |\b\d{1,2}\. ?[A-ZÄÖÜ]"
    r"|\b\d{1,2} (?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)\w* \d",
    re.IGNORECASE,
)
_DATE = re.compile(  # a day or an amount of money
    r"[€$£]\s?\d|\d\s?(?:[€$£]|euros?\b|dollars?\b|pounds?\b)|\b\d{1,2}(?:st|nd|rd|th)?\.? (?:of )?(?:jan|feb|mar|mär|apr|may"
    r"|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)\w* \d",
    re.IGNORECASE,
)
_COUNT = _any(
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred|twice",
    r"zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|fünfzehn|zwanzig|dreißig|fünfzig|hundert|zweimal|dreimal",
)
_WHEN = _any(
    r"yesterday|today|tomorrow|tonight|(?:last|next|this|every) (?:week|weekend|month|year|summer|winter)|ago",
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october",
    r"november|december|gestern|heute|morgen|(?:letzte|nächste)\w* (?:woche|monat|jahr)\w*|vor \w+ \w+|montags?",
    r"dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|januar|februar|märz|mai|juni|juli|oktober",
    r"dezember",
)
_MATTERS = re.compile(
    r"\b(?:decid|agree|plan(?:s|ned|ning)?\b|going to|want(?:s|ed)? to|will\b|i'll|we'll|signed up|start(?:ed|ing)"
    r"|joined|bought|moved|booked|got (?:a|my|the)\b|prefer|allerg|favou?rite|never|always|must|need to"
    r"|entschied|beschlossen|vereinbar|geplant|vor\w* haben|werde\b|werden\b|möchte|bevorzug|immer|nie\b|muss\b)",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|my|we|we're|we've|our|ich|mein\w*|wir|unser\w*)\b", re.IGNORECASE)
NAME = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+")
_PLEASANTRY = re.compile(
    r"^\W*(?:hey|hi|hello|wow|thanks?|thank you|bye|see you|take care|good (?:to|morning|luck|night|point)|great|cool"
    r"|nice|awesome|amazing|congrat\w*|sounds|sure|yeah|yes|yep|no problem|that's|glad|so (?:glad|happy)|ok(?:ay)?"
    r"|absolutely|totally|definitely|keep|hallo|danke|tschüss|schön|super|klar|gern\w*|genau|alles (?:gute|klar))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_QUESTION = re.compile(r"[?？؟][\"'”’)»* ]*$")

# What is settled, where it stands: a choice, its opposite, and something done that binds.
_SETTLED = re.compile(
    r"\b(?:let['’]?s|(?:we|i)['’]ll (?:take|go with|go for|have|use|keep)|(?:i|we)['’]d (?:rather|say)|go(?:ing)? with"
    r"|so be it|(?:i|we) (?:take|choose|went with|picked)|decided|agreed|settled|opted|made up (?:my|our) minds?"
    r"|stick(?:ing)? (?:to|with)|instead|rather not|not worth it|ruled? out|turn(?:ed)? down|call(?:ed)? off|scrap(?:ped)?"
    r"|cancel\w*|postponed?|switch(?:ed|ing)? to|swap(?:ped|ping)?|skip(?:ping)?|forget (?:the|it|about)"
    r"|leave (?:the|that|it)|gave in|won['’]t|not? .{0,40}any ?more|no longer|(?:is|are) out|said no|but no|no thanks"
    r"|back (?:up|down) to|(?:i|we)['’](?:m|re) (?:not )?(?:to|doing|taking|getting|going for)|not this (?:year|time)"
    r"|doing that|that['’]s (?:that|settled|decided)|ordering|(?:i|we)['’]?(?:ve)?"
    r" (?:booked|ordered|reserved|signed|chosen|picked|paid|hired|sold|bought)"
    r"|(?:sagen|nehmen|machen|lassen|bleiben|streichen) wir|(?:ich|wir) nehmen?|nehme? ich|statt|stattdessen|doch nicht"
    r"|nicht mehr|lieber nicht|finger weg|entsch(?:ied|eid)\w*|beschlossen|vereinbart|ausgemacht|geeinigt|steht fest"
    r"|gebucht|bestellt|gekauft|unterschrieben|abgesagt|verschoben|gestrichen|fällt (?:weg|aus|flach)|bleibt(?: es|['’]s)?"
    r" (?:bei|dabei)|abgemacht|nein danke|jetzt \w+ (?:ich|wir)|(?:wird|werden) dann|kommt? mit|selber|doch lieber)\b"
    r"|\bit is[.!]?$|\bkeine?[.!]?$|, also \w+[,.!]|, so[.!]?$",
    re.IGNORECASE,
)
# A turn that says back what was settled begins so, or ends so: "24 March, then."
_SAID_FIRST = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|yes|yeah|fine|right|good|hm+|true|well|ja|gut|genau|na|puh)\b\W*)*"
    r"(?:so|then|also|dann|heißt)\b|^\W*(?:ok(?:ay)? |so )*(?:no (?!idea|problem|worries|doubt)[\w-]+|keine? )",
    re.IGNORECASE,
)
_SAID_LAST = re.compile(r"[,.]? (?:then|so|dann)[.!]?$|, then,", re.IGNORECASE)
_TOLD_BACK = re.compile(
    r"^\W*(?:noted|understood|so:|so (?:you|we)|to sum up|in short|in summary|summary|agreed|settled|decided"
    r"|also (?!\w+ (?:wollt|will))|dann also|notiert|verstanden|zusammengefasst|ich halte fest|fazit|abgemacht)\b",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^\W*(?:yes|yeah|yep|ok(?:ay)?|fine|agree\w*|deal|doing that|done|exactly|perfect|ja|genau|gut|einverstanden|passt"
    r"|stimmt)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(  # a sentence that is nothing else
    r"^\W*(?:(?:yes|yeah|yep|no|nope|ok(?:ay)?|fine|agreed?|deal|done|exactly|perfect|great|good|right|true"
    r"|sure|wow|oh|ah|hm+|ha(?:ha)*|lol|well|so|and|but|sorry|please|thanks?|hey|hi|ja|nein|nee|genau|gut|einverstanden"
    r"|passt|stimmt|klar|danke|puh|na|ach|also|hallo|super|schön|natürlich)\b\W*)*$",
    re.IGNORECASE,
)
_TO_DO = _any(
    r"must|need(?:s|ed)? to|have to|has to|due|deadline|appointment|muss|müssen|soll|frist|termin",
    r"(?:ruf|frag|geh|fahr|fang|mach|kauf|verkauf)e? ich|ich (?:ruf|frag|geh|fahr|fang|mach|kauf|verkauf)e?",
    r"(?:i|we|they|she|he)['’]ll",
)
_OPEN = _any(
    r"(?:don['’]?t|do not) know|not sure|no idea|undecided|still (?:open|to)|find out|(?:forgot|have|ought) to ask|whether",
    r"(?:weiß|wissen) .{0,20}nicht|noch nicht|offen|unklar|keine ahnung|ob",
)
# What is only thought of, or general: it may not be what happens.
_UNREAL = _any(
    r"would|could|might|maybe|perhaps|usually|often|common|for example|for instance|suggest\w*|wanted|used to|if|unless",
    r"['’]d (?:be|have)|würden?|wären?|könnten?|vielleicht|üblich|zum beispiel|wollten?|hätten?|wenn|falls|eigentlich",
)


def score_sentence(sentence: str) -> float:
    """Return how much a summary should want this sentence for what it holds, from -1 to 1.

    Up for dates, numbers, names, decisions and what one says of oneself; down for questions, greetings, praise and
    sentences of fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    score = 0.15 * bool(_NUMBER.search(sentence)) + 0.2 * bool(_WHEN.search(sentence))
    score += 0.2 * bool(_MATTERS.search(sentence)) + 0.15 * bool(_FIRST_PERSON.search(sentence))
    score += 0.1 * min(2, len(NAME.findall(sentence)))
    score -= 0.5 * bool(_QUESTION.search(sentence))
    score -= 0.4 * bool(_PLEASANTRY.match(sentence))
    score -= 0.3 * (sentence.isascii() and len(_WORD.findall(sentence)) < 5)
    return max(-1.0, min(1.0, score))


SETTLES, TOLD_BACK, FIGURE, OPEN, TO_DO, ANSWER, GOES_ON, ADVICE, BARE, DATE = 4.0, 6.0, 2.0, 1.0, 0.8, 1.0, 1.0, 0.4, 0.25, 0.5


class Clause(NamedTuple):
    """A part of a sentence that may be quoted without the rest."""

    line: int  # the place of its sentence
    text: str
    needs: int | None  # the place of a clause without which it says nothing: what it goes on from, or the question
    score: float
    extra: float  # how much it weighs beside its words, in clauses: for what is settled and for figures


def read_clauses(lines: Sequence[tuple[str, str]]) -> list[Clause]:
    """Return the clauses of sentences, given with their speakers in order."""
    clauses: list[Clause] = []
    before, question, asked = "", None, None  # who spoke last; the last question of the others, if they ended with it
    settled = accepted = False  # whether the sentence before settles something, or only agrees; of the same speaker
    for number, (speaker, sentence) in enumerate(lines):
        is_first = speaker != before
        if is_first:
            asked, question, settled, accepted = question, None, False, False
        told_back = bool(_TOLD_BACK.match(sentence))
        goes_on, settled = settled, False
        parts = split_clauses(sentence)
        for part, (text, alone) in enumerate(parts):
            is_question = bool(_QUESTION.search(text))
            score, extra, settles = _rate(
                speaker,
                text,
                told_back,
                accepted and len(_WORD.findall(text)) < 4,
                bool(part == 0 and (_SAID_FIRST.match(text) or _YES.match(text)))
                or bool(part == len(parts) - 1 and _SAID_LAST.search(text)),
            )
            if settles:
                settled = True
            elif (goes_on or settled) and not _UNREAL.search(text) and not is_question:
                extra += GOES_ON
            needs = None if alone else len(clauses) - 1
            if asked is not None and speaker != ASSISTANT and not is_question and not _FILLER.match(text):
                if is_first:
                    extra += ANSWER
                if alone and (is_first or settles) and _leans(text):
                    needs = asked
                is_first = False
            clauses.append(Clause(number, text, needs, score, extra))
        accepted = bool(_FILLER.match(sentence) and _YES.match(sentence))
        question = len(clauses) - 1 if _QUESTION.search(sentence) else None
        before = speaker
    return clauses


def _rate(speaker: str, text: str, told_back: bool, accepted: bool, said_back: bool) -> tuple[float, float, bool]:
    score, extra = score_sentence(text), 0.0
    words = len(_WORD.findall(text))
    if _QUESTION.search(text):
        return score, 0.0, False
    if _FILLER.match(text):
        return -0.5, 0.0, False
    has_figure = bool(_FIGURE.search(text))
    if speaker == ASSISTANT:  # who proposes, and may say back what was settled
        settles = told_back or (said_back and has_figure)
        extra += TOLD_BACK if told_back else SETTLES / 2 * settles
    else:
        settles = told_back or accepted or bool(_SETTLED.search(text)) or (said_back and (has_figure or words < 8))
        extra += SETTLES * settles + SETTLES / 3 * (said_back and not settles)
    extra += FIGURE if has_figure else FIGURE * BARE * bool(_NUMBER.search(text) or _COUNT.search(text))
    extra += FIGURE * DATE * bool(_DATE.search(text))
    extra += OPEN * bool(_OPEN.search(text)) + TO_DO * bool(_TO_DO.search(text))
    if speaker == ASSISTANT and not settles:
        score -= ADVICE * (1 + bool(_UNREAL.search(text)))
        extra /= 2
    elif _UNREAL.search(text):
        extra /= 2
    if extra:
        score += 0.4 * bool(_PLEASANTRY.match(text)) + 0.3 * (text.isascii() and words < 5)
    return score, extra, settles


def _leans(text: str) -> bool:
    """Return whether a clause says nothing without the question that it answers."""
    return len(_WORD.findall(text)) < 3 and not NAME.search(text) and not _FIGURE.search(text)


_CUT = re.compile(
    r"(?<=[,;])\s(?=(?P<joined>(?:and|so|then|because|und|also|dann|da|denn|i|we|they|he|she|it|there|you|ich|wir|sie|er"
    r"|es)\b)?)|\s(?=[–—-]+ )",
    re.IGNORECASE,
)
_WHOLE = _any(r"if|unless|whether|when|said|says|say|thinks?|thought|told|wenn|falls|ob|dass|meint|sagt|sagte|glaubt")
_NOT = _any(r"no|not|never|none|cannot|\w+n['’]t|dont|but|nicht|kein\w*|nie|aber|sondern")


def split_clauses(sentence: str) -> list[tuple[str, bool]]:
    """Return the clauses of a sentence, and whether each can stand without the one before.

    Joined by spaces they are the sentence.
    """
    if _QUESTION.search(sentence) or '"' in sentence or "“" in sentence:
        return [(sentence, True)]
    is_whole = bool(_WHOLE.search(sentence))
    clauses: list[tuple[str, bool]] = []
    start, alone = 0, True
    for cut in _CUT.finditer(sentence):
        left, right = sentence[start : cut.start()], sentence[cut.end() :]
        if len(left.split()) > 2 and len(right.split()) > 1 and not _NOT.search(right):
            stands = bool(cut["joined"]) and not is_whole and len(right.split()) > 2
            if is_whole and not stands and _WHOLE.search(right):
                continue
            clauses.append((left, alone))
            start, alone = cut.end(), stands
    return [*clauses, (sentence[start:], alone)]
