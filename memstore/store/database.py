"""The database: a pool of connections, and transactions that are confined to one user.

No statement runs outside a scope. A transaction says whose rows it is for before anything else, with SET LOCAL, so that
nothing is left over for the next client of a pooled connection. It also names the schemas in which it looks: behind a
pooler, somebody else's temporary table would come before a table of the same name.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from time import monotonic
from typing import Any, LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection, AsyncRawCursor
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import kwargs_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from memstore import ids
from memstore._compat import at_end_of_loop, to_thread
from memstore.errors import ConfigurationError, DatabaseError, DatabaseUnreachable, Forbidden, NotFound
from memstore.models import Event, EventType, Json, WebhookEvent
from memstore.store import webhook_events
from memstore.store.connections import WatchedConnection, configure, options_of
from memstore.store.errors import DRIVER_ERRORS, describe_url, translate, translate_errors
from memstore.store.index_cache import IndexCache
from memstore.store.reads import Read as Read, read_all as read_all, read_one as read_one
from memstore.store.roles import Capabilities, capabilities
from memstore.store.sql import expand_rows, statements

T = TypeVar("T")

SECONDS_FOR_A_CONNECTION = 15.0
ROWS_PER_INSERT = 128  # with more of them the text grows and nothing is gained
REVIVE_AFTER_SECONDS = 4.0
READS_ONLY = "This member may read the space, not write to it; an admin can grant more."
SQL = statements("database")


# What a member may do in a space; None without a grant.
ACCESS: Read[str | None] = Read(SQL["access"], {}, lambda rows: rows[0][0] if rows else None)


class Transaction:
    """One transaction in the scope of one user, whose id every statement is given."""

    def __init__(
        self, connection: AsyncConnection[Any], user_id: UUID, cache: IndexCache, *, outbox: bool, citus: bool
    ) -> None:
        self.connection = connection
        self.user_id = user_id
        self.cache = cache
        self.citus = citus
        self.events: list[Event] = []
        self.notices: list[Json] = []
        # The embedding model that stays active until the end, as this transaction writes vectors of it.
        self.embedding_model: UUID | None = None
        self._outbox = outbox
        self._has_ended = False
        self._results: dict[Read[Any], Any] = {}

    def record_event(self, kind: EventType, conversation_id: UUID | None = None, **body: Any) -> None:
        """Record an event, which is stored in the outbox with this transaction."""
        self.events.append(Event(self.user_id, kind, conversation_id, body))

    def notify(self, event: WebhookEvent, /, **data: Any) -> None:
        """Have an event sent to the webhooks that want it, once this transaction has ended."""
        self.notices.append(webhook_events.make_event(event, data))

    async def all(self, statement: LiteralString, build: Callable[..., T], **values: Any) -> list[T]:
        return await self.get(read_all(statement, build, **values))

    async def tuples(self, statement: LiteralString, **values: Any) -> list[Any]:
        """Return every row as a tuple: for statements with many narrow rows, where building objects is what costs."""
        return await self.get(Read(statement, values, list))

    async def column(self, statement: LiteralString, /, **values: Any) -> list[Any]:
        return [row[0] for row in await self.tuples(statement, **values)]

    async def value(self, statement: LiteralString, kind: type[T], /, **values: Any) -> T | None:
        """Return the first column of the first row, which is of this kind or null; None without a row."""
        rows: list[tuple[T | None, ...]] = await self.tuples(statement, **values)
        return rows[0][0] if rows else None

    async def one(self, statement: LiteralString, build: Callable[..., T], **values: Any) -> T | None:
        return await self.get(read_one(statement, build, **values))

    async def get(self, read: Read[T]) -> T:
        async with self.connection.cursor(row_factory=read.rows) as cursor:
            await cursor.execute(read.statement, self._bind(read.values))
            return read.result(await cursor.fetchall())

    async def begin(
        self, statement: LiteralString, confinement: Mapping[str, str], reads: Sequence[Read[Any]], *, commit: bool
    ) -> None:
        """Begin with a statement that confines the transaction, and make its first reads in the same round trip.

        With `commit` it ends with them. To its nodes Citus sends, for each SET LOCAL, the text of the whole message
        that it came with. So there each is a message of its own, and reads come after them.
        """
        if not self.citus:
            await self._read_together(reads, (statement, confinement), commit=commit)
            return
        values = {**confinement, "user_id": str(self.user_id)}
        async with self.connection.pipeline(), AsyncClientCursor(self.connection) as cursor:
            for part in statement.split(";\n"):
                await cursor.execute(part, values)
        await self.read_together(reads)

    async def read_together(self, reads: Sequence[Read[Any]]) -> None:
        """Make these reads in one round trip; `result` returns what each of them read."""
        if reads:
            await self._read_together(reads)

    def check_writer(self) -> None:
        """Raise `Forbidden` for a member who may only read; for them locks find no rows, and nothing is refused."""
        if self._results.get(ACCESS) == "read":
            raise Forbidden(READS_ONLY)

    def result(self, read: Read[T]) -> T:
        """Return what a read has read that the transaction was opened with, or that went together with others."""
        result: T = self._results[read]
        return result

    async def _read_together(
        self,
        reads: Sequence[Read[Any]],
        before: tuple[LiteralString, Mapping[str, str]] | None = None,
        *,
        commit: bool = False,
    ) -> None:
        """Send all reads as one message: less work for both sides than a pipeline, and the same plans."""
        async with AsyncClientCursor(self.connection) as cursor:
            sent = [] if before is None else [cursor.mogrify(before[0], {**before[1], "user_id": str(self.user_id)})]
            sent += [cursor.mogrify(read.statement, self._bind(read.values)) for read in reads]
            sent += [SQL["commit"]] * commit
            await cursor.execute(";\n".join(sent).encode(self.connection.info.encoding))
            self._has_ended = commit
            for read, place in zip(reads, range(-len(reads) - commit, -commit), strict=True):
                await cursor.set_result(place)
                cursor.row_factory = read.rows
                self._results[read] = read.result(await cursor.fetchall())

    async def stream(self, statement: LiteralString, build: Callable[..., T], **values: Any) -> AsyncIterator[T]:
        """Return every row as it comes, sent in Postgres' binary format; nothing else may be asked until the last."""
        async with self.connection.cursor(binary=True, row_factory=kwargs_row(build)) as cursor:
            async for row in cursor.stream(statement, self._bind(values)):
                yield row

    async def binary(self, statement: LiteralString, **values: Any) -> list[Any]:
        """Return every row as a tuple, sent in Postgres' binary format: for many numbers or large values."""
        async with self.connection.cursor(binary=True) as cursor:
            await cursor.execute(statement, self._bind(values))
            return await cursor.fetchall()

    async def run(self, statement: LiteralString, **values: Any) -> int:
        """Return the number of rows that the statement changed."""
        async with self.connection.cursor() as cursor:
            await cursor.execute(statement, self._bind(values))
            return cursor.rowcount

    async def run_together(
        self, statements: Sequence[tuple[LiteralString, Sequence[Mapping[str, Any]]]], *, commit: bool = False
    ) -> None:
        """Run statements, each for its rows, and write the events, in one round trip; with `commit` end there.

        COMMIT is a statement of its own: in a pipeline `connection.commit()` waits for the answer without sending what
        the socket did not take at once, and `pipeline.sync()` too. Leaving the pipeline sends it.
        """
        async with self.connection.pipeline(), self.connection.cursor() as cursor:
            for statement, rows in (*statements, (SQL["add_event"], self._take_new_events())):
                if len(rows) == 1:
                    await cursor.execute(statement, self._bind(rows[0]))
                elif rows:
                    await self._insert(statement, rows)
            if commit:
                await cursor.execute(SQL["commit"])
        self._has_ended = commit

    async def write_events(self) -> None:
        await self.run_many(SQL["add_event"], self._take_new_events())
        if self.notices:
            self._check_open()
            await webhook_events.write_wanted(self.connection, self.user_id, self.notices)

    def _take_new_events(self) -> list[dict[str, Any]]:
        events, self.events = self.events, []
        columns = [name for name in Event.__slots__ if name != "cursor"]
        return [{name: getattr(event, name) for name in columns} for event in events] if self._outbox else []

    async def run_many(self, statement: LiteralString, rows: Iterable[Mapping[str, Any]]) -> int:
        """Insert rows in one round trip; return how many were not there yet."""
        batch = list(rows)
        if not batch:
            return 0
        if len(batch) == 1:  # without the pipeline that many rows need: half the time
            return await self.run(statement, **batch[0])
        async with self.connection.pipeline():
            cursors = await self._insert(statement, batch)
        return sum(cursor.rowcount for cursor in cursors)

    async def _insert(self, statement: LiteralString, rows: Sequence[Mapping[str, Any]]) -> list[AsyncRawCursor[Any]]:
        """Send rows, `ROWS_PER_INSERT` with each statement: a statement a row costs the server three times as much.

        Common values are sent once, which takes off a third of that: half of a message's columns.
        """
        self._check_open()
        cursors = []
        for at in range(0, len(rows), ROWS_PER_INSERT):
            text, values = expand_rows(statement, rows[at : at + ROWS_PER_INSERT])
            cursors.append(AsyncRawCursor(self.connection))
            await cursors[-1].execute(text, [self.user_id, *values])
        return cursors

    async def roll_back(self) -> None:
        """Take back what was done; the transaction is over."""
        self.events.clear()
        self.notices.clear()
        await self.connection.rollback()

    def _check_open(self) -> None:
        if self._has_ended:
            raise RuntimeError("The transaction has committed: what comes after it needs one of its own.")

    def _bind(self, values: Mapping[str, Any]) -> dict[str, Any]:
        self._check_open()
        return {**values, "user_id": self.user_id}


class Database:
    """An open database.

    `revive` starts an embedded server again that has died; it is called from a thread. With `outbox` events are kept.
    Of users with at most `max_chunks` chunks these are held in this process; of others, recall asks the database. By
    default it is 130,000 messages of a user, 355 MB with 384 dimensions.
    """

    def __init__(
        self,
        url: str,
        pool_size: int,
        *,
        revive: Callable[[], None] | None = None,
        outbox: bool = True,
        max_chunks: int = 150_000,
        cache_bytes: int = 512 * 2**20,
    ) -> None:
        self.url = url
        self.max_chunks = max_chunks
        self._outbox = outbox
        self.capabilities: Capabilities
        self._confinement: dict[str, str] = {}
        self._revive = revive
        self.cache = IndexCache(max_chunks, cache_bytes)
        self._process = os.getpid()
        self._checked_out: set[AsyncConnection[Any]] = set()
        self._forget_exit: Callable[[], None] = lambda: None
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=pool_size,
            open=False,
            timeout=SECONDS_FOR_A_CONNECTION,
            # Its pauses double until it gives up, and after that each call tries at once: minutes without a server must
            # not become minutes more once it is back.
            reconnect_timeout=SECONDS_FOR_A_CONNECTION,
            # Custom plans only; fit for poolers. A transaction begins with the statement that confines it.
            kwargs={"prepare_threshold": None, "autocommit": True, **options_of(url)},
            connection_class=WatchedConnection,
            configure=configure,
        )

    async def open(self) -> None:
        """Connect. Raises an error that says what is wrong with the server."""
        self.capabilities = await to_thread(capabilities, self.url)
        able = self.capabilities
        self._confinement = {"role": able.role or "", "schema": able.schema, "vectors": able.vectors}
        if able.ignores_policies and able.role is None:
            raise ConfigurationError(
                f"The login of {describe_url(self.url)} ignores row-level security and may not become memstore_app: "
                "users would not be kept apart. Run: memstore db grant LOGIN, or give a login that is no superuser."
            )
        self._outbox = self._outbox and able.writes
        await self._pool.open()
        # Else the pool, which goes on connecting, tells at exit that an embedded server is shutting down.
        self._forget_exit = at_end_of_loop(self._pool.close)

    async def close(self) -> None:
        self._forget_exit()
        await self._pool.close()

    @asynccontextmanager
    async def user_transaction(
        self, user_id: UUID, reads: Sequence[Read[Any]] = (), *, async_commit: bool = False, frozen: bool = False
    ) -> AsyncIterator[Transaction]:
        """Open a transaction that sees and writes the rows of one user only.

        With `async_commit` the commit does not wait for the disk: a crash may lose the last half second. `reads` take
        no round trip of their own; the transaction has their results. Of a `frozen` one all reads are of one moment.
        """
        is_member = self._is_member(user_id)
        scope = SQL["member_scope"] if is_member else SQL["scope"]
        statement = self._confining(scope, *[SQL["async_commit"]] * async_commit, *[SQL["snapshot"]] * frozen)
        async with self._transaction(statement, user_id, [ACCESS, *reads] if is_member else reads) as transaction:
            if is_member and transaction.result(ACCESS) is None:
                raise NotFound("There is no such space, or it is not shared with this user.")
            yield transaction

    async def read(self, user_id: UUID, read: Read[T]) -> T:
        """Return the result of a read of one user's rows: a whole transaction in one round trip."""
        statement = self._confining(SQL["member_scope"] if self._is_member(user_id) else SQL["scope"])
        async with self._transaction(statement, user_id, [read], commit=True) as transaction:
            return transaction.result(read)

    def on_behalf_of(self, member_id: UUID) -> Database:
        """Return this database as a member of spaces sees it: without a grant a space has no rows."""
        view = copy(self)
        view._confinement = {**self._confinement, "member_id": str(member_id)}
        return view

    def _is_member(self, owner: UUID) -> bool:
        return "member_id" in self._confinement and ids.is_space(owner)

    @asynccontextmanager
    async def admin_transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction that sees users and pending work, and no content."""
        async with self._transaction(self._confining(SQL["operator"]), UUID(int=0)) as transaction:
            yield transaction

    def _confining(self, *settings: LiteralString) -> LiteralString:
        role = [SQL["role"]] if self.capabilities.role else []
        return ";\n".join([SQL["begin"], *role, SQL["path"], *settings])

    @asynccontextmanager
    async def owner_transaction(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a transaction as the login itself, with the operator's view: for what the app role may not do."""
        async with self.raw_connection() as connection, connection.transaction():
            for setting in (SQL["path"], SQL["operator"]):  # each by itself, for Citus
                await connection.execute(setting, self._confinement)
            yield connection

    async def take_role(self, connection: AsyncConnection[Any]) -> None:
        """Step down to the role that the login was granted, until the transaction ends."""
        await connection.execute(SQL["role"], self._confinement)

    @asynccontextmanager
    async def raw_connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a connection as the login itself, for statements that cannot run in a transaction. It reads no rows.

        Behind a pooler each statement may reach another session, and a setting or a lock stays behind there. Statements
        are sent as text, in Postgres' simple protocol: after the other one a transaction keeps its last statement's
        snapshot, and building an index waits for every one that is older.
        """
        with translate_errors(self.url):
            async with await AsyncConnection.connect(
                autocommit=True, cursor_factory=AsyncClientCursor, **options_of(self.url)
            ) as connection:
                yield connection

    @asynccontextmanager
    async def _transaction(
        self, statement: LiteralString, user_id: UUID, reads: Sequence[Read[Any]] = (), *, commit: bool = False
    ) -> AsyncIterator[Transaction]:
        try:
            transaction = await self._begin(statement, user_id, reads, commit=commit)
            try:
                yield transaction
                await transaction.write_events()
                await transaction.connection.commit()
            except psycopg.OperationalError:
                await self._recover(transaction.connection)
                raise
            finally:
                await self._release(transaction.connection)
        except DRIVER_ERRORS as error:
            if self._is_member(user_id) and isinstance(error, InsufficientPrivilege):
                raise Forbidden(READS_ONLY) from None
            raise translate(error, self.url) from error

    async def _begin(
        self, statement: LiteralString, user_id: UUID, reads: Sequence[Read[Any]], *, commit: bool
    ) -> Transaction:
        """Begin and confine a transaction, in one round trip.

        That is also the check whether the server is still there: a connection that died in the pool is replaced, as
        nothing was done with it yet.
        """
        last = monotonic() + SECONDS_FOR_A_CONNECTION
        while True:
            connection = await self._connection()
            citus = self.capabilities.citus
            transaction = Transaction(connection, user_id, self.cache, outbox=self._outbox, citus=citus)
            try:
                await transaction.begin(statement, self._confinement, reads, commit=commit)
                return transaction
            except BaseException as error:
                is_lost = isinstance(error, psycopg.OperationalError) and connection.broken
                try:
                    await self._recover(connection)
                finally:
                    await self._release(connection)
                if not is_lost or monotonic() > last:
                    raise

    async def _recover(self, connection: AsyncConnection[Any]) -> None:
        """Start an embedded server again whose end has broken a connection.

        Before the pool replaces the connection: after a failed try it pauses twice as long, each time.
        """
        if connection.broken and self._revive is not None:
            await to_thread(self._revive)

    async def _release(self, connection: AsyncConnection[Any]) -> None:
        self._checked_out.discard(connection)
        with suppress(psycopg.Error):
            await connection.rollback()
        await self._pool.putconn(connection)

    async def _connection(self) -> AsyncConnection[Any]:
        if os.getpid() != self._process:
            raise DatabaseError("This store was opened before a fork and is the parent's; open one in the child.")
        try:
            try:
                connection = await self._pool.getconn(timeout=REVIVE_AFTER_SECONDS if self._revive else None)
            except PoolTimeout:
                if self._revive is None:
                    raise
                # Cheap where all connections are merely busy.
                await to_thread(self._revive)
                connection = await self._pool.getconn()
        except PoolTimeout as error:
            if len(self._checked_out) < self._pool.max_size:
                raise
            raise DatabaseUnreachable(
                f"All {len(self._checked_out)} connections of this store have been busy for "
                f"{SECONDS_FOR_A_CONNECTION:.0f} s. "
                "Nothing of this call was done: repeat it, make fewer calls at once, or raise pool_size "
                "(MEMSTORE_POOL_SIZE)."
            ) from error
        self._checked_out.add(connection)
        return connection
