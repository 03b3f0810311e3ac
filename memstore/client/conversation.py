"""One conversation of a user: messages in, contexts out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from memstore.context.builder import build_context
from memstore.context.request import (
    Request,
    Sections,
    check_budget_left,
    check_settings,
    effective_settings,
    read_sections,
)
from memstore.context.visibility import Rule
from memstore.derive.summaries.deriver import summarize
from memstore.formats import FormatName, get_format
from memstore.formats.parts import Format
from memstore.ingest.add import ConversationRef, MessageInput, OnConflict, add_many, make_conversations
from memstore.ingest.validation import (
    Scopes,
    When,
    check_names,
    check_number,
    check_object,
    to_list,
    to_scope,
    to_spaces,
    to_utc,
)
from memstore.models import (
    Certificate,
    Context,
    Conversation,
    ErasureScope,
    Json,
    Message,
    Receipt,
    Role,
    RoleName,
    Statistics,
    Summary,
)
from memstore.providers.tiktoken import check_tools
from memstore.store import messages, receipts, summaries
from memstore.store.messages import MAX_SEQ
from memstore.strategies import Strategies, get_strategies
from memstore.telemetry import operation_span

if TYPE_CHECKING:
    from memstore.client.user import AsyncUserScope


class AsyncConversationScope:
    """One conversation of a user. Made by `user.conversation(name)`; it holds no state but the names.

    >>> trip = alice.conversation("lisbon")
    >>> trip.add("user", "I'm allergic to peanuts.")
    >>> trip.context("What should I avoid eating?", budget=2000).messages
    """

    def __init__(self, user: AsyncUserScope, place: ConversationRef) -> None:
        self.user = user
        self.name = place.name
        self.id = place.id
        self._place = place
        self._held: list[Message] | None = None
        self._runtime = user._runtime
        self._database = user._database

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.user.name!r}>"

    async def add(
        self,
        role: Role | RoleName,
        content: str | list[Json] | None = None,
        *,
        name: str | None = None,
        occurred_at: datetime | None = None,
        external_id: str | None = None,
        tool_calls: list[Json] | None = None,
        tool_call_id: str | None = None,
        tags: Sequence[str] = (),
        metadata: Json | None = None,
        on_conflict: OnConflict = "error",
    ) -> Message:
        """Store one message; return it with its id, number and tokens. See `add_many` for `on_conflict`.

        A tool's result whose call is not in the conversation is stored too. Chat formats refuse it among the turns, so
        contexts have it as a hit only.
        """
        optional = {
            "name": name,
            "occurred_at": occurred_at,
            "external_id": external_id,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
            "metadata": metadata,
        }
        message: Json = {"role": role, "content": content, "tags": tags}
        message |= {key: value for key, value in optional.items() if value is not None}
        return (await self.add_many([message], on_conflict=on_conflict))[0]

    async def add_many(self, messages: Sequence[MessageInput], *, on_conflict: OnConflict = "error") -> list[Message]:
        """Store messages in order, all of them or none; return them as stored, known ones included.

        A message with a known `external_id` is not stored twice. If its content differs, `Conflict` is raised; with
        `on_conflict="skip"` the stored one is kept and returned.
        """
        runtime = self._runtime
        with operation_span("add") as span:
            stored = await add_many(
                self._database,
                runtime.counter,
                self._place,
                messages,
                on_conflict=on_conflict,
                max_bytes=runtime.settings.max_message_bytes,
                redactor=runtime.redactor,
            )
            span.set(messages=len(stored), tokens=sum(message.tokens for message in stored))
        return stored

    async def messages(
        self,
        *,
        from_seq: int = 1,
        to_seq: int = MAX_SEQ,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        metadata: Json | None = None,
        since: When | None = None,
        until: When | None = None,
        limit: int | None = None,
    ) -> list[Message]:
        """Return messages in order. All tags and metadata must match; `since` is inclusive, `until` is not."""
        if limit is not None:
            check_number(limit, "limit")
        check_number(from_seq, "from_seq", 0, MAX_SEQ)
        check_number(to_seq, "to_seq", 0, MAX_SEQ)
        check_object(metadata, "metadata")
        async with self._database.user_transaction(self.user.id) as tx:
            return await messages.messages(
                tx,
                self.id,
                from_seq=from_seq,
                to_seq=to_seq,
                roles=to_list(roles, "roles", Role),
                tags=to_list(tags, "tags"),
                meta=metadata,
                since=to_utc(since, "since"),
                until=to_utc(until, "until"),
                limit=limit,
            )

    async def summaries(self, *, level: int | None = None) -> list[Summary]:
        """Return the summaries, by level and in order: `summarize` makes level 0, `derive` levels 1 and above."""
        if level is not None:
            check_number(level, "level", 0)
        async with self._database.user_transaction(self.user.id) as tx:
            return await summaries.summaries(tx, self.id, level=level)

    async def summarize(self, from_seq: int | None = None, to_seq: int | None = None) -> Summary:
        """Return a summary (level 0) of these messages, both numbers included; by default of all so far.

        It is made now and stored; the same range is never summarized twice by the same recipe. `recall` finds it like
        any other; contexts use levels 1 and above, which cover each message once.
        """
        summary: Summary = await self._runtime.run_with_dependencies(
            lambda dependencies: summarize(self._database, dependencies, self.user.id, self.id, from_seq, to_seq)
        )
        return summary

    async def info(self) -> Conversation | None:
        """Return title, channel, settings and size; None before the first message."""
        async with self._database.user_transaction(self.user.id) as tx:
            conversation = await messages.conversation(tx, self.id)
        if conversation is not None:
            conversation.settings.pop(messages.CLEARED_SETTING, None)
        return conversation

    async def update(
        self,
        *,
        title: str | None = None,
        channel: str | None = None,
        scope: str | None = None,
        strategy: Strategies | None = None,
        sections: Sections | None = None,
        settings: Json | None = None,
    ) -> None:
        """Set the title, the channel, the scope, or the conversation's own settings; others stay.

        `strategy` compresses the conversation in every later context: a name, an object such as
        `{"strategy": "tool_calls", "older_than": 10}`, a strategy of `memstore.strategies`, or a list of these, which
        run in its order; `[]` removes it.
        `sections` limit the sections of every later context, or add your own, see `Section`; `[]` removes them.

        `settings` of memstore's are `context_budget`, `context_reserve`, `context_viewer`, `visibility`,
        `strategy`, `sections` and `message_retention_days` (after which messages are erased); None removes one.
        Others are your own.

        >>> trip.update(title="Lisbon", strategy="summary_buffer", settings={"context_budget": 4000})
        """
        texts = {"title": title, "channel": channel, "scope": scope}
        check_names(**texts)
        check_object(settings, "settings")
        arguments = {"strategy": strategy, "sections": sections}
        settings = (settings or {}) | {name: value for name, value in arguments.items() if value is not None}
        settings = check_settings(settings)
        await self.user._check_rules(settings)
        redactor = self._runtime.redactor
        redactor.reject_secret_names(user=self.user.name, conversation=self.name)
        texts = {name: redactor.redact(text) for name, text in texts.items()}
        settings = check_settings(redactor.redact_json(settings))
        async with self._database.user_transaction(self.user.id) as tx:
            await make_conversations(tx, [self._place])
            check_budget_left(await messages.settings_of(tx, self.id), settings, self._runtime.settings)
            await messages.update_conversation(tx, self.id, settings, **texts)

    async def context(
        self,
        query: str | None = None,
        *,
        budget: int | None = None,
        system: str | None = None,
        reserve: int | None = None,
        strategy: Strategies | None = None,
        sections: Sections = (),
        viewer: str | None = None,
        visibility: Rule | str | None = None,
        scope: Scopes = None,
        spaces: Sequence[str] = (),
        min_relevance: float = 0.0,
        as_of: When | None = None,
        model: str | None = None,
        tools: Sequence[Json] = (),
        format: FormatName | Format = "openai",
    ) -> Context:
        """Return chat messages for the question with what is remembered, in at most `budget` tokens.

        Without a `query` the newest user message is the question; the question is always included. `reserve` tokens of
        the budget are kept free for the reply. What is not given comes from the conversation's settings, else from the
        system's. Raises `BudgetTooSmall` if the system prompt, the question and the sections' minimums do not fit.

        `strategy` compresses the conversation for this context alone, as `update(strategy=…)` does for all; `[]`
        switches that off. `sections` are for this context too, each in place of the conversation's own of that name:
        `sections=[Section("facts", maximum=0.1), Section("calendar", text="…")]`.

        A `viewer` is shown what it may see: its own messages, what people say to nobody or to it, and what agents say
        to it. `visibility` is the rule: a name, or a function of a message and the viewer's name.

        In a `scope` nothing stands that was said in another one, see `recall`. Without it everything may, but for
        instructions: those of other scopes than the conversation's own stand only where they answer the question.

        Facts and messages of `spaces` are in too, each with the name of its space; standing facts of a space stand
        behind the user's. Of such a context no receipt is kept: others may erase what it says. Raises `NotFound` for a
        space that is not shared with the user.

        With a `min_relevance`, such as 0.5, no facts and no messages are recalled for a question to which nothing that
        is stored matters, such as "ok, go on": `context.receipt.relevance` says how likely something does, from 0 to 1.
        Recent turns, summaries and what always holds stand in any context.

        With `as_of` the context is made of what was known at that moment: messages, summaries, facts and strategy. An
        imported history was not known before its import.

        `model`, such as "gpt-4o" or "ollama:llama3.2", is the one that the context is for: its tokens are counted, or
        estimated if unknown, and the receipt says which. By default the settings' counter counts. `tools` are
        definitions in OpenAI's format that will be sent with the context: the budget includes them.

        `format` is "openai", "ollama", "anthropic", "text", or a format of `memstore.formats`. The budget holds for
        `context.system` and `context.messages`, or for `context.text`.
        """
        check_names(viewer=viewer, model=model)
        check_tools(tools)
        runtime = self._runtime
        request = Request(
            user_id=self.user.id,
            conversation_id=self.id,
            query=query,
            budget=budget,
            system=system,
            reserve=reserve,
            as_of=to_utc(as_of, "as_of"),
            strategies=None if strategy is None else get_strategies(strategy),
            sections=read_sections(sections),
            viewer=viewer,
            visibility=visibility,
            format=get_format(format),
            scope=to_scope(scope),
            spaces=to_spaces(spaces),
            min_relevance=min_relevance,
            conversation_scope=self._place.scope,
            tools=tools,
            defaults=runtime.settings,
            keep=runtime.settings.receipt_retention_days > 0 and self._database.capabilities.writes and not spaces,
            held=self._held and await self.recent(),
        ).redact(runtime.redactor)
        with operation_span("context") as span:
            counter, reranker = await runtime.load_counter(model), await runtime.load_reranker()
            context: Context = await runtime.run_with_embedder(
                lambda embedder: build_context(self._database, embedder, counter, request, reranker)
            )
            span.set(
                tokens=context.tokens,
                budget=context.receipt.budget,
                hits=sum(decision.section == "hits" for decision in context.receipt.included),
            )
        return context

    async def erase(self, *, dry_run: bool = False) -> Certificate:
        """Erase the conversation, with all that was derived from it, quotes it or names it; return the certificate.

        Facts that other conversations say too are made again without this one. Erased messages do not come back with an
        export or import; new ones may be added under the same name. With `dry_run` nothing is erased.
        """
        return await self.user._erase(ErasureScope.CONVERSATION, (), dry_run, conversation_id=self.id)

    async def receipts(self, *, limit: int = 20) -> list[Receipt]:
        """Return the receipts of this conversation's contexts, the latest first; `user.replay` gives what was sent."""
        check_number(limit, "limit")
        async with self._database.user_transaction(self.user.id) as tx:
            return await receipts.receipts(tx, self.id, limit=limit)

    async def recent(self, limit: int | None = None) -> list[Message]:
        """Return the messages since the conversation was last cleared, in order: all, or the newest `limit` of them."""
        if limit is not None:
            check_number(limit, "limit", 0)
        async with self._database.user_transaction(self.user.id) as tx:
            cleared = messages.cleared_seq(await messages.settings_of(tx, self.id))
            if limit is None:
                return await messages.messages(tx, self.id, from_seq=cleared + 1)
            newest = await tx.get(messages.read_newest(self.id, limit=limit)) if limit else []
        return [message for message in reversed(newest) if message.seq > cleared]

    async def clear(self) -> None:
        """Start anew: earlier messages are no longer among the recent messages, of contexts too.

        Nothing is deleted: recall, facts, summaries and `messages()` still have it.
        """
        async with self._database.user_transaction(self.user.id) as tx:
            await messages.clear(tx, self.id)

    async def statistics(self) -> Statistics:
        """Return tokens and messages since the conversation was last cleared, messages in all, budget and strategy.

        Tokens are those of the texts, as counted when they were added.
        """
        async with self._database.user_transaction(self.user.id) as tx:
            own_settings = await messages.settings_of(tx, self.id)
            recent = await messages.roles(tx, self.id, messages.cleared_seq(own_settings))
            every = await messages.roles(tx, self.id)
        settings = effective_settings(own_settings, self._runtime.settings)
        return Statistics(
            tokens=sum(tokens for _, tokens in recent.values()),
            budget=settings["context_budget"],
            messages_kept=sum(count for count, _ in recent.values()),
            messages_total=sum(count for count, _ in every.values()),
            strategy=", ".join(strategy["strategy"] for strategy in settings["strategy"]) or "none",
            roles={role: count for role, (count, _) in recent.items()},
        )

    async def settings(self) -> Json:
        """Return the conversation's settings by name: its own, else the system's; `update(settings=…)` sets them."""
        async with self._database.user_transaction(self.user.id) as tx:
            own_settings = await messages.settings_of(tx, self.id)
        return effective_settings(own_settings, self._runtime.settings)
