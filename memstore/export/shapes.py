"""What a line of an export holds, kind by kind; docs/reference/exporting.md is this in words. Pure.

Ids follow from names (`memstore.ids`), so a line whose id does not is refused: it would stand beside what is meant.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal, Protocol, Self, TypeVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from memstore import ids
from memstore.errors import InvalidInput
from memstore.ingest.check import Moment, NewMessage, check_name
from memstore.ingest.importers.lines import parsed
from memstore.ingest.importers.records import check_storable, shown
from memstore.models import LONGEST_TTL, Conversation, FactColumns, FactKind, Json, Message, Summary

FORMAT, VERSION = "memstore-export", 1
HEADER, FOOTER = "export", "end"

N = TypeVar("N", bound="Named")
Text = Annotated[str, Strict()]
Count = Annotated[int, Strict(), Field(ge=0, le=2**62)]
Number = Annotated[int, Strict(), Field(ge=1, le=2**62)]
Seq = Annotated[int, Strict(), Field(ge=0, le=10_000_000)]  # of a message: derivers walk over those that are missing
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Deriver = Literal["embed", "summarize", "facts"]
State = Literal["active", "quarantined", "superseded", "retracted", "erased"]
Action = Literal["superseded", "retracted", "edited", "restored", "conflicted", "resolved", "confirmed", "quarantined"]


@lru_cache(maxsize=1024)
def user_id(name: str) -> UUID:
    """Give a user's id."""
    return ids.user_id(name)


@lru_cache(maxsize=1024)
def conversation_id(user: str, name: str) -> UUID:
    """Give a conversation's id."""
    return ids.conversation_id(user_id(user), name)


class Named(Protocol):
    """What has an id."""

    @property
    def id(self) -> UUID:
        """The id."""
        ...


class Shape(BaseModel):
    """An object of JSON with these keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Header(Shape):
    """The first line."""

    kind: Literal["export"]
    format: Literal["memstore-export"]
    version: Literal[1]
    memstore: Text
    exported_at: Moment
    derived: bool
    vectors: bool


class Footer(Shape):
    """The last line: how many lines of each kind there are, and the SHA-256 of all bytes before it."""

    kind: Literal["end"]
    lines: dict[Text, Count]
    sha256: Text


class Maker(Shape):
    """The embedder that made a user's vectors."""

    name: Text
    dimensions: Number


class Owned(Shape):
    """What belongs to a user."""

    user: Text

    @property
    def user_id(self) -> UUID:
        """The user's id."""
        return user_id(self.user)

    @model_validator(mode="after")
    def _named(self) -> Self:
        try:
            check_name(self.user, "user")
        except InvalidInput as error:
            raise ValueError(str(error)) from None
        return self


class UserLine(Owned):
    """A user; `embedder` made the vectors that are in the file."""

    kind: Literal["user"]
    id: UUID
    settings: Json = Field(default_factory=dict)
    created_at: Moment
    embedder: Maker | None = None

    @model_validator(mode="after")
    def _follows(self) -> Self:
        return follows(self, self.user_id)


class Told(Owned):
    """What belongs to a conversation."""

    conversation: Text

    @property
    def conversation_id(self) -> UUID:
        """The conversation's id."""
        return conversation_id(self.user, self.conversation)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        try:
            check_name(self.conversation, "conversation")
        except InvalidInput as error:
            raise ValueError(str(error)) from None
        return self


class Watermark(Shape):
    """How far a deriver got in a conversation, and by which recipe; None for several."""

    seq: Seq
    recipe: Text | None = None


class SettingChange(Shape):
    """The settings that a change found."""

    id: UUID
    before: Json
    recorded_at: Moment


class ConversationLine(Told):
    """A conversation. Without `watermarks` nothing that was made of its messages is in the file."""

    kind: Literal["conversation"]
    id: UUID
    title: Text | None = None
    channel: Text | None = None
    settings: Json = Field(default_factory=dict)
    last_seq: Seq
    created_at: Moment
    updated_at: Moment
    watermarks: dict[Deriver, Watermark] | None = None
    setting_changes: list[SettingChange] = Field(default_factory=list)

    @model_validator(mode="after")
    def _follows(self) -> Self:
        if any(mark.seq > self.last_seq for mark in (self.watermarks or {}).values()):
            raise ValueError("a watermark stands beyond the last message")
        return follows(self, self.conversation_id)

    def row(self) -> Conversation:
        """Give it as it is stored."""
        given = self.model_dump(exclude={"kind", "user", "conversation", "watermarks", "setting_changes"})
        return Conversation.model_construct(user_id=self.user_id, name=self.conversation, **given)


class UnitShape(Shape):
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


class MessageLine(NewMessage, Told):
    """A message: the pivot's keys, its number, when it was recorded, its tokens by which counter, its units."""

    kind: Literal["message"]
    id: UUID
    seq: Annotated[Seq, Field(ge=1)]
    occurred_at: Moment
    recorded_at: Moment
    tokens: Count
    counter: Text
    units: list[UnitShape] = Field(default_factory=list)

    @model_validator(mode="after")
    def _follows(self) -> Self:
        if self.external_id is None and self.id.version == 7:
            return self
        wanted = None if self.external_id is None else ids.message_id(self.conversation_id, self.external_id)
        return follows(self, wanted)

    def row(self) -> Message:
        """Give it as it is stored."""
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


class SummaryLine(Told):
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
    units: list[UnitShape] = Field(default_factory=list)

    @model_validator(mode="after")
    def _follows(self) -> Self:
        if self.to_seq < self.from_seq:
            raise ValueError("it ends before it begins")
        place = self.level, self.from_seq, self.to_seq, self.recipe
        return follows(self, ids.summary_id(self.conversation_id, *place))

    def row(self) -> Summary:
        """Give it as it is stored."""
        given = {name: getattr(self, name) for name in Summary.model_fields if name not in ("user_id",)}
        return Summary.model_construct(user_id=self.user_id, **given)


class SourceShape(Shape):
    """A message that says a fact, where in it, and when that was learnt."""

    message_id: UUID
    start: Count | None = None
    stop: Count | None = None
    trust: Annotated[int, Strict(), Field(ge=0, le=3)]
    recorded_at: Moment


class _Columns(Shape):
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


class ChangeShape(Shape):
    """What was done to a fact, with its columns before and after."""

    id: UUID
    action: Action
    other_id: UUID | None = None
    before: Annotated[Json, AfterValidator(_columns)] = Field(default_factory=dict)
    after: Annotated[Json, AfterValidator(_columns)] = Field(default_factory=dict)
    actor: Text
    undoes: UUID | None = None
    recorded_at: Moment


class FactLine(Owned):
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
    sources: list[SourceShape] = Field(default_factory=list)
    history: list[ChangeShape] = Field(default_factory=list)
    units: list[UnitShape] = Field(default_factory=list)

    @model_validator(mode="after")
    def _follows(self) -> Self:
        follows(self, ids.fact_id(self.user_id, self.subject, self.text))
        if {change.id for change in self.history} != {ids.change_id(self.id, n) for n in range(len(self.history))}:
            raise ValueError("the ids of its history do not follow from its own")
        return self

    def row(self) -> FactColumns:
        """Give it as it is stored."""
        given = {name: getattr(self, name) for name in FactColumns.model_fields if name not in ("user_id", "kind")}
        return FactColumns.model_construct(user_id=self.user_id, kind=self.fact_kind, **given)


class DocumentVector(Shape):
    """The vector of a text of a document, under its path, by the embedder of an id; base64 as in units."""

    path: Text
    model_id: UUID
    vector: Text
    text: Text | None = None


class DocumentLine(Owned):
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
    vectors: list[DocumentVector] = Field(default_factory=list)

    @model_validator(mode="after")
    def _follows(self) -> Self:
        return follows(self, ids.document_id(self.user_id, self.namespace, self.key))


Line = UserLine | ConversationLine | SummaryLine | MessageLine | FactLine | DocumentLine
AnyLine = Line | Header | Footer
SHAPES: dict[str, type[AnyLine]] = {
    HEADER: Header,
    "user": UserLine,
    "conversation": ConversationLine,
    "summary": SummaryLine,
    "message": MessageLine,
    "fact": FactLine,
    "document": DocumentLine,
    FOOTER: Footer,
}


def follows(line: N, wanted: UUID | None) -> N:
    """Give the line; ValueError where its id is not the one that follows from its names."""
    if line.id != wanted:
        raise ValueError("its id does not follow from its names; was it edited?")
    return line


def read(line: bytes) -> AnyLine:
    """Give what a line holds; InvalidInput says what is wrong with it."""
    given = parsed(line)
    check_storable(given)
    kind = given.get("kind")
    shape = SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise InvalidInput(f"the kind {shown(str(kind))} is unknown; known are {', '.join(SHAPES)}")
    _check_version(given)
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(f"the {kind} is not as the format has it: {_reasons(error)}") from None


def _check_version(given: Json) -> None:
    if given["kind"] == HEADER and given.get("format") == FORMAT and given.get("version") != VERSION:
        raise InvalidInput(
            f"the export is of version {shown(str(given.get('version')))}, and this memstore reads version {VERSION}; "
            "install the memstore that wrote it, or a newer one"
        )


def _reasons(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    told = [(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in found[:3]]
    more = [f"and {len(found) - 3} more"] if len(found) > 3 else []
    return shown("; ".join([*(f"{place}: {why}" if place else why for place, why in told), *more]), 500)
