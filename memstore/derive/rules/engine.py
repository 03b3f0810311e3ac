"""Fills slots from the clauses of a message: one engine for all languages.

    message -> what its author asserts (utterances.py) -> clauses -> subject and predicate -> rules -> slots (slots.py)

A clause is read from its subject on, and words before that must be a known lead-in ("Well, last week I …"). So words of
others, questions and suppositions fit no rule. A value that was never said does more harm than one that was missed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memstore.derive.rules import slots
from memstore.derive.rules.pack import Language, Rule, language, slot_types
from memstore.derive.rules.slots import (
    Modality,
    Slot,
    SlotMention,
    Subject,
    canonical,
    render,
    slot_of,
    without_article,
)
from memstore.derive.rules.utterances import Sentence, Utterance, in_quotes

MAX_CLAUSE_LENGTH = 240  # characters of a clause that are read behind its subject
MOVED = frozenset(["plan", "dose"])  # slots of which "moved to the 5th", "now at 75" may be said without their names
FEW_MORE = 3  # words of a clause that a slot may leave
SHORT_WARNING = 8  # words of a warning that takes the sentence before it
APART = 5  # words before a clause that say when: "Next year, …"
_CAPITALS = re.compile(r"\A\W*(?-i:[A-ZÄÖÜ])|(?<=\w[ ,;])[A-ZÄÖÜ][a-zäöüß]")  # of who writes names with them
_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|\S")


class _Clause(NamedTuple):
    """A clause about somebody, or without a subject yet."""

    start: int  # in the sentence as it is spelled out
    begin: int  # of the words, behind what leads in and the subject
    words: str
    subject: Subject


class _Spelled(NamedTuple):
    """A sentence as the rules read it: contractions written out, single blanks; with the places of its words."""

    text: str
    places: Sequence[int]
    origins: Sequence[tuple[int, int]]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the characters of the message that a stretch of the text stands for."""
        first = bisect_right(self.places, start) - 1
        last = bisect_right(self.places, max(start, stop - 1)) - 1
        return self.origins[first][0], self.origins[last][1]


def extract_slots(
    utterance: Utterance, code: str, before: Sequence[Utterance] = (), *, to_friend: bool = False
) -> list[SlotMention]:
    """Return the slots that a message fills, in its order. A request to a friend is no wish for an assistant's answers.

    "Sorry, I meant Tuesday" fills the slot that the speaker filled last, in this message or in those `before` it.
    """
    lang = language(code)
    found: list[SlotMention] = []
    last: Sentence | None = None
    needed: dict[re.Pattern[str], bool] = {}
    for sentence in utterance.asserted(lang):
        more = _Reader(utterance, lang, sentence, last, needed).read()
        last = sentence
        found += more or _meant(utterance, lang, sentence, found, before)
    return [one for one in found if not (to_friend and slot_of(one.slot.attribute).to_assistant)]


def _meant(
    utterance: Utterance, lang: Language, sentence: Sentence, known: Sequence[SlotMention], before: Sequence[Utterance]
) -> list[SlotMention]:
    """Return what "Sorry, I meant Tuesday" and "moved to the 5th" fill: the last slot, by a value of the same sort."""
    text = utterance.clean_text[sentence.start : sentence.stop]
    moved = lang.patterns["moved"].search(text)
    if moved is None and not lang.patterns["corrects"].search(text):
        return []
    tokens = list(_TOKEN.finditer(utterance.clean_text, sentence.start, sentence.stop))
    spelled = _spell_out(tokens, sentence, lang).text
    found = moved or lang.patterns["meant"].match(spelled)
    if not found or sentence.asks:
        return []
    of_another = lang.patterns["of_another"].search(spelled) is not None  # "my sister's appointment"
    value, date = found["v"].strip(), lang.patterns["date_value"]
    for one in reversed([*_earlier(utterance, lang.code, before), *known]):
        slot = slot_of(one.slot.attribute)
        same_sort = _is_date(date, one.slot.value) == _is_date(date, value)
        if moved and (slot.name not in MOVED or (of_another and one.subject == utterance.subject)):
            continue
        if one.slot.modality is not Modality.ENDED and not slot.many and same_sort:
            corrected = replace(one.slot, value=canonical(value, lang), modality=Modality.CORRECTS)
            text = render(slot, lang, one.subject, value, one.slot.attribute.partition("/")[2])
            stop = sentence.start + moved.end() if moved else sentence.stop
            return [one._replace(start=sentence.start, stop=stop, slot=corrected, text=text)]
    return []


def _is_date(date: re.Pattern[str], value: str) -> bool:
    return any(date.fullmatch(text.casefold()) for text in (value, f"{value}."))  # a value has no "." at its end


def _earlier(utterance: Utterance, code: str, before: Sequence[Utterance]) -> Iterator[SlotMention]:
    for place, one in enumerate(before):
        if one.speaker == utterance.speaker and one.role == "user":
            yield from extract_slots(one, code, before[:place])


class _Reader:
    """Reads one sentence, clause by clause."""

    def __init__(
        self,
        utterance: Utterance,
        lang: Language,
        sentence: Sentence,
        last: Sentence | None,
        needed: dict[re.Pattern[str], bool],
    ) -> None:
        self.utterance, self.lang, self.sentence, self.last = utterance, lang, sentence, last
        self.needed = needed  # whether the message has what a rule needs of it, of the patterns searched so far
        self.me = Subject(utterance.subject, utterance.subject, third=False)
        self.tokens = list(_TOKEN.finditer(utterance.clean_text, sentence.start, sentence.stop))
        self.rules = lang.candidates(_words_of(self.tokens, lang))
        self.found: list[SlotMention] = []
        self.known: set[str] = set()  # slots that the sentence has filled
        self.subject: Subject | None = None
        self.predicate = ""  # the one before, for "…, my daughter is"
        self.opening = ""  # what stands apart before a clause: "Next year, …"

    def read(self) -> list[SlotMention]:
        """Return what the sentence fills."""
        warns = self._has("caution", self.utterance.clean_text, self.sentence.start, self.sentence.stop)
        self.spelled = _spell_out(self.tokens, self.sentence, self.lang)
        if self._has("unmeant", self.spelled.text):
            return []
        # "Not in Berlin but in Bonn" is read as "in Bonn".
        self.text = self.lang.patterns["contrast"].sub(_remaining_verb, self.spelled.text)
        self.turned = self.corrects = self.text != self.spelled.text
        self.lower = _CAPITALS.search(self.utterance.text) is None  # who types no capitals names with none
        if self._clauses():
            self._anywhere()
            return [*self.found, *(self._caution() if warns else ())]
        return self.found

    def _has(self, name: str, text: str, *bounds: int) -> bool:
        return self.lang.patterns[name].search(text, *bounds) is not None

    def _clauses(self) -> bool:
        """Read the clauses; whether all were read, and none was only supposed or said by somebody else."""
        patterns = self.lang.patterns
        reached = -1  # a part of a lead-in or a subject is no clause of its own
        spans = self._spans()
        for number, (start, _) in enumerate(spans):
            if start <= reached:
                continue
            begin = self._skip_lead_in(start)
            stop = next((end for _, end in spans[number:] if end > begin), len(self.text))
            if patterns["conditional"].match(self.text, begin) or patterns["conditional"].match(self.text, start):
                self.found = [one for one in self.found if slot_of(one.slot.attribute).firm]
                return False
            if patterns["reported"].match(self.text, begin):
                return False
            clause = self._clause(start, begin, stop, number)
            reached = clause.begin
            if number:
                self.opening = ""
        return True

    def _spans(self) -> list[tuple[int, int]]:
        """Return the clauses without those that ask: the last of a question, and before a tag another one."""
        gaps = [found.span() for found in self.lang.patterns["gap"].finditer(self.text)]
        spans = list(
            zip([0, *(stop for _, stop in gaps)], [*(start for start, _ in gaps), len(self.text)], strict=True)
        )
        if not self.sentence.asks:
            return spans
        is_tag = self.lang.patterns["tag"].fullmatch(self.text[spans[-1][0] :].strip(" ?!."))
        return spans[: -2 if is_tag else -1]

    def _skip_lead_in(self, start: int) -> int:
        """Return where a clause begins behind "Well, last week"; "Sorry, …" corrects what was said."""
        found = self.lang.patterns["lead"].match(self.text, start)
        if found is None:
            return start
        self.corrects = self.corrects or self._has("corrects", found[0])
        return found.end()

    def _clause(self, start: int, begin: int, stop: int, number: int) -> _Clause:
        """Read one clause: of its own subject, of the one before, or of the speaker where it leaves that out."""
        own = self._subject(begin)
        words = self.text[begin:]
        if own is not None:
            self.subject, begin, words = own
            if self._has("verb_last", self.text[max(0, start - 12) : begin]):
                words = _verb_first(words, self.text[begin:stop])
            if self.predicate and self.lang.patterns["elliptical"].match(self.text[begin:stop].strip()):
                self._keep(self._elliptical(start))
            self.predicate = self.text[begin:stop]
        elif number == 0:
            self.opening = self.text[start:stop] if len(self.text[start:stop].split()) < APART else ""
        clause = _Clause(start, begin, words[:MAX_CLAUSE_LENGTH], self.subject or self.me)
        taken: set[str] = set()
        if own is not None or self._goes_on(start, clause.words):
            self._keep(self._apply_rules("say", clause, taken))
        self._keep(self._read_possessives(start, begin, taken))
        for place in sorted({start, self._skip_lead_in(start)}):
            self._keep(self._apply_rules("any", self._at(place, start), taken))
        return clause

    def _goes_on(self, start: int, words: str) -> bool:
        """Whether words without a subject are a predicate: of the subject before, or of the speaker, who left it out.

        "I want to bake and like …" states nothing of what is liked, and "…, like Porto" has no verb.
        """
        if self.subject is not None and self._has("intends", self.predicate):
            return False
        joined = self.subject is not None and self.text[:start].rstrip()[-1:].isalpha()
        return joined or self.lang.patterns["bare"].match(self._without_times(words)) is not None

    def _at(self, place: int, start: int, subject: Subject | None = None) -> _Clause:
        return _Clause(start, place, self.text[place : place + MAX_CLAUSE_LENGTH], subject or self.me)

    def _read_possessives(self, start: int, begin: int, taken: set[str]) -> Iterator[SlotMention]:
        """Return the slots that "my name is …" and "my sister's name is …" fill."""
        own = self.lang.patterns["own"].match(self.text, start if begin <= start else self._skip_lead_in(start))
        if own:
            which = self.lang.patterns["which"].match(self.text, own.end())
            whose = self._who(own) if own.groupdict().get("kin") else self.me
            yield from self._apply_rules("my", self._at(which.end() if which else own.end(), start, whose), taken)

    def _keep(self, more: Iterator[SlotMention]) -> None:
        """Keep what is filled: of a slot of one value the first, and no words that others have within them."""
        for one in more:
            self.known.add(slot_of(one.slot.attribute).name)
            if not any(self._repeats(one, other) for other in self.found):
                self.found.append(one)

    def _repeats(self, one: SlotMention, other: SlotMention) -> bool:
        if one.subject != other.subject:
            return False
        same = one.slot.attribute == other.slot.attribute and (not one.slot.many or one.slot.value == other.slot.value)
        slot, thing = one.slot.attribute.split("/", 1)[0], one.slot.attribute.partition("/")[2]
        within = bool(thing) and other.slot.attribute.startswith(f"{slot}/") and other.slot.attribute.endswith(thing)
        return same or (within and " " in thing)

    # Subjects. ------------------------------------------------------------------------------------------------------
    def _subject(self, begin: int) -> tuple[Subject, int, str] | None:
        """Return whom a clause is about, where what is said of them begins, and that, its verb first."""
        for name in ("subject", "inverted"):
            found = self.lang.patterns[name].match(self.text, begin)
            if found:
                verb = f"{found['verb']} " if name == "inverted" else ""
                return self._who(found), found.end(), f"{verb}{self.text[found.end() :]}"
        return None

    def _who(self, found: re.Match[str]) -> Subject:
        named = {group: text.replace(" 's", "'s") for group, text in found.groupdict().items() if text}
        if "kin" in named:
            kin = named["kin"]
            kin = f"{kin[0].upper()}{kin[1:]}" if self.lang.data.get("nouns_capital") else kin.casefold()
            of = f"{self.me.name}'s {kin.strip()}"
            return Subject(of, f"{of} {named.get('kin_name', '')}".strip(), third=True)
        return Subject(named["name"], named["name"], third=True) if "name" in named else self.me

    def _elliptical(self, start: int) -> Iterator[SlotMention]:
        """Return what "…, my daughter is" says of her, by the words before."""
        words = self.lang.patterns["negation"].sub(" ", self.predicate).strip()
        clause = _Clause(start, start, self._in_first_person(words), self.subject or self.me)
        yield from self._apply_rules("say", clause, set())

    def _in_first_person(self, words: str) -> str:
        """Return "live in Rome" for "lives in Rome", as the rules write it."""
        denied = self.lang.patterns["negation"].match(words)
        begin = denied.end() if denied else 0
        first, blank, rest = words[begin:].partition(" ")
        return f"{words[:begin]}{self.lang.third.get(first.casefold(), first)}{blank}{rest}"

    # Rules. ---------------------------------------------------------------------------------------------------------
    def _apply_rules(self, form: str, clause: _Clause, taken: set[str]) -> Iterator[SlotMention]:
        """Return the matches of a form's rules at the beginning of a clause's words, the first of each slot."""
        whole = self._in_first_person(clause.words) if clause.subject.third else clause.words
        plain = self._without_times(whole)
        for rule in self.rules[form]:
            words = f" {plain}" if not rule.dated else f" {whole}" if rule.verbatim else self._without_adverbs(whole)
            found = rule.pattern.match(words)
            barred = rule.slot.name in taken or rule.unless & taken or (rule.beside and not rule.beside & self.known)
            if found is None or barred or (rule.needs is not None and not self._message_has(rule.needs)):
                continue
            if self._has("unreal", self._clause_of(words, found.end())):
                continue
            several = list(self._fill(rule, found, clause))
            if several:
                taken.add(rule.slot.name)
            yield from several

    def _message_has(self, pattern: re.Pattern[str]) -> bool:
        if pattern not in self.needed:
            self.needed[pattern] = pattern.search(self.utterance.clean_text) is not None
        return self.needed[pattern]

    def _anywhere(self) -> None:
        for rule in self.rules["anywhere"]:
            found = rule.pattern.search(f" {self.text}")
            if found and rule.slot.name not in self.known:
                self._keep(self._fill(rule, found, self._at(found.start(), found.start())))

    def _clause_of(self, words: str, reached: int) -> str:
        """Return words up to where the clause ends in which something was found."""
        end = self.lang.patterns["gap"].search(words, min(len(words), reached))
        return words[: end.start()] if end else words

    def _without_adverbs(self, words: str) -> str:
        return self.lang.patterns["adverb"].sub("", f" {words}")

    def _without_times(self, words: str) -> str:
        return self.lang.patterns["time"].sub("", self._without_adverbs(words)).strip()

    def _fill(self, rule: Rule, found: re.Match[str], clause: _Clause) -> Iterator[SlotMention]:
        """Return the match of a rule as slots, one for each thing of a list; nothing for an invalid value."""
        caught = {name[0]: text for name, text in found.groupdict().items() if text}
        said = self._clause_of(self.text, clause.begin + found.end() - 1)[clause.start :]
        about = f"{self.opening} {self.text[clause.start : clause.begin]} {clause.words[: found.end() + 40]}"
        passes = rule.slot.passing and self._has("passing", about)
        if passes or (rule.without and rule.without.search(about)):
            return
        subject = clause.subject
        if rule.beside and self.found:  # whom the sentence is about already
            subject = Subject(self.found[-1].subject, self.found[-1].subject, third=False)
        things = [self._as_said(clause, found)] if "c" in caught else self._split_list(caught.get("t", ""), rule)
        things = [one for one in things if one and not rule.excludes(one)] or ([rule.thing] if rule.thing else [])
        value = rule.value or caught.get("v", "").replace(" 's", "'s")
        if (rule.catches & {"t", "c"} and not things) or ("v" in rule.catches and not self._fits(rule, value)):
            return
        if rule.about:
            subject, value = Subject(value, value, third=True), ""
        denied = self._split_list(caught.get("x", ""), rule) if rule.slot.many else []
        whole = self.sentence.start, self.sentence.stop
        words = len(found[0]) if rule.form == "anywhere" else len(said)
        end = clause.begin - clause.start + len(found[0])
        rest = self.lang.patterns["time"].sub("", f" {said[end:]}").split()
        if rule.slot.name in MOVED or len(rest) > FEW_MORE:  # where it is, with whom or how often is no slot's
            words = min(words, end)
        place = whole if self.turned else self.spelled.span(clause.start, clause.start + max(1, words))
        for thing, is_so in [*((one, True) for one in things), *((one, False) for one in denied)] or [("", True)]:
            over, moment = rule.ends == is_so, self.utterance.occurred_at
            yield slots.fill(
                slots.Reading(rule, subject, value, thing, over, self.corrects, said, place, moment), self.lang
            )

    def _as_said(self, clause: _Clause, found: re.Match[str]) -> str:
        """Return all that a rule caught in the words of the message: "he's", where the rules read "he is"."""
        group = next(name for name, text in found.groupdict().items() if text and name[0] == "c")
        words, begin = found[group], clause.begin + found.start(group) - 1
        if not self.turned and self.text.startswith(words, begin):
            start, stop = self.spelled.span(begin, begin + len(words))
            if not self.text[begin + len(words) :].strip(" .!?"):  # with what stands in quotation marks at its end
                stop = self.sentence.stop
            words = " ".join(self.utterance.text[start:stop].strip().partition("\n")[0].split())
        return words.strip(" .,;:!?-")

    def _fits(self, rule: Rule, raw: str) -> bool:
        value = canonical(raw, self.lang)
        if not value:
            return rule.ends
        if self.lang.patterns["negation"].match(value) or rule.excludes(value):
            return False
        if not rule.listed and self.lang.patterns["no_value"].match(value):
            return False
        return rule.listed or not rule.slot.named or self._is_name(without_article(raw, self.lang).split())

    def _is_name(self, words: list[str]) -> bool:
        """Whether words are a name by their capitals; of who types none, a few may be one."""
        return words[0][0].isupper() or words[-1][0].isupper() or (self.lower and len(words) <= 3)

    def _split_list(self, raw: str, rule: Rule) -> list[str]:
        parts = re.split(self.lang.data["joined"], raw) if rule.slot.many else [raw]
        things = [without_article(part, self.lang) for part in parts]
        no_value, free = self.lang.patterns["no_value"], not rule.listed_things
        fit = [bool(one) and not (free and no_value.match(one)) and not rule.excludes(one) for one in things]
        return [one for one, fits in zip(things, fit, strict=True) if fits and fit[0]]  # "quit smoking, 20 a day"

    # Warnings. ------------------------------------------------------------------------------------------------------
    def _caution(self) -> list[SlotMention]:
        """Return a sentence that warns of something of the speaker's, where no rule says of what, in its own words."""
        doubtful = any(self._has(name, self.text) for name in ("laughs", "doubt", "unreal"))
        if self.sentence.asks or doubtful or not self._has("of_speaker", self.text):
            return []
        start, stop = self.sentence.start, self.sentence.stop
        warnings = self.lang.patterns["caution"].finditer(self.utterance.clean_text, start, stop)
        if not any(all(not one.start <= found.start() < one.stop for one in self.found) for found in warnings):
            return []
        if len(self.text.split()) < SHORT_WARNING and self.last is not None:
            start = self.last.start
        words = in_quotes(self.utterance.text[start:stop])
        slot, me = slot_types()["caution"], self.utterance.subject
        filling = Slot(f"caution/{words.casefold()[:80]}", "yes", True, Modality.HOLDS)
        return [SlotMention(start, stop, filling, slot.type, me, render(slot, self.lang, me, "", words))]


def _remaining_verb(found: re.Match[str]) -> str:
    """Return the rest of "not in Berlin but": nothing, or the verb of "do not live in Berlin but"."""
    verb = found.groupdict().get("verb")
    return f"{verb} " if verb else ""


def _verb_first(words: str, clause: str) -> str:
    """Return "wohne in Bonn" for "in Bonn wohne", behind "weil"."""
    said = clause.rstrip(" .,!")
    rest, _, verb = said.rpartition(" ")
    return f"{verb} {rest}{words[len(said) :]}" if rest else words


def _words_of(tokens: Sequence[re.Match[str]], lang: Language) -> set[str]:
    """Return the words of a sentence in lower case, written out, with the first person of its verbs."""
    words: set[str] = set()
    for token in tokens:
        word = token[0].casefold()
        words.add(word.removesuffix("'s"))
        if word.endswith("'s"):
            words.add("'s")
        words.update(lang.contractions.get(word, "").casefold().split())
    return words | {lang.third[word] for word in words if word in lang.third}


def _spell_out(tokens: Sequence[re.Match[str]], sentence: Sentence, lang: Language) -> _Spelled:
    """Write a sentence out: "I'm" is "I am", the "'s" of a noun a word of its own."""
    pieces, places, origins = list[str](), [], []
    length, last = 0, sentence.start
    for found in tokens:
        word = lang.contractions.get(found[0].casefold()) or re.sub(r"(?<=.)'s$", " 's", found[0])
        if length and found.start() > last:
            pieces.append(" ")
            length += 1
        places.append(length)
        origins.append(found.span())
        pieces.append(word)
        length += len(word)
        last = found.end()
    return _Spelled("".join(pieces), places, origins)
