"""The eight tools. The docstring of each is what the model reads of it."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.errors import InvalidInput
from memstore.ingest.check import TRUST, UNTRUSTED
from memstore.models import QUARANTINED, Fact, Receipt
from memstore.models.decisions import Reason
from memstore.server.mcp import identity, told
from memstore.server.mcp.arguments import (
    AddMemory,
    DeleteMemory,
    GetContext,
    GetMemory,
    ListMemories,
    RememberMessages,
    SearchMemories,
    UpdateMemory,
)
from memstore.server.mcp.asked import Asked
from memstore.server.mcp.results import ContextText, Deleted, Detail, Found, Kept, Page, Remembered

REMEMBERED = ("summaries", "recent", "facts", "hits")  # sections of a context
WAITS = "It is kept, and holds once its user confirms it: memstore facts --state quarantined, memstore fact confirm."
NO_CONVERSATION = "mcp"  # where the receipts of contexts are kept that are of no conversation


async def search_memories(asked: Asked, given: SearchMemories) -> Found:
    """Search the user's long-term memory by meaning and by words; the best matches come first.

    Use it before you answer anything that may depend on what the user has told before: their life, preferences, plans,
    people, earlier work, "as I said". Results are facts (short, lasting), messages (word for word) and summaries. There
    is always something nearest: judge by the texts whether any answers, as results alone do not mean that something
    about it is remembered. None at all means that nothing is stored, or nothing that the filters let through.
    """
    hits = await asked.user.recall(
        given.query,
        limit=given.limit,
        tiers=given.tiers or ("messages", "summaries", "facts"),
        conversation=given.conversation,
        since=given.since,
        until=given.until,
    )
    return Found(memories=await told.of_hits(asked.user, hits), note=await _note(asked, empty=not hits))


async def _note(asked: Asked, *, empty: bool) -> str | None:
    """Say what is stored and not yet to be found; where nothing was found, whether there is anything at all."""
    if asked.deriving.is_pending(asked.user.name):
        return "Some messages were remembered just now and are not searchable yet: search again in a few seconds."
    if not empty:
        return None
    counts = await asked.store.stats(user=asked.user.name)
    if counts["pending"]:
        return "Nothing was found; some messages are not searchable yet, until they are derived."
    if not counts["messages"] + counts["facts"]:
        return "Nothing is remembered of this user yet. add_memory and remember_messages store something."
    return "Nothing was found here. A search without filters may find something."


async def add_memory(asked: Asked, given: AddMemory) -> Kept:
    """Remember one lasting fact: what the user tells of themselves, decides, prefers or plans, or asks you to remember.

    Search first: where something similar is known, use update_memory in its place. One statement a call. Do not store
    passwords, keys or what only matters for this chat. It is searchable at once, unless its user is to confirm it
    first, as the answer then says; the same words are not stored twice.
    """
    sources = [(await identity.message(asked.user, one)).id for one in given.sources]
    before = await asked.user.facts(subject=given.subject)
    fact = await asked.user.add_fact(
        given.text,
        type=given.type,
        subject=given.subject,
        confidence=given.confidence,
        valid_from=given.valid_from,
        valid_to=given.valid_to,
        sources=sources,
        quarantined=not asked.is_believed,
    )
    return Kept(memory=told.of_fact(fact), superseded=await _gone(asked, before, fact), note=_waiting(fact))


def _waiting(fact: Fact) -> str | None:
    return WAITS if fact.state == QUARANTINED else None


async def _gone(asked: Asked, before: Sequence[Fact], fact: Fact) -> list[Any]:
    """Give those of these facts that are no longer active, now that another one is."""
    active = {one.id for one in await asked.user.facts(subject=fact.subject)}
    return [told.of_fact(await asked.user.fact(one.id)) for one in before if one.id not in active and one.id != fact.id]


async def get_memory(asked: Asked, given: GetMemory) -> Detail:
    """Read one memory in full, by the id that a search or a list gave.

    Of a fact: the messages that it comes from, and its history (added, superseded, edited…). Of a message: the whole of
    it, and what was said just before and after. Of a summary: which messages it is of.
    """
    kind, rest = identity.kind_of(given.id)
    if kind == identity.MESSAGE or (kind == identity.FACT and "#" in rest):
        said = await identity.message(asked.user, given.id)
        return await told.message_in_full(asked.user, said, identity.place_of(rest)[0])
    id = await identity.found(asked.user, rest, kind)
    return await (told.summary_in_full if kind == identity.SUMMARY else told.fact_in_full)(asked.user, id)


async def list_memories(asked: Asked, given: ListMemories) -> Page:
    """List what is known of the user as facts, the latest first, page by page.

    For an overview ("what do you know about me?"), or to find the id of a fact. To find something particular, search.
    """
    state = given.state
    every = await asked.user.facts(state=state, type=given.type, subject=given.subject)
    known = [one for one in every if one.state != QUARANTINED]  # a model neither reads nor confirms what waits
    rest = known if given.cursor is None else _after(known, given.cursor)
    page = rest[: given.limit]
    more = _cursor(page[-1]) if len(rest) > given.limit else None
    return Page(memories=[told.of_fact(one) for one in page], total=len(known), next_cursor=more)


def _cursor(fact: Fact) -> str:
    return urlsafe_b64encode(f"{fact.occurred_at.isoformat()} {fact.id.hex}".encode()).decode().rstrip("=")


def _after(known: Sequence[Fact], cursor: str) -> list[Fact]:
    """Give the facts after the last one of the page before, also where that is no longer among them."""
    try:
        at, id = urlsafe_b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}").decode().split(" ")
        moment, last = datetime.fromisoformat(at), UUID(id)
        return [one for one in known if one.occurred_at < moment or (one.occurred_at == moment and one.id > last)]
    except (ValueError, TypeError):
        raise InvalidInput(
            f"cursor={cursor!r:.60} is none that list_memories gave: leave it out for the first page."
        ) from None


async def update_memory(asked: Asked, given: UpdateMemory) -> Kept:
    """Correct or renew a fact: give its id and what is to be different. It keeps its sources and its history.

    Where the words change the fact gets a new id, and the old one is kept as superseded. Only facts that are active can
    be updated. Where its user is to confirm it first, as the answer then says, the old one holds until then.
    """
    columns = {name: value for name, value in given if name != "id" and value is not None}
    if not columns:
        raise InvalidInput("Nothing is to be different: give text, type, subject, confidence, valid_from or valid_to.")
    old = await asked.user.fact(await identity.fact_id(asked.user, given.id))
    before = await asked.user.facts(subject=columns.get("subject", old.subject))
    if not asked.is_believed:
        return await _proposed(asked, old, columns)
    fact = await asked.user.edit_fact(old, **columns)
    replaced = None if fact.id == old.id else identity.short(identity.FACT, old.id)
    others = [one for one in before if one.id != old.id]
    return Kept(memory=told.of_fact(fact), replaced=replaced, superseded=await _gone(asked, others, fact))


async def _proposed(asked: Asked, old: Fact, columns: dict[str, Any]) -> Kept:
    """Let another fact wait in place of an edit: confirmed, it takes the place of what it is another value of."""
    kept = {name: getattr(old, name) for name in ("text", "type", "subject", "confidence", "valid_from", "valid_to")}
    if columns.get("text", old.text) == old.text:
        raise InvalidInput("Its user is to confirm what is different: give it as another text, such as since when.")
    fact = await asked.user.add_fact(**kept | columns, sources=old.sources, quarantined=True)
    return Kept(memory=told.of_fact(fact), note=_waiting(fact))


async def delete_memory(asked: Asked, given: DeleteMemory) -> Deleted:
    """Delete a fact: it is no longer recalled, not even where it is said again. Ask the user first if in doubt.

    To replace it by something newer, use update_memory. The messages that said it stay: they are a record of what was
    said, and may still be found.
    """
    fact = await asked.user.retract_fact(await identity.fact_id(asked.user, given.id))
    left = " The messages that say it stay." if fact.sources else ""
    return Deleted(
        deleted=told.of_fact(await asked.user.fact(fact.id)),
        note=f"It is recalled no more.{left} Its user can bring it back: memstore fact undo.",
    )


async def get_context(asked: Asked, given: GetContext) -> ContextText:
    """Get what is remembered about a question as one finished text, within an exact number of tokens.

    The best way to bring yourself up to date at the beginning of a task: the facts that always matter, the passages
    that answer to the question, and of a conversation its summaries and recent turns. The receipt says what is in it,
    and what was left out and why.
    """
    conversation = asked.user.conversation(given.conversation or NO_CONVERSATION)
    if given.conversation is None:
        await conversation.describe()  # a receipt is kept with its conversation
    context = await conversation.context(given.query, budget=given.budget, format="text")
    receipt = context.receipt
    return ContextText(
        text=context.text or "",
        tokens=context.tokens,
        budget=given.budget,
        receipt=None if receipt.id is None else str(receipt.id),
        note=await _note_on(asked, receipt),
    )


async def _note_on(asked: Asked, receipt: Receipt) -> str | None:
    """Say what else there is to know of a context: what did not fit, or why there is nothing in it."""
    cramped = sum(one.reason == Reason.OVER_BUDGET for one in receipt.left_out)
    cramped += receipt.unlisted.get(Reason.OVER_BUDGET, 0)
    if any(receipt.sections.get(name) for name in REMEMBERED) or not cramped:
        return await _note(asked, empty=not any(receipt.sections.get(name) for name in REMEMBERED))
    return f"Something is remembered that did not fit ({cramped} items): give a larger budget."


async def remember_messages(asked: Asked, given: RememberMessages) -> Remembered:
    """Keep a conversation word for word, to be recalled later; facts and summaries are made of it by themselves.

    Give only what is new since the last call, in order, under the same name of the conversation; with ids of your own a
    repeated call is harmless. It is searchable after a few seconds.
    """
    conversation = asked.user.conversation(given.conversation)
    info = await conversation.info()
    before = 0 if info is None else info.last_seq
    keys = {"said_at": "occurred_at", "id": "external_id"}
    trust = {} if asked.is_believed else {"metadata": {TRUST: UNTRUSTED}}  # a model may be told to quote its user
    messages = [
        {keys.get(name, name): value for name, value in one if value is not None} | trust for one in given.messages
    ]
    kept = await conversation.add_many(messages)
    stored = sum(one.seq > before for one in {one.id: one for one in kept}.values())
    asked.deriving.wrote(asked.user.name)
    return Remembered(
        conversation=given.conversation,
        stored=stored,
        known=len(kept) - stored,
        last=identity.of_message(given.conversation, kept[-1].seq),
        note="Searchable in a few seconds." if stored else "All of it was known.",
    )
