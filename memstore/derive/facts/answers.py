"""Answers of a chat model about facts. A fact that cannot be used costs no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, PrivateAttr, ValidationError, ValidatorFunctionWrapHandler, model_validator

from memstore.derive.facts import entities
from memstore.derive.facts.drafts import STATEMENT
from memstore.derive.facts.grounding import shares_word
from memstore.derive.facts.normalization import CONSTRAINT, is_denied, is_dietary_restriction, takes_away_protection
from memstore.derive.facts.reader_extractor import read_statement
from memstore.derive.facts.slots import Slot, root_of
from memstore.derive.llm import NotBlank
from memstore.derive.reader.notes import ATTRIBUTES
from memstore.models import FACT_TYPES, MODEL_TYPES, kind_of


class _Quote(BaseModel):
    message: int
    quote: str


class _Repeat(_Quote):
    k: str


class AnsweredFact(BaseModel):
    """A fact as the model writes it: first the words, then the columns that follow from them."""

    sources: list[_Quote]
    text: NotBlank
    # A checker of types reads no values, and pydantic does.
    type: Literal[*MODEL_TYPES]  # type: ignore[valid-type]
    subject: NotBlank
    attribute: str | None = None
    value: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    ends: list[str] = []


class _UnusableFact(BaseModel):
    fact: Any


class AnsweredFacts(BaseModel):
    """An answer. `refusals` are the facts that cannot be used, with the reason, where others can."""

    repeats: list[_Repeat] = []
    facts: list[AnsweredFact]
    _refusals: list[tuple[str, BaseModel]] = PrivateAttr(default_factory=list)

    @property
    def refusals(self) -> list[tuple[str, BaseModel]]:
        return self._refusals

    @model_validator(mode="wrap")
    @classmethod
    def _part_facts(cls, answer: Any, handler: ValidatorFunctionWrapHandler) -> AnsweredFacts:
        try:
            # pydantic's handler returns Any.
            return handler(answer)  # type: ignore[no-any-return]
        except ValidationError:
            facts = answer.get("facts") if isinstance(answer, dict) else None
            if not isinstance(facts, list):
                raise
            [schema] = get_args(cls.model_fields["facts"].annotation)
            reasons = [_why_unusable(schema, each) for each in facts]
            usable = [each for each, why in zip(facts, reasons, strict=True) if not why]
            if not usable:
                raise
            parted: AnsweredFacts = handler({**answer, "facts": usable})
            parted._refusals = [
                (why, _UnusableFact(fact=each)) for each, why in zip(facts, reasons, strict=True) if why
            ]
            return parted


def _why_unusable(schema: type[BaseModel], fact: Any) -> str:
    try:
        schema.model_validate(fact)
    except ValidationError as error:
        names = dict.fromkeys(str(each["loc"][0]) for each in error.errors() if each["loc"])
        return f"its {' and its '.join(names)} cannot be used" if names else "it is no object"
    return ""


def attribute_of(fact: AnsweredFact) -> str | None:
    """Return the attribute of a fact, if the prompt or the reader has it, or the type is an own one."""
    name = tidy(fact.attribute or "").casefold().replace(":", "/").replace("/ ", "/")
    is_own = fact.type not in FACT_TYPES and name not in ("", "other", "null", "none")
    known = entities.ATTRIBUTES | {*ATTRIBUTES, "dose", "health", "intolerance"} - {"other"}
    return name if is_own or root_of(name) in known else None


def type_of(fact: AnsweredFact, subject: str, attribute: str | None, quotes: Sequence[str]) -> str:
    """Return the type of a fact: a relative's diet protects them, and a habit is no instruction."""
    if fact.type == "relationship" and entities.is_somebodys(subject) and is_dietary_restriction(attribute, fact.text):
        return CONSTRAINT
    is_habit = fact.type == "procedure" and attribute != "answer_style"
    if is_habit and not any(read_statement(quote, "").type == "procedure" for quote in quotes):
        return STATEMENT
    return str(fact.type)


def slot_of(fact: AnsweredFact, subject: str) -> Slot | None:
    """Return the slot of an attribute of one value, if somebody has said it; or of what protects somebody no longer."""
    attribute, value = attribute_of(fact), tidy(fact.value or "")
    read = read_statement(fact.text, subject).slot
    if read is not None and takes_away_protection(read.attribute, read.value):
        return read
    single = attribute is not None and (attribute in entities.SINGLE_ATTRIBUTES or attribute.startswith("medication/"))
    if not (attribute and value and single) or fact.valid_to or is_denied(fact.text):
        return None
    said = " ".join([fact.text, *(each.quote for each in fact.sources)])
    # Planned, happened, or said by nobody.
    if kind_of(fact.type) == "episodic" or not shares_word(value, said, ""):
        return None
    return Slot(attribute, value.casefold(), many=False)


def tidy(text: str) -> str:
    # NUL as well: Postgres cannot keep it.
    return " ".join(text.replace("\0", " ").split())
