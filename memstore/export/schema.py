"""The lines of an export, kind by kind; docs/reference/exporting.md is this in words. Pure.

Ids follow from names (`memstore.ids`), so a line with another id is refused: it would be stored a second time.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from uuid import UUID

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator
from sqlmodel import SQLModel

from memstore import ids
from memstore.errors import InvalidInput
from memstore.ingest.importers.files import parse_object, printable
from memstore.ingest.validation import FactTypeName, NewMessage, UtcTime, check_json, describe_errors
from memstore.models import MAX_TTL, NORMAL, Conversation, FactColumns, FactKind, Importance, Json, Message, Summary
from memstore.providers import Vectors
from memstore.store.rows import Lists
from memstore.store.tables import exported_lists

FORMAT, FORMAT_VERSION = "memstore-export", 1

R = TypeVar("R", bound=SQLModel)
NotBlank = Annotated[str, Field(pattern=r"\S")]
Count = Annotated[int, Field(ge=0, le=2**62)]
# Of a message: derivers walk over those that are missing.
Seq = Annotated[int, Field(ge=0, le=10_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Deriver = Literal["chunks", "summaries", "facts"]
State = Literal["active", "quarantined", "superseded", "retracted", "erased"]
Action = Literal["superseded", "retracted", "edited", "restored", "conflicted", "resolved", "confirmed", "quarantined"]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Header(_Schema):
    kind: Literal["export"]
    format: Literal["memstore-export"]
    version: int
    memstore: str
    exported_at: UtcTime
    derived: bool
    vectors: bool

    @field_validator("version")
    @classmethod
    def _check_version(cls, version: int) -> int:
        if version != FORMAT_VERSION:
            raise ValueError(
                f"the export is of version {version}, and this memstore reads version {FORMAT_VERSION}; install the "
                "memstore that wrote it, or a newer one"
            )
        return version


class Footer(_Schema):
    """The last line: how many lines of each kind there are, and the SHA-256 of all bytes before it."""

    kind: Literal["end"]
    lines: dict[str, Count]
    sha256: str


class _UserOwned(_Schema):
    """A line that belongs to a user, with an id that follows from names. It has the lists of its `table`."""

    table: ClassVar[str]
    user: NotBlank
    id: UUID

    @property
    def user_id(self) -> UUID:
        return ids.user_id(self.user)

    def _expected_id(self) -> UUID | None:
        # Each kind of line that has an id follows it from other fields.
        raise NotImplementedError

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if self.id != self._expected_id():
            raise ValueError("its id does not follow from its names; was it edited?")
        return self

    @property
    def lists(self) -> Lists:
        names = (rows.name for rows in exported_lists(self.table).values())
        return {name: [row.model_dump() for row in getattr(self, name)] for name in names}

    def _build(self, model: type[R], **more: Any) -> R:
        same = {name: getattr(self, name) for name in model.model_fields if name in type(self).model_fields}
        return model.model_construct(**same | {"user_id": self.user_id} | more)


class _InConversation(_UserOwned):
    conversation: NotBlank

    @property
    def conversation_id(self) -> UUID:
        return ids.conversation_id(self.user_id, self.conversation)


class ExportedEmbedder(_Schema):
    name: str
    dimensions: Annotated[int, Field(ge=1)]


class UserLine(_UserOwned):
    """A user; `embedder` made the vectors that are in the file."""

    table = "users"
    kind: Literal["user"]
    settings: Json = Field(default_factory=dict)
    created_at: UtcTime
    embedder: ExportedEmbedder | None = None

    def _expected_id(self) -> UUID:
        return self.user_id


class WatermarkLine(_Schema):
    """How far a deriver got in a conversation, and by which recipe; None for several."""

    seq: Seq
    recipe: str | None = None


class SettingChangeLine(_Schema):
    id: UUID
    before: Json
    recorded_at: UtcTime


class ConversationLine(_InConversation):
    """A conversation. Without `watermarks` nothing that was made of its messages is in the file."""

    table = "conversations"
    kind: Literal["conversation"]
    title: str | None = None
    channel: str | None = None
    scope: str | None = None
    settings: Json = Field(default_factory=dict)
    last_seq: Seq
    created_at: UtcTime
    updated_at: UtcTime
    watermarks: dict[Deriver, WatermarkLine] | None = None
    setting_changes: list[SettingChangeLine] = Field(default_factory=list)

    def _expected_id(self) -> UUID:
        if any(mark.seq > self.last_seq for mark in (self.watermarks or {}).values()):
            raise ValueError("a watermark stands beyond the last message")
        return self.conversation_id

    def row(self) -> Conversation:
        return self._build(Conversation, name=self.conversation)


class ChunkLine(_Schema):
    """A chunk, in characters of the item's text; a fact's is of the conversation that it was derived of.

    `vector` is base64 of float32, the least significant byte first.
    """

    start: Count
    stop: Count
    recorded_at: UtcTime
    vector: str | None = None
    conversation_id: UUID | None = None


class MessageLine(NewMessage, _InConversation):
    """A message: the keys of memstore-jsonl, number, when it was recorded, tokens and by which counter, chunks."""

    table = "messages"
    kind: Literal["message"]
    seq: Annotated[Seq, Field(ge=1)]
    occurred_at: UtcTime
    recorded_at: UtcTime
    tokens: Count
    counter: str
    chunks: list[ChunkLine] = Field(default_factory=list)

    def _expected_id(self) -> UUID | None:
        if self.external_id is None:
            return self.id if self.id.version == 7 else None
        return ids.message_id(self.conversation_id, self.external_id)

    def row(self) -> Message:
        parts = self.content if isinstance(self.content, list) else None
        columns = {"role": str(self.role), "text": self.text, "parts": parts, "meta": self.metadata}
        return self._build(Message, conversation_id=self.conversation_id, **columns)


class SummaryLine(_InConversation):
    """A summary; it was made from the messages `from_seq` to `to_seq`."""

    table = "summaries"
    kind: Literal["summary"]
    level: Annotated[int, Field(ge=0, le=32_767)]
    from_seq: Annotated[Seq, Field(ge=1)]
    to_seq: Annotated[Seq, Field(ge=1)]
    text: str
    tokens: Count
    counter: str
    recipe: str
    occurred_at: UtcTime
    occurred_until: UtcTime
    recorded_at: UtcTime
    chunks: list[ChunkLine] = Field(default_factory=list)

    def _expected_id(self) -> UUID:
        if self.to_seq < self.from_seq:
            raise ValueError("it ends before it begins")
        return ids.summary_id(self.conversation_id, self.level, self.from_seq, self.to_seq, self.recipe)

    def row(self) -> Summary:
        return self._build(Summary, conversation_id=self.conversation_id)


class SourceLine(_Schema):
    """A message that says a fact, where in it, and when that was learnt."""

    message_id: UUID
    start: Count | None = None
    stop: Count | None = None
    trust: Annotated[int, Field(ge=0, le=3)]
    recorded_at: UtcTime


class FactChangeLine(_Schema):
    id: UUID
    action: Action
    other_id: UUID | None = None
    before: Json = Field(default_factory=dict)
    after: Json = Field(default_factory=dict)
    actor: str
    undoes: UUID | None = None
    recorded_at: UtcTime


class FactLine(_UserOwned):
    """A fact with the messages that say it and all that was done to it. `fact_kind` is `Fact.kind`."""

    table = "facts"
    kind: Literal["fact"]
    type: FactTypeName
    fact_kind: FactKind
    subject: str
    attribute: str | None = None
    value: str | None = None
    text: str
    language: str
    confidence: Share
    state: State
    valid_from: UtcTime | None = None
    valid_to: UtcTime | None = None
    importance: Importance = NORMAL
    expires_at: UtcTime | None = None
    recipe: str
    occurred_at: UtcTime
    recorded_at: UtcTime
    sources: list[SourceLine] = Field(default_factory=list)
    history: list[FactChangeLine] = Field(default_factory=list)
    chunks: list[ChunkLine] = Field(default_factory=list)

    def _expected_id(self) -> UUID:
        if {change.id for change in self.history} != {ids.change_id(self.id, n) for n in range(len(self.history))}:
            raise ValueError("the ids of its history do not follow from its own")
        return ids.fact_id(self.user_id, self.subject, self.text)

    def row(self) -> FactColumns:
        return self._build(FactColumns, kind=self.fact_kind)


class DocumentVectorLine(_Schema):
    """The vector of a text of a document, under its path, by the embedder of an id; base64 as in chunks."""

    path: str
    model_id: UUID
    vector: str
    text: str | None = None


class DocumentLine(_UserOwned):
    """A value that an application keeps; it lives for `ttl` seconds after it was written or read."""

    table = "documents"
    kind: Literal["document"]
    namespace: Annotated[list[str], Field(min_length=1)]
    key: str
    value: Json
    ttl: Annotated[float, Field(ge=1e-6, le=MAX_TTL.total_seconds())] | None = None
    expires_at: UtcTime | None = None
    created_at: UtcTime
    updated_at: UtcTime
    vectors: list[DocumentVectorLine] = Field(default_factory=list)

    def _expected_id(self) -> UUID:
        return ids.document_id(self.user_id, self.namespace, self.key)


ItemLine = MessageLine | SummaryLine | FactLine
ExportLine = UserLine | ConversationLine | ItemLine | DocumentLine
AnyLine = ExportLine | Header | Footer
_LINES: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="kind")])


def parse_line(line: bytes) -> AnyLine:
    try:
        # Pydantic takes them, Postgres does not.
        if any(mark in line for mark in (b"\\u0000", b"NaN", b"Infinity")):
            check_json(parse_object(line), "the line")
        return _LINES.validate_json(line)
    except ValidationError as error:
        reasons = "; ".join(describe_errors(error))
    raise InvalidInput(printable(f"it is not as the format has it: {reasons}", 500))


def encode_vector(vector: Vectors) -> str:
    """Return a vector as a line has it: base64 of float32, the least significant byte first."""
    return b64encode(vector.astype("<f4").tobytes()).decode()


def decode_vector(text: str, where: str) -> Vectors:
    try:
        return np.frombuffer(b64decode(text, validate=True), "<f4").astype(np.float32)
    except ValueError:
        raise InvalidInput(f"the vector of {where} is not base64 of float32") from None
