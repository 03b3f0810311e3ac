"""The store that users open. The client is the only package that wires all others together.

`AsyncMemoryStore` is the source; its blocking twin `MemoryStore` is generated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from memstore import ids
from memstore._compat import open_in_thread, to_thread
from memstore.client.admin import AsyncEmbeddings, AsyncTokens, AsyncWebhooks
from memstore.client.backfills import AsyncBackfills
from memstore.client.runtime import Runtime, validate_settings
from memstore.client.space import AsyncSpaceScope
from memstore.client.user import AsyncUserScope
from memstore.errors import InvalidInput
from memstore.ingest.redaction import redactor_for
from memstore.ingest.validation import check_choice, check_name, check_names, check_number
from memstore.models import Certificate, DeriveReport, ExportReport, Job, JobCounts, ScanResult, Usage, UserSize
from memstore.providers import Embedder, Reranker, TokenCounter
from memstore.settings import Settings, load
from memstore.store import llm_usage, messages, migrations, queue, watermarks
from memstore.store.database import Database
from memstore.store.embedded import embedded_folder, is_embedded
from memstore.store.embedded.server import EmbeddedServer
from memstore.store.errors import describe_url, normalize_dsn
from memstore.telemetry import operation_span

if TYPE_CHECKING:
    from memstore.derive.pipeline import OnCall, Progress
    from memstore.export.writer import Target
    from memstore.ingest.importers import ImportReport


class AsyncMemoryStore:
    """An open store. Close it, or use it as a context manager.

    >>> with memstore.open() as store:
    ...     store.user("alice").conversation("lisbon").add("user", "I'm allergic to peanuts.")
    ...     store.derive()
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
        self._runtime = Runtime(database, settings, reranker)
        self._server = server
        self.backfills = AsyncBackfills(self._runtime)
        self.embeddings = AsyncEmbeddings(self._runtime)
        self.tokens = AsyncTokens(self._runtime)
        self.webhooks = AsyncWebhooks(self._runtime)

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
        settings file, and the defaults. A `reranker` of your own (a Protocol of `memstore.providers`) overrides the
        settings'. Raises `ProviderMissing` for unknown providers, and `DatabaseUnreachable` if the URL does not answer:
        no other database is used silently.
        """
        settings = settings if isinstance(settings, Settings) else load(settings or {})
        validate_settings(settings)
        # Its libraries take a while, or are not there.
        await to_thread(redactor_for, settings)
        target = settings.database_url if url is None else url
        server = None
        if is_embedded(target):
            server = await open_in_thread(partial(EmbeddedServer.open, embedded_folder(target)), EmbeddedServer.close)
        dsn = server.url if server else normalize_dsn(target)
        database = Database(
            dsn,
            settings.pool_size,
            revive=server.ensure if server else None,
            outbox=settings.event_retention_days > 0,
            max_chunks=settings.max_chunks_in_memory,
            cache_bytes=settings.index_cache_mb * 2**20,
        )
        store = cls(database, settings, server, reranker)
        try:
            await to_thread(migrations.prepare, dsn, upgrade_old=server is not None)
            await database.open()
        except BaseException:
            # An interrupt too: open connections are closed.
            await store.close()
            raise
        return store

    async def warm_up(self) -> None:
        """Load the counter's vocabulary and the store's embedder, for which the first calls of a process would wait.

        For servers, before they take requests: loading takes a second or two, and holds up the event loop meanwhile.
        Raises `EmbedderMismatch` if the settings name another embedder than the store's, or it cannot be had.
        """
        await to_thread(lambda: self.counter.count("the vocabulary is read at the first count"))
        await self._runtime.load_active_embedder()

    async def close(self) -> None:
        """Close the connections; the last store to leave an embedded Postgres stops it."""
        try:
            await self._database.close()
        finally:
            if self._server is not None:
                await to_thread(self._server.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe_url(self.url)}>"

    @property
    def url(self) -> str:
        """The database's URL; it opens the same database elsewhere, an embedded one while it runs."""
        return self._database.url

    @property
    def role(self) -> str:
        """The role of the database's login: "app", "loader", "reader" or "admin"; "owner" without one."""
        role = self._database.capabilities.role
        return "owner" if role is None else role.removeprefix("memstore_")

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be stored: the role only reads, or the server is a standby."""
        return not self._database.capabilities.writes

    @property
    def counter(self) -> TokenCounter:
        """The settings' token counter."""
        return self._runtime.counter

    @property
    def embedder(self) -> Embedder | None:
        """The settings' embedder, loaded when it is first needed."""
        return self._runtime.embedder

    def user(self, name: str) -> AsyncUserScope:
        """Return the scope of a user; nothing below it sees other users' rows."""
        return AsyncUserScope(self._runtime, name)

    def space(self, name: str) -> AsyncSpaceScope:
        """Return a space, for the application itself: members act by `user.space(name)`."""
        return AsyncSpaceScope(self._runtime, name)

    async def users(self, *, after: str = "") -> AsyncIterator[str]:
        """Yield the names of all users, sorted; with `after` those that sort after a name."""
        async for name in self._owners(after):
            if not name.startswith(ids.SPACE_PREFIX):
                yield name

    async def spaces(self) -> AsyncIterator[str]:
        """Yield the names of all spaces, sorted."""
        async for name in self._owners():
            if name.startswith(ids.SPACE_PREFIX):
                yield name.removeprefix(ids.SPACE_PREFIX)

    async def _owners(self, after: str = "") -> AsyncIterator[str]:
        async for _, name in messages.everybody(self._database, after):
            yield name

    async def user_sizes(self, names: Sequence[str]) -> list[UserSize]:
        """Return how much each of these users has, in their order: one cheap read, for lists of users."""
        async with self._database.admin_transaction() as tx:
            sizes = await watermarks.user_sizes(tx, [ids.user_id(name) for name in names])
        return [sizes.get(ids.user_id(name), UserSize()) for name in names]

    async def derive(
        self,
        *,
        user: str | None = None,
        redo: str | None = None,
        review: bool = False,
        progress: Progress | None = None,
        on_call: OnCall | None = None,
    ) -> DeriveReport:
        """Embed, summarize and extract facts from pending messages, here and now, of every user or of one.

        With `redo="facts"` or `"summaries"` rows by other recipes are made anew too, each conversation's in one
        transaction; manual changes of facts stay. Under `review`, as by the setting `review_facts`, new facts wait in
        `user.inbox()`.

        `progress(deriver, done, total)` counts messages; `on_call` gets a `CallProgress` as each call of a chat model
        begins and as it ends. Both are called from whatever thread this runs in.
        """
        from memstore.derive.pipeline import REBUILDABLE, DeriveScope, derive

        check_names(user=user)
        check_choice("redo", redo, REBUILDABLE)
        part = DeriveScope(ids.user_id(user) if user is not None else None)
        with operation_span("derive") as span:
            dependencies = await self._runtime.load_dependencies()
            if review:
                settings = dependencies.settings.model_copy(update={"review_facts": True})
                dependencies = replace(dependencies, settings=settings)
            watch = progress or _ignore
            report = await derive(
                self._database, dependencies, part, redo=redo, progress=watch, on_call=on_call or _ignore
            )
            span.set(**{name: getattr(report, name) for name in ("messages", "chunks", "summaries", "facts")})
            span.set(failed=len(report.failed))
        return report

    async def jobs(self, *, failed: bool = False, limit: int = 1000) -> list[Job]:
        """Return the jobs that wait for workers or run, or those that `failed`, by their number."""
        check_number(limit, "limit")
        await to_thread(queue.prepare_queue, self.url)
        return await queue.jobs(self._database, failed=failed, limit=limit)

    async def job_counts(self) -> JobCounts:
        """Return how many jobs wait, run and failed, and how many workers there are."""
        state = await queue.state(self._database)
        if not state.made:
            return JobCounts()
        if not await to_thread(queue.is_current, state, self.url):
            await to_thread(queue.prepare_queue, self.url)
        return await queue.counts(self._database)

    async def retry_jobs(self, ids: Sequence[int] | None = None) -> int:
        """Retry failed jobs, these or all; return how many."""
        await to_thread(queue.prepare_queue, self.url)
        return await queue.retry(self._database, ids)

    async def unindexed_users(self) -> list[str]:
        """Return the users with more chunks than `max_chunks_in_memory` for whom recall lacks indexes."""
        from memstore.derive.maintenance import list_unindexed_users

        return await list_unindexed_users(self._database)

    async def build_indexes(self) -> list[str]:
        """Build missing indexes for large users, as `derive` does too: a minute and more for 100,000 chunks.

        Returns the users for whom this login may not: it needs that of the tables' owner.
        """
        from memstore.derive.maintenance import build_indexes

        return await build_indexes(self._database)

    async def export(
        self,
        target: Target,
        *,
        users: Sequence[str] | None = None,
        derived: bool = True,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> ExportReport:
        """Write the memory of all users, or of some, to a file or a binary stream (docs/reference/exporting.md).

        `import_file` restores it elsewhere, with equal ids and equal recall. A path that ends in ".gz" is gzipped; the
        file appears when all of it is written. Each user is exported as of one moment.

        Without `derived`, summaries, facts and vectors are left out; the other store makes them.
        `progress(user, done, total)` counts messages. Raises `InvalidInput` for unknown names.
        """
        from memstore.export.writer import write_export

        for name in users or ():
            check_name(name, "user")
        names = self._owners() if users is None else list(dict.fromkeys(users))
        return await write_export(self._database, target, names, derived=derived, progress=progress or _ignore)

    async def import_file(
        self,
        path: str | Path | BinaryIO,
        *,
        user: str | None = None,
        format: str = "auto",
        me: str | None = None,
        timezone: str | None = None,
        date_order: str | None = None,
        untrusted: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> ImportReport:
        """Import a history from a file, or from the folder of a chat export; known messages are not stored twice.

        memstore's own exports are recognized by their first line, and may also come as a binary stream: everything is
        restored as it was. Conflicts are reported, and nothing is overwritten.

        `user` owns what the file names no user for; of memstore's own exports, only that user is imported. What some
        formats do not say (docs/reference/importing.md): `me` is the importing person's name in a chat between people,
        `timezone` ("Europe/Berlin") that of times without one, `date_order` "dmy", "mdy" or "ymd". Facts that only
        `untrusted` messages say are quarantined. `progress(done)` counts messages, of memstore's own exports lines.
        """
        from memstore.export.reader import is_export
        from memstore.ingest.history import import_file
        from memstore.ingest.importers import parse_options

        source = Path(path) if isinstance(path, str | Path) else path
        if (
            not isinstance(source, Path)
            or format == "memstore"
            or (format == "auto" and await to_thread(is_export, source))
        ):
            if untrusted:
                raise InvalidInput(
                    "This is an export of memstore, whose facts keep their states. Nothing was imported: import it "
                    "as trusted, or not at all."
                )
            from memstore.export.restore import restore

            runtime = self._runtime
            return await restore(
                self._database,
                runtime.run_with_dependencies,
                source,
                max_message_bytes=self.settings.max_message_bytes,
                redactor=runtime.redactor,
                counter=self.counter,
                only=user,
                progress=progress or _ignore,
            )
        options = parse_options(me=me, timezone=timezone, date_order=date_order)
        return await import_file(
            self._database,
            self.counter,
            source,
            self.settings,
            options=options,
            user=user,
            format=format,
            untrusted=untrusted,
            progress=progress or _ignore,
        )

    async def verify_erasure(self, certificate: Certificate) -> ScanResult:
        """Search every table for the ids of a certificate, and return where they still are."""
        from memstore.derive.erasure import verify_certificate

        return await verify_certificate(self._database, certificate)

    async def apply_retention(self, *, user: str | None = None) -> int:
        """Erase the messages, of every user or of one, that are older than `message_retention_days`; return how many.

        Workers do so every hour, and `derive` for users for whom it derived something.
        """
        from memstore.derive.maintenance import apply_retention

        check_names(user=user)
        names = [user] if user is not None else [name async for name in self._owners()]
        return sum([await apply_retention(self._database, ids.user_id(name), self.settings) for name in names])

    async def stats(self, *, user: str | None = None) -> dict[str, int]:
        """Return how many rows are stored, of every user or of one."""
        check_names(user=user)
        names = [user] if user is not None else [name async for name in self._owners()]
        total = Counter(dict.fromkeys(COUNTED, 0))
        for name in names:
            async with self._database.user_transaction(ids.user_id(name)) as tx:
                total.update(await messages.counts(tx))
        # Of the embedder that serves.
        total["without_vectors"] = total["chunks"] - total["vectors"]
        return {"users": len(names) if user is None else int(total["conversations"] > 0), **total}

    async def usage(self, *, user: str | None = None) -> list[Usage]:
        """Return what calls of chat models cost so far, by deriver and model; of every user together or of one."""
        check_names(user=user)
        if user is None:
            async with self._database.admin_transaction() as tx:
                return await llm_usage.total_usage(tx)
        async with self._database.user_transaction(ids.user_id(user)) as tx:
            return await llm_usage.usage(tx)


COUNTED = (
    "conversations", "messages", "tokens", "summaries", "facts", "chunks", "vectors", "receipts", "pending", "failed",
    "invalid_responses", "refused",
)  # fmt: skip


def _ignore(*_: object) -> None:
    pass


open_async = AsyncMemoryStore.open
