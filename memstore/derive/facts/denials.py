"""Whether a person's own words deny a fact that protects them: an allergy, an illness, a medicine, a diet. Pure.

A chat model may claim that an allergy is over, and quote any words of the person. The claim is believed only if the
quoted sentence itself denies the allergy: "I'm no longer allergic to peanuts", and not "I don't eat peanuts", "Am I
still not allowed peanuts?" or "My son isn't allergic to peanuts". A denial that is missed here waits for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from memstore.derive.facts import grounding, normalization
from memstore.derive.facts.entities import is_somebodys, may_tell_of
from memstore.derive.facts.normalization import content_words, is_denied, plain
from memstore.derive.facts.quotes import Span, tokens
from memstore.derive.llm import Passage
from memstore.language import SPOKEN_WORD, WORD, compile_phrases, has_word, is_question, load_phrases, load_words
from memstore.language.detection import UNKNOWN, language_of
from memstore.language.sentences import sentences
from memstore.models import FactColumns

# A question behind a statement that makes sure of it: "I'm not allergic, am I?"
_TAG = re.compile(
    r"(?:(?:or|and|oder|und) )?(?:ok(?:ay)?|please|pls|right|correct|yes|no|not|true|innit|eh"
    r"|(?:am|is|are|was|were|do|does|did|have|has|had|can|could|will|would|should|must)(?:n['’]t| not)?"
    r" (?:I|we|he|she|it|they|there|you)(?: not)?|oder(?: nicht)?|nicht wahr|stimmt(?:['’]s| es)?|richtig|korrekt|ja"
    r"|nein|gell|ne|nicht|n['’]est-ce pas|non|hein|pas vrai|d['’]accord|verdad|cierto|vale|sí)",
    re.IGNORECASE,
)
_OF_SPEAKER = compile_phrases(
    "I, we, my, our, ich, wir, mein*, unser*, je, j'*, nous, mon, ma, mes, notre, nos, yo, nosotros, nosotras, mi, mis"
    ", nuestro, nuestros, nuestra, nuestras",
    opens=True,
)
_WELL = compile_phrases("fine, normal")
_IT = compile_phrases("it, es, that, das")
_MY = re.compile(r"\b(?:my|our|mein\w*|unser\w*|mon|ma|mes|mis?|notre|nos)\s+(?:\w+\s+)??(\w+)", re.IGNORECASE)
# A name with what its bearer does, where a sentence begins.
_NAMED = re.compile(
    r"(?P<name>[A-ZÀ-ÖØ-Þ][\w-]+)(?: \w+)?? (?:is|isn['’]t|was|has|had|hasn['’]t|does|doesn['’]t|no longer|lives|works"
    r"|eats|takes|likes|loves|hates|ist|war|hat|hatte|wird|isst|nimmt|mag|wohnt|arbeitet|est|a|mange|prend|es|está|come|toma)\b"
)
# "not": never; "over": gone; "stopped": quit; "idle": the, since. Of the fact "Alice is allergic to peanuts", peanuts
# is the "object" and allergic the "topic"; "own" are its other words. "other" is a word of another statement.
WordKind = Literal["not", "over", "stopped", "idle", "object", "topic", "own", "other"]


def own_sentences(
    text: str,
    subject: str,
    spans: Sequence[Span],
    shown: Sequence[Passage],
    speaker_of: Mapping[str, str],
    background: str,
) -> tuple[str, ...]:
    """Return the sentences about the subject that contain a quote, and the questions to which a quote says yes.

    A sentence with "it" is returned with the sentence before. A question loses what it asks, and keeps the clauses
    before. `speaker_of` maps speakers to their names in facts. A word that `background` writes small is no name.
    """
    quoted: list[str] = []
    for span in spans:
        passage, before = span.passage, ""
        speaker = speaker_of.get(passage.speaker, passage.speaker)
        for start, stop in sentences(passage.text):
            sentence = _without_question(passage.text[start:stop])
            is_quoted = start < span.stop and span.start < stop
            if is_quoted and sentence and _is_about(sentence, subject, speaker, background):
                quoted.append(f"{before} {sentence}" if _IT.search(sentence) else sentence)
            before = passage.text[start:stop]
        quoted.append(grounding.find_answered(passage, text, subject, shown))
    return tuple(dict.fromkeys(filter(None, quoted)))


def _without_question(sentence: str) -> str:
    if not is_question(sentence):
        return sentence
    clauses = [clause.strip() for clause in grounding.CLAUSE.split(sentence) if clause.strip()]
    asked = 2 if clauses and _TAG.fullmatch(clauses[-1]) else 1
    return ". ".join(each for each in clauses[:-asked] if _OF_SPEAKER.match(each) or _NAMED.match(each))


def _is_about(sentence: str, subject: str, speaker: str, background: str) -> bool:
    words = {form for token in tokens(sentence) for form in (token.key, token.key.removesuffix("s"))}
    if subject.casefold() != speaker.casefold():
        names = [token.key for token in tokens(subject.rpartition("'s ")[2])]
        return any(grounding.is_akin(word, name) for word in words for name in names) or bool(
            words & grounding.THIRD_KEYS
        )
    named = None if _OF_SPEAKER.match(sentence) else _NAMED.match(sentence)
    is_of_kin = any(word.casefold().removesuffix("s") in grounding.RELATIVES for word in _MY.findall(sentence))
    is_of_other = bool(words & grounding.THIRD_KEYS) and not words & grounding.FIRST_KEYS
    is_other = named is not None and not has_word(background, named["name"].casefold(), ignore_case=False)
    return not (is_of_kin or is_of_other or is_other)


def denies(fact: FactColumns, new: FactColumns, said: Sequence[str]) -> bool:
    """Return whether a person's sentences deny a known fact that protects them, or say what replaced it.

    Words of two languages cannot be compared. Then it is enough that a sentence denies something of the new fact.
    """
    if fact.subject != new.subject and (is_somebodys(new.subject) or not may_tell_of(fact.subject, new.text)):
        return False
    code = language_of(fact.text)
    root, _, key = (fact.attribute or "").partition("/")
    is_same_medicine = root in ("dose", "medication") and key and (new.attribute or "").endswith(key)
    new_numbers = grounding.numbers(new.text) - grounding.numbers(fact.text)
    if is_same_medicine and new_numbers & grounding.numbers(" ".join(said)):
        return True
    if root in ("diet", "regimen") and any(_changes_diet(fact, new, each) for each in said):
        return True
    foreign = [each for each in said if code != UNKNOWN and language_of(each) not in (UNKNOWN, code)]
    turns = [each for each in foreign if grounding.is_negative(each) or load_phrases("again").search(each)]
    if any(grounding.shares_word(new.text, each, new.subject) for each in turns):
        return True
    objects = _object_words(fact)
    # "is worse now"
    is_worse = normalization.is_protection(new) and not grounding.is_negative(new.text) and not _WELL.search(new.text)
    if is_worse and _mentions_any(new.text, objects) and any(_mentions_any(each, objects) for each in said):
        return True
    return _is_retracted_by(fact, objects, said)


def lacks_denial_evidence(fact: FactColumns, said: Sequence[str]) -> bool:
    """Return whether a fact takes protection away and no sentence denies anything about its object."""
    if not normalization.takes_away_protection(fact.attribute, fact.value):
        return False
    objects = _object_words(fact)
    denials = [each for each in said if grounding.is_negative(each) or load_phrases("again").search(each)]
    return not any(_mentions_any(each, objects) for each in denials)


def _is_retracted_by(fact: FactColumns, objects: set[str], said: Sequence[str]) -> bool:
    """Return whether sentences deny a fact. A ban, "must not eat gluten", is denied by doing the thing again."""
    root, _, key = (fact.attribute or "").partition("/")
    subject = {plain(word) for word in content_words(fact.subject)}
    words = {plain(word) for word in content_words(fact.text)} - {normalization.NOT} - subject
    is_ban = any(is_denied(clause) and _mentions_any(clause, objects) for clause in grounding.CLAUSE.split(fact.text))
    has_topic = root not in ("health", "condition", "medication", "dose", "pregnancy", "diet", "regimen")
    topics = words - objects if has_topic else set()
    least = 1 if key or fact.value else min(2, len(objects))
    groups: dict[WordKind, set[str]] = {"object": objects, "topic": topics, "own": {*words, *content_words(root)}}
    for sentence in said:
        for clause in grounding.CLAUSE.split(grounding.IDLE_DENIAL.sub(" ", sentence)):
            if is_ban:
                if load_phrases("again").search(clause) and not is_denied(clause) and _mentions_any(clause, objects):
                    return True
                continue
            is_well = root in ("health", "condition") and _WELL.search(clause) and not is_denied(clause)
            if is_well and (
                _mentions_any(clause, objects) or (_IT.search(clause) and _mentions_any(sentence, objects))
            ):
                return True
            ended = _in_plain_words(clause)
            if not compile_phrases("*n't just, *n't only").search(clause) and _clause_negates(ended, groups, least):
                return True
    return False


def _in_plain_words(clause: str) -> str:
    """Return a clause with "no more nuts" for "no more nuts for me", and "stopped" for "done with"."""
    for_me = r"^(\W*(?:no|kein\w*) (?:more |mehr )?\w+) (?:for me|für mich)(?: either| auch)?\W*$"
    clause = re.sub(for_me, r"\1", clause, flags=re.IGNORECASE)
    return compile_phrases("through with, done with, finished with").sub("stopped", clause)


def _object_words(fact: FactColumns) -> set[str]:
    """Return the words for the object of a fact, such as "peanuts"; all its words if it names no object."""
    root, _, key = (fact.attribute or "").partition("/")
    value = "" if fact.value in ("yes", "no") else fact.value or ""
    subject = {plain(word) for word in content_words(fact.subject)}
    objects = {plain(word) for word in content_words(key or value or fact.text)} - {normalization.NOT} - subject
    medicines = content_words("medication medicine tablet pill tablette pille medikament")
    return objects | {*medicines} if root == "medication" else objects


def _changes_diet(fact: FactColumns, new: FactColumns, sentence: str) -> bool:
    if new.value and not is_denied(sentence) and grounding.shares_word(new.value, sentence, new.subject):
        return True
    is_again = load_phrases("again").search(sentence) is not None and normalization.DIETS.search(fact.text) is not None
    return is_again and grounding.shares_word(new.text, sentence, new.subject)


def _mentions_any(text: str, words: set[str]) -> bool:
    return any(grounding.is_akin(word, each) for word in words for each in map(plain, content_words(text)))


def _clause_negates(clause: str, groups: Mapping[WordKind, set[str]], least: int) -> bool:
    """Return whether a clause denies at least `least` object words of a fact, and its topic ("allergy") if it has one.

    The words between belong to no other statement: "I don't have time for my diabetes" does not deny the diabetes.
    """
    kinds = list(_classify_words(clause, groups))
    # "my allergy hasn't gone"
    if "not" in kinds and "over" in kinds:
        return False
    words = WORD.findall(clause.casefold())
    is_ended = bool(words) and words[-1] in load_words("ended_last") and "not" not in kinds
    if is_ended and kinds.count("object") >= least:
        return not groups["topic"] or "topic" in kinds
    least = least if "other" in kinds else 1
    start = 0
    for place in (*(place for place, kind in enumerate(kinds) if kind == "other"), len(kinds)):
        run, is_last = kinds[start:place], place == len(kinds)
        start = place + 1
        if run.count("object") < least or (groups["topic"] and "topic" not in run):
            continue
        # "no diabetes kit"
        if not is_last and run[-1] in ("object", "topic"):
            continue
        before = run[: run.index("object")]
        denials = [at for at, kind in enumerate(run) if kind == "not"]
        if "over" in run or "stopped" in before:
            return True
        if any(is_last or not groups.keys().isdisjoint(run[at:]) for at in denials):
            return True
    return False


def _classify_words(clause: str, groups: Mapping[WordKind, set[str]]) -> Iterator[WordKind]:
    for word in SPOKEN_WORD.findall(clause):
        if word.isdecimal():
            continue
        stems = [plain(each) for each in content_words(word) if len(each) > 2]
        if stems == [normalization.NOT]:
            yield "not"
        elif word.casefold() in load_words("over"):
            yield "over"
        elif word.casefold() in load_words("stopped"):
            yield "stopped"
        elif not stems or stems[0] in grounding.HOLLOW or word.casefold() in load_words("after_thing"):
            yield "idle"
        else:
            is_of = (kind for kind, words in groups.items() if any(grounding.is_akin(each, stems[0]) for each in words))
            yield next(is_of, "other")
