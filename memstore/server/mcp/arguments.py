"""What a model gives a tool. The descriptions are written for it: they are all that it knows of memstore.

Whose memory is meant is no argument: what a model read somewhere must not lead it into another user's memory.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from memstore.models import FactType

LONGEST_QUERY = 4000  # characters: beyond them it is a document and no question
LONGEST_FACT = 2000
MOST_HITS = 50
MOST_LISTED = 100
MOST_MESSAGES = 200
LEAST_BUDGET, MOST_BUDGET = 50, 200_000

TYPES = (
    "preference: likes and dislikes. identity: name, age, home, job, health. relationship: family, friends, pets. "
    "constraint: what must or must not be, such as an allergy. plan: what will happen. event: what happened. "
    "goal, decision, procedure: what the words say. statement: what fits none of these."
)
MEMORY_ID = (
    "The id of a memory as search_memories or list_memories gives it: 'fact:3f2a91c4', 'message:lisbon#12' or "
    "'summary:9ac01f22'."
)
FACT_ID = "The id of a fact as search_memories or list_memories gives it, such as 'fact:3f2a91c4'."
TIME = "ISO 8601 with a zone, such as 2026-11-21T09:30:00+01:00; a day alone is its beginning in UTC."


def _day(value: Any) -> Any:
    """Let a day, or a time without a zone, be one in UTC: models write both whatever they were told."""
    if isinstance(value, bool | int | float):
        raise ValueError("a number of seconds or of milliseconds? give ISO 8601 with a zone")
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return value
        return f"{found.isoformat()}+00:00" if found.tzinfo is None else found
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_day)]
Fact = Annotated[str, Field(min_length=1, max_length=LONGEST_FACT)]
Id = Annotated[str, Field(min_length=4, max_length=300)]
Conversation = Annotated[str, Field(min_length=1, max_length=200)]


class Arguments(BaseModel):
    """Arguments of a tool; what it does not know is refused, so that nothing that was meant is silently left out."""

    model_config = ConfigDict(extra="forbid")


class SearchMemories(Arguments):
    """Arguments of search_memories."""

    query: Annotated[
        str, Field(min_length=1, max_length=LONGEST_QUERY, description="What to look for: a question, or some words.")
    ]
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="At most so many memories.")] = 10
    tiers: Annotated[
        list[Literal["facts", "messages", "summaries"]] | None,
        Field(
            min_length=1,
            description="Only of these tiers: facts (short lasting statements), messages (what was said, word for "
            "word), summaries (of stretches of talk). All by default.",
        ),
    ] = None
    conversation: Annotated[Conversation | None, Field(description="Only what comes from this conversation.")] = None
    since: Annotated[Time | None, Field(description=f"Only what was said then or later. {TIME}")] = None
    until: Annotated[Time | None, Field(description=f"Only what was said before then. {TIME}")] = None


class AddMemory(Arguments):
    """Arguments of add_memory."""

    text: Annotated[
        Fact,
        Field(
            description="One statement that will be understood by itself years from now, with names and dates in place "
            "of 'he', 'there' or 'tomorrow': 'The user is allergic to peanuts.'"
        ),
    ]
    type: Annotated[FactType, Field(description=TYPES)]
    subject: Annotated[
        str, Field(min_length=1, max_length=200, description="Whom or what it is about, where that is not the user.")
    ] = "The user"
    confidence: Annotated[
        float, Field(ge=0, le=1, description="1 where the user said so, less where you conclude it.")
    ] = 0.9
    valid_from: Annotated[Time | None, Field(description=f"Since when it holds, where that is known. {TIME}")] = None
    valid_to: Annotated[Time | None, Field(description=f"Until when it holds, where that is known. {TIME}")] = None
    sources: Annotated[
        list[Id],
        Field(max_length=20, description="The ids of remembered messages that say it, such as 'message:lisbon#12'."),
    ] = []


class GetMemory(Arguments):
    """Arguments of get_memory."""

    id: Annotated[Id, Field(description=MEMORY_ID)]


class ListMemories(Arguments):
    """Arguments of list_memories."""

    type: Annotated[FactType | None, Field(description="Only of this type.")] = None
    subject: Annotated[
        str | None, Field(min_length=1, max_length=200, description="Only about this one, such as 'The user'.")
    ] = None
    state: Annotated[
        Literal["active", "ended", "superseded", "retracted", "all"],
        Field(description="active: what holds now. superseded: what something newer replaced. retracted: deleted."),
    ] = "active"
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED, description="At most so many in this page.")] = 20
    cursor: Annotated[
        str | None, Field(max_length=200, description="The next_cursor of the page before, with the same arguments.")
    ] = None


class UpdateMemory(Arguments):
    """Arguments of update_memory; what is not given stays."""

    id: Annotated[Id, Field(description=FACT_ID)]
    text: Annotated[Fact | None, Field(description="What the fact is to say now, whole.")] = None
    type: Annotated[FactType | None, Field(description=TYPES)] = None
    subject: Annotated[str | None, Field(min_length=1, max_length=200, description="Whom it is about.")] = None
    confidence: Annotated[float | None, Field(ge=0, le=1, description="How sure it is.")] = None
    valid_from: Annotated[Time | None, Field(description=f"Since when it holds. {TIME}")] = None
    valid_to: Annotated[Time | None, Field(description=f"Until when it holds. {TIME}")] = None


class DeleteMemory(Arguments):
    """Arguments of delete_memory."""

    id: Annotated[Id, Field(description=FACT_ID)]


class GetContext(Arguments):
    """Arguments of get_context."""

    query: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST_QUERY, description="The question that is to be answered, or the task."),
    ]
    budget: Annotated[
        int, Field(ge=LEAST_BUDGET, le=MOST_BUDGET, description="The most tokens that the context may have.")
    ] = 2000
    conversation: Annotated[
        Conversation | None,
        Field(
            description="A conversation of remember_messages that goes on: its recent turns and summaries come in too."
        ),
    ] = None


class GivenMessage(Arguments):
    """A message that is to be remembered."""

    role: Annotated[Literal["user", "assistant", "tool", "system"], Field(description="Who said it.")]
    content: Annotated[str, Field(min_length=1, description="What was said, word for word.")]
    name: Annotated[
        str | None, Field(min_length=1, max_length=200, description="The speaker, where several have the same role.")
    ] = None
    said_at: Annotated[Time | None, Field(description=f"When it was said, where that is not now. {TIME}")] = None
    id: Annotated[
        str | None,
        Field(
            min_length=1, max_length=200, description="An id of your own: a message with a known one is not kept twice."
        ),
    ] = None


class RememberMessages(Arguments):
    """Arguments of remember_messages."""

    conversation: Annotated[
        Conversation,
        Field(description="A name for the conversation, such as 'lisbon-trip'; the same name goes on with it."),
    ]
    messages: Annotated[
        list[GivenMessage],
        Field(min_length=1, max_length=MOST_MESSAGES, description="What was said since the last call, in order."),
    ]
