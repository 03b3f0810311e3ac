"""What operators do: tokens of the servers, webhooks, and changes of the embedding model."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.validation import check_names, to_list, to_uuid
from memstore.models import ApiToken, EmbeddingStatus, MigrationReport, Webhook, WebhookEvent
from memstore.providers import Embedder, load_embedder, load_stored_embedder
from memstore.settings import Settings
from memstore.store import api_tokens, queue, webhooks
from memstore.store.api_tokens import TokenHolder
from memstore.store.webhooks import SECRET_PREFIX

MAX_TOKEN_DAYS = 36_500
# By it people, and scanners of repositories, know a token.
TOKEN_PREFIX = "mst_"  # nosec B105  # no password
WEBHOOK_URL = r"https?://(\[[\da-fA-F:]+\]|[\w.-]+)(:\d{1,5})?([/?][!-~]*)?"

ChunkProgress = Callable[[int, int], None]


class AsyncTokens:
    """`store.tokens`: the tokens that let callers of a server in. Only their SHA-256 is stored."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = runtime.database

    async def create(self, *, user: str | None = None, name: str | None = None, days: float | None = None) -> ApiToken:
        """Make a token for the memory of `user`, or of everybody (the operator's); only now it has its `secret`.

        `name` says what it is for. It expires after `days`, if they are given.
        """
        check_names(user=user, token=name)
        if days is not None and not (isinstance(days, int | float) and 0 < days <= MAX_TOKEN_DAYS):
            raise InvalidInput(f"days={days!r}: give a number of days up to {MAX_TOKEN_DAYS:,}, or none.")
        self._runtime.redactor.reject_secret_names(user=user)
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        async with self._database.admin_transaction() as tx:
            token = await api_tokens.add(
                tx,
                ids.uuid7(),
                hash_token(secret),
                owner=None if user is None else ids.user_id(user),
                user_name=user,
                name=self._runtime.redactor.redact(name),
                seconds=None if days is None else timedelta(days=days).total_seconds(),
            )
        return replace(token, secret=secret)

    async def all(self) -> list[ApiToken]:
        """Return every token without its secret, the latest first, revoked and expired ones too."""
        async with self._database.admin_transaction() as tx:
            return await api_tokens.tokens(tx)

    async def revoke(self, token: ApiToken | UUID) -> ApiToken:
        """Revoke a token. Raises `NotFound` if there is none of this id."""
        id = to_uuid(token.id if isinstance(token, ApiToken) else token)
        async with self._database.admin_transaction() as tx:
            revoked = await api_tokens.revoke(tx, id)
        if revoked is None:
            raise NotFound(f"There is no token {id}; memstore token list shows them.")
        return revoked

    async def holder(self, token_hash: bytes) -> TokenHolder | None:
        """Return whom the token of this SHA-256 lets in; None if it is unknown, expired or revoked."""
        async with self._database.admin_transaction() as tx:
            return await api_tokens.holder(tx, token_hash)

    async def exist(self) -> bool:
        """Whether a token was ever made, even if it was revoked since."""
        async with self._database.admin_transaction() as tx:
            return await api_tokens.exist(tx)


class AsyncWebhooks:
    """`store.webhooks`: URLs that are sent signed events. A worker sends them; the login must own the tables."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    async def add(self, url: str, *, events: Sequence[str] | None = None) -> Webhook:
        """Have these events, or all, of every user sent to `url`; only now the webhook has the `secret` that signs.

        Raises `InvalidInput` for anything but a URL with http or https and without a password, and for other events
        than "fact.created", "fact.superseded" and "erasure.done".
        """
        if not isinstance(url, str) or not re.fullmatch(WEBHOOK_URL, url, re.ASCII):
            raise InvalidInput(f"url={url!r}: give one such as https://example.com/memory, in ASCII, with no password.")
        chosen = list(WebhookEvent) if events is None else to_list(events, "events", WebhookEvent)
        if not chosen:
            raise InvalidInput("events=[]: name one, or leave them out for all.")
        await to_thread(queue.prepare_queue, self._database.url)
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
        async with self._database.admin_transaction() as tx:
            webhook = await webhooks.add(tx, ids.uuid7(), url, chosen, secret)
        return replace(webhook, secret=secret)

    async def all(self) -> list[Webhook]:
        """Return every webhook without its secret, the latest first, disabled ones too."""
        async with self._database.admin_transaction() as tx:
            return await webhooks.webhooks(tx)

    async def remove(self, webhook: Webhook | UUID) -> None:
        """Remove a webhook and what is still to be sent to it. Raises `NotFound` if there is none of this id."""
        id = to_uuid(webhook.id if isinstance(webhook, Webhook) else webhook)
        async with self._database.admin_transaction() as tx:
            if not await webhooks.remove(tx, id):
                raise NotFound(f"There is no webhook {id}; memstore webhooks list shows them.")
        await queue.clear_deliveries(self._database, webhook=id)


def hash_token(secret: str) -> bytes:
    """Return what is stored of a token. It is random and long, so that no slow hash is needed."""
    return sha256(secret.encode()).digest()


class AsyncEmbeddings:
    """`store.embeddings`: changes of the embedding model, while recall goes on.

    Each call may be killed and made again. `progress(done, total)` counts chunks. While another process migrates, all
    but `status` raise `Conflict`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = runtime.database

    async def migrate(self, to: str, *, progress: ChunkProgress | None = None) -> MigrationReport:
        """Make `to`, such as "sentence-transformers:FOLDER", the active embedder of the store.

        The old vectors are used until all users have the new ones; then one transaction switches the store. Open stores
        go on as they are. To move back is to migrate to the former embedder: only what came since is embedded, until
        `clean` removes the rest. Chunks that were derived without an embedder get their vectors too. A text that the
        embedder refuses gets none: it is found by words alone, and the report names it. Raises `ProviderMissing` and
        the like before anything is done, if the embedder cannot be had.
        """
        from memstore.derive.embedding_migration import migrate

        check_names(to=to)
        embedder = await to_thread(_load_target, to, self._runtime.settings)
        # Neither the store's own embedder nor a chat model need be loaded to make vectors.
        dependencies = Dependencies(self._runtime.counter, embedder, self._runtime.settings)
        return await migrate(self._database, dependencies, embedder, progress or (lambda *_: None))

    async def status(self) -> list[EmbeddingStatus]:
        """Return the embedder that is active, those being built or retired, their vectors, and what is missing."""
        from memstore.derive.embedding_migration import status

        return await status(self._database)

    async def clean(self) -> MigrationReport:
        """Remove the vectors of retired embedders: a migration back would make them anew.

        Raises `Conflict` while a migration is not finished.
        """
        from memstore.derive.embedding_migration import clean

        return await clean(self._database)


def _load_target(name: str, settings: Settings) -> Embedder:
    embedder = load_embedder(name, settings)
    if embedder is None:
        raise InvalidInput('"none" makes no vectors: name the embedder that is to serve, as kind:model.')
    # Other processes must find it by the name that is stored with its vectors.
    return embedder if name == embedder.name else load_stored_embedder(embedder.name, embedder.dimensions, settings)
