"""Facts by a chat model: it reads a segment of a conversation with known facts and the messages before it.

The model names new facts, known facts that are said again, and known facts that end. Facts that `grounding` refuses are
kept with the reason, as invalid responses are. A segment whose answer cannot be used is asked about in halves; if that
fails too, the answer is recorded, and `--redo` asks again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from pydantic import BaseModel

from memstore.derive import llm
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts import drafts, entities, grounding
from memstore.derive.facts.answers import AnsweredFact, AnsweredFacts, attribute_of, slot_of, tidy, type_of
from memstore.derive.facts.denials import denies, lacks_denial_evidence, own_sentences
from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.guidelines import NO_GUIDELINES, Guidelines, add_types, mark_recipe
from memstore.derive.facts.normalization import is_protection, names_time, protects
from memstore.derive.facts.quotes import Span, find_source
from memstore.derive.llm import LLMRequest, LLMSession, Passage, make_passages, split_to_window
from memstore.errors import ModelAnswerInvalid, PromptTooLong
from memstore.language.detection import language_of
from memstore.models import QUARANTINED, KnownFact, Message, Role
from memstore.providers import ChatModel
from memstore.text import blank_fenced_blocks, json_line

MAX_SEGMENT_MESSAGES = 64
MAX_CONTEXT_MESSAGES = 6
# The fifteen facts that the prompt allows, of 60 to 90 tokens each.
MAX_ANSWER_TOKENS = 1400
# As many facts as the prompt says: the user is locked while they are applied.
MAX_ANSWER_FACTS = 15


@dataclass(slots=True)
class Findings:
    """A model's findings in a segment: facts with their sources, known facts that are said again, and refusals.

    A fact that waits to be confirmed is quarantined. `refusals` say why others are not believed. `user` is the name by
    which a user without one is introduced. If the segment goes on, it was `read_to` this message.
    """

    facts: list[tuple[FactDraft, Sequence[Span]]] = field(default_factory=list)
    repeats: list[tuple[KnownFact, Span]] = field(default_factory=list)
    refusals: list[tuple[str, BaseModel]] = field(default_factory=list)
    user: str = ""
    read_to: int | None = None


def recipe(model: ChatModel) -> str:
    """Return the recipe of this model's facts. Raises `ModelUnavailable` where its server is away."""
    return llm.make_recipe("llm-facts", 5, model, llm.load_prompt("facts"))


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A segment to be asked about: its messages, those before it, known facts, the user's name, and guidelines.

    `known` begins with what matters most. Messages without a name are of `own_name`, where that is sure. `trusted` are
    the roles that facts are taken from. Users and assistants are always shown; system prompts and the output of tools
    are kept from the model otherwise.
    """

    segment: Sequence[Message]
    before: Sequence[Message] = ()
    known: Sequence[KnownFact] = ()
    user: str = ""
    own_name: str = ""
    trusted: Collection[str] = (Role.USER,)
    guidelines: Guidelines = NO_GUIDELINES

    def run(self, session: LLMSession, request: LLMRequest) -> Findings:
        """Ask about as much as fits into the window, and return what was found.

        It is one call, or more if a single message is longer than the window or the answer is cut. The rest of the
        segment is another step, so that a kill loses no stored answer. Raises what `LLMSession.complete` raises.
        """
        findings = Findings()
        system = llm.load_prompt("facts").text + self.guidelines.prompt
        inquiry = self._fit(system, session.model)
        make = partial(llm.make_chat, system, background=inquiry._background())
        groups = split_to_window(make, make_passages(self.segment, self.trusted), session.model, MAX_ANSWER_TOKENS)
        for shown in groups:
            if shown is not groups[0] and shown[0].start == 0:
                findings.read_to = next(each.seq for each in self.segment if each.id == shown[0].item_id) - 1
                break
            inquiry._ask(shown, make, session, request, findings)
        return findings

    def _fit(self, system: str, model: ChatModel) -> Inquiry:
        """Return the inquiry with fewer facts and earlier messages, if they would take more than half of the window."""
        cut = self
        while cut.known or cut.before:
            chat = llm.make_chat(system, [], background=cut._background())
            if model.max_prompt_tokens(chat) + MAX_ANSWER_TOKENS <= (model.context_tokens + MAX_ANSWER_TOKENS) // 2:
                break
            cut = replace(cut, known=cut.known[: len(cut.known) // 2], before=cut.before[len(cut.before) // 2 + 1 :])
        return replace(cut, known=sorted(cut.known, key=lambda prior: (prior.fact.occurred_at, prior.fact.id)))

    def _background(self) -> list[str]:
        lines = [json_line({"user": self.user})] if self.user else []
        for number, prior in enumerate(self.known, 1):
            fact = prior.fact
            days = [fact.valid_from or fact.occurred_at, *([fact.valid_to] if fact.valid_to else [])]
            told = [
                fact.attribute or "other",
                fact.text[: entities.MAX_SHOWN_CHARS],
                *(day.date().isoformat() for day in days),
            ]
            lines.append(json_line([f"k{number}", *told]))
        if lines:
            lines.insert(0, "What is known:")
        if passages := make_passages(self.before, self.trusted):
            lines.append(f"Before, on {llm.write_day(passages[-1].said)}:")
            lines += [
                json_line({"from": each.speaker, "text": each.text[-entities.MAX_SHOWN_CHARS :]}) for each in passages
            ]
        return lines

    def _ask(
        self,
        shown: Sequence[Passage],
        make: llm.ChatMaker,
        session: LLMSession,
        request: LLMRequest,
        findings: Findings,
    ) -> None:
        if not any(passage.role in self.trusted for passage in shown):
            return
        chat, written, schema = make(shown), 0, add_types(AnsweredFacts, AnsweredFact, tuple(self.guidelines.types))
        try:
            for _ in range(6):
                completion = session.complete(chat, schema, MAX_ANSWER_TOKENS)
                answer = completion.answer
                self._read(answer, shown, findings)
                written += len(answer.facts)
                if completion.is_whole:
                    return
                if not answer.facts:
                    raise ModelAnswerInvalid("An answer was cut within its first fact.", "", calls=0)
                lines = "\n".join(json_line({"text": fact.text}) for fact in answer.facts)
                more = f"These facts are written down already; give the others alone, or an empty list:\n{lines}"
                chat = [*chat[:-1], {**chat[-1], "content": f"{chat[-1]['content']}\n\n{more}"}]
            error: Exception = ModelAnswerInvalid("It came to no end in 6 answers.", "", calls=0)
        except (ModelAnswerInvalid, PromptTooLong) as wrong:
            error = wrong
        if not written and len(shown) > 1:
            middle = len(shown) // 2
            for half in (shown[:middle], shown[middle:]):
                self._ask(half, make, session, request, findings)
            return
        numbers = {message.id: message.seq for message in self.segment}
        part = replace(request, from_seq=numbers[shown[0].item_id], to_seq=numbers[shown[-1].item_id])
        session.reject(part, str(error), getattr(error, "payload", ""))

    def _read(self, answer: AnsweredFacts, shown: Sequence[Passage], findings: Findings) -> None:
        known = {f"k{number}": prior for number, prior in enumerate(self.known, 1)}
        findings.refusals += answer.refusals
        self._introduce(answer, shown, findings)
        user = self.user or findings.user
        before = _named(make_passages(self.before, self.trusted), own_name := self.own_name or findings.user)
        shown = _named(shown, own_name)
        talk = [*before, *shown]
        background = "\n".join([user, *(prior.fact.text for prior in self.known), *(each.text for each in before)])
        speaker_of = {entities.THE_USER.casefold(): user or entities.THE_USER}
        ended = {k for fact in answer.facts for k in fact.ends}
        for repeat in answer.repeats[: entities.MAX_KNOWN_FACTS]:
            prior = None if repeat.k in ended else known.get(repeat.k)
            span = find_source(shown, repeat.message, repeat.quote)
            about = entities.name_user(prior.fact.subject, user) if prior else ""
            if prior and span and grounding.is_repeated(prior.fact.text, about, span, talk, self.trusted):
                findings.repeats.append((prior, span))
            else:
                findings.refusals.append(("nothing repeats it", repeat))
        more = (*answer.facts[MAX_ANSWER_FACTS:], *answer.repeats[entities.MAX_KNOWN_FACTS :])
        findings.refusals += [(f"an answer has no more than {MAX_ANSWER_FACTS} facts", each) for each in more]
        for fact in answer.facts[:MAX_ANSWER_FACTS]:
            # In characters, for an index of 2,700 bytes.
            sizes = [len(said or "") for said in (fact.text, fact.value, fact.subject, fact.attribute)]
            if max(sizes[:2]) > 600 or max(sizes[2:]) > 300:
                findings.refusals.append(("it is too long", fact))
                continue
            places = [find_source(shown, each.message, each.quote) for each in fact.sources[:8]]
            spans = list(dict.fromkeys(span for span in places if span is not None))
            if not any(span.passage.role in self.trusted for span in spans):
                findings.refusals.append(("its quote stands nowhere", fact))
                continue
            subject = entities.name_user(tidy(fact.subject), user)
            named = [known.get(k) for k in dict.fromkeys(fact.ends)]
            attribute, value = attribute_of(fact), tidy(fact.value or "") or None
            fact = fact.model_copy(update={"type": type_of(fact, subject, attribute, [span.text for span in spans])})
            ended_facts = [prior.fact for prior in named if prior]
            replaced = " ".join(old.text for old in ended_facts if not protects(old.type, old.attribute))
            compared = fact.text, subject, spans, talk, background, self.trusted
            has_slot, guards = bool(fact.attribute or fact.ends), protects(fact.type, attribute)
            name = (value or "") if attribute in entities.NAME_ATTRIBUTES else ""
            doubt = grounding.find_doubt(*compared, has_slot=has_slot, name=name, replaced=replaced, guards=guards)
            if doubt is not None:
                findings.refusals.append((doubt.why, fact))
                if doubt.is_refused:
                    continue
            basis = grounding.find_basis(fact.text, subject, spans, talk, self.trusted)
            if fact.valid_to and guards and not names_time(basis):
                findings.refusals.append(("nobody has said when it ends", fact.model_copy()))
                fact.valid_to = None
            draft = _draft(fact, subject, spans[0].passage.said, attribute, value)
            trusted_spans = [span for span in spans if span.passage.role in self.trusted]
            said = own_sentences(fact.text, subject, trusted_spans, talk, speaker_of, background)
            is_denial_doubted = lacks_denial_evidence(draft.fact, said)
            if is_denial_doubted:
                findings.refusals.append(("its quote does not deny what protects somebody", fact.model_copy()))
            if doubt is not None or is_denial_doubted:
                draft = draft.with_columns(state=QUARANTINED)
            draft = replace(draft, said=said)
            draft = replace(draft, ends=tuple(self._ends(draft, spans, named, user, basis, value or "")))
            findings.refusals += [("it cannot end what it names", fact)] * (len(named) - len(draft.ends))
            findings.facts.append((draft, spans))

    def _introduce(self, answer: AnsweredFacts, shown: Sequence[Passage], findings: Findings) -> None:
        """Record the name of a user who has none, if the model uses a name that the user has given as theirs."""
        unnamed = () if self.user or findings.user else answer.facts[:MAX_ANSWER_FACTS]
        for name in dict.fromkeys(entities.owner_of(fact.subject) for fact in unnamed):
            for passage in shown:
                if passage.speaker == "the user" and (match := entities.find_introduction(name, passage.text)):
                    findings.user = match[1]
                    text = entities.say_name(match[1])
                    written = AnsweredFact(sources=[], text=text, type="identity", subject=match[1])
                    draft = _draft(written, match[1], passage.said, "name", match[1])
                    findings.facts.append((draft, [Span(passage, *match.span())]))
                    break

    def _ends(
        self, draft: FactDraft, sources: Sequence[Span], named: list[KnownFact | None], user: str, basis: str, more: str
    ) -> Iterator[UUID]:
        """Yield those that a fact ends: said earlier, not by another speaker, and about it, or what ends besides."""
        new, slot = draft.fact, draft.fact.attribute
        spans = [span for span in sources if span.passage.role in self.trusted]
        speakers = {span.passage.speaker.casefold() for span in spans}
        other_speakers = {each.name.casefold() for each in (*self.before, *self.segment) if each.name} - speakers
        for prior in sorted(filter(None, named), key=lambda prior: prior.fact.attribute != slot):
            fact = prior.fact.model_copy(update={"subject": entities.name_user(prior.fact.subject, user)})
            is_common = fact.subject == new.subject and entities.is_thing(fact.subject)
            is_common = is_common and not protects(fact.type, fact.attribute)
            is_later = prior.last_said < sources[0].passage.said
            if not is_later or (entities.owner_of(fact.subject) in other_speakers and not is_common):
                continue
            of_relative = entities.is_relative(new.subject, fact.subject) and new.text.startswith(new.subject)
            if of_relative and fact.attribute == slot is not None:  # where her sister lives
                continue
            if is_protection(fact) and not denies(fact, new, draft.said):
                continue
            is_meant = entities.may_mean(fact.subject, new.subject, new.text) or grounding.is_taken_over(
                fact, new.text, spans
            )
            if is_meant and grounding.may_end(fact, new.subject, slot, new.text, spans, basis, more):
                more = f"{more} {fact.text}"
                yield prior.fact.id


def _named(passages: Sequence[Passage], name: str) -> list[Passage]:
    """Return passages of which those by a user without a name are by the user of this name, if there is any."""
    return [replace(each, speaker=name) if name and each.speaker == "the user" else each for each in passages]


def _draft(fact: AnsweredFact, subject: str, said: datetime, attribute: str | None, value: str | None) -> FactDraft:
    begins, ends = llm.read_day(fact.valid_from, said), llm.read_day(fact.valid_to, said)
    ends = ends if ends and not (begins and ends <= begins) else None
    told = (tidy(fact.text), fact.type, subject, 0.9, language_of(fact.text))
    slot = slot_of(fact, subject)
    return drafts.draft_fact(*told, slot=slot, valid_from=begins, valid_to=ends, attribute=attribute, value=value)


class LLMExtractor:
    batch_size = MAX_SEGMENT_MESSAGES
    uses_llm = True

    def __init__(self, dependencies: Dependencies, model: ChatModel) -> None:
        self.dependencies, self.model = dependencies, model
        self.trust = drafts.TrustPolicy.of(dependencies.settings)

    @property
    def recipe(self) -> str:
        """The model, its prompt, and the roles that are read and trusted. Raises `ModelUnavailable`."""
        return self.trust.extend_recipe(recipe(self.model))

    def recipe_under(self, guidelines: Guidelines) -> str:
        return mark_recipe(self.recipe, guidelines.prompt)

    def extract(self, batches: Sequence[drafts.FactBatch]) -> list[drafts.ExtractedBatch]:
        return [self._extract(batch) for batch in batches]

    def _extract(self, batch: drafts.FactBatch) -> drafts.ExtractedBatch:
        recipe = self.recipe_under(batch.guidelines)
        session = self.dependencies.start_session(self.model, "facts")
        try:
            return self._ask(batch, recipe, session)
        except Exception as error:  # whatever it is goes on, with the calls that were paid for
            if session.usage.calls:
                raise llm.CallsLost(session, error) from error
            raise

    def _ask(self, batch: drafts.FactBatch, recipe: str, session: LLMSession) -> drafts.ExtractedBatch:
        read = [each.model_copy(update={"text": blank_fenced_blocks(each.text or "")}) for each in batch.messages]
        before, segment = read[: batch.already_read], read[batch.already_read :]
        before = [each for each in before if segment and segment[0].occurred_at - each.occurred_at < timedelta(days=1)]
        texts = [each.text for each in segment if each.role in self.trust.roles and each.text and each.text.strip()]
        if not texts:
            return drafts.ExtractedBatch(batch.to_seq, [], recipe=recipe)
        known = entities.choose_known(batch.known, texts, self.dependencies.embed(texts) if batch.known else ())
        user = entities.find_user_name(read, batch.known)
        request = LLMRequest(segment[0].conversation_id, "facts", segment[0].seq, segment[-1].seq, recipe)
        own_name = user if entities.is_own_name(user, segment[0].user_id, batch.known) else ""
        inquiry = Inquiry(segment, before, known, user, own_name, self.trust.roles, batch.guidelines)
        findings = inquiry.run(session, request)
        invalid = len(session.invalid_responses)
        if findings.refusals:
            whys = [why for why, _ in findings.refusals]
            reasons = "; ".join(f"{whys.count(why)} because {why}" for why in dict.fromkeys(whys))
            said = "[" + ",".join(each.model_dump_json(exclude_defaults=True) for _, each in findings.refusals) + "]"
            session.reject(replace(request, part="refused"), f"Not believed: {reasons}.", said)
        facts = list(self._facts(findings, {each.id: each for each in segment}, recipe, user or findings.user))
        to_seq = batch.to_seq if findings.read_to is None else findings.read_to
        return drafts.ExtractedBatch(to_seq, facts, invalid, len(findings.refusals), llm_session=session, recipe=recipe)

    def _facts(self, findings: Findings, messages: dict[UUID, Message], recipe: str, user: str) -> Iterator[FactDraft]:
        """Return each fact once for each message that says it: the first makes it, the others are further sources.

        If a trusted message says it, it is active, and pastes are no sources of it.
        """
        for prior, span in findings.repeats:
            message, draft = messages[span.passage.item_id], _at(FactDraft(prior.fact), span)
            again = drafts.bind_to_message(draft, message, prior.vector, prior.fact.recipe, self.trust)
            same = {"occurred_at": message.occurred_at, "state": again.fact.state}
            yield replace(again, fact=prior.fact.model_copy(update=same))
        vectors = self.dependencies.embed([draft.fact.text for draft, _ in findings.facts])
        for (draft, spans), vector in zip(findings.facts, vectors, strict=True):
            made = [
                drafts.bind_to_message(_at(draft, span), messages[span.passage.item_id], vector, recipe, self.trust)
                for span in spans
            ]
            is_believed = draft.fact.state != QUARANTINED
            active = is_believed and any(new_fact.fact.state != QUARANTINED for new_fact in made)
            if any(new_fact.spans[0].trust == drafts.UNTRUSTED for new_fact in made):  # what is trusted says it itself
                texts = [
                    span.text for span, new in zip(spans, made, strict=True) if new.spans[0].trust != drafts.UNTRUSTED
                ]
                active = active and grounding.shares_word(draft.fact.text, " ".join(texts), draft.fact.subject)
            for new_fact in made:
                if active and new_fact.spans[0].trust == drafts.UNTRUSTED:
                    continue
                new_fact.fact.state = "active" if active else QUARANTINED
                yield _with_user(new_fact, user)


def _at(draft: FactDraft, span: Span) -> FactDraft:
    start = span.passage.start
    return replace(draft, start=start + span.start, stop=start + span.stop)


def _with_user(new: FactDraft, user: str) -> FactDraft:
    """Return a fact by a user of this name, for whom facts of "the user" hold too."""
    subject, about = new.fact.subject, new.fact.subject.casefold()
    is_own = about.partition("'s ")[0] in (user.casefold(), new.speaker.casefold()) if user else new.said_by_subject
    speaker = user if user and new.speaker == entities.THE_USER else new.speaker
    is_named = bool(user) and f"{about}'s ".startswith(f"{user.casefold()}'s ")
    alias = entities.THE_USER + subject[len(user) :] if is_named else ""
    return replace(new, said_by_subject=is_own, speaker=speaker, alias=alias)
