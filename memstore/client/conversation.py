"""One conversation of a user: messages in, contexts out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from memstore.client.arguments import aware, check_level, check_limit, check_object, check_seq, listed
from memstore.client.plain import AsyncPlainCalls
from memstore.context.context import assemble
from memstore.context.defaults import SECTIONS, STRATEGIES, check_settings, check_size
from memstore.context.formats import Format, get_format
from memstore.context.request import Request
from memstore.context.sections import Sections, sections_of
from memstore.context.strategies.registry import Strategies
from memstore.context.strategies.registry import strategies as strategies_of
from memstore.context.visibility import Rule
from memstore.errors import InvalidInput, ModelUnavailable, ProviderError
from memstore.ingest.add import Given, OnConflict, Place, add_many, make_conversations
from memstore.ingest.check import check_name, check_text
from memstore.models import (
    Certificate,
    Context,
    Conversation,
    ErasureScope,
    Fact,
    Json,
    Message,
    Receipt,
    Role,
    Summary,
)
from memstore.providers.chat_values import check_tools
from memstore.store import counter_drift, facts, messages, receipts, summaries
from memstore.telemetry import operation_span

if TYPE_CHECKING:
    from memstore.client.user import AsyncUserScope


class AsyncConversationScope(AsyncPlainCalls):
    """One conversation of a user."""

    def __init__(self, user: AsyncUserScope, place: Place) -> None:
        self.user = user
        self.name = place.name
        self.id = place.id
        self._place = place
        self._opened = user._opened

    async def add(
        self,
        role: str,
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
        """Store one message; give it with its id, number and tokens. See `add_many` for `on_conflict`.

        The result of a tool whose call is not in the conversation is stored too: contexts have it as a hit only, for
        chat formats refuse it among the turns.
        """
        given: Json = {"role": role, "content": content, "tags": tags, "metadata": {} if metadata is None else metadata}
        more = {
            "name": name,
            "occurred_at": occurred_at,
            "external_id": external_id,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
        }
        given |= {key: value for key, value in more.items() if value is not None}
        return (await self.add_many([given], on_conflict=on_conflict))[0]

    async def add_many(
        self, messages: Sequence[Given], *, on_conflict: OnConflict = "error", key: str | None = None
    ) -> list[Message]:
        """Store messages in order, all of them or none; give them as stored, known ones included.

        A message with a known `external_id` is not stored twice. Where it now has other content, `Conflict` is raised,
        or with `on_conflict="skip"` the stored one is kept and given. With a `key`, such as a UUID, the others are
        stored once however often the call is made: given again with other messages, more or fewer, it is a `Conflict`.
        """
        opened = self._opened
        with operation_span("add") as span:
            stored = await add_many(
                self._database,
                opened.counter,
                self._place,
                messages,
                on_conflict=on_conflict,
                key=key,
                max_bytes=opened.settings.max_message_bytes,
                redactor=opened.taking(**self._names),
            )
            span.set(messages=len(stored), tokens=sum(message.tokens for message in stored))
        return stored

    @property
    def _names(self) -> dict[str, str]:
        return {"user": self.user.name, "conversation": self.name}

    async def messages(
        self,
        *,
        from_seq: int = 1,
        to_seq: int = messages.LAST,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        metadata: Json | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> list[Message]:
        """Give messages in order. Tags and metadata must all be there; `since` is inclusive, `until` is not."""
        check_limit(limit, or_none=True)
        check_seq(from_seq, "from_seq")
        check_seq(to_seq, "to_seq")
        check_object(metadata, "metadata")
        async with self._database.scope(self.user.id) as scope:
            return await messages.messages(
                scope,
                self.id,
                from_seq=from_seq,
                to_seq=to_seq,
                roles=listed(roles, "roles", Role),
                tags=listed(tags, "tags"),
                meta=metadata,
                since=aware(since, "since"),
                until=aware(until, "until"),
                limit=limit,
            )

    async def summaries(self, *, level: int | None = None) -> list[Summary]:
        """Give the summaries, by level and in order: level 0 are those made by `summarize`, 1 and above the nest."""
        check_level(level)
        async with self._database.scope(self.user.id) as scope:
            return await summaries.summaries(scope, self.id, level=level)

    async def summarize(self, from_seq: int | None = None, to_seq: int | None = None) -> Summary:
        """Give a summary of these messages, both included, by default of all so far: level 0.

        It is made now and kept; the same range is never summarized twice by the same recipe. `recall` finds it like any
        other; a context of this conversation is made of the nest (level 1 and above), which covers each message once.
        Raises `InvalidInput` where the range is not one of the conversation's messages.
        """
        from memstore.derive.summaries.ondemand import summarize

        return await summarize(self._database, await self._opened.resources(), self.user.id, self.id, from_seq, to_seq)

    async def extract_facts(self) -> list[Fact]:
        """Take facts from what was said up to the newest message, here and now; give those that are new.

        Raises `ProviderError` where that fails; what was said stays, and the next try begins where this one did.
        """
        from memstore.derive.derive import Part, derive

        resources = await self._opened.resources()
        async with self._database.scope(self.user.id) as scope:
            began = await facts.now(scope)
        if began is None:
            return []
        report = await derive(self._database, resources, Part(self.user.id, self.id, ("facts",)))
        if report.failed:
            raise ProviderError(report.failed[0])
        if report.waiting:
            raise ModelUnavailable(report.waiting[0])
        async with self._database.scope(self.user.id) as scope:
            new = await facts.said_in(scope, self.id, began)
            return await facts.facts(scope, state=None, ids=new)

    async def observed(self, context: Context, *, prompt_tokens: int, model: str) -> None:
        """Keep how far `context.tokens` was from the prompt's tokens that the model's server told after it was sent.

        For a context that was sent as it is, without definitions of tools. `user.drift()` and `memstore doctor` show
        what comes of it; nothing is kept before the conversation's first message.
        """
        check_name(model, "model")
        self._opened.taking(model=model)
        if type(prompt_tokens) is not int or prompt_tokens < 1:
            raise InvalidInput(f"A prompt has a whole number of tokens, at least one, not {prompt_tokens!r:.60}.")
        async with self._database.scope(self.user.id) as scope:
            if await messages.conversation(scope, self.id) is not None:
                counted = {"predicted": int(context.tokens), "observed": prompt_tokens}
                await counter_drift.add(scope, model, context.receipt.counter, **counted)

    async def info(self) -> Conversation | None:
        """Give title, channel, settings and size; None before the first message."""
        async with self._database.scope(self.user.id) as scope:
            found = await messages.conversation(scope, self.id)
        if found is not None:
            found.settings = {name: value for name, value in found.settings.items() if name != messages.CLEARED}
        return found

    async def describe(
        self,
        *,
        title: str | None = None,
        channel: str | None = None,
        strategies: Strategies | None = None,
        sections: Sections | None = None,
        settings: Json | None = None,
    ) -> None:
        """Set the title, the channel, or settings of the conversation's own; what is not given stays.

        `strategies` compress the conversation in every later context, in their order; `[]` takes them away. They are
        names, objects such as `{"strategy": "tool_calls", "older_than": 10}`, or strategies of `memstore.strategies`.
        `sections` say what sections of every later context may take, and what stands in sections of your own; see
        `Section`; `[]` takes them away.

        `settings` of memstore's are `context_budget`, `context_reserve`, `context_viewer`, `visibility`,
        `strategies`, `sections` and `messages_days` (after which messages are erased); None takes
        one away, and others are your own. Raises `InvalidInput` for what cannot be.
        """
        for text, what in ((title, "the title"), (channel, "the channel")):
            if text is not None:
                check_text(text, what)
        check_object(settings, "settings")
        settings = {} if settings is None else settings
        check_size(settings)
        given = {STRATEGIES: strategies, SECTIONS: sections}
        settings = check_settings(settings | {name: value for name, value in given.items() if value is not None})
        redactor = self._opened.taking(**self._names)
        title, channel, settings = (
            redactor.redact(title),
            redactor.redact(channel),
            check_settings(redactor.redact_json(settings)),
        )
        async with self._database.scope(self.user.id) as scope:
            await make_conversations(scope, [self._place])
            await messages.describe(scope, self.id, title, channel, settings)

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
        as_of: datetime | None = None,
        model: str | None = None,
        tools: Sequence[Json] = (),
        format: str | Format = "openai",
    ) -> Context:
        """Give chat messages that answer to the question with what is remembered, in at most `budget` tokens.

        Without a query the newest user message is the question, and is always in; with one, that is. `reserve` tokens
        of the budget are kept free, for the reply. Raises `BudgetTooSmall` where the system prompt, the question and
        what sections have as their minimum do not fit. What is not given is as the conversation's settings have it,
        else the system's.

        `strategy` compresses the conversation for this context alone, as `describe(strategies=…)` does for all; `[]`
        for not at all, None for the conversation's own. `sections` are for this context too, each in place of the
        conversation's own of the same name: `sections=[Section("facts", maximum=0.1), Section("calendar", text="…")]`.

        A `viewer` is shown what it may see: its own messages, what people say to nobody or to it, what agents say to
        it, and its own notices; `visibility` is the rule, a name or a function of a message and the viewer's name.

        `as_of` a past moment, the context is made of what was known then: messages, summaries, facts in their state of
        then, the strategies that were kept then. An imported history was not known before its import.

        `model` is the one that the context is for, such as "gpt-4o" or "ollama:llama3.2": tokens are counted as it
        counts them, or bounded where that is not known, and the receipt says which. By default the settings' counter.
        `tools` are definitions of tools, in OpenAI's format, that will be sent beside: they are counted in the budget.

        `format` is "openai", "ollama", "anthropic", "text", or a format of `memstore.formats`. The
        budget holds for what it makes: for `context.system` and `context.messages`, or for `context.text`.
        """
        if viewer is not None:
            check_name(viewer, "viewer")
        if model is not None:
            check_name(model, "model")
        check_tools(tools)
        request = Request(
            user_id=self.user.id,
            conversation_id=self.id,
            query=query,
            budget=budget,
            system=system,
            reserve=reserve,
            as_of=aware(as_of, "as_of"),
            strategies=None if strategy is None else strategies_of(strategy),
            sections=sections_of(sections),
            viewer=viewer,
            visibility=visibility,
            format=get_format(format),
            tools=tools,
            defaults=self._opened.settings,
            keep=self._opened.settings.receipts_days > 0 and self._opened.database.capabilities.writes,
        ).redacted(self._opened.redactor)
        with operation_span("context") as span:
            embedder, counter = await self._opened.encoder(), await self._opened.counter_of(model)
            reranker, exactly = await self._opened.reranker(), self._opened.exactly
            context = await assemble(self._database, embedder, counter, request, reranker, exactly)
            span.set(
                tokens=context.tokens,
                budget=context.receipt.budget,
                hits=sum(one.section == "hits" for one in context.receipt.included),
            )
        return context

    async def erase(self, *, dry_run: bool = False) -> Certificate:
        """Erase the conversation, with all that was derived of it, quotes it or names it; give the certificate.

        Facts that other conversations say too are made again without this one. What was erased does not come back with
        the same export or import; something new may be said under the same name. With `dry_run` nothing is done.
        """
        from memstore.derive.erasure.erase import Target, erase

        target = Target(ErasureScope.CONVERSATION, self.user.id, self.id)
        return await erase(self._database, target, dry_run=dry_run)

    async def receipts(self, *, limit: int = 20) -> list[Receipt]:
        """Give the receipts of this conversation's contexts, the latest first; `user.replay` makes a context again."""
        check_limit(limit)
        async with self._database.scope(self.user.id) as scope:
            return await receipts.receipts(scope, self.id, limit=limit)
