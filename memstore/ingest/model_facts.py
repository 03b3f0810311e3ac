"""Facts by a chat model: one call for each stretch. Where its answer is of no use, the rules read the stretch.

A model's facts are settled with the known ones as the rules' are: said again, superseded, contradicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from memstore import ids
from memstore.fences import unfenced
from memstore.ingest import llm_facts
from memstore.ingest.asked import Asked, Place
from memstore.ingest.found import NOBODY, TRUST, Batch, Found, Made, Rules, unit_of
from memstore.ingest.llm_facts import ModelFact
from memstore.ingest.stretches import stretches
from memstore.ingest.tools import Tools
from memstore.models import FactColumns, Message, Role, Span
from memstore.providers import ChatModel, Vectors

MESSAGES = 64  # thought about at once: what is lost when the model goes away in the middle


class ByModel:
    """Reads facts by asking a chat model."""

    batch = MESSAGES
    asks = True

    def __init__(self, tools: Tools, model: ChatModel) -> None:
        self.tools, self.model = tools, model
        self.rules = Rules(tools)
        self.trusted = self.rules.roles - {Role.USER}

    @property
    def recipe(self) -> str:
        """The model, its prompt, and whom else than people it is believed. Raises `ModelUnavailable`."""
        recipe = llm_facts.recipe(self.model)
        return f"{recipe} from {','.join(sorted(self.rules.roles))}" if self.trusted else recipe

    def read(self, batches: Sequence[Batch]) -> list[Made]:
        """Ask about each stretch, and embed what is answered."""
        return [self._made(batch, self.recipe) for batch in batches]

    def _made(self, batch: Batch, recipe: str) -> Made:
        asked = Asked(self.model.name, self.tools.allowance)
        made: list[Found] = []
        for begin, stretch in self._stretches(batch):
            place = Place(stretch[0].conversation_id, "facts", stretch[0].seq, stretch[-1].seq, recipe)
            try:
                answer = asked.ask(place, partial(self._answer, stretch))
            except Exception:
                if begin == batch.before:
                    raise
                # What was paid for is kept; asked again from here on, the model fails again, and that is told.
                return Made(stretch[0].seq - 1, made, asked)
            if answer is None:
                read = batch.messages[: begin + len(stretch)]
                made += self.rules.read([Batch(stretch[-1].seq, read, begin)])[0].found
                continue
            asked.spend(answer.prompt_tokens, answer.completion_tokens)
            made += _found(answer.facts, stretch, self.tools, recipe)
        return Made(batch.to_seq, made, asked)

    def _answer(self, stretch: Sequence[Message]) -> llm_facts.FoundFacts:
        shown = [message.model_copy(update={"text": unfenced(message.text or "")}) for message in stretch]
        return llm_facts.facts_of(shown, self.model, trusted=self.trusted)

    def _stretches(self, batch: Batch) -> Iterator[tuple[int, Sequence[Message]]]:
        """Give the stretches of a batch, the one that is still open too, and where each begins."""
        settings, begin = self.tools.settings, batch.before
        gap = timedelta(hours=settings.stretch_gap_hours)
        for stretch in stretches(batch.messages[begin:], gap, settings.stretch_tokens):
            yield begin, stretch
            begin += len(stretch)
        if begin < len(batch.messages):
            yield begin, batch.messages[begin:]


def _found(facts: Sequence[ModelFact], stretch: Sequence[Message], tools: Tools, recipe: str) -> Iterator[Found]:
    """Give each fact once for each message that says it: the first makes it, the others are its further sources."""
    messages = {message.id: message for message in stretch}
    vectors = tools.embed([fact.text for fact in facts])
    for fact, vector in zip(facts, vectors, strict=True):
        for source in fact.sources:
            span = Span(source.message_id, source.start, source.stop, 0)
            yield _of_source(fact, messages[source.message_id], span, vector, recipe)


def _of_source(fact: ModelFact, message: Message, span: Span, vector: Vectors | None, recipe: str) -> Found:
    columns = FactColumns.model_construct(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, fact.subject, fact.text),
        type=fact.type,
        kind=fact.kind,
        subject=fact.subject,
        attribute=fact.attribute,
        value=fact.value,
        text=fact.text,
        language=fact.language or "und",
        confidence=fact.confidence,
        state="active",
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        recipe=recipe,
        occurred_at=message.occurred_at,
    )
    speaker = (message.name or NOBODY[Role(message.role)]).casefold()
    own = fact.subject.casefold() == speaker or fact.subject.casefold().startswith(f"{speaker}'s ")
    span = replace(span, trust=TRUST[Role(message.role)])
    # No slot: a model names attributes as it likes, and "hobby: chess" takes nothing from "hobby: go".
    return Found(columns, None, span, unit_of(columns, message), vector, own, message.recorded_at)
