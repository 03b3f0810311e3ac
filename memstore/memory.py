"""The store that users open: it wires the rooms together, and is the only place that does.

`AsyncMemoryStore` is the source; its blocking twin `MemoryStore` is generated. Scopes hold no state but names, so they
are cheap to make and to throw away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from memstore import ids
from memstore.assemble.context import Request, assemble
from memstore.errors import ConfigurationError, InvalidInput
from memstore.ingest.add import Given, OnConflict, Place, add_many, make_conversation
from memstore.ingest.check import check_json, check_name, check_text
from memstore.ingest.derive import Progress, derive
from memstore.ingest.history import import_file
from memstore.ingest.importers import Imported
from memstore.ingest.tools import Tools
from memstore.models import Context, Conversation, DeriveReport, Fact, Hit, Json, Message, Role, Summary, Tier
from memstore.providers import Embedder, TokenCounter, load_counter, load_embedder
from memstore.retrieve.recall import recall
from memstore.settings import Settings, load
from memstore.store import facts, messages, migrations, summaries
from memstore.store.database import Database
from memstore.store.embedded import EmbeddedServer, default_folder
from memstore.store.items import EVERY_TIER, Filters
from memstore.waiting import in_thread

EMBEDDED = "embedded"
LOADING = Lock()  # several first questions at once must not load the encoder several times
MOST = 1_000_000  # hits or messages at once
STATES = ("active", "superseded", "retracted", None)
SCHEMES = ("postgresql://", "postgres://")


class AsyncMemoryStore:
    """An open store. Close it, or use it as a context manager.

    Raises `DatabaseUnreachable` where a URL was given that does not answer: there is no other database that it would
    silently use instead.
    """

    def __init__(self, database: Database, settings: Settings, server: EmbeddedServer | None) -> None:
        self.settings = settings
        self._database = database
        self._server = server

    @classmethod
    async def open(
        cls, url: str | None = None, *, settings: Settings | Mapping[str, Any] | None = None
    ) -> AsyncMemoryStore:
        """Open the store at `url`: "embedded", "embedded:FOLDER" or "postgresql://…"; by default what the settings say.

        `settings` are a `Settings` or some of its options; the rest comes from the environment (`MEMSTORE_…`).
        """
        settings = settings if isinstance(settings, Settings) else load(settings or {})
        target = url or settings.database_url
        server = await in_thread(EmbeddedServer.open, embedded_folder(target)) if is_embedded(target) else None
        address = server.url if server else checked_url(target)
        database = Database(address, settings.pool_size, revive=server.ensure if server else None)
        store = cls(database, settings, server)
        try:
            await in_thread(migrations.prepare, address, upgrade_old=server is not None)
            await database.open()
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Give the connections back; the last one to leave an embedded Postgres stops it."""
        await self._database.close()
        if self._server is not None:
            await in_thread(self._server.close)

    async def __aenter__(self) -> AsyncMemoryStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The database's URL; it opens the same database elsewhere, as long as an embedded one runs."""
        return self._database.url

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter that the settings name."""
        return load_counter(self.settings.counter)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder that the settings name, loaded when it is first needed: torch takes seconds."""
        with LOADING:
            return self.__dict__.get("embedder") or load_embedder(self.settings.embedder)

    def user(self, name: str) -> AsyncUserScope:
        """Give the scope of a user: everything below sees this user's rows only."""
        return AsyncUserScope(self, name)

    async def users(self) -> AsyncIterator[str]:
        """Give the names of all users, sorted."""
        after = ""
        while True:
            async with self._database.operator() as scope:
                page = await messages.users(scope, after=after)
            if not page:
                return
            for _, name in page:
                yield name
            after = page[-1][1]

    async def derive(self, *, user: str | None = None, progress: Progress | None = None) -> DeriveReport:
        """Embed, summarize and extract facts from what is pending, here and now; of every user or of one.

        `progress(deriver, done, total)` is called as messages are done, from whatever thread this runs in.
        """
        embedder = await in_thread(lambda: self.embedder)
        tools = Tools(self.counter, embedder, self.settings)
        if user is not None:
            check_name(user, "user")
        only = ids.user_id(user) if user is not None else None
        return await derive(self._database, tools, only=only, progress=progress or _quiet)

    async def import_file(
        self,
        path: str | Path,
        *,
        user: str | None = None,
        format: str = "auto",
        progress: Callable[[int], None] | None = None,
    ) -> Imported:
        """Take history in; what is known is not taken twice. `user` owns what the file gives no user for."""
        return await import_file(
            self._database, self.counter, Path(path), self.settings, user=user, format=format, progress=progress
        )

    async def stats(self, *, user: str | None = None) -> dict[str, int]:
        """Give how much is stored, of every user or of one."""
        if user is not None:
            check_name(user, "user")
        names = [user] if user is not None else [name async for name in self.users()]
        total = dict.fromkeys(COUNTED, 0)
        for name in names:
            async with self._database.scope(ids.user_id(name)) as scope:
                for key, count in (await messages.counts(scope)).items():
                    total[key] += count
        return {"users": len(names) if user is None else int(total["conversations"] > 0)} | total


COUNTED = (
    "conversations",
    "messages",
    "tokens",
    "summaries",
    "facts",
    "units",
    "vectors",
    "receipts",
    "pending",
    "failed",
)


class AsyncUserScope:
    """One user's memory."""

    def __init__(self, store: AsyncMemoryStore, name: str) -> None:
        check_name(name, "user")
        self.store = store
        self.name = name
        self.id = ids.user_id(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def conversation(
        self, name: str, *, title: str | None = None, channel: str | None = None
    ) -> AsyncConversationScope:
        """Give the scope of a conversation; it is made with its first message."""
        return AsyncConversationScope(self, Place(self.name, name, title, channel))

    async def conversations(self, *, channel: str | None = None) -> list[Conversation]:
        """Give the user's conversations, the latest first."""
        async with self.store._database.scope(self.id) as scope:
            return await messages.conversations(scope, channel)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        tiers: Sequence[str] = EVERY_TIER,
        conversation: str | None = None,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        min_score: float | None = None,
    ) -> list[Hit]:
        """Give what is remembered about a question, the best first, over messages, summaries and facts.

        `since` (inclusive) and `until` (not) bound when it was said, `as_of` hides what was recorded later. Tags must
        all be there. Scores are comparable within one recall.
        """
        check_text(query, "the query")
        _check_limit(limit)
        if conversation is not None:
            check_name(conversation, "conversation")
        filters = Filters(
            tiers=_tiers(tiers),
            conversation_id=None if conversation is None else ids.conversation_id(self.id, conversation),
            roles=_listed(roles, "roles", Role),
            tags=_listed(tags, "tags"),
            since=_aware(since, "since"),
            until=_aware(until, "until"),
            as_of=_aware(as_of, "as_of"),
        )
        store = self.store
        embedder = await in_thread(lambda: store.embedder)
        return await recall(
            store._database, embedder, self.id, query, filters=filters, limit=limit, min_score=min_score
        )

    async def facts(
        self, *, state: str | None = "active", type: str | None = None, as_of: datetime | None = None
    ) -> list[Fact]:
        """Give facts with their sources, the latest first; those of every state with `state=None`."""
        if type is not None:
            check_text(type, "the type")
        if state not in STATES:
            raise InvalidInput(f"state={state!r}: give one of active, superseded, retracted, or None for all.")
        async with self.store._database.scope(self.id) as scope:
            return await facts.facts(scope, state=state, type=type, as_of=_aware(as_of, "as_of"))


class AsyncConversationScope:
    """One conversation of a user."""

    def __init__(self, user: AsyncUserScope, place: Place) -> None:
        self.user = user
        self.name = place.name
        self.id = place.id
        self._place = place

    @property
    def _database(self) -> Database:
        return self.user.store._database

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
        """Store one message; give it with its id, number and tokens. See `add_many` for `on_conflict`."""
        given: Json = {"role": role, "content": content, "tags": list(tags), "metadata": metadata or {}}
        more = {
            "name": name,
            "occurred_at": occurred_at,
            "external_id": external_id,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
        }
        given |= {key: value for key, value in more.items() if value is not None}
        return (await self.add_many([given], on_conflict=on_conflict))[0]

    async def add_many(self, messages: Sequence[Given], *, on_conflict: OnConflict = "error") -> list[Message]:
        """Store messages in order, all of them or none; give them as stored, known ones included.

        A message with a known `external_id` is not stored twice. Where it now has other content, `Conflict` is raised,
        or with `on_conflict="skip"` the stored one is kept and given.
        """
        store = self.user.store
        return await add_many(
            self._database,
            store.counter,
            self._place,
            messages,
            on_conflict=on_conflict,
            max_bytes=store.settings.max_message_bytes,
        )

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
        _check_limit(limit)
        check_json(metadata, "metadata")
        async with self._database.scope(self.user.id) as scope:
            return await messages.messages(
                scope,
                self.id,
                from_seq=from_seq,
                to_seq=to_seq,
                roles=_listed(roles, "roles", Role),
                tags=_listed(tags, "tags"),
                meta=metadata,
                since=_aware(since, "since"),
                until=_aware(until, "until"),
                limit=limit,
            )

    async def summaries(self, *, level: int | None = None) -> list[Summary]:
        """Give the summaries, by level and in order."""
        async with self._database.scope(self.user.id) as scope:
            return await summaries.summaries(scope, self.id, level=level)

    async def info(self) -> Conversation | None:
        """Give title, channel, settings and size; None before the first message."""
        async with self._database.scope(self.user.id) as scope:
            return await messages.conversation(scope, self.id)

    async def describe(
        self, *, title: str | None = None, channel: str | None = None, settings: Json | None = None
    ) -> None:
        """Set the title, the channel, or settings of the conversation's own; what is not given stays."""
        check_json([title, channel, settings], "title, channel or settings")
        async with self._database.scope(self.user.id) as scope:
            await make_conversation(scope, self._place)
            await messages.describe(scope, self.id, title, channel, settings or {})

    async def context(
        self,
        query: str | None = None,
        *,
        budget: int,
        system: str | None = None,
        reserve: int = 0,
        as_of: datetime | None = None,
    ) -> Context:
        """Give chat messages that answer to the question with what is remembered, in at most `budget` tokens.

        Without a query the newest user message is the question, and is always in; with one, that is. `reserve` tokens
        of the budget are kept free, for the reply or for tools. Raises `BudgetTooSmall` where the system prompt and the
        question alone do not fit.
        """
        store = self.user.store
        request = Request(self.user.id, self.id, query, budget, system, reserve, _aware(as_of, "as_of"))
        embedder = await in_thread(lambda: store.embedder)
        return await assemble(self._database, embedder, store.counter, request)


def database_url(given: str | None) -> str:
    """Give the database that is meant: the one given, else what the settings say."""
    return given or load({}).database_url


def embedded_folder(url: str) -> Path:
    """Give the folder of an embedded database: what follows "embedded:", or the user's data folder."""
    _, _, folder = url.partition(":")
    return Path(folder).expanduser() if folder else default_folder()


def is_embedded(url: str) -> bool:
    """Whether this is an embedded database, and no URL."""
    return url == EMBEDDED or url.startswith(f"{EMBEDDED}:")


def checked_url(url: str) -> str:
    """Give the URL as the driver takes it; raise `ConfigurationError` where it is none of Postgres."""
    if not url.startswith(SCHEMES):
        raise ConfigurationError(
            f"{url.partition('//')[0]!r} is no database that memstore knows. Give embedded, embedded:FOLDER or "
            "postgresql://user@host/database (MEMSTORE_DATABASE_URL)."
        )
    return url.replace("postgres://", "postgresql://", 1)


def _tiers(tiers: Sequence[str]) -> tuple[Tier, ...]:
    given = _listed(tiers, "tiers", Tier)
    if not given:
        raise InvalidInput(f"tiers={tiers!r}: give some of {', '.join(Tier)}.")
    return tuple(Tier(tier) for tier in given)


def _check_limit(limit: int | None) -> None:
    if limit is not None and (type(limit) is not int or not 1 <= limit <= MOST):
        raise InvalidInput(f"limit={limit!r}: give a number from 1 to {MOST:,}.")


def _listed(values: Sequence[str] | None, name: str, known: type[Role] | type[Tier] | None = None) -> list[str] | None:
    if values is None:
        return None
    if not isinstance(values, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={values!r}: give a list.")
    for value in values:
        check_text(value, f"one of {name}")
    if known is not None and set(values) - set(known):
        raise InvalidInput(f"{name}={values!r}: give some of {', '.join(known)}.")
    return [str(value) for value in values]


def _aware(moment: datetime | None, name: str) -> datetime | None:
    if moment is not None and not isinstance(moment, datetime):
        raise InvalidInput(f"{name}={moment!r} is no datetime; give one with its time zone.")
    if moment is not None and moment.tzinfo is None:
        raise InvalidInput(f"{name}={moment} has no time zone; give one, such as {moment}+00:00.")
    return moment


def _quiet(deriver: str, done: int, total: int) -> None:
    """Report nothing."""


async def open_async(
    url: str | None = None, *, settings: Settings | Mapping[str, Any] | None = None
) -> AsyncMemoryStore:
    """Open a store, at `url` or where the settings say; close it, or use it as a context manager.

    `url` is "embedded", "embedded:FOLDER" or "postgresql://…"; `settings` a `Settings` or some of its options. The
    store for `async` code is opened with `async with await memstore.open_async() as store`, the blocking one with
    `with memstore.open() as store`.
    """
    return await AsyncMemoryStore.open(url, settings=settings)
