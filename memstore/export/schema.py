"""The lines of an export, kind by kind; docs/reference/exporting.md is this in words. Pure.

Ids follow from names (`memstore.ids`), so a line whose id does not is refused: it would stand beside what is meant.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Annotated, Literal, Self, TypeVar
from uuid import UUID

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from memstore import ids
from memstore.errors import InvalidInput
from memstore.ingest.importers.base import printable
from memstore.ingest.importers.json_stream import parse_object
from memstore.ingest.validation import Moment, NewMessage, check_json
from memstore.models import LONGEST_TTL, Conversation, FactColumns, FactKind, Json, Message, Summary, Tier, Unit
from memstore.providers import Vectors
from memstore.store.rows import Row

FORMAT, VERSION = "memstore-export", 1
HEADER, FOOTER = "export", "end"

L = TypeVar("L", bound=BaseModel)
Text = Annotated[str, Strict()]
NotBlank = Annotated[str, Strict(), Field(pattern=r"\S")]
Count = Annotated[int, Strict(), Field(ge=0, le=2**62)]
Number = Annotated[int, Strict(), Field(ge=1, le=2**62)]
Seq = Annotated[int, Strict(), Field(ge=0, le=10_000_000)]  # of a message: derivers walk over those that are missing
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Deriver = Literal["embed", "summarize", "facts"]
State = Literal["active", "quarantined", "superseded", "retracted", "erased"]
Action = Literal["superseded", "retracted", "edited", "restored", "conflicted", "resolved", "confirmed", "quarantined"]


user_id = lru_cache(maxsize=1024)(ids.user_id)


@lru_cache(maxsize=1024)
def conversation_id(user: str, name: str) -> UUID:
    """Return a conversation's id."""
    return ids.conversation_id(user_id(user), name)


class _Schema(BaseModel):
    """An object of JSON with these keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Header(_Schema):
    """The first line."""

    kind: Literal["export"]
    format: Literal["memstore-export"]
    version: Literal[1]
    memstore: Text
    exported_at: Moment
    derived: bool
    vectors: bool


class Footer(_Schema):
    """The last line: how many lines of each kind there are, and the SHA-256 of all bytes before it."""

    kind: Literal["end"]
    lines: dict[Text, Count]
    sha256: Text


class ExportedEmbedder(_Schema):
    """The embedder that made a user's vectors."""

    name: Text
    dimensions: Number


def _check_follows(line: L, given: UUID, wanted: UUID | None) -> L:
    if given != wanted:
        raise ValueError("its id does not follow from its names; was it edited?")
    return line


class UserOwned(_Schema):
    """A line that belongs to a user."""

    user: NotBlank

    @property
    def user_id(self) -> UUID:
        """The user's id."""
        return user_id(self.user)


class UserLine(UserOwned):
    """A user; `embedder` made the vectors that are in the file."""

    kind: Literal["user"]
    id: UUID
    settings: Json = Field(default_factory=dict)
    created_at: Moment
    embedder: ExportedEmbedder | None = None

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        return _check_follows(self, self.id, self.user_id)


class InConversation(UserOwned):
    """A line that belongs to a conversation."""

    conversation: NotBlank

    @property
    def conversation_id(self) -> UUID:
        """The conversation's id."""
        return conversation_id(self.user, self.conversation)


class WatermarkLine(_Schema):
    """How far a deriver got in a conversation, and by which recipe; None for several."""

    seq: Seq
    recipe: Text | None = None


class SettingChangeLine(_Schema):
    """The settings that a change found."""

    id: UUID
    before: Json
    recorded_at: Moment


class ConversationLine(InConversation):
    """A conversation. Without `watermarks` nothing that was made of its messages is in the file."""

    kind: Literal["conversation"]
    id: UUID
    title: Text | None = None
    channel: Text | None = None
    settings: Json = Field(default_factory=dict)
    last_seq: Seq
    created_at: Moment
    updated_at: Moment
    watermarks: dict[Deriver, WatermarkLine] | None = None
    setting_changes: list[SettingChangeLine] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if any(mark.seq > self.last_seq for mark in (self.watermarks or {}).values()):
            raise ValueError("a watermark stands beyond the last message")
        return _check_follows(self, self.id, self.conversation_id)

    def row(self) -> Conversation:
        """Return the row to be stored."""
        given = self.model_dump(exclude={"kind", "user", "conversation", "watermarks", "setting_changes"})
        return Conversation.model_construct(user_id=self.user_id, name=self.conversation, **given)


class UnitLine(_Schema):
    """A unit of recall, in characters of the item's text. What stands in no key is as the item has it.

    `vector` is base64 of float32, the least significant byte first.
    """

    start: Count
    stop: Count
    recorded_at: Moment
    vector: Text | None = None
    conversation_id: UUID | None = None
    seq: Count | None = None
    role: Text | None = None
    speaker: Text | None = None
    occurred_at: Moment | None = None


class MessageLine(NewMessage, InConversation):
    """A message: the pivot's keys, its number, when it was recorded, its tokens by which counter, its units."""

    kind: Literal["message"]
    id: UUID
    seq: Annotated[Seq, Field(ge=1)]
    occurred_at: Moment
    recorded_at: Moment
    tokens: Count
    counter: Text
    units: list[UnitLine] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if self.external_id is None and self.id.version == 7:
            return self
        wanted = None if self.external_id is None else ids.message_id(self.conversation_id, self.external_id)
        return _check_follows(self, self.id, wanted)

    def row(self) -> Message:
        """Return the row to be stored."""
        same = ("id", "seq", "name", "tool_calls", "tool_call_id", "tokens", "counter", "tags", "external_id")
        return Message.model_construct(
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            role=str(self.role),
            text=self.text,
            parts=self.content if isinstance(self.content, list) else None,
            meta=self.metadata,
            occurred_at=self.occurred_at,
            recorded_at=self.recorded_at,
            **{name: getattr(self, name) for name in same},
        )


class SummaryLine(InConversation):
    """A summary; it was made from the messages `from_seq` to `to_seq`."""

    kind: Literal["summary"]
    id: UUID
    level: Annotated[int, Strict(), Field(ge=0, le=32_767)]
    from_seq: Number
    to_seq: Number
    text: Text
    tokens: Count
    counter: Text
    recipe: Text
    occurred_at: Moment
    occurred_until: Moment
    recorded_at: Moment
    units: list[UnitLine] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if self.to_seq < self.from_seq:
            raise ValueError("it ends before it begins")
        place = self.level, self.from_seq, self.to_seq, self.recipe
        return _check_follows(self, self.id, ids.summary_id(self.conversation_id, *place))

    def row(self) -> Summary:
        """Return the row to be stored."""
        given = {name: getattr(self, name) for name in Summary.model_fields if name not in ("user_id",)}
        return Summary.model_construct(user_id=self.user_id, **given)


class SourceLine(_Schema):
    """A message that says a fact, where in it, and when that was learnt."""

    message_id: UUID
    start: Count | None = None
    stop: Count | None = None
    trust: Annotated[int, Strict(), Field(ge=0, le=3)]
    recorded_at: Moment


class _Columns(_Schema):
    """The columns of a fact as its history has them: asked for a past moment, they are read again."""

    type: Text | None = None
    kind: FactKind | None = None
    attribute: Text | None = None
    value: Text | None = None
    language: Text | None = None
    confidence: Share | None = None
    state: State | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    recipe: Text | None = None


def _columns(given: Json) -> Json:
    _Columns.model_validate(given)
    return given


class FactChangeLine(_Schema):
    """What was done to a fact, with its columns before and after."""

    id: UUID
    action: Action
    other_id: UUID | None = None
    before: Annotated[Json, AfterValidator(_columns)] = Field(default_factory=dict)
    after: Annotated[Json, AfterValidator(_columns)] = Field(default_factory=dict)
    actor: Text
    undoes: UUID | None = None
    recorded_at: Moment


class FactLine(UserOwned):
    """A fact with the messages that say it and all that was done to it. `fact_kind` is `Fact.kind`."""

    kind: Literal["fact"]
    id: UUID
    type: Text
    fact_kind: FactKind
    subject: Text
    attribute: Text | None = None
    value: Text | None = None
    text: Text
    language: Text
    confidence: Share
    state: State
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    recipe: Text
    occurred_at: Moment
    recorded_at: Moment
    sources: list[SourceLine] = Field(default_factory=list)
    history: list[FactChangeLine] = Field(default_factory=list)
    units: list[UnitLine] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        _check_follows(self, self.id, ids.fact_id(self.user_id, self.subject, self.text))
        if {change.id for change in self.history} != {ids.change_id(self.id, n) for n in range(len(self.history))}:
            raise ValueError("the ids of its history do not follow from its own")
        return self

    def row(self) -> FactColumns:
        """Return the row to be stored."""
        given = {name: getattr(self, name) for name in FactColumns.model_fields if name not in ("user_id", "kind")}
        return FactColumns.model_construct(user_id=self.user_id, kind=self.fact_kind, **given)


class DocumentVectorLine(_Schema):
    """The vector of a text of a document, under its path, by the embedder of an id; base64 as in units."""

    path: Text
    model_id: UUID
    vector: Text
    text: Text | None = None


class DocumentLine(UserOwned):
    """A value that an application keeps; it lives for `ttl` seconds after it was written or read."""

    kind: Literal["document"]
    id: UUID
    namespace: Annotated[list[Text], Field(min_length=1)]
    key: Text
    value: Json
    ttl: Annotated[float, Strict(), Field(ge=1e-6, le=LONGEST_TTL.total_seconds())] | None = None
    expires_at: Moment | None = None
    created_at: Moment
    updated_at: Moment
    vectors: list[DocumentVectorLine] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        return _check_follows(self, self.id, ids.document_id(self.user_id, self.namespace, self.key))


ExportLine = UserLine | ConversationLine | SummaryLine | MessageLine | FactLine | DocumentLine
AnyLine = ExportLine | Header | Footer
SCHEMAS: dict[str, type[AnyLine]] = {
    HEADER: Header,
    "user": UserLine,
    "conversation": ConversationLine,
    "summary": SummaryLine,
    "message": MessageLine,
    "fact": FactLine,
    "document": DocumentLine,
    FOOTER: Footer,
}


def parse_line(line: bytes) -> AnyLine:
    """Return what a line holds; raise `InvalidInput` that says what is wrong with it."""
    given = parse_object(line)
    check_json(given, "the line")
    kind = given.get("kind")
    schema = SCHEMAS.get(kind) if isinstance(kind, str) else None
    if schema is None:
        raise InvalidInput(f"the kind {printable(str(kind))} is unknown; known are {', '.join(SCHEMAS)}")
    if kind == HEADER and given.get("format") == FORMAT and given.get("version") != VERSION:
        raise InvalidInput(
            f"the export is of version {printable(str(given.get('version')))}, and this memstore reads version "
            f"{VERSION}; install the memstore that wrote it, or a newer one"
        )
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(f"the {kind} is not as the format has it: {_reasons(error)}") from None


def _reasons(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    reasons = []
    for one in found[:3]:
        place, reason = ".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")
        reasons.append(f"{place}: {reason}" if place else reason)
    if len(found) > 3:
        reasons.append(f"and {len(found) - 3} more")
    return printable("; ".join(reasons), 500)


def default_unit(row: Row, chunk: int, start: int, stop: int) -> Unit:
    """Return the unit of an item as it follows from the item; a line has only what differs."""
    if isinstance(row, Message):
        place = row.conversation_id, row.seq, row.role, row.name or row.role
        return Unit(row.id, chunk, Tier.MESSAGES, *place, start, stop, row.occurred_at)
    if isinstance(row, Summary):
        until = row.occurred_until
        return Unit(row.id, chunk, Tier.SUMMARIES, row.conversation_id, row.to_seq, None, None, start, stop, until)
    return Unit(row.id, chunk, Tier.FACTS, None, None, None, row.subject, start, stop, row.occurred_at)


def encode_vector(vector: Vectors) -> str:
    """Return a vector as a line has it: base64 of float32, the least significant byte first."""
    return b64encode(vector.astype("<f4").tobytes()).decode()


def decode_vector(text: str, where: str) -> Vectors:
    """Return the vector of a line; raise `InvalidInput` for what is none."""
    try:
        return np.frombuffer(b64decode(text, validate=True), "<f4").astype(np.float32)
    except ValueError:
        raise InvalidInput(f"the vector of {where} is not base64 of float32") from None
