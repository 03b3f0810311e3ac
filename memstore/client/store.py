"""The store that users open: it wires the rooms together, and is the only place that does.

`AsyncMemoryStore` is the source; its blocking twin `MemoryStore` is generated. Scopes hold no state but names, so they
are cheap to make and to throw away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from memstore import ids
from memstore._compat import to_thread
from memstore.client.address import checked_url, embedded_folder, is_embedded
from memstore.client.arguments import listed
from memstore.client.backfill import AsyncBackfills
from memstore.client.embeddings import AsyncEmbeddings
from memstore.client.opened import Opened, check_usable
from memstore.client.tokens import AsyncTokens
from memstore.client.user import AsyncUserScope
from memstore.derive import indexes
from memstore.errors import InvalidInput
from memstore.events import EventType, Subscriber, Subscription
from memstore.ingest.check import check_name, one_of
from memstore.ingest.redaction import redactor_for
from memstore.models import Certificate, DeriveReport, Exported, Job, JobCounts, LargeUser, Remains
from memstore.providers import Embedder, Reranker, TokenCounter
from memstore.settings import Settings, load
from memstore.store import messages, migrations, queue, queue_schema
from memstore.store.database import Database
from memstore.store.embedded import EmbeddedServer
from memstore.telemetry import operation_span

if TYPE_CHECKING:
    from memstore.derive.steps import Progress
    from memstore.export.output import Target
    from memstore.ingest.importers import Imported


class AsyncMemoryStore:
    """An open store. Close it, or use it as a context manager.

    Raises `DatabaseUnreachable` where a URL was given that does not answer: there is no other database that it would
    silently use instead.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        server: EmbeddedServer | None,
        reranker: Reranker | None = None,
    ) -> None:
        self.settings = settings
        self._database = database
        self._opened = Opened(database, settings, reranker)
        self._server = server

    @classmethod
    async def open(
        cls,
        url: str | None = None,
        *,
        settings: Settings | Mapping[str, Any] | None = None,
        reranker: Reranker | None = None,
    ) -> Self:
        """Open the store at `url`: "embedded", "embedded:FOLDER" or "postgresql://…"; by default what the settings say.

        `settings` are a `Settings` or some of its options; the rest comes from the environment (`MEMSTORE_…`), the
        settings file, and the defaults. Names of providers that nobody knows, and masking without its libraries, raise
        `ProviderMissing` here. A `reranker` of your own (a Protocol of `memstore.providers`) stands in place of the
        settings'.
        """
        settings = settings if isinstance(settings, Settings) else load(settings or {})
        check_usable(settings)
        await to_thread(redactor_for, settings)  # its libraries take a while, or are not there
        target = url or settings.database_url
        server = await to_thread(EmbeddedServer.open, embedded_folder(target)) if is_embedded(target) else None
        address = server.url if server else checked_url(target)
        revive = server.ensure if server else None
        database = Database(
            address,
            settings.pool_size,
            revive=revive,
            outbox=settings.outbox_days > 0,
            enqueue=settings.enqueue,
            most_units=settings.units_in_memory,
            most_bytes=settings.arrays_megabytes * 2**20,
        )
        store = cls(database, settings, server, reranker)
        try:
            await to_thread(migrations.prepare, address, upgrade_old=server is not None)
            if settings.enqueue:
                await to_thread(queue_schema.prepare, address)
            await database.open()
        except BaseException:  # whatever it is, an interrupt too: what was opened is closed, and it goes on
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Give the connections back; the last one to leave an embedded Postgres stops it."""
        await self._database.close()
        if self._server is not None:
            await to_thread(self._server.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The database's URL; it opens the same database elsewhere, as long as an embedded one runs."""
        return self._database.url

    @property
    def role(self) -> str:
        """What the database's login was granted: "app", "loader", "reader" or "admin"; "owner" where it was nothing."""
        role = self._database.capabilities.role
        return "owner" if role is None else role.removeprefix("memstore_")

    @property
    def counter(self) -> TokenCounter:
        """The token counter that the settings name."""
        return self._opened.counter

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that the settings name, loaded when it is first needed."""
        return self._opened.embedder

    @property
    def backfills(self) -> AsyncBackfills:
        """What is done to backfills: long histories that workers derive under a plan."""
        return AsyncBackfills(self._opened)

    @property
    def embeddings(self) -> AsyncEmbeddings:
        """What is done to change the embedder of users who have vectors, while recall goes on."""
        return AsyncEmbeddings(self._opened)

    @property
    def tokens(self) -> AsyncTokens:
        """The tokens with which servers are asked for this store's memories."""
        return AsyncTokens(self._opened)

    def user(self, name: str) -> AsyncUserScope:
        """Give the scope of a user: everything below sees this user's rows only."""
        return AsyncUserScope(self._opened, name)

    async def users(self, *, after: str = "") -> AsyncIterator[str]:
        """Give the names of all users, sorted; those that sort after a name."""
        async for _, name in messages.everybody(self._database, after):
            yield name

    async def derive(
        self, *, user: str | None = None, redo: str | None = None, progress: Progress | None = None
    ) -> DeriveReport:
        """Embed, summarize and extract facts from what is pending, here and now; of every user or of one.

        With `redo="facts"` or `"summaries"` what another recipe made is made anew as well: each conversation's in one
        transaction, so that whoever asks meanwhile sees the old or the new. What people did to facts by hand stays, and
        so do facts that come out again, with their times. With `redo="vectors"` units that were made while no embedder
        was set are embedded. Whoever is served by another embedder since a migration (`embeddings`) is derived by that.

        `progress(deriver, done, total)` is called as messages are done, from whatever thread this runs in.
        """
        from memstore.derive.derive import REDOABLE, Part, derive

        if user is not None:
            check_name(user, "user")
        one_of("redo", redo, tuple(REDOABLE))
        part = Part(ids.user_id(user) if user is not None else None)
        again = None if redo is None else REDOABLE[redo]
        with operation_span("derive") as span:
            resources = await self._opened.resources()
            report = await derive(self._database, resources, part, redo=again, progress=progress or _quiet)
            span.set(**{name: getattr(report, name) for name in ("messages", "units", "summaries", "facts")})
            span.set(failed=len(report.failed))
        return report

    async def jobs(self, *, failed: bool = False, limit: int = 1000) -> list[Job]:
        """Give the jobs that wait for workers or run, or those that were given up, by their number."""
        await to_thread(queue_schema.prepare, self.url)
        return await queue.jobs(self._database, failed=failed, limit=limit)

    async def job_counts(self) -> JobCounts:
        """Give how many jobs wait, run and were given up, and how many workers there are: none before the first one."""
        state = await queue.state(self._database)
        if not state.made:
            return JobCounts()
        if not await to_thread(queue_schema.is_current, state, self.url):  # it reads a folder, and waits for nobody
            await to_thread(queue_schema.prepare, self.url)
        return await queue.counts(self._database)

    async def retry_jobs(self, ids: Sequence[int] | None = None) -> int:
        """Have jobs that were given up, these or all, tried again; give how many that were."""
        await to_thread(queue_schema.prepare, self.url)
        return await queue.retry(self._database, ids)

    async def large_users(self) -> list[LargeUser]:
        """Give the users with more units than `units_in_memory`, and whether recall over them has its indexes."""
        return await indexes.large(self._database)

    async def build_indexes(self, *, progress: Callable[[LargeUser], None] = lambda _: None) -> list[LargeUser]:
        """Build what makes recall over large users fast, where it is missing; `derive` does it too.

        A minute and more for 100,000 units. Gives the users for whom this login may not: it needs that of the tables'
        owner. `progress(user)` is called before each.
        """
        return await indexes.tend_all(self._database, progress)

    async def export(
        self,
        target: Target,
        *,
        users: Sequence[str] | None = None,
        conversation: str | None = None,
        derived: bool = True,
        vectors: bool = True,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Exported:
        """Write the memory of all users, or of some, to a file or a binary stream (docs/reference/exporting.md).

        `import_file` takes it in again, elsewhere, with equal ids and equal recall. A path that ends in ".gz" is
        gzipped; a file appears when all of it is written. Each user is of one moment, and memory does not grow with
        how much there is.

        `conversation` is the only one that is exported, of one user. Without `derived` nothing is that was made of
        messages, without `vectors` none are, and the other store makes them. `progress(user, done, total)` is called
        with messages. Raises `InvalidInput` for names that nobody knows.
        """
        from memstore.export.export import Selection, export

        if conversation is not None:
            check_name(conversation, "conversation")
            if users is None or len(users) != 1:
                raise InvalidInput(f"conversation={conversation!r} is of one user: give users=[NAME], one name.")
        for name in users or ():
            check_name(name, "user")
        whose = self.users() if users is None else list(dict.fromkeys(users))
        selection = Selection(conversation, derived, vectors)
        return await export(self._database, target, whose, selection, progress or _quiet)

    async def import_file(
        self,
        path: str | Path | BinaryIO,
        *,
        user: str | None = None,
        format: str = "auto",
        me: str | None = None,
        timezone: str | None = None,
        date_order: str | None = None,
        all_branches: bool = False,
        untrusted: bool = False,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Imported:
        """Take history in, from a file or an export's folder; what is known is not taken twice.

        An export of memstore's own is known by its first line, and may also come as a binary stream: all that it holds
        is restored as it was, for the users that it names. A conflict is told and nothing is overwritten.

        `user` owns what the file gives no user for; of an export, which names all of them, that one alone is taken in,
        and `InvalidInput` raised where there is nothing of it. What some formats do not say
        (docs/reference/importing.md): `me` is the importing person's name in a chat between people, `timezone`
        ("Europe/Berlin") that of times without one, `date_order` "dmy", "mdy" or "ymd"; `all_branches` takes what was
        edited or tried again, too. What `untrusted` messages alone say is quarantined; an export of memstore's is
        refused then. With `dry_run` nothing is stored and the same is told. `progress(done, total)` is called with
        bytes as they lie on disk.
        """
        from memstore.export.source import is_export
        from memstore.ingest.history import import_file
        from memstore.ingest.importers.reading import as_reading

        given = Path(path) if isinstance(path, str | Path) else path
        if not isinstance(given, Path) or format == EXPORT or (format == "auto" and await to_thread(is_export, given)):
            if untrusted:
                raise InvalidInput(
                    "This is an export of memstore's, whose facts come in as it has them. Nothing was imported: take "
                    "it in as trusted, or not at all."
                )
            return await self._restore(given, user, dry_run, progress)
        reading = as_reading(me=me, timezone=timezone, date_order=date_order, all_branches=all_branches)
        return await import_file(
            self._database,
            self.counter,
            given,
            self.settings,
            reading=reading,
            user=user,
            format=format,
            dry_run=dry_run,
            untrusted=untrusted,
            progress=progress,
        )

    async def _restore(
        self,
        given: Path | BinaryIO,
        user: str | None,
        dry_run: bool,
        progress: Callable[[int, int], None] | None,
    ) -> Imported:
        from memstore.derive.resources import Resources
        from memstore.export.restore import Admission, restore

        return await restore(
            self._database,
            lambda: Resources(self.counter, self.embedder, self.settings, exactly=self._opened.exactly),
            given,
            admission=Admission(self.settings.max_message_bytes, self._opened.redactor, self.counter),
            only=user,
            dry_run=dry_run,
            progress=progress,
        )

    def subscribe(self, subscriber: Subscriber, types: Iterable[str] = tuple(EventType)) -> Subscription:
        """Have a function called with each event of these types that happens in this store from now on.

        It is called in a thread of its own, after the fact: slow or failing, it holds up nobody. What happened in other
        processes, or before, is in the outbox (`events`). Close the subscription, or use it as a context manager.
        """
        if not callable(subscriber):
            raise InvalidInput(f"{subscriber!r} cannot be called: give a function of one event.")
        wanted = listed(
            list(types) if isinstance(types, Iterable) and not isinstance(types, str) else types, "types", EventType
        )
        return self._database.dispatcher.subscribe(subscriber, map(EventType, EventType if wanted is None else wanted))

    async def verify_erasure(self, certificate: Certificate | None = None, *, text: str | None = None) -> Remains:
        """Look through every table for what a certificate names, or for a text, and return where it still stands.

        Raises `InvalidInput` unless exactly one of both is given.
        """
        from memstore.derive.erasure.verify import of_certificate, of_text

        if (certificate is None) == (text is None):
            raise InvalidInput("Give a certificate, or a text to look for.")
        if certificate is not None:
            return await of_certificate(self._database, certificate)
        check_name(text, "text to look for")
        return await of_text(self._database, text or "")

    async def retain(self, *, user: str | None = None) -> int:
        """Erase the messages, of every user or of one, that are older than they are kept (`messages_days`).

        Gives how many. Workers do so every hour, and `derive` of the users for whom it derived something.
        """
        from memstore.derive.retention import retain

        if user is not None:
            check_name(user, "user")
            return await retain(self._database, ids.user_id(user), self.settings)
        return sum(
            [await retain(self._database, id, self.settings) async for id, _ in messages.everybody(self._database)]
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
        total["without_vectors"] = total["units"] - total["vectors"]  # of the embedder that serves
        return {"users": len(names) if user is None else int(total["conversations"] > 0)} | total


EXPORT = "memstore"  # what the format of exports is called
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
    "dead_letters",
)


def _quiet(deriver: str, done: int, total: int) -> None:
    """Report nothing."""


async def open_async(
    url: str | None = None,
    *,
    settings: Settings | Mapping[str, Any] | None = None,
    reranker: Reranker | None = None,
) -> AsyncMemoryStore:
    """Open a store, at `url` or where the settings say; close it, or use it as a context manager.

    `url` is "embedded", "embedded:FOLDER" or "postgresql://…"; `settings` a `Settings` or some of its options;
    `reranker` is an object of your own, which recall then asks, in place of that of the settings. The
    store for `async` code is opened with `async with await memstore.open_async() as store`, the blocking one with
    `with memstore.open() as store`.
    """
    return await AsyncMemoryStore.open(url, settings=settings, reranker=reranker)
