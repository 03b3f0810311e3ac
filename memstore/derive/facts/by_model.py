"""Facts by a chat model: one call for each stretch. Where its answer is of no use, the rules read the stretch.

A model's facts are settled with the known ones as the rules' are: said again, superseded, contradicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from memstore.derive.dependencies import Dependencies
from memstore.derive.facts import llm_facts
from memstore.derive.facts.by_rules import RuleExtractor
from memstore.derive.facts.extracted import ExtractedFact, FactBatch, MadeFacts, Maker, extracted
from memstore.derive.facts.filled import named_slot, slot_in
from memstore.derive.facts.llm_facts import ModelFact
from memstore.derive.facts.trust import UNTRUSTED
from memstore.derive.llm import LLMRequest, LLMSession
from memstore.derive.rules.slots import Slot
from memstore.derive.segmentation import split_segments
from memstore.models import QUARANTINED, Message, kind_of
from memstore.providers import ChatModel
from memstore.text import blank_fenced_blocks

MESSAGES = 64  # thought about at once: what is lost when the model goes away in the middle


class ModelExtractor:
    """Extracts facts by asking a chat model."""

    batch_size = MESSAGES
    uses_llm = True

    def __init__(self, resources: Dependencies, model: ChatModel) -> None:
        self.resources, self.model = resources, model
        self.rules = RuleExtractor(resources)

    @property
    def recipe(self) -> str:
        """The model, its prompt, and whom else than people it is shown and believed. Raises `ModelUnavailable`."""
        return self.rules.trust.recipe(llm_facts.recipe(self.model))

    def extract(self, batches: Sequence[FactBatch]) -> list[MadeFacts]:
        """Ask about each stretch, and embed what is answered."""
        return [self._made(batch, self.recipe) for batch in batches]

    def _made(self, batch: FactBatch, recipe: str) -> MadeFacts:
        asked = LLMSession(self.model.name, self.resources.token_budget)
        made: list[ExtractedFact] = []
        maker = Maker(recipe, self.rules.trust)
        for begin, stretch in self._stretches(batch):
            inquiry = LLMRequest(stretch[0].conversation_id, "facts", stretch[0].seq, stretch[-1].seq, recipe)
            try:
                answer = asked.ask(inquiry, partial(self._answer, stretch))
            except Exception:  # what was paid for is kept; asked from here on, the model fails again, and that is told
                if begin == batch.before:
                    raise
                return MadeFacts(stretch[0].seq - 1, made, asked)
            if answer is None:
                read = batch.messages[: begin + len(stretch)]
                made += self.rules.extract([FactBatch(stretch[-1].seq, read, begin)])[0].facts
                continue
            made += _extracted(answer.facts, stretch, self.resources, maker)
        return MadeFacts(batch.to_seq, made, asked)

    def _answer(self, stretch: Sequence[Message]) -> llm_facts.FoundFacts:
        shown = [message.model_copy(update={"text": blank_fenced_blocks(message.text or "")}) for message in stretch]
        return llm_facts.facts_of(shown, self.model, believed=self.rules.trust.roles)

    def _stretches(self, batch: FactBatch) -> Iterator[tuple[int, Sequence[Message]]]:
        """Give the stretches of a batch, the one that is still open too, and where each begins."""
        settings, begin = self.resources.settings, batch.before
        gap = timedelta(hours=settings.session_gap_hours)
        for stretch in split_segments(batch.messages[begin:], gap, settings.segment_tokens):
            yield begin, stretch
            begin += len(stretch)
        if begin < len(batch.messages):
            yield begin, batch.messages[begin:]


def _extracted(
    facts: Sequence[ModelFact], stretch: Sequence[Message], resources: Dependencies, maker: Maker
) -> Iterator[ExtractedFact]:
    """Give each fact once for each message that says it: the first makes it, the others are its further sources.

    It fills the slot that the rules read in its sentence, where they read one: a model names attributes as it likes,
    and its "home city" of today would never meet its "residence" of tomorrow, nor what the rules have read. Else the
    slot is the model's own; there "hobby: chess" takes nothing from "hobby: go", as no hobby is `single`.
    """
    messages = {message.id: message for message in stretch}
    vectors = resources.embed([fact.text for fact in facts])
    for fact, vector in zip(facts, vectors, strict=True):
        slot, made = _slot(fact), list[ExtractedFact]()
        for source in fact.sources:
            made.append(extracted(fact, messages[source.message_id], (source.start, source.stop), vector, maker, slot))
        yield from _believed(made)


def _believed(made: Sequence[ExtractedFact]) -> Iterator[ExtractedFact]:
    """Give a fact as often as it is said; where one who is believed says it, it holds, and rests on no paste."""
    holds = any(one.fact.state != QUARANTINED for one in made)
    for one in made:
        if holds and one.spans[0].trust == UNTRUSTED:
            continue
        if holds:
            one.fact.state = "active"
        yield one


def _slot(fact: ModelFact) -> Slot | None:
    read = slot_in(fact.text, fact.subject, fact.language or "und")
    if read is not None or fact.valid_to is not None:
        return read
    single = fact.single and kind_of(fact.type) != "episodic"
    return named_slot(fact.attribute, fact.value, fact.text, single=single)
