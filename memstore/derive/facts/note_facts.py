"""Facts of the notes of a message. Pure.

    message -> notes: its words that are worth keeping     reader/
            -> plain words: "Alice lives in Cork."
            -> else a quotation: Alice: "We signed the lease."

The same messages always give the same facts, and no text raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memstore.derive.facts import quotations
from memstore.derive.facts.days import end_of_plan
from memstore.derive.facts.drafts import STATEMENT, FactDraft, draft_fact, pasted
from memstore.derive.facts.normalization import CONSTRAINT, DIETS, is_denied, is_dietary_restriction
from memstore.derive.facts.slots import GUARDED, SINGLE, protection, without_article
from memstore.derive.facts.utterances import Utterance, in_quotes, type_of
from memstore.derive.reader.notes import Note, ReaderInput, Stretch
from memstore.language import compile_phrases, load_phrases
from memstore.language.detection import UNKNOWN, language_of
from memstore.language.sentences import Spans, sentences
from memstore.models import Role

QUOTED_CONFIDENCE = 0.6
MIN_NOTE_CONFIDENCE = 0.4
# Types of which facts stand in every context, and the attributes by which they surely are.
ALWAYS_TOLD = {
    "constraint": frozenset(GUARDED),
    "identity": frozenset(["name", "age", "origin", "residence", "job", "employer", "language", "phone", "email"]),
}
MAX_STANDING_WORDS = 10
_ALLERGY = compile_phrases("allerg*")
# Where a clause ends that speaks of an allergy.
_CLAUSE = re.compile(
    r"\b(?:so|but(?! also)|because|which|since|when|aber|weil|deshalb)\b|[.;]"
    r"|(?:,|\b(?:and|und)\b) (?:and |und )?(?:I|my|we|our|ich|mein\w*)\b",
    re.IGNORECASE,
)
# What somebody is allergic to, where the reader names nothing: it was made of English texts, and misses it in German.
_ALLERGISCH = re.compile(
    r"(?:ich )?bin (?:nicht (?:mehr )?)?"
    r"(?:allergisch gegen ([^\W\d_][\w-]*)|gegen ([^\W\d_][\w-]*) (?:nicht (?:mehr )?)?allergisch)[.!]*",
    re.IGNORECASE,
)
# How an allergy is told, and that it is none, in the languages of the reader.
_ALLERGIC = {
    "en": ("{} is allergic to {}.", "{} is not allergic to {}."),
    "de": ("{} ist allergisch gegen {}.", "{} ist nicht allergisch gegen {}."),
}
_ALLERGIC[UNKNOWN] = _ALLERGIC["en"]
_FOR_SOME_TIME = re.compile(
    r"\b(?:for|since|seit|in) (?:\w+ ){0,2}?(?:hours?|days?|weeks?|months?|stunden|tagen?|wochen?|monat\w*)\b"
    r"|\b(?:hours?|days?|weeks?|stunden|tage|wochen) (?:lang|now|without|ohne)\b"
    r"|\b(?:today|tonight|tomorrow|this (?:morning|week|evening)|last night|heute|morgen|gestern|diese woche)\b",
    re.IGNORECASE,
)
_NO_NAME = compile_phrases(
    "mild, severe, serious, bad, slight, known, food, seasonal, life-threatening, leicht*, schwer*, tablet*, pill*"
    ", capsule*, dose*, medication*, medicine*, med*, drug*, medikament*, milligram*, kapsel*"
)
_FORGET = re.compile(
    r"(?:please |pls |bitte )?(?:forget|delete|erase|vergiss|lösche?)\b(?!(?: \w+)? nicht\b)[^,;:]*", re.IGNORECASE
)
# Types that give way to one's own; the others hold always.
LOOSE_TYPES = (STATEMENT, "plan", "task", "event", "possession")
_USER = re.compile(r"\b(?:the user|der nutzer|die nutzerin)\b|(?:^|(?<=[.!?\n] ))user\b", re.IGNORECASE)
_CALLED_USER = re.compile(
    r"(?:(?:the|der|die) )?(?:user|nutzer(?:in)?)"
    r"(?=['’]s\b| (?!(?:interface|manual|account|name|group)s?\b)\w+(?:s|ed|t)\b)",
    re.IGNORECASE,
)


def extract(
    utterance: Utterance,
    notes: Sequence[Note],
    before: Sequence[Utterance] = (),
    *,
    question: str = "",
    least: float = MIN_NOTE_CONFIDENCE,
    types: Mapping[str, re.Pattern[str]] | None = None,
) -> list[FactDraft]:
    """Return the facts that the notes of a message say, in its order, if they are probable enough.

    `before` are up to three messages before it, the newest last: they show to whom it is said. `question` is what the
    last of them asks: a short quotation of the answer has it. `types` are types of one's own with the words by which a
    note is one; a sentence with these words is a fact even where it is no note. `least` is the probability from which a
    note is kept.
    """
    to_friend = _to_friend(utterance, before)
    code, spans = language_of(utterance.text), sentences(utterance.text)
    facts, quoted = list[FactDraft](), list[Note]()
    for note in notes:
        says_allergic = note.attribute == "allergy" and _ALLERGY.search(utterance.text, note.start, note.stop)
        # To an assistant: to miss an allergy does harm.
        if note.confidence < (0.2 if says_allergic and not to_friend else least):
            continue
        if note.type == "instruction" and to_friend:
            continue  # nobody instructs an assistant among friends
        is_guard = note.type == "constraint" and note.attribute in GUARDED and not to_friend
        if not is_guard and _FORGET.fullmatch(utterance.text, *quotations.sentences_of(note, spans)):
            continue
        unquoted = quotations.count_words(utterance.unquoted_text, note.start, note.stop)
        if unquoted < 0.5 * quotations.count_words(utterance.text, note.start, note.stop):
            continue
        type = CONSTRAINT if _restricts_another(note, utterance.text) else note.type
        # Friends tell each other stories.
        if to_friend and note.confidence < {"constraint": 0.85, "identity": 0.99}.get(type, 0.0):
            note = replace(note, type="event", attribute="other")
        protections = _protections(note, utterance, code)
        named = [draft for draft in protections if draft.fact.text]
        if len(named) > 1:
            facts += named
        elif _is_plain(note, utterance.text, spans, code, to_friend=to_friend):
            facts.append(_draft_note(note, utterance, protections, code, Stretch(note.start, note.stop)))
            continue
        elif named and note.type == "constraint":
            shown = quotations.sentences_of(note, spans)
            if quotations.count_words(utterance.text, *shown) <= MAX_STANDING_WORDS:
                whole = replace(note, start=shown.start, stop=shown.stop, sentence=None)
                facts.append(_draft_note(whole, utterance, protections, code, shown))
                continue
            # In every context stands what is short; the quotation answers who asks.
            facts += named
        quoted.append(replace(note, type="event", attribute="other") if named else note)
    blocks = [Stretch(*block) for block in pasted(utterance.text)]
    thoughts = quotations.whole_thoughts(quoted, utterance.text, spans, blocks)
    asserted = utterance.asserted if types or (thoughts and not to_friend) else ()
    typed = [each for each in asserted if types and type_of(utterance.text[each.start : each.stop], types)]
    told = [Stretch(fact.start, fact.stop) for fact in facts] + [Stretch(note.start, note.stop) for note in thoughts]
    apart = [*told, *(Stretch(sentence.start, sentence.stop) for sentence in typed), *blocks]
    for note in thoughts:
        protections = _protections(note, utterance, code) if note.type == "constraint" else []
        is_enough = to_friend or _restricts_another(note, utterance.text)
        shown = Stretch(note.start, note.stop)
        if not is_enough:
            shown = quotations.with_neighbours(note, utterance, asserted, apart)
        answers = question if note.type != "instruction" and quotations.is_answer(shown, utterance.text) else ""
        facts.append(_draft_note(note, utterance, protections, code, shown, answers))
    for sentence in typed:
        if not sentence.asks and not any(quotations.overlap(fact, sentence) for fact in facts):
            text = quotations.quotation(utterance, sentence.start, sentence.stop)
            said = (QUOTED_CONFIDENCE, code, sentence.start, sentence.stop)
            facts.append(draft_fact(text, STATEMENT, utterance.subject, *said))
    return _in_order(facts, types)


def _in_order(drafts: Sequence[FactDraft], types: Mapping[str, re.Pattern[str]] | None) -> list[FactDraft]:
    first: dict[tuple[str, str], FactDraft] = {}
    for draft in drafts:
        fact = draft.fact
        type = type_of(fact.text, types or {}) if fact.type in LOOSE_TYPES else None
        first.setdefault((fact.subject, fact.text), draft.with_columns(type=type) if type else draft)
    return sorted(first.values(), key=lambda draft: draft.start)


def _is_plain(note: Note, text: str, spans: Spans, code: str, *, to_friend: bool) -> bool:
    """Whether a note becomes plain words: they are sure, and understood without the words around them.

    A message to an assistant that says much else is quoted, and so are other languages: in German the verb may stand at
    the end. Of a long dictation without stops plain words are better than a cut from it.
    """
    if note.sentence is None or note.leans or note.confidence < 0.85:
        return False
    start, stop = quotations.sentences_of(note, spans)
    if quotations.count_words(text, start, stop) > quotations.MAX_QUOTATION_WORDS:
        return True
    other_words = quotations.count_words(text, 0, start) + quotations.count_words(text, stop, len(text))
    is_alone = to_friend or other_words <= 8
    return is_alone and code in ("en", UNKNOWN) and note.stop - note.start >= 0.7 * (stop - start)


def _draft_note(
    note: Note, utterance: Utterance, protections: list[FactDraft], code: str, shown: Stretch, question: str = ""
) -> FactDraft:
    """Return a note as a fact: in plain words, or as it was said, the words `shown` with the `question` before."""
    text = quotations.quotation(utterance, *shown, question, code)
    who = utterance.named_in(code)
    if note.sentence and not ("{NAME}s" in note.sentence and (code != "de" or not utterance.speaker)):
        who = who if utterance.speaker or note.sentence.startswith("{NAME}") else who[0].lower() + who[1:]
        text = note.sentence.replace("{NAME}", who)
        text = text[0].upper() + text[1:]
    guard = protections[0] if len(protections) == 1 else None
    subject = utterance.subject
    # "My name" is the speaker's own.
    if note.subject and guard is None and note.type != "identity":
        about = utterance.text[note.subject.start : note.subject.stop]
        about = re.sub(r"^(?i:my|our|the|mein\w*|unser\w*|der|die|das)\b", "", about).strip(" ,.")
        subject = f"{subject}'s {about}" if about else subject
    type = {"instruction": "procedure", "relation": "relationship"}.get(note.type, note.type)
    type = "goal" if note.attribute == "goal" else type
    is_named = guard is not None and note.attribute in ("allergy", "medicine") and note.holds
    said = utterance.text[note.value.start : note.value.stop] if note.value else ""
    # Facts name their subject.
    is_known = note.attribute == "name" and said.casefold() == utterance.subject.casefold()
    words = utterance.text[note.start : note.stop]
    if type in ALWAYS_TOLD and not is_named and (is_known or not _always_holds(note, words)):
        type = STATEMENT
    if subject != utterance.subject and _restricts_another(note, utterance.text):
        type = CONSTRAINT
    ends = end_of_plan(words, utterance.occurred_at) if type == "plan" else None
    told = (text, type, subject, note.confidence, code, *shown)
    is_sure = note.attribute in SINGLE and note.attribute_share >= 0.8 and subject == utterance.subject
    attribute, value = (note.attribute, said.casefold()) if is_sure and said and guard is None else (None, None)
    slot = guard.slot if guard else None
    return draft_fact(*told, valid_to=ends, slot=slot, attribute=attribute, value=value)


def _restricts_another(note: Note, text: str) -> bool:
    """Whether a note says what somebody whom it names is allergic to, or must not eat."""
    is_about_another = note.type == "relation" and note.subject is not None
    return is_about_another and is_dietary_restriction(note.attribute, text[note.start : note.stop])


def _always_holds(note: Note, words: str) -> bool:
    """Whether a constraint or an identity is sure enough for every context, and who somebody is short enough."""
    is_sure = note.type != "identity" or note.confidence >= 0.85
    if note.attribute not in ALWAYS_TOLD[note.type] or not is_sure:
        return False
    # "I've cut out dairy"
    is_ban = note.attribute == "diet" and not DIETS.search(words)
    if not (note.holds or is_ban) or (note.attribute == "allergy" and _is_denied(note, words)):
        return False
    is_short = len((note.sentence or words).split()) <= MAX_STANDING_WORDS
    return note.type != "identity" or (note.value is not None and is_short)


def _is_denied(note: Note, words: str) -> bool:
    """Whether the words of a note deny what it tells: of an allergy those of its clause, before it is named.

    "I can't have nuts" denies no allergy.
    """
    if note.attribute != "allergy":
        return is_denied(words)
    if (allergy := _ALLERGY.search(words)) is None:
        return False
    before = _CLAUSE.split(words[: allergy.start()])[-1]
    return is_denied(before.rpartition(",")[2]) and not compile_phrases("not only, not just, nicht nur").search(before)


def _protections(note: Note, utterance: Utterance, code: str) -> list[FactDraft]:
    """Return what protects the speaker, by each value of a note, and that something does not.

    Only an allergy has a text; the others keep the note's words. Where the reader and the words differ in
    whether it holds, or a denial is unsure or for some days only, or a medicine does harm, there is nothing.
    """
    words = utterance.text[note.start : note.stop]
    of_speaker = note.of_speaker or (note.subject and _ALLERGY.search(utterance.text, *note.subject))
    is_allergy = note.attribute == "allergy"
    if note.attribute not in GUARDED or note.holds == _is_denied(note, words) or not of_speaker:
        return []
    shown = quotations.sentences_of(note, sentences(utterance.text))
    if not note.holds and load_phrases("unsure_denial").search(utterance.text, *shown):
        return []
    is_for_good = compile_phrases("anymore, any more, no longer, for good, mehr, abgesetzt, stopped").search(words)
    if not note.holds and _FOR_SOME_TIME.search(words) and not is_for_good:
        return []
    reacts = compile_phrases("react*, badly, intoleran*, tolerate, reagier*, vertrag*, verträg*").search(words)
    if note.attribute == "medicine" and reacts:
        return []  # who reacts badly to a medicine does not take it
    allergy = _ALLERGY.search(utterance.text, note.start, note.stop)
    if is_allergy and not allergy:
        return []  # who keeps bees is not allergic to them
    type = "constraint" if note.holds else STATEMENT
    made = []
    for value, name in _things(note, utterance.text, allergy):
        key = name.casefold()
        if not key or _NO_NAME.fullmatch(key) or (not is_allergy and any(map(str.isdigit, key))):
            continue
        if note.attribute == "diet" and not DIETS.search(key):
            continue  # who eats no fish has a diet, too
        text = ""
        if is_allergy and code in _ALLERGIC and len(key.split()) <= 4:
            text = _ALLERGIC[code][not note.holds].format(utterance.named_in(code), name)
        slot = protection(GUARDED[note.attribute], key, holds=note.holds)
        said = (utterance.subject, note.confidence, code, value.start, value.stop)
        made.append(draft_fact(text, type, *said, slot=slot))
    return made


def _things(note: Note, text: str, allergy: re.Match[str] | None) -> Iterator[tuple[Stretch, str]]:
    """Yield the things that the values of a note name, with their place; of an allergy those of its clause."""
    values = [each for each in dict.fromkeys(note.values) if not _ALLERGY.fullmatch(text, each.start, each.stop)]
    if not values and (said := _ALLERGISCH.fullmatch(text, note.start, note.stop)):
        values = [Stretch(*said.span(1 if said[1] else 2))]
    for value in values:
        if allergy:
            # "tree" of "a tree nut allergy"
            if more := re.match(r"[ -]\w+(?= allerg(?:y|ies)\b)", text[value.stop :], re.IGNORECASE):
                value = Stretch(value.start, value.stop + more.end())
            is_before = value.stop <= allergy.start()
            between = (value.stop, allergy.start()) if is_before else (allergy.end(), value.start)
            if between[0] < between[1] and _CLAUSE.search(text, *between):
                continue  # "my name is Zoe, I'm allergic to nuts"
        for name in re.split(r",|\b(?i:and|und)\b", _ALLERGY.sub("", text[value.start : value.stop])):
            yield value, without_article(name)


def extract_memory(
    utterance: Utterance, notes: Sequence[Note], kind: str, types: Mapping[str, re.Pattern[str]]
) -> list[FactDraft]:
    """Return the facts of what another assistant remembered: every sentence as it stands.

    Somebody found it worth keeping already, so no sentence is left out, and "User" is who it is about. A note tells
    which sentences protect somebody.
    """
    usual = "procedure" if kind == "instructions" else STATEMENT
    code, spans, facts = language_of(utterance.text), sentences(utterance.text), list[FactDraft]()
    for start, stop in spans:
        words = in_quotes(utterance.text[start:stop].lstrip("-*•# "))
        named = _CALLED_USER.match(words)
        text = f"{utterance.subject}{words[named.end() :]}" if named else f'{utterance.subject}: "{words}"'
        [*guards] = (
            note for note in notes if note.attribute in GUARDED and quotations.overlap(note, Stretch(start, stop))
        )
        slots = [fact.slot for note in guards for fact in _protections(note, utterance, code)]
        is_guard = any(note.type == "constraint" and note.holds and note.of_speaker for note in guards)
        type, slot = "constraint" if is_guard else usual, slots[0] if len(slots) == 1 else None
        said = (utterance.subject, QUOTED_CONFIDENCE, code, start, stop)
        facts.append(draft_fact(text, type, *said, slot=slot))
    return _in_order(facts, types)


def _to_friend(utterance: Utterance, before: Sequence[Utterance]) -> bool:
    """Whether every message before is by the speaker or one other named person."""
    other_speakers = {message.speaker if message.role == "user" else None for message in before} - {utterance.speaker}
    return bool(utterance.speaker) and len(other_speakers) == 1 and None not in other_speakers


def turn_of(utterance: Utterance, before: Sequence[Utterance]) -> ReaderInput:
    """Return a message as the reader reads it, with what a person or an assistant said just before it."""
    last = before[-1] if before and before[-1].role in (Role.USER, Role.ASSISTANT) else None
    # "@bob: …": the reader knows no message that begins so.
    text = re.sub(r"^(?:@[\w.-]+[:,]? ?)+", lambda match: " " * len(match[0]), utterance.text)
    return ReaderInput(last.text if last else "", text, _to_friend(utterance, before))


def memory_turn(utterance: Utterance) -> ReaderInput:
    """Return what another assistant remembered as its user would say it, every character in its place."""
    text = compile_phrases("the user's, user's").sub(lambda match: "My".ljust(len(match[0])), utterance.text)
    return ReaderInput("", _USER.sub(lambda match: "I".ljust(len(match[0])), text))
