"""The eight tools. A model reads the docstring of each, and the descriptions of its arguments.

The user is no argument, so that nothing that a model reads can lead it into another user's memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BeforeValidator, Field, create_model

from memstore import ids
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.context.relevance import DEFAULT_MIN_RELEVANCE
from memstore.errors import Conflict, Erased, Forbidden, InvalidInput
from memstore.models import QUARANTINED, TRUST, UNTRUSTED, Fact, Tier
from memstore.models.contexts import Reason
from memstore.models.facts import STORED_ACTIVE
from memstore.server.background import BackgroundDeriver
from memstore.server.mcp import results
from memstore.server.mcp.arguments import Arguments, Time, Tolerant, as_list, short_schema
from memstore.server.validation import EXAMPLE_TIME
from memstore.text import json_line


def _about(description: str) -> Any:
    return Field(description=description)


Query = Annotated[str, Field(min_length=1, max_length=4000)]
FactText = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Id = Annotated[str, Field(min_length=4, max_length=300)]
FactId = Annotated[Id, _about("The id of a fact: 'fact:3f2a91c4'.")]
ValidFrom = Annotated[Time | None, _about("Since when it holds, where that is known.")]
ValidTo = Annotated[Time | None, _about("Until when it holds, where that is known.")]
FactType = Annotated[str, Field(min_length=1, max_length=40)]
AddedType = Annotated[
    FactType | None,
    _about(
        "preference: likes and dislikes. identity: name, age, home, job, health. relationship: family, friends, pets. "
        "constraint: what must or must not be, such as an allergy. plan: what will happen. task: what is to be done. "
        "event: what happened. possession: what somebody has. goal, decision, procedure: what the words say. "
        "statement: what fits none of these. Or one of the user's own. Without one it is read from the text."
    ),
]
Subject = Annotated[Name | None, _about("Whom or what it is about, where that is not the user.")]
Confidence = Annotated[
    float | None, Field(ge=0, le=1, description="1 where the user said so, less where you conclude it.")
]


class MessageInput(Tolerant):
    """A message that is to be remembered. System prompts are no memories: stored, they would instruct later models."""

    role: Annotated[Literal["user", "assistant", "tool"], _about("Who said it.")]
    content: Annotated[str, Field(min_length=1, description="What was said, word for word.")]
    name: Annotated[Name | None, _about("The speaker, where several have the same role.")] = None
    said_at: Annotated[Time | None, _about("When it was said, where that is not now.")] = None
    id: Annotated[Name | None, _about("An id of your own: a message with a known one is not kept twice.")] = None


@dataclass(frozen=True, slots=True)
class UserMemory:
    store: AsyncMemoryStore
    user: AsyncUserScope
    background: BackgroundDeriver
    scope: str | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether facts by a model are active before a person confirms them."""
        return self.store.settings.mcp_memories == "active"


# The server sets it for each call.
current_memory: ContextVar[UserMemory] = ContextVar("current_memory")


async def search_memories(
    query: Annotated[Query, _about("What to look for: a question, or some words.")],
    limit: Annotated[int, Field(ge=1, le=50, description="At most so many memories.")] = 10,
    tiers: Annotated[
        list[Literal["facts", "messages", "summaries"]] | None,
        _about("Only of these tiers; of all three by default."),
        BeforeValidator(as_list),
    ] = None,
    conversation: Annotated[Name | None, _about("Only what comes from this conversation.")] = None,
    since: Annotated[Time | None, _about(f"Only what was said then or later: {EXAMPLE_TIME}, or a day.")] = None,
    until: Annotated[Time | None, _about("Only what was said before then.")] = None,
    spaces: Annotated[
        list[Name] | None,
        _about("Also in these spaces, by name: memory that others share with the user."),
        BeforeValidator(as_list),
    ] = None,
) -> results.Memories:
    """Search the user's long-term memory by meaning and by words; the best matches come first.

    Use it before you answer anything that may depend on what the user has said before: their life, preferences, plans,
    people, earlier work, "as I said". Results are facts (short, lasting), messages (word for word) and summaries. There
    is always something nearest: judge by the texts whether any answers.
    """
    memory = current_memory.get()
    hits = await memory.user.recall(
        query,
        limit=limit,
        tiers=tiers or tuple(Tier),
        conversation=conversation,
        since=since,
        until=until,
        scope=memory.scope,
        spaces=spaces or (),
    )
    note = await _note_pending(memory, is_empty=not hits)
    return results.Memories(memories=await results.format_hits(memory.user, hits), note=note)


async def _note_pending(memory: UserMemory, *, is_empty: bool) -> str | None:
    """Return a note about messages that are not searchable yet; for an empty result, whether anything is stored."""
    if memory.background.is_pending(memory.user.name):
        return "Some messages were remembered just now and are not searchable yet: search again in a few seconds."
    if not is_empty:
        return None
    counts = await memory.store.stats(user=memory.user.name)
    # Facts that hold no longer have chunks.
    if not counts["messages"] + counts["chunks"]:
        return "Nothing is remembered of this user yet. add_memory and remember_messages store something."
    return "Nothing was found here. A search without filters may find something."


async def add_memory(
    text: Annotated[
        FactText,
        _about(
            "One statement that will be understood by itself years from now, with names and dates in place of 'he', "
            "'there' or 'tomorrow': 'The user is allergic to peanuts.'"
        ),
    ],
    type: AddedType = None,
    subject: Subject = None,
    confidence: Confidence = 0.9,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    sources: Annotated[
        list[Id] | None,
        Field(max_length=20, description="The ids of messages that say it, such as 'message:lisbon#12'."),
        BeforeValidator(as_list),
    ] = None,
) -> results.SavedMemory:
    """Remember one lasting fact: what the user tells of themselves, decides, prefers or plans, or asks you to remember.

    Search first: where something similar is known, use update_memory in its place. One statement a call. Do not store
    passwords, keys or what only matters for this chat. It is searchable at once, unless its user is to confirm it
    first, as the answer then says, as it says which older facts it superseded. The same words are not stored twice.
    """
    memory = current_memory.get()
    messages = [await results.find_message(memory.user, source) for source in sources or ()]
    columns = _given(type=type, subject=subject, confidence=confidence, valid_from=valid_from, valid_to=valid_to)
    message_ids = [message.id for _, message in messages]
    fact = await memory.user.add_fact(text, sources=message_ids, quarantined=not memory.is_trusted, **columns)
    return await _describe_saved(memory.user, fact)


async def _describe_saved(user: AsyncUserScope, fact: Fact, replaced: Fact | None = None) -> results.SavedMemory:
    note = "It is kept, and holds once its user accepts it: memstore review."
    return results.SavedMemory(
        memory=results.format_fact(fact),
        replaced=None if replaced is None or replaced.id == fact.id else results.shorten_id("fact", replaced.id),
        superseded=[results.format_fact(older) for older in await user.superseded_facts(fact)] or None,
        note=note if fact.state == QUARANTINED else None,
    )


async def get_memory(
    id: Annotated[Id, _about("The id of a memory: 'fact:3f2a91c4', 'message:lisbon#12' or 'summary:9ac01f22'.")],
    space: Annotated[Name | None, _about("The space of the memory, where the search named one.")] = None,
) -> results.MemoryDetail:
    """Read one memory in full, by the id that a search or a list gave.

    Of a fact: the messages that it comes from. Of a message: the whole of it, and what was said just before and after.
    Of a summary: which messages it is of.
    """
    user = current_memory.get().user
    user = user if space is None else user.space(space)
    kind, rest = results.parse_id(id)
    if kind == "message":
        return await results.describe_message(user, id)
    describe = results.describe_summary if kind == "summary" else results.describe_fact
    return await describe(user, await results.resolve_id(user, rest, kind))


async def list_memories(
    type: Annotated[FactType | None, _about("Only of this type, such as plan; an error names all.")] = None,
    subject: Annotated[Name | None, _about("Only about this one, such as 'The user'.")] = None,
    state: Annotated[
        Literal["active", "ended", "expired", "superseded", "retracted", "all"],
        _about("active: what holds now. superseded: what something newer replaced. retracted: deleted."),
    ] = "active",
    limit: Annotated[int, Field(ge=1, le=100, description="At most so many in this page.")] = 20,
    cursor: Annotated[Id | None, _about("The next_cursor of the page before, with the same arguments.")] = None,
) -> results.Memories:
    """List what is known of the user as facts, what matters first, page by page.

    For an overview ("what do you know about me?"), or to find the id of a fact. To find something particular, search.
    """
    memory = current_memory.get()
    before = None if cursor is None else await results.find_fact(memory.user, cursor)
    facts = await memory.user.facts(
        state=state, type=type, subject=subject, scope=memory.scope, before=before, limit=limit + 1
    )
    page = facts[:limit]
    # A model neither reads nor confirms what waits.
    return results.Memories(
        memories=[results.format_fact(fact) for fact in page if fact.state != QUARANTINED],
        next_cursor=f"fact:{page[-1].id.hex}" if len(facts) > limit else None,
    )


async def update_memory(
    id: FactId,
    text: Annotated[FactText | None, _about("What the fact is to say now, whole.")] = None,
    type: Annotated[FactType | None, _about("As of add_memory.")] = None,
    subject: Subject = None,
    confidence: Confidence = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
) -> results.SavedMemory:
    """Correct or renew a fact: give its id and what is to be different. It keeps its sources and its history.

    Where the words change the fact gets a new id, and the old one is kept as superseded. Only facts that are active can
    be updated. Where its user is to confirm it first, as the answer then says, the old one holds until then.
    """
    changes = _given(
        text=text, type=type, subject=subject, confidence=confidence, valid_from=valid_from, valid_to=valid_to
    )
    if not changes:
        raise InvalidInput("Nothing would change: give a text, type, subject, confidence, valid_from or valid_to.")
    memory = current_memory.get()
    old = await memory.user.fact(await results.find_fact(memory.user, id))
    if old.state not in STORED_ACTIVE:
        raise Conflict(await _describe_state(memory.user, old))
    if memory.is_trusted:
        await _check_words_are_new(memory.user, old, changes)
        return await _describe_saved(memory.user, await memory.user.edit_fact(old, **changes), old)
    if text in (None, old.text):
        raise InvalidInput("The user has to confirm a change: give it as another text, such as one with a date.")
    # Confirmed, it supersedes the old one.
    columns = old.model_dump(include={"type", "subject", "confidence", "valid_from", "valid_to"}) | changes
    proposed = await memory.user.add_fact(**columns, sources=old.sources, quarantined=True)
    return await _describe_saved(memory.user, proposed)


async def _describe_state(user: AsyncUserScope, fact: Fact) -> str:
    id = results.shorten_id("fact", fact.id)
    if fact.state == QUARANTINED:
        return f"{id} waits until its user confirms it. Nothing was done."
    latest = fact
    while latest.state == "superseded":
        history = await user.fact_history(latest)
        newer = [change.other_id for change in history if change.fact_id == latest.id and change.other_id]
        if not newer:
            break
        latest = await user.fact(newer[-1])
    if latest.state in STORED_ACTIVE:
        new_id = results.shorten_id("fact", latest.id)
        return f"{id} is superseded by {new_id}, {latest.text!r}. Nothing was done: update {new_id}."
    return f"{id} is {latest.state}, not active. Nothing was done: store what holds now by add_memory."


async def _check_words_are_new(user: AsyncUserScope, old: Fact, changes: Mapping[str, Any]) -> None:
    words = [str(changes.get(name, getattr(old, name))).strip() for name in ("subject", "text")]
    same = ids.fact_id(user.id, *words)
    if same != old.id and (facts := await user.facts(ids=[same], state=None)):
        id, same_id = (results.shorten_id("fact", each) for each in (old.id, same))
        raise Conflict(
            f"{same_id} has these words already, and is {facts[0].state}. Nothing was done: "
            f"delete_memory {id}, and add_memory these words, which makes {same_id} active."
        )


async def delete_memory(id: FactId) -> results.SavedMemory:
    """Delete a fact: it is no longer recalled, not even where it is said again. Ask the user first if in doubt.

    To replace it by something newer, use update_memory. The messages that said it stay: they are a record of what was
    said, and may still be found.
    """
    user = current_memory.get().user
    fact = await user.retract_fact(await results.find_fact(user, id))
    sources = " The messages that say it stay." if fact.sources else ""
    note = f"It is recalled no more.{sources} Its user can bring it back: memstore fact undo."
    return results.SavedMemory(memory=results.format_fact(fact), note=note)


async def get_context(
    query: Annotated[Query, _about("The question that is to be answered, or the task.")],
    budget: Annotated[int, Field(ge=50, le=200_000, description="The most tokens that the context may have.")] = 2000,
    conversation: Annotated[
        Name | None,
        _about("A conversation of remember_messages that goes on: its recent turns and summaries come in too."),
    ] = None,
) -> results.ContextResult:
    """Get what is remembered about a question as one finished text, within an exact number of tokens.

    The best way to bring yourself up to date at the beginning of a task: the facts that always matter, the passages
    that answer to the question, and of a conversation its summaries and recent turns.
    """
    memory = current_memory.get()
    source = memory.user.conversation(conversation or "mcp", scope=memory.scope if conversation else None)
    if conversation is None and not memory.store.is_read_only:
        # A receipt is kept with its conversation. Who only reads a space has none.
        with suppress(Forbidden):
            await source.update()
    context = await source.context(
        query, budget=budget, scope=memory.scope, min_relevance=DEFAULT_MIN_RELEVANCE, format="text"
    )
    receipt = context.receipt
    is_empty = not any(receipt.sections.get(name) for name in ("summaries", "recent", "facts", "hits"))
    if is_empty and any(decision.reason == Reason.OVER_BUDGET for decision in receipt.left_out):
        note: str | None = "Something is remembered that did not fit: give a larger budget."
    else:
        note = await _note_pending(memory, is_empty=is_empty)
    return results.ContextResult(text=context.text or "", tokens=context.tokens, budget=budget, note=note)


async def remember_messages(
    conversation: Annotated[
        Name, _about("A name for the conversation, such as 'lisbon-trip'; the same name goes on with it.")
    ],
    messages: Annotated[
        list[MessageInput],
        Field(min_length=1, max_length=200, description="What was said since the last call, in order."),
        BeforeValidator(as_list),
    ],
) -> results.StoredMessages:
    """Keep a conversation word for word, to be recalled later; facts and summaries are made of it by themselves.

    Give only what is new since the last call, in order, under the same name of the conversation; with ids of your own a
    repeated call is harmless. It is searchable after a few seconds.
    """
    memory = current_memory.get()
    target = memory.user.conversation(conversation, scope=memory.scope)
    info = await target.info()
    if info and info.scope != memory.scope:
        raise Conflict(f"Another project has a conversation {conversation!r}. Nothing was stored: give another name.")
    last_seq = info.last_seq if info else 0
    columns = {"said_at": "occurred_at", "id": "external_id"}
    # A model may be asked to quote its user.
    trust = {} if memory.is_trusted else {"metadata": {TRUST: UNTRUSTED}}
    rows = [{columns.get(key, key): value for key, value in each if value is not None} | trust for each in messages]
    try:
        kept = await target.add_many(rows)
    except Erased as error:
        numbers = ", ".join(map(str, error.numbers))
        raise Conflict(f"Of these messages the user erased {numbers}. Nothing was stored: leave them out.") from None
    except Conflict as error:
        if error.number is None:
            raise
        id = messages[error.number - 1].id
        raise Conflict(
            f"A message with the id {id!r} is stored with other words, and stored messages never change. Nothing was "
            "stored: give this one another id, or none."
        ) from None
    stored = len({message.id for message in kept if message.seq > last_seq})
    memory.background.notify_write(memory.user.name)
    return results.StoredMessages(
        conversation=conversation,
        stored=stored,
        known=len(kept) - stored,
        last=results.message_id(conversation, kept[-1].seq),
        note="Searchable in a few seconds." if stored else "All of it was known.",
    )


def _given(**columns: Any) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _tool(
    function: Callable[..., Awaitable[results.Result]],
    title: str,
    *,
    reads: bool = False,
    destroys: bool = False,
    repeatable: bool = False,
) -> Tool:
    """Return a tool of a function, without a schema of its results, which models would read in every conversation."""

    @wraps(function)
    async def call(**arguments: Any) -> CallToolResult:
        result = (await function(**arguments)).model_dump(mode="json")
        return CallToolResult(content=[TextContent(text=json_line(result))], structured_content=result)

    annotations = ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=reads or repeatable,
        open_world_hint=False,
    )
    description = inspect.getdoc(function)
    tool = Tool.from_function(
        call, title=title, description=description, annotations=annotations, structured_output=False
    )
    arguments: Any = create_model(function.__name__, __base__=(Arguments, tool.fn_metadata.arg_model))
    tool.fn_metadata.arg_model = arguments
    tool.parameters = short_schema(arguments)
    return tool


TOOLS = [
    _tool(search_memories, "Search memories", reads=True),
    _tool(add_memory, "Add a memory", repeatable=True),
    _tool(get_memory, "Read a memory", reads=True),
    _tool(list_memories, "List memories", reads=True),
    _tool(update_memory, "Update a memory", destroys=True),
    _tool(delete_memory, "Delete a memory", destroys=True, repeatable=True),
    _tool(get_context, "Get a context", reads=True),
    _tool(remember_messages, "Remember messages"),
]
