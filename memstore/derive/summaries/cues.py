"""What makes a clause worth a place in a summary: its own words, and what it answers. English and German.

Sentences are cut into clauses where each says the same alone. Cues say how likely it is that an expert would tell a
clause: words that settle something, numbers, what it takes up of the turns before, and how it is answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import exp

from memstore.models import Role
from memstore.store.tokenize import terms

TOOL = "Tool"  # the speaker of lines about calls
ASSISTANT = Role.ASSISTANT.capitalize()  # who proposes and says back; what it advises may not be what happens

RECENT = 6  # turns: how far back a clause takes up what was said
# What tells decisions, days and numbers from chat. Logits of a logistic regression on sessions with listed decisions
# and numbers, moved a little by a search on the same (docs/reference/measurements.md). "open" is set by hand.
BIAS = -2.1
CHAT = 0.19  # the likelihood below which a clause is worth its words only
WEIGHTS: dict[str, float] = {
    "date": 1.7,
    "agrees": 1.5,
    "no such": 1.2,
    "disposes": 1.0,
    "settled": 1.0,
    "figure": 0.9,
    "number": 0.9,
    "long number": 0.9,
    "said first": 0.9,
    "count": 0.9,
    "before question": 0.7,
    "short echo": 0.7,
    "after settled": 0.6,
    "echo": 0.6,
    "intends": 0.6,
    "opens": 0.6,
    "all echo": 0.6,
    "closes": 0.5,
    "answers wh": 0.4,
    "name": 0.4,
    "taken up": 0.4,
    "open": 0.3,
    "praised": -0.1,
    "later part": -0.1,
    "new": -0.2,
    "past": -0.4,
    "short": -0.6,
}
ASSISTANT_WEIGHTS: dict[str, float] = {
    "number again": 1.8,
    "said back": 1.7,
    "count": 1.0,
    "date": 1.0,
    "confirmed": 0.8,
    "figure": 0.8,
    "name": 0.8,
    "closes": 0.6,
    "said first": 0.5,
    "goes on": 0.4,
    "all echo": 0.4,
    "short": -0.5,
    "new": -1.0,
}


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
_SAID_LAST = re.compile(r"[,.]? (?:then|so|dann)[.!]?$|, then\b")
_TOLD_BACK = re.compile(
    r"^\W*(?:noted|understood|so:|so (?:you|we)|to sum up|in short|in summary|summary|agreed|settled|decided"
    r"|also (?!\w+ (?:wollt|will))|dann also|notiert|verstanden|zusammengefasst|ich halte fest|fazit|abgemacht)\b"
)
_OPEN = _any(
    r"(?:don['’]?t|do not) know|not sure|no idea|undecided|still (?:open|to)|find out|(?:forgot|have|ought) to ask",
    r"whether|(?:weiß|wissen) .{0,20}nicht|noch nicht|offen|unklar|keine ahnung|ob",
)
_PAST = _any(r"was|were|had|did|used to|\w+ed|war|waren|hatten?|wollten?|hab\w*|hat")
_NO_SUCH = re.compile(
    r"^\W*(?:(?:so|ok(?:ay)?|and|also|und) )*(?:no (?!idea|problem|worries|doubt|thank)|keine? (?!ahnung|problem))\w+"
)
_DISPOSES = re.compile(  # what becomes of something
    r"\b(?:stays?|remains?|goes|comes (?:along|with|out|off)|(?:is|are) off|is (?:fixed|set|enough)|first choice"
    r"|no more|only|at most|enough|(?:i['’]d|we['’]d|we|i) (?:drop|keep|prefer|go for)|bleib\w*|geht an|kriegt|bekommt"
    r"|reicht|kommt? (?:raus|rein|mit|weg|hin|in|auf|an|nach|zu)|lieber|höchstens|weg|raus|ohne)\b"
)
_DOES = (
    r"(?:mach|frag|ruf|geh|fahr|fang|kauf|verkauf|nehm|zahl|bezahl|meld|schreib|schick|bring|hol|wart|bleib|stell"
    r"|bestell|buch|druck|leih|miet|bau|streich|red|sprech|behalt|lass|leg|such|schau|besorg|koch|spar|kündig|schließ"
    r"|zieh)\w{0,3}"
)
_INTENDS = _any(
    r"(?:i|we|he|she|they|you)(?:['’]ll| will| can| am to|['’]m to)",
    r"will (?:be|do|put|take|make|come|write|ask|send|pay|call)",
    r"(?:i|we) (?:need|must)|needs? to|must|due|deadline|appointment|muss|müssen|soll|frist|termin",
    rf"{_DOES} (?:ich|wir)|(?:ich|wir) {_DOES}",
)
_WH = _any(r"who|what|which|when|where|how|wer|was|welche\w*|wann|wo|wie|wohin|wen")
_PRAISE = re.compile(
    r"^\W*(?:good|wise|sensible|fair|lovely|wonderful|great|excellent|perfect|noted|agreed|clever|smart|nice|right"
    r"|that['’]s|then|gut\w*|schön\w*|klug|vernünftig|prima|super|sehr|ausgezeichnet|perfekt|eine? gute\w*|notiert"
    r"|dann|alles klar)\b"
)
_OPENING = re.compile(  # what only begins a sentence
    r"\W*(?:(?:(?:ok(?:ay)?|oh|ah|hm+|lol|ha(?:ha)*|hey|puh|ach|na|and|und)\b[\s,.!…]+)"
    r"|(?:(?:well|fine|great|good|right|so|lovely|perfect|sure|gut|super|prima|klar|schön)\b\s*[,.!…]+\s*))+",
    re.IGNORECASE,
)
# All words of an agreement, and those of which it has one: "Yes! let's do that."
_AGREEING = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|ok(?:ay)?|fine|agreed?|deal|done|exactly|perfect|great|good|right|true|sure|oh|ah|hm+|well"
    r"|so|and|let['’]?s|do|go|with|that|this|it|i|we|me|too|like|love|works?|for|sounds?|makes?|sense|actually|both|could"
    r"|can|the|same|here|worth|idea|clever|ja|genau|gute?|einverstanden|passt|stimmt|klar|na|ach|also|super|prima|machen?"
    r"|wir|ich|das|es|['’]?s|mir|uns|auch|sehe?|bin|dabei|dafür|sehr|dann|recht|meinetwegen|schön|natürlich|idee|nehmen?"
    r"|den|die)\b\W*|\+1\W*)+$"
)
_AGREES = re.compile(
    r"\b(?:yes|yeah|yep|agreed?|deal|done|exactly|perfect|let['’]?s do|(?:works|good) for|me too|sounds good"
    r"|makes sense|(?:like|love) (?:that|it)|go with (?:that|it)|can do|could do|worth it|do that|same here|ja|genau"
    r"|einverstanden|passt|stimmt|machen wir|so mach|mir auch|uns auch|auch so|dabei|dafür|recht|nehm\w*|gute idee"
    r"|meinetwegen)\b|\+1|^\W*that\W*$"
)
_PROPOSES = _any(
    r"could|would|let['’]?s|i['’]d|should|how about|recommend|better|instead|then|rather|suggest|könn\w+|würd\w*",
    r"sollt\w*|besser|lieber|dann|statt|vorschlag|wär\w*",
)
_CUES = {
    "date": _DATE,
    "figure": _FIGURE,
    "number": _NUMBER,
    "count": _COUNT,
    "settled": _SETTLED,
    "no such": _NO_SUCH,
    "disposes": _DISPOSES,
    "intends": _INTENDS,
    "said last": _SAID_LAST,
    "open": _OPEN,
    "past": _PAST,
}
_BEGINNINGS = {"said first": _SAID_FIRST, "said back": _TOLD_BACK}
_NUMERIC = {"date", "figure", "number", "long number", "number again", "count"}
_SETTLING = {"settled", "said first", "said last", "no such", "agrees"}


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


@dataclass(eq=False)
class Clause:
    """A part of a sentence that may be quoted without the rest."""

    line: int  # the place of its sentence
    speaker: str
    text: str
    stems: Counter[str]
    needs: int | None  # the place of a clause without which it says nothing: what it goes on from, or answers
    cues: set[str]

    @cached_property
    def settles(self) -> bool:
        """Whether something may be settled in it."""
        return "said back" in self.cues if self.speaker == ASSISTANT else not _SETTLING.isdisjoint(self.cues)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing: "Oh well!"."""
        return self.needs is None and (not self.stems or "filler" in self.cues)

    @cached_property
    def values(self) -> tuple[float, float]:
        """How likely it is that an expert would tell it, from 0 to 1: without its numbers, and how much they add."""
        if self.speaker == TOOL or "question" in self.cues:
            return 0.0, 0.0
        weights = ASSISTANT_WEIGHTS if self.speaker == ASSISTANT else WEIGHTS
        whole = _logistic(BIAS + sum([weights.get(cue, 0.0) for cue in sorted(self.cues)]))
        words = _logistic(BIAS + sum([weights.get(cue, 0.0) for cue in sorted(self.cues - _NUMERIC)]))
        words, whole = max(0.0, words - CHAT), max(0.0, whole - CHAT)
        return words, whole - words


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))


def read_clauses(lines: Sequence[tuple[str, str]]) -> list[Clause]:
    """Return the clauses of sentences, which are given with their speakers in order."""
    turns = [list(turn) for _, turn in groupby(range(len(lines)), key=lambda number: lines[number][0])]
    parts = [_read_parts(*line) for line in lines]
    last_turn: dict[str, int] = {}
    for turn, numbers in enumerate(turns):
        last_turn |= {stem: turn for number in numbers for _, _, stems in parts[number] for stem in stems}
    names = terms(" ".join(sorted({speaker for speaker, _ in lines})))  # who speaks is no matter of the talk
    counts = Counter(number for _, sentence in lines for number in _NUMBERS.findall(sentence))
    known: dict[str, int] = {}  # the last turn that had a stem, until now
    clauses: list[Clause] = []
    start = 0
    asked: int | None = None
    offered: int | None = None  # a question with which the turn before ended, and what it proposed
    for turn, numbers in enumerate(turns):
        speaker = lines[numbers[0]][0]
        _mark_answered(clauses[start:], speaker, lines[numbers[0]][1].lower())
        question: int | None = None
        proposal: int | None = None
        start, is_first, is_settled = len(clauses), True, False
        for number in numbers:
            sentence, follows = lines[number][1].lower(), is_settled
            is_question, is_filler = _is_question(sentence), bool(_FILLER.match(sentence))
            is_settled = False
            for place, (text, alone, stems) in enumerate(parts[number]):
                low, count = text.lower().rstrip(" ,;"), len(_WORD.findall(text))
                echo = [stem for stem in stems if turn - known.get(stem, -RECENT) < RECENT and stem not in names]
                cues = {"question"} if is_question else _find_cues(text, low, counts)
                if stems and not is_question:
                    comes_back = any(last_turn[stem] > turn for stem in stems if stem not in names)
                    cues |= _find_echo(len(echo) / len(stems), count, comes_back)
                if place == 0:
                    cues |= {name for name, pattern in _BEGINNINGS.items() if pattern.match(sentence)}
                cues |= {"later part"} if place else set()
                cues |= {"after settled"} if follows else set()
                cues |= {"filler"} if is_filler else set()
                needs = None if alone else len(clauses) - 1
                if is_first and speaker != ASSISTANT and not is_question:
                    about = question if question is not None else asked if asked is not None else offered
                    if about is not None and _AGREES.search(sentence) and _AGREEING.match(sentence):
                        needs = about
                        cues.add("agrees")
                    elif asked is not None:
                        cues |= {"answers wh"} if _WH.search(clauses[asked].text.lower()) else set()
                        if alone and count < 3 and not is_filler and not echo and not _NUMBER.search(text):
                            needs = asked
                clauses.append(Clause(number, speaker, text, stems, needs, cues))
                is_settled = is_settled or (clauses[-1].settles and "agrees" not in cues)
                if not is_filler and not is_question:
                    is_first = False
                    if _PROPOSES.search(low) or (proposal is None and speaker == ASSISTANT):
                        proposal = len(clauses) - 1
            question = len(clauses) - 1 if is_question else None
        known.update((stem, turn) for clause in clauses[start:] for stem in clause.stems)
        asked, offered = question, proposal
    return clauses


def _read_parts(speaker: str, sentence: str) -> list[tuple[str, bool, Counter[str]]]:
    """Return the clauses of a sentence, whether each can stand alone, and their stems."""
    if speaker == TOOL:
        return [(sentence, True, terms(sentence))]
    (first, alone), *rest = split_clauses(sentence)
    opening = _OPENING.match(first)
    if opening and len(first[opening.end() :].split()) > 1:
        first = first[opening.end() :]
    return [(text, alone, terms(text)) for text, alone in [(first, alone), *rest]]


def _find_cues(text: str, low: str, counts: Mapping[str, int]) -> set[str]:
    """Return what a clause has by itself."""
    cues = {name for name, pattern in _CUES.items() if pattern.search(low)}
    cues |= {"name"} if NAME.search(text) else set()
    if "number" in cues:
        numbers = _NUMBERS.findall(low)
        cues |= {"long number"} if any(len(number) > 2 for number in numbers) else set()
        cues |= {"number again"} if any(counts[number] > 1 for number in numbers) else set()
    return cues


def _find_echo(share: float, count: int, comes_back: bool) -> set[str]:
    """Return how a clause takes up what was said before, and whether others take it up later."""
    cues = {"goes on" if comes_back else "closes"} if share else {"opens" if comes_back else "new"}
    cues |= {"echo"} if share >= 0.4 else set()
    cues |= {"all echo"} if share >= 0.7 else set()
    cues |= {"short echo"} if share and count < 7 else set()
    cues |= {"short"} if 2 < count < 13 else set()
    return cues


def _mark_answered(clauses: Sequence[Clause], speaker: str, answer: str) -> None:
    """Mark the clauses of a turn that an assistant takes up, praises or leaves behind, and its own that get a "yes"."""
    stems, is_question = terms(answer), _is_question(answer)
    for clause in clauses:
        if speaker != ASSISTANT:
            clause.cues.update({"confirmed"} if _YES.match(answer) else ())
            continue
        clause.cues.update({"praised"} if _PRAISE.match(answer) else ())
        if is_question:
            clause.cues.add("before question")
        elif not stems.keys().isdisjoint(clause.stems):
            clause.cues.add("taken up")


def _is_question(text: str) -> bool:
    return bool(_QUESTION.search(text))


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
        if _REASON.match(piece):
            if _NOT.search(left.lower()):
                continue
        else:
            if is_whole and _WHOLE.search(piece):
                continue
            if _NOT.search(piece) and not (_OWN.match(piece) and _SETTLED.search(left.lower())):
                continue
        clauses.append((left, alone))
        start, alone = cut.end(), bool(cut["joined"]) and not is_whole and len(rest.split()) > 2
    return [*clauses, (sentence[start:], alone)]
