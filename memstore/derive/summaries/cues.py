"""What makes a sentence worth a place in a summary: its own words, and what it answers. English and German.

Cues say how likely it is that an expert would tell a sentence: words that settle something, numbers, what it takes up
of the turns before, and how it is answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp

from memstore.models import Role
from memstore.store.tokenize import terms

TOOL_SPEAKER = "Tool"
# Who proposes and says back; what it advises may not be what happens.
ASSISTANT_SPEAKER = Role.ASSISTANT.capitalize()

ECHO_TURNS = 6
MIN_DECISION_LIKELIHOOD = 0.05
NUMBER_WEIGHT = 0.85
# How likely it is that an expert would tell a decision in a sentence, and a number: two logistic regressions on 48
# sessions with listed decisions and numbers (docs/reference/measurements.md), as logits by cue.
BIAS = (-1.6, -4.4)
WEIGHTS: dict[str, tuple[float, float]] = {
    "recap": (1.2, 0.6),
    "agrees": (1.0, 0.0),
    "stays": (0.9, 0.2),
    "date": (0.7, 1.2),
    "echo": (0.7, 0.4),
    "number again": (0.6, 0.3),
    "thirteen words": (0.6, -0.1),
    "said first": (0.6, -0.2),
    "six stems": (0.5, 0.3),
    "eight words": (0.5, 0.2),
    "intends": (0.4, 0.3),
    "short echo": (0.4, 0.3),
    "taken up": (0.4, -0.1),
    "concludes": (0.4, -0.3),
    "before question": (0.3, 0.1),
    "closes": (0.3, 0.0),
    "chooses": (0.2, 0.6),
    "count": (0.1, 0.4),
    "long number": (-0.1, 0.5),
    "number": (-0.2, 2.4),
    "figure": (-0.2, 1.7),
    "one stem": (-0.3, -0.4),
    "others": (-0.4, -0.3),
    "self": (-0.4, -0.4),
    "assistant": (-0.4, -0.5),
    "new": (-0.7, -0.2),
    "is": (-0.8, -0.4),
    "start": (-1.1, 0.3),
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
    r"|\b\d{2,}\b"
)
_OFTEN = re.compile(r"\b(?:twice|zweimal|dreimal|three times) ")
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
_FILLER = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|no|nope|ok(?:ay)?|fine|agreed?|deal|done|exactly|perfect|great|good|right|true|sure|wow|oh"
    r"|ah|hm+|ha(?:ha)*|lol|well|so|and|but|sorry|please|lovely|thanks?|hey|hi|ja|nein|nee|genau|gut|einverstanden"
    r"|passt|stimmt|klar|danke|puh|na|ach|also|hallo|super|schön|natürlich)\b\W*)*$"
)
# A choice, and what follows from one.
_ACTS = (
    r"(?:take|taking|keep|keeping|go|going|use|using|have|having|stay|staying|stick|pick|picking|choose|buy|buying|get"
    r"|getting|drop|dropping|do|doing|skip|order|ordering|book|booking|rent|hire|switch|make|making|put|move|moving"
    r"|start|call|ring|ask|write|send|bring|pay|build|cut|leave|leaving|say|saying|cancel|sell|try|need|run|fix|cover"
    r"|add|mend|cook|plant|read|give|tell|set|meet|look|join|sign|invite|print)"
)
_DOES = (
    r"(?:mach|frag|ruf|geh|fahr|fang|kauf|verkauf|nehm|zahl|bezahl|meld|schreib|schick|bring|hol|wart|bleib|stell"
    r"|bestell|buch|druck|leih|miet|bau|streich|red|sprech|behalt|lass|leg|such|schau|besorg|koch|spar|kündig|schließ"
    r"|sag|sagen|trag|melde)\w{0,3}"
)
_CHOOSES = _any(
    rf"(?:i|we)(?:['’](?:ll|d|m|re)| will| would| am| are)?(?: rather| just| also| only| now| then)? {_ACTS}",
    rf"i['’]?ll|we['’]?ll|let['’]?s|(?:ich|wir) (?:{_DOES}|will|wollen|werde\w*)|{_DOES} (?:ich|wir|das|den|die|es)",
)
_STAYS = re.compile(
    r"\w it is\b|\bthat['’]s (?:it|that|settled|decided)|\b(?:stays?|remains?|only|at most|no more than|max(?:imum)?"
    r"|enough|instead|first choice|comes? (?:in|out|along|off|with)|goes|bleib\w*|nur|höchstens|mindestens|reicht"
    r"|genügt|kommt? (?:raus|rein|mit|weg|hin)|kriegt|bekommt|wird|werden|gilt|fällt)\b"
)
_CONCLUDES = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|right|good|fine|well|yes|ja|gut|na|and|und|but|aber)\b\W*)*(?:so|then|also|dann|heißt)\b"
    r"|[, ](?:then|so|dann|also)\b[.!]*$|\bthen\b|, (?:so|also|dann)\b"
)
_SAID_FIRST = re.compile(
    r"^\W*(?:yes|yeah|yep|ok(?:ay)?|fine|agree\w*|deal|doing that|done|exactly|perfect|ja|genau|gut|einverstanden|passt"
    r"|stimmt)\b|^\W*(?:(?:right|good|hm+|true|well|na|puh|ok|gut)\b\W*)*(?:so|then|also|dann|heißt)\b"
    r"|^\W*(?:ok(?:ay)? |so )*(?:no (?!idea|problem|worries|doubt)[\w-]+|keine? )"
)
# An assistant's turn that says back what was settled has a sentence that begins so.
_RECAP = re.compile(
    r"^\W*(?:noted|understood|so:|so (?:you|we|that)|to (?:sum up|recap)|in short|in summary|summary|recap|agreed"
    r"|settled|decided|for the (?:minutes|record)|then:|also:|also (?!\w+ (?:wollt|will))|dann (?:also|halte)|notiert"
    r"|verstanden|zusammengefasst|zusammenfassung|ich halte fest|festgehalten|protokoll|fazit|abgemacht)(?!\w)"
)
_OPTION = re.compile(r"\W*(?:\d{1,2}[.)]|[a-h]\))\s")
_INTENDS = _any(
    r"(?:i|we|he|she|they|you)(?:['’]ll| will| can| am to|['’]m to)",
    r"will (?:be|do|put|take|make|come|write|ask|send|pay|call)",
    r"(?:i|we) (?:need|must)|needs? to|must|due|deadline|appointment|muss|müssen|soll|frist|termin",
    rf"{_DOES} (?:ich|wir)|(?:ich|wir) {_DOES}",
)
_UNSURE = _any(
    r"if|unless|would|(?:i|we)['’]d|could|should|may|might|maybe|perhaps|probably|guess|suppose|th(?:ink|ought)|believe|hope|wish|was",
    r"were|had|did|\w{2,}ed|wenn|falls|würd\w*|könnt\w*|wär\w*|hätt\w*|sollt\w*|vielleicht|wohl|glaub\w*|war\w*",
)
_IS = _any(r"is|are|it['’]s|that['’]s|was|were|there['’]s|has|have|ist|sind|war|waren|hat|haben")
_SPEAKS_OF_SELF = _any(r"i|i['’]\w+|we|we['’]\w+|ich|wir")
_OF_OTHERS = _any(
    r"he|she|they|his|her|my (?:sister|brother|mother|mum|dad|father|wife|husband|son|daughter|neighbour|boss)",
    r"er|sie|mein\w* (?:bruder|schwester|mutter|mann|frau|sohn|tochter|nachbar\w*|chef)",
)
# All words of an agreement, and those of which it has one: "Yes! let's do that."
_AGREEING = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|ok(?:ay)?|fine|agreed?|deal|done|exactly|perfect|great|good|right|true|sure|oh|ah|hm+|well"
    r"|so|and|let['’]?s|do|go|with|that|this|it|i|we|me|too|like|love|works?|for|sounds?|makes?|sense|actually|both|could"
    r"|can|the|same|here|worth|idea|clever|ja|genau|gute?|einverstanden|passt|stimmt|klar|na|ach|also|super|prima|machen?"
    r"|wir|ich|das|es|['’]?s|mir|uns|auch|sehe?|bin|dabei|dafür|sehr|dann|recht|meinetwegen|schön|natürlich|idee|nehmen?"
    r"|den|die|aye|sold|by|of course|jo|jawoll|jup|gerne?)\b\W*|(?:\+1|👍)\W*)+$"
)
_AGREES = re.compile(
    r"\b(?:yes|yeah|yep|agreed?|deal|done|exactly|perfect|let['’]?s do|(?:works|good) for|me too|sounds good"
    r"|makes sense|(?:like|love) (?:that|it)|go with (?:that|it)|can do|could do|worth it|do that|same here|ja|genau"
    r"|einverstanden|passt|stimmt|machen wir|so mach|mir auch|uns auch|auch so|dabei|dafür|recht|nehm\w*|gute idee"
    r"|meinetwegen|aye|fine|sure|sold|of course|jo|jawoll|gerne?|klar)\b|\+1|👍|^\W*that\W*$"
)
_PROPOSES = _any(
    r"could|would|let['’]?s|i['’]d|should|how about|recommend|better|instead|then|rather|suggest|könn\w+|würd\w*",
    r"sollt\w*|besser|lieber|dann|statt|vorschlag|wär\w*",
)
_CUES = {
    "figure": _OFTEN,
    "count": _COUNT,
    "stays": _STAYS,
    "concludes": _CONCLUDES,
    "intends": _INTENDS,
    "is": _IS,
    "self": _SPEAKS_OF_SELF,
    "others": _OF_OTHERS,
}
# A choice counts, and not what was offered.
_SETTLES_NOTHING = {"question", "option"}
_SAYS_ALONE = {"filler", "echo", "short echo", "number"}


def score_sentence(sentence: str) -> float:
    """Return how much a summary should want this sentence for what it holds, from -1 to 1.

    Up for dates, numbers, names, decisions and what one says of oneself; down for questions, greetings, praise and
    sentences of fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    low = sentence.lower()
    score = 0.15 * bool(_NUMBER.search(low)) + 0.2 * bool(_WHEN.search(low))
    score += 0.2 * bool(_MATTERS.search(low)) + 0.15 * bool(_FIRST_PERSON.search(low))
    score += 0.1 * min(2, len(NAME.findall(sentence)))
    score -= 0.5 * is_question(low)
    score -= 0.4 * bool(_PLEASANTRY.match(low))
    score -= 0.3 * (sentence.isascii() and len(_WORD.findall(sentence)) < 5)
    return max(-1.0, min(1.0, score))


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a sentence: its cues, and the place of the sentence that it answers or agrees to.

    Without that one it says nothing.
    """

    stems: Counter[str]
    cues: frozenset[str]
    about: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing: "Oh well!"."""
        return self.about is None and (not self.stems or "filler" in self.cues)

    @property
    def values(self) -> tuple[float, float]:
        """The worth of its decision and of its number, each from 0 to 1."""
        if not self.cues or not _SETTLES_NOTHING.isdisjoint(self.cues):
            return 0.0, 0.0
        weights = [WEIGHTS[cue] for cue in sorted(self.cues & WEIGHTS.keys())]
        decision, number = (sum(part) for part in zip(BIAS, *weights, strict=True))
        return max(0.0, _logistic(decision) - MIN_DECISION_LIKELIHOOD), NUMBER_WEIGHT * _logistic(number)


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))


def read_sentences(lines: Sequence[tuple[str, str]]) -> list[Reading]:
    """Return what is read of sentences, which are given with their speakers in order."""
    turns = [list(turn) for _, turn in groupby(range(len(lines)), key=lambda place: lines[place][0])]
    stems = [terms(text) for _, text in lines]
    last_turn = {stem: turn for turn, places in enumerate(turns) for place in places for stem in stems[place]}
    # Who speaks is no matter of the talk.
    names = terms(" ".join(sorted({speaker for speaker, _ in lines})))
    counts = Counter(number for _, sentence in lines for number in _NUMBERS.findall(sentence))
    # The last turn that had a stem, until now.
    turn_before: dict[str, int] = {}
    readings: list[Reading] = []
    # A question with which the turn before ended, and what it proposed.
    asked: int | None = None
    offered: int | None = None
    for turn, places in enumerate(turns):
        speaker, following = lines[places[0]][0], turns[turn + 1] if turn + 1 < len(turns) else []
        of_turn = {"start"} if turn < 2 else set()
        if speaker == ASSISTANT_SPEAKER:
            of_turn.add("assistant")
        answer = lines[following[0]][1].lower() if following else ""
        of_turn |= {"before question"} if is_question(answer) else set()
        answered = terms(answer).keys()
        question: int | None = None
        proposal: int | None = None
        is_first = True
        for place in places:
            text, about = lines[place][1], None
            low = text.lower()
            asks, is_filler = is_question(low), bool(_FILLER.match(low))
            if speaker == TOOL_SPEAKER:
                readings.append(Reading(stems[place], frozenset()))
                continue
            if speaker == ASSISTANT_SPEAKER and _RECAP.match(low):
                of_turn.add("recap")
            cues = {"question"} if asks else of_turn | _find_cues(text, low, counts, stems[place])
            cues |= {"option"} if speaker == ASSISTANT_SPEAKER and _OPTION.match(low) else set()
            if stems[place] and not asks:
                said = [stem for stem in stems[place] if stem not in names]
                echo = sum(turn - turn_before.get(stem, -ECHO_TURNS) < ECHO_TURNS for stem in said)
                comes_back = any(last_turn[stem] > turn for stem in said)
                cues |= _find_echo(echo / len(stems[place]), len(_WORD.findall(text)), comes_back)
            if stems[place] and 2 * len(answered & stems[place].keys()) >= len(stems[place]):
                cues.add("taken up")
            cues |= {"said first"} if _SAID_FIRST.match(low) else set()
            cues |= {"filler"} if is_filler else set()
            if is_first and speaker != ASSISTANT_SPEAKER and not asks:
                proposed = question if question is not None else asked if asked is not None else offered
                if proposed is not None and _AGREES.search(low) and _AGREEING.match(low):
                    about = proposed
                    cues.add("agrees")
                elif asked is not None and len(text.split()) < 3 and cues.isdisjoint(_SAYS_ALONE):
                    about = asked
            readings.append(Reading(stems[place], frozenset(cues), about))
            if not is_filler and not asks:
                is_first = False
                if _PROPOSES.search(low) or (proposal is None and speaker == ASSISTANT_SPEAKER):
                    proposal = place
            question = place if asks else None
        turn_before |= {stem: turn for place in places for stem in stems[place]}
        asked, offered = question, proposal
    return readings


def _find_cues(text: str, low: str, counts: Mapping[str, int], stems: Collection[str]) -> set[str]:
    """Return what a clause has by itself."""
    cues = {name for name, pattern in _CUES.items() if pattern.search(low)}
    cues |= {"number"} if _NUMBER.search(low) else set()
    cues |= {"chooses"} if _CHOOSES.search(low) and not _UNSURE.search(low) else set()
    cues |= {"one stem"} if len(stems) < 2 else {"six stems"} if len(stems) > 5 else set()
    count = len(_WORD.findall(text))
    cues |= {"thirteen words"} if count > 12 else {"eight words"} if count > 7 else set()
    # Few have one.
    if "number" in cues:
        numbers = _NUMBERS.findall(low)
        cues |= {"date"} if _DATE.search(low) else set()
        cues |= {"figure"} if _FIGURE.search(low) else set()
        cues |= {"long number"} if any(len(number) > 2 for number in numbers) else set()
        cues |= {"number again"} if any(counts[number] > 1 for number in numbers) else set()
    return cues


def _find_echo(share: float, count: int, comes_back: bool) -> set[str]:
    """Return how a clause takes up what was said before, and whether others take it up later."""
    cues = set() if comes_back else {"closes"} if share else {"new"}
    cues |= {"echo"} if share >= 0.4 else set()
    cues |= {"short echo"} if share and count < 7 else set()
    return cues


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    return bool(_QUESTION.search(text))
