"""What makes a clause worth a place in a summary: its own words, and what it answers. English and German.

Sentences are cut into clauses where each says the same alone. What settles something comes first, then days, amounts
and what is open or to be done; what is asked, advised or only thought of comes last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from memstore.models import Role
from memstore.store.tokenize import terms

TOOL = "Tool"  # the speaker of lines about calls
ASSISTANT = Role.ASSISTANT.capitalize()  # who proposes and says back; what it advises may not be what happens

# What a clause weighs beside its words, in clauses of mean weight: tried on made-up sessions, with LoCoMo as the guard.
SETTLES, TOLD_BACK, GOES_ON = 3.0, 5.0, 1.0  # something; an assistant that sums it up; the sentence after
FIGURE, BARE, DATE = 2.0, 0.5, 2.0  # a number with a unit, without one, and more for days and money
OPEN, TO_DO, ANSWER = 0.6, 0.4, 0.6
LATER = 0.3  # how much more the last decision weighs than the first: it may have changed it
CONFIRMS, CHOICE = 3.0, 1.5  # a "yes" with what it agrees to; a few words that name what was spoken of
ECHO_TURNS, SHORT, RECAP = 7, 7, 0.7
TAKEN_UP, PRAISED, DISPOSES, INTENDS = 1.0, 0.5, 1.5, 1.5
MORE, WHEN = 0.7, 0.7
QUESTION, ADVISED, UNREAL = 0.0, 0.5, 0.5
ADVICE = 0.4  # off the score of what an assistant says of itself


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b")


# All but names are searched in lower-cased text, which takes half the time of ignoring case.
NAME = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+")
_WORD = re.compile(r"\w+")
_QUESTION = re.compile(r"[?？؟][\"'”’)»* ]*$")
_NUMBER = re.compile(r"\d")
_NUMBERS = re.compile(r"\d+(?:[.,:]\d+)*")
_MONTH = r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"
_MONEY = r"[€$£]\s?\d|\d\s?(?:[€$£]|(?:euros?|dollars?|pounds?)\b)"
_DATE = re.compile(rf"{_MONEY}|\b\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}|\b{_MONTH}\w* \d")
_FIGURE = re.compile(
    rf"{_DATE.pattern}|\d\s?(?:[%°]|(?:per ?cent|prozent|[ck]?m²?|mm|mg|k?g|grams?|gramm|[gm]b|ml|k|square|times|hours?"
    r"|minutes?|min|days?|weeks?|months?|years?|a (?:year|month|week|day|term)|pm|am|stunden?|minuten?|tage|wochen?"
    r"|monate?|jahre?|uhr)\b)|\d[.,:]\d|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}\. ?[a-zäöü]"
    r"|\b(?:twice|zweimal|dreimal|three times) |\b\d{2,}\b"
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
    r"|entschied|beschlossen|vereinbar|geplant|vor\w* haben|werde\b|werden\b|möchte|bevorzug|immer|nie\b|muss\b)"
)
_FIRST_PERSON = _any(r"i|i'm|i've|i'd|my|we|we're|we've|our|ich|mein\w*|wir|unser\w*")
_PLEASANTRY = re.compile(
    r"^\W*(?:hey|hi|hello|wow|thanks?|thank you|bye|see you|take care|good (?:to|morning|luck|night|point)|great|cool"
    r"|nice|awesome|amazing|congrat\w*|sounds|sure|yeah|yes|yep|no problem|that's|glad|so (?:glad|happy)|ok(?:ay)?"
    r"|absolutely|totally|definitely|keep|hallo|danke|tschüss|schön|super|klar|gern\w*|genau|alles (?:gute|klar))\b"
)
_FILLER = re.compile(  # a sentence that is nothing else
    r"^\W*(?:(?:yes|yeah|yep|no|nope|ok(?:ay)?|fine|agreed?|deal|done|exactly|perfect|great|good|right|true|sure|wow|oh"
    r"|ah|hm+|ha(?:ha)*|lol|well|so|and|but|sorry|please|lovely|thanks?|hey|hi|ja|nein|nee|genau|gut|einverstanden"
    r"|passt|stimmt|klar|danke|puh|na|ach|also|hallo|super|schön|natürlich)\b\W*)*$"
)
_LEAD = re.compile(  # what only begins a sentence
    r"\W*(?:(?:ok(?:ay)?|oh|ah|hm+|well|fine|great|good|right|lol|haha|ha|hey|so|and|lovely|perfect|sure|puh|ach|na|und|gut"
    r"|super|prima|klar|schön)\b[\s,.!…]*(?<=[\s,.!…]))+",
    re.IGNORECASE,
)
# All words of an agreement, and those of which it has one: "Yes! let's do that."
_AGREEING = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|ok(?:ay)?|fine|agreed?|deal|done|exactly|perfect|great|good|right|true|sure|oh|ah|hm+|well|so"
    r"|and|let['’]?s|do|go|with|that|this|it|i|we|me|too|like|love|works?|for|sounds?|makes?|sense|actually|both|could|can"
    r"|the|same|here|ja|genau|gut|einverstanden|passt|stimmt|klar|na|ach|also|super|prima|so|machen|mach|wir|ich|das|es"
    r"|['’]?s|mir|uns|auch|seh|sehe|bin|dabei|dafür|sehr|dann|recht|meinetwegen|schön|natürlich|worth|brilliant|idea|clever"
    r"|gute|idee|nehm|nehmen|den|die)\b\W*|\W*\+1\W*)+$"
)
_AGREES = re.compile(
    r"\b(?:yes|yeah|yep|agreed?|deal|done|exactly|perfect|let['’]?s do|(?:works|good) for|me too|sounds good|makes sense"
    r"|(?:like|love) (?:that|it)|go with (?:that|it)|can do|could do|worth it|do that|ja|genau|einverstanden|passt|stimmt"
    r"|machen wir|so mach|mir auch|uns auch|auch so|dabei|dafür|recht|nehm\w*|gute idee|meinetwegen|same here)\b"
    r"|\+1|^\W*that\W*$"
)
_PROPOSES = re.compile(
    r"\b(?:could|would|let['’]?s|i['’]d|should|how about|recommend|better|instead|then|könn\w+|würd\w*|sollt\w*|besser|lieber"
    r"|dann|statt|rather|suggest|vorschlag|wär\w*)\b"
)
_PRAISE = re.compile(
    r"^\W*(?:good|wise|sensible|fair|lovely|wonderful|great|excellent|perfect|noted|agreed|clever|smart|nice|right|that['’]s|then"
    r"|gut\w*|schön\w*|klug|vernünftig|prima|super|sehr|ausgezeichnet|perfekt|ein guter|eine gute|notiert|dann|alles klar)\b"
)
# What becomes of something, and what somebody is going to do.
_DISPOSES = re.compile(
    r"\b(?:stays?|remains?|goes|comes (?:along|with|out|off)|is off|are off|is (?:fixed|set|enough)|(?:i['’]d|we['’]d|we|i) (?:drop|keep|prefer|go for)"
    r"|first choice|no more|only|at most|enough|bleib\w*|kommt? (?:raus|rein|mit|weg|hin|in|auf|an|nach|zu)|geht an|kriegt|bekommt"
    r"|fliegt raus|reicht|lieber|höchstens|weg|raus|ohne)\b"
)
_INTENDS = re.compile(
    r"\b(?:(?:i|we|he|she|they|you)(?:['’]ll| will| can| am to|['’]m to)|will (?:be|do|put|take|make|come|write|ask|send|pay|call)"
    r"|(?:mach|frag|ruf|geh|fahr|fang|kauf|verkauf|nehm|zahl|bezahl|meld|schreib|schick|bring|hol|wart|bleib|stell|bestell|buch"
    r"|druck|leih|miet|bau|streich|red|sprech|behalt|lass|leg|such|schau|besorg|kümmer|koch|spar|bohr|kündig|schließ|zieh)\w{0,3} (?:ich|wir)"
    r"|(?:ich|wir) (?:mach|frag|ruf|geh|fahr|fang|kauf|verkauf|nehm|zahl|bezahl|meld|schreib|schick|bring|hol|wart|bleib|stell|bestell"
    r"|buch|druck|leih|miet|bau|streich|red|sprech|behalt|lass|leg|such|schau|besorg|kümmer|koch|spar|bohr|kündig|schließ|zieh)\w{0,3})\b"
)
# What is settled, where it stands: a choice, its opposite, and something done that binds.
_SETTLED = re.compile(
    r"\b(?:let['’]?s|(?:we|i)['’]ll (?:take|go with|go for|have|use|keep|do)|(?:i|we)['’]d (?:rather|say)"
    r"|go(?:ing)? with|went (?:for|with)|so be it|(?:i|we) (?:take|choose|keep|drop|picked|quit|resigned)|decided|opted"
    r"|agreed|settled|made up (?:my|our) minds?|stick(?:ing)? (?:to|with)|instead|rather not|not worth it|ruled? out"
    r"|turn(?:ed)? down|call(?:ed)? off|scrapp?(?:ed)?|cancel\w*|postponed?|switch(?:ed|ing)? to|swap(?:ped|ping)?"
    r"|skip(?:ping)?|forget (?:the|it|about)|leave (?:the|that|it)|gave in|won['’]t|not (?:buying|taking|going|doing)"
    r"|made an appointment|not? .{0,40}any ?more|no longer|(?:is|are) out|(?:said|them|him|her) (?:no|yes)|but no"
    r"|no thanks|back (?:up|down) to|(?:i|we)['’](?:m|re) (?:not )?(?:to|doing|taking|getting|going for)"
    r"|not this (?:year|time)|doing that|that['’]s (?:that|settled|decided)|ordering"
    r"|(?:i|we)['’]?(?:ve)? (?:booked|ordered|reserved|signed|chosen|picked|paid|hired|sold|bought)"
    r"|(?:sagen|nehmen|machen|lassen|bleiben|streichen) wir|(?:ich|wir) nehmen?|nehme? ich|statt|stattdessen|doch nicht"
    r"|wir (?:lassen|fahren|fliegen|gehen|kaufen|bleiben)|nicht mehr|lieber nicht|doch lieber|finger weg|gebongt"
    r"|entsch(?:ied|eid)\w*|beschlossen|vereinbart|ausgemacht|abgemacht|geeinigt|steht fest|gebucht|bestellt|gekauft"
    r"|unterschrieben|abgesagt|verschoben|gestrichen|fällt (?:weg|aus|flach)|bleibt(?: es|['’]s)? (?:bei|dabei)"
    r"|nein danke|jetzt \w+ (?:ich|wir)|(?:wird|werden) dann|wird nicht|kommt? mit|selber)\b"
    r"|, (?:not|nicht) \w|^\W*(?:deal|sold)\b|^\W*(?:nah|nope|nee|nein)\b\W+\w+ \w|\w it is[.!]?$|\bkeine?[.!]?$"
    r"|, also \w+[,.!]|, so[.!]?$"
)
# A turn that says back what was settled begins so, or ends so: "24 March, then."
_YES = re.compile(
    r"^\W*(?:yes|yeah|yep|ok(?:ay)?|fine|agree\w*|deal|doing that|done|exactly|perfect|ja|genau|gut|einverstanden|passt"
    r"|stimmt)\b"
)
_SAID_FIRST = re.compile(
    rf"{_YES.pattern}|^\W*(?:(?:right|good|hm+|true|well|na|puh|ok|gut)\b\W*)*(?:so|then|also|dann|heißt)\b"
    r"|^\W*(?:ok(?:ay)? |so )*(?:no (?!idea|problem|worries|doubt)[\w-]+|keine? )"
)
_NO_SUCH = re.compile(r"^\W*(?:(?:so|ok(?:ay)?|and|also|und) )*(?:no (?!idea|problem|worries|doubt|thank)|keine? (?!ahnung|problem))\w+")
_SAID_LAST = re.compile(r"[,.]? (?:then|so|dann)[.!]?$|, then\b")
_TOLD_BACK = re.compile(
    r"^\W*(?:noted|understood|so:|so (?:you|we)|to sum up|in short|in summary|summary|agreed|settled|decided"
    r"|also (?!\w+ (?:wollt|will))|dann also|notiert|verstanden|zusammengefasst|ich halte fest|fazit|abgemacht)\b"
)
_TO_DO = _any(
    r"must|need(?:s|ed)? to|have to|has to|due|deadline|appointment|(?:i|we|they|she|he)['’]ll|muss|müssen|soll|frist",
    r"termin|(?:ruf|frag|geh|fahr|fang|mach|kauf|verkauf)e? ich|ich (?:ruf|frag|geh|fahr|fang|mach|kauf|verkauf)e?",
)
_OPEN = _any(
    r"(?:don['’]?t|do not) know|not sure|no idea|undecided|still (?:open|to)|find out|(?:forgot|have|ought) to ask",
    r"whether|(?:weiß|wissen) .{0,20}nicht|noch nicht|offen|unklar|keine ahnung|ob",
)
# What is only thought of, or general.
_UNREAL = _any(
    r"would|could|might|maybe|perhaps|usually|often|common|for example|for instance|suggest\w*|wanted|used to|if",
    r"unless|würden?|wären?|könnten?|vielleicht|üblich|zum beispiel|wollten?|hätten?|wenn|falls|eigentlich",
)


def score_sentence(sentence: str) -> float:
    """Return how much a summary should want this sentence for what it holds, from -1 to 1.

    Up for dates, numbers, names, decisions and what one says of oneself; down for questions, greetings, praise and
    sentences of fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    low = sentence.lower()
    score = 0.15 * bool(_NUMBER.search(low)) + 0.2 * bool(_WHEN.search(low))
    score += 0.2 * bool(_MATTERS.search(low)) + 0.15 * bool(_FIRST_PERSON.search(low))
    score += 0.1 * min(2, len(NAME.findall(sentence)))
    score -= 0.5 * bool(_QUESTION.search(low))
    score -= 0.4 * bool(_PLEASANTRY.match(low))
    score -= 0.3 * (sentence.isascii() and len(_WORD.findall(sentence)) < 5)
    return max(-1.0, min(1.0, score))


class Clause(NamedTuple):
    """A part of a sentence that may be quoted without the rest."""

    line: int  # the place of its sentence
    text: str
    stems: Collection[str]
    needs: int | None  # the place of a clause without which it says nothing: what it goes on from, or answers
    score: float
    extra: float  # how much it weighs beside its words, in clauses: for what it settles or leaves open,
    figure: float  # and for its numbers
    settles: bool


def read_clauses(lines: Sequence[tuple[str, str]]) -> list[Clause]:
    """Return the clauses of sentences, which are given with their speakers in order."""
    clauses: list[Clause] = []
    known: dict[str, int] = {}  # the last turn of each stem
    speakers = terms(" ".join({speaker for speaker, _ in lines}))
    turn, before, turn_start, last_start = 0, None, 0, 0
    question = proposal = asked = offered = None  # a question with which this turn ends, what it proposes; the last turn's
    is_settled = is_agreed = is_fresh = False  # what the speaker's last sentence did: settle something, only agree
    for number, (speaker, sentence) in enumerate(lines):
        low = sentence.lower()
        if speaker != before:
            asked, offered, question, proposal = question, proposal, None, None
            turn, before, is_settled, is_agreed, is_fresh = turn + 1, speaker, False, False, True
            turn_start, last_start = len(clauses), turn_start
        if speaker == ASSISTANT and turn_start == len(clauses):
            _mark_answered(clauses, last_start, low)
        is_question, is_filler = _is_question(low), bool(_FILLER.match(low))
        follows, is_settled = is_settled, False
        is_told_back = bool(_TOLD_BACK.match(low))
        parts = [(sentence, True)] if speaker == TOOL else split_clauses(sentence)
        agrees = speaker != ASSISTANT and _agrees(low)
        for place, (text, alone) in enumerate(parts):
            if place == 0 and speaker != TOOL:
                text = _strip_fillers(text)
            words = text.lower().rstrip(" ,;")
            stems = terms(text)
            echo = [stem for stem in stems if 0 < turn - known.get(stem, -99) < ECHO_TURNS and stem not in speakers]
            count = len(_WORD.findall(text))
            is_said_back = bool((place == 0 and _SAID_FIRST.match(low)) or _SAID_LAST.search(words))
            if speaker == ASSISTANT:
                is_echo = is_fresh and len(stems) > 1 and len(echo) >= RECAP * len(stems) and not _UNREAL.search(words)
            else:
                is_echo = bool(echo) and count < SHORT and not _UNREAL.search(words) and not _PLEASANTRY.match(words)
            score, extra, figure, settles = _rate(speaker, text, is_told_back, is_said_back, is_agreed, is_echo, is_fresh)
            needs = None if alone else len(clauses) - 1
            target = asked if asked is not None else offered
            if agrees and not is_question:
                if question is not None:
                    target = question
                if is_fresh and target is not None:
                    needs, settles = target, True
                    score, extra = 0.2, CONFIRMS
            elif settles:
                is_settled = True
                extra *= 1 + LATER * (number / len(lines) - 0.5)
            elif (follows or is_settled) and not is_question and not _UNREAL.search(words):
                extra += GOES_ON
            if asked is not None and speaker != ASSISTANT and not is_question and not is_filler and not agrees:
                extra += ANSWER * is_fresh
                if alone and (is_fresh or settles) and count < 3 and not _NUMBER.search(text) and not echo:
                    needs = asked
            if not is_filler and not is_question:
                is_fresh = False
                if speaker == ASSISTANT or _PROPOSES.search(words):
                    if proposal is None or _PROPOSES.search(words):
                        proposal = len(clauses)
            clauses.append(Clause(number, text, stems, needs, score, extra, figure, settles))
        for clause in clauses[-len(parts) :]:
            known.update(dict.fromkeys(clause.stems, turn))
        is_agreed = is_filler and bool(_YES.match(low))
        question = len(clauses) - 1 if is_question else None
    return clauses


def _mark_answered(clauses: list[Clause], start: int, answer: str) -> None:
    """Let the clauses of a turn weigh more that an assistant takes up, or that it answers with no more than praise."""
    is_question = _is_question(answer)
    stems = terms(answer)
    for place in range(start, len(clauses)):
        clause = clauses[place]
        if _is_question(clause.text) or clause.needs is not None or _UNREAL.search(clause.text.lower()):
            continue
        share = len([stem for stem in clause.stems if stem in stems]) / max(1, len(clause.stems))
        extra = TAKEN_UP * share * (not is_question)
        if _PRAISE.match(answer) and place == len(clauses) - 1:
            extra += PRAISED
        clauses[place] = clause._replace(extra=clause.extra + extra)


def _strip_fillers(text: str) -> str:
    """Return a clause without the words that only begin it, where enough is left."""
    start = _LEAD.match(text)
    return text[start.end() :] if start and len(text[start.end() :].split()) > 1 else text


def _agrees(text: str) -> bool:
    return bool(_AGREES.search(text)) and bool(_AGREEING.match(text))


def _is_question(text: str) -> bool:
    return bool(_QUESTION.search(text))


def _rate(
    speaker: str, text: str, is_told_back: bool, is_said_back: bool, is_agreed: bool, is_echo: bool, is_first: bool
) -> tuple[float, float, float, bool]:
    """Return the score of a clause, what it and its numbers weigh beside its words, and whether it settles something."""
    score, extra, figure, low = score_sentence(text), 0.0, 0.0, text.lower()
    if _is_question(low):
        return score, 0.0, QUESTION * bool(_FIGURE.search(low)), False
    if _FILLER.match(low):
        return -0.5, 0.0, 0.0, False
    count = len(_WORD.findall(text))
    has_figure = bool(_FIGURE.search(low))
    low = low.rstrip(" ,;")
    if speaker == ASSISTANT:
        settles = is_told_back or (is_said_back and has_figure) or is_echo
        extra += TOLD_BACK if is_told_back else SETTLES / 2 * settles
    else:
        settles = (is_agreed and count < 4) or bool(_SETTLED.search(low))
        settles = settles or (is_said_back and (has_figure or is_echo))
        settles = settles or (count < 8 and bool(_SAID_LAST.search(low) or _NO_SUCH.match(low)))
        if settles:
            extra += SETTLES
        elif _DISPOSES.search(low):
            extra += DISPOSES
        elif _INTENDS.search(low):
            extra += INTENDS
        elif is_echo:
            extra += CHOICE if is_first else CHOICE / 2
        else:
            extra += SETTLES / 3 * is_said_back
    if has_figure:
        figure += FIGURE + DATE * bool(_DATE.search(low)) + MORE * min(2, len(_NUMBERS.findall(low)) - 1)
    elif _NUMBER.search(low) or _COUNT.search(low):
        figure += BARE
    elif _WHEN.search(low):
        figure += WHEN
    extra += OPEN * bool(_OPEN.search(low)) + TO_DO * bool(_TO_DO.search(low))
    is_unreal = bool(_UNREAL.search(low))
    if speaker == ASSISTANT and not settles:
        score -= ADVICE * (1 + is_unreal)
        extra, figure = extra / 2, figure * ADVISED
    elif is_unreal:
        extra, figure = extra / 2, figure * UNREAL
    if extra or figure:  # then it may be short, and begin with "yes"
        score += 0.4 * bool(_PLEASANTRY.match(low)) + 0.3 * (text.isascii() and count < 5)
    return score, extra, figure, settles


_JOINED = r"(?:and|so|then|because|which|und|also|dann|da|denn|weil|i|we|they|he|she|it|there|you|ich|wir|sie|er|es)"
_CUT = re.compile(
    rf"(?<=[,;])\s(?=(?P<joined>{_JOINED}\b)?)|\s(?=[–—-]+ )"
    r"|\s(?=(?:(?:and|und) (?:i|we|they|he|she|it|you|there|ich|wir|es)(?:['’]\w+)?|because|cos|weil) \w)",
    re.IGNORECASE,
)
_REASON = re.compile(r"(?:because|cos|weil|denn)\b")
_OWN = re.compile(r"(?:i|we|it|they|he|she|ich|wir|es)\b(?!.*\b(?:any ?more|no longer|nicht mehr|said|but|aber)\b)")
_WHOLE = _any(r"if|unless|whether|when|said|says|say|thinks?|thought|told|wenn|falls|ob|dass|meint|sagt|sagte|glaubt")
_NOT = _any(r"no|not|never|none|cannot|\w+n['’]t|dont|but|nicht|kein\w*|nie|aber|sondern")


def split_clauses(sentence: str) -> list[tuple[str, bool]]:
    """Return the clauses of a sentence, and whether each can stand without the one before.

    Joined by spaces they are the sentence. A "not" or "but" stays with what it is of, and what somebody says, asks or
    does on a condition with that.
    """
    if _is_question(sentence) or '"' in sentence or "“" in sentence:
        return [(sentence, True)]
    is_whole = bool(_WHOLE.search(sentence.lower()))
    cuts = list(_CUT.finditer(sentence))
    ends = [*(cut.start() for cut in cuts), len(sentence)][1:]
    clauses: list[tuple[str, bool]] = []
    start, alone = 0, True
    for cut, end in zip(cuts, ends, strict=True):
        left, piece, rest = sentence[start : cut.start()], sentence[cut.end() : end].lower(), sentence[cut.end() :]
        if len(left.split()) < 3 or len(rest.split()) < 2 or left.count("(") > left.count(")"):
            continue
        if not _REASON.match(piece):
            if is_whole and _WHOLE.search(piece):
                continue
            if _NOT.search(piece) and not (_OWN.match(piece) and _SETTLED.search(left.lower())):
                continue
        clauses.append((left, alone))
        start, alone = cut.end(), bool(cut["joined"]) and not is_whole and len(rest.split()) > 2
    return [*clauses, (sentence[start:], alone)]
