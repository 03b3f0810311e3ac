"""Summaries on demand: of any range of a conversation, level 0, beside the nest and never part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.asked import letter_id
from memstore.derive.resources import Resources
from memstore.derive.serving import made_for
from memstore.derive.summaries.abridge import most_telling
from memstore.derive.summaries.abstractive import inquiry_of
from memstore.derive.summaries.deriver import units_of
from memstore.derive.summaries.nest import GROUP, Range, range_of, size
from memstore.derive.summaries.summarizer import summarizer_of
from memstore.errors import InvalidInput
from memstore.models import Message, Summary
from memstore.store import embedders, erasures, items, messages, model_calls, summaries
from memstore.store.database import Database, Transaction
from memstore.store.erasures import Epoch
from memstore.store.watermarks import LostRace

PAGE = 512  # messages read at once: of a long range only the lines are kept that may go in


async def summarize(
    database: Database, resources: Resources, user: UUID, conversation: UUID, from_seq: int | None, to_seq: int | None
) -> Summary:
    """Give the summary of messages `from_seq` to `to_seq`, by default the first and the last: made now, or known.

    It has as many tokens as one of the nest over as much. Raises `InvalidInput` for a range that is not all there, and
    `ModelUnavailable` where a chat model is to write it and is away, or may do no more today.
    """
    while True:
        try:
            return await _summarized(database, resources, user, conversation, from_seq, to_seq)
        except LostRace:  # something of the user was erased meanwhile, of these messages it may be
            continue


async def _summarized(
    database: Database, resources: Resources, user: UUID, conversation: UUID, from_seq: int | None, to_seq: int | None
) -> Summary:
    summarizer = summarizer_of(resources)
    recipe = await to_thread(lambda: summarizer.recipe)  # a model's server is asked for it, and no connection is held
    async with database.scope(user, first=erasures.epoch) as scope:
        epoch = await erasures.epoch(scope)
        first, last = await _checked(scope, conversation, from_seq, to_seq)
        known = await summaries.summary(scope, ids.summary_id(conversation, 0, first, last, recipe))
        if known is not None:
            return known
        asked = await _read(scope, resources, conversation, first, last)
    return await made_for(database, resources, user, partial(_made, database, user, asked, recipe, epoch))


async def _made(
    database: Database, user: UUID, asked: Range, recipe: str, epoch: Epoch | None, resources: Resources
) -> Summary:
    summarizer = summarizer_of(resources)
    account = summarizer.asked()
    if account is not None:
        async with database.operator() as scope:
            account.allowance.left = await model_calls.left(scope, resources.settings.llm_daily_tokens)
    [made] = await to_thread(summarizer.summarize, [asked], size(_level(asked.tokens, resources), resources), [account])
    [units] = await to_thread(units_of, [made], resources)
    async with erasures.unless_erased(database, user, epoch) as scope:
        model = await embedders.bind(scope, resources.embedder)
        if await summaries.add(scope, [made]):  # else somebody else has just made it
            await items.add(scope, units, model)
        if account is not None:
            await model_calls.answered(scope, letter_id(inquiry_of(asked, recipe)))
            await model_calls.keep(scope, account.cost, account.letters)
        return await summaries.summary(scope, made.id) or made


async def _checked(scope: Transaction, conversation: UUID, from_seq: int | None, to_seq: int | None) -> tuple[int, int]:
    found = await messages.conversation(scope, conversation)
    if found is None or not found.last_seq:
        raise InvalidInput("There is nothing to summarize: the conversation has no messages.")
    first, last = 1 if from_seq is None else from_seq, found.last_seq if to_seq is None else to_seq
    if type(first) is not int or type(last) is not int or not 1 <= first <= last <= found.last_seq:
        raise InvalidInput(
            f"from_seq={from_seq!r}, to_seq={to_seq!r}: give numbers of messages in order; "
            f"the conversation has 1 to {found.last_seq}."
        )
    return first, last


async def _read(scope: Transaction, resources: Resources, conversation: UUID, first: int, last: int) -> Range:
    """Give the range; of one that is longer than a page, the lines that may go into its summary, a page at a time."""
    asked: Range | None = None
    begin = first
    while begin <= last:
        end = await messages.within(scope, conversation, begin, min(last, begin + PAGE - 1), tokens=PAGE * 500)
        page = await messages.messages(scope, conversation, from_seq=begin, to_seq=end)
        asked = _joined(asked, page) if page else asked
        begin = end + 1
    if asked is None:
        raise InvalidInput(f"There is nothing to summarize: no message from {first} to {last} is there any more.")
    return asked


def _joined(asked: Range | None, page: Sequence[Message]) -> Range:
    new = range_of(0, page)
    if asked is None:
        return new
    span = min(asked.span[0], new.span[0]), max(asked.span[1], new.span[1])
    telling = most_telling([*asked.lines, *new.lines])
    return replace(asked, to_seq=new.to_seq, span=span, tokens=asked.tokens + new.tokens, messages=(), telling=telling)


def _level(tokens: int, resources: Resources) -> int:
    """Give the level of the nest whose summaries are over about as many tokens."""
    level, most = 1, resources.settings.segment_tokens
    while tokens > most:
        level, most = level + 1, most * GROUP
    return level
