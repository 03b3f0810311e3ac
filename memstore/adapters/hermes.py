"""A memory provider for Hermes Agent: it recalls before each turn, stores each turn, and gives the model two tools.

    # ~/.hermes/plugins/memstore/__init__.py, where Hermes does not look for installed providers itself
    from memstore.adapters.hermes import MemstoreMemoryProvider

    hermes config set memory.provider memstore

The store is that of memstore's settings (`MEMSTORE_DATABASE_URL`, …). Its user is that of the gateway, else
`MEMSTORE_HERMES_USER`, else the profile, else "hermes". A session is a conversation. Turns are stored and derived in a
thread, so that no turn waits for it; subagents and scheduled runs read, and store nothing.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agent.memory_provider import MemoryProvider

import memstore
from memstore.context.relevance import DEFAULT_MIN_RELEVANCE
from memstore.errors import MemstoreError
from memstore.formats import MemoryText
from memstore.models import HAND, Json, Message
from memstore.settings import load as load_settings
from memstore.store.embedded import embedded_folder, is_embedded

logger = logging.getLogger(__name__)

SEARCH, REMEMBER = "memstore_search", "memstore_remember"
TOOLS: list[Json] = [
    {
        "name": SEARCH,
        "description": "Search what this person said in earlier sessions, by meaning and by words.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "A question, or some words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "At most so many hits."},
            },
            "required": ["query"],
        },
    },
    {
        "name": REMEMBER,
        "description": "Keep one lasting fact about this person, as a sentence that is understood years from now.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The fact: 'The user is allergic to walnuts.'"}},
            "required": ["text"],
        },
    },
]


class MemstoreMemoryProvider(MemoryProvider):
    """Hermes makes one, and calls it through its memory manager."""

    def __init__(self) -> None:
        self._store: memstore.MemoryStore | None = None
        self._user = self._session = "hermes"
        self._writes = True
        # One thread: turns are stored in their order.
        self._writer: ThreadPoolExecutor | None = None

    @property
    def name(self) -> str:
        """The name by which `memory.provider` chooses it."""
        return "memstore"

    def is_available(self) -> bool:
        """Return True: without any setting there is an embedded store."""
        return True

    def initialize(self, session_id: str, **options: Any) -> None:
        """Open the store for a session."""
        self.initialize_for_inspection(session_id, **options)
        if self._store is None:
            self._store = memstore.open()
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="memstore")

    def initialize_for_inspection(self, session_id: str, **options: Any) -> None:
        """Take over what a session is, for a program that only asks for prompt and tools: no store is opened."""
        profile = options.get("agent_identity")
        self._user = str(options.get("user_id") or os.environ.get("MEMSTORE_HERMES_USER") or profile or "hermes")
        self._session = session_id or "hermes"
        self._writes = options.get("agent_context", "primary") == "primary"

    def system_prompt_block(self) -> str:
        """Return what the model is to know of the tools."""
        return (
            f"You have a long-term memory of this person. What fits a message is given with it; {SEARCH} finds more. "
            f"Keep what should last with {REMEMBER}."
        )

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return what other sessions say that fits a message; "" where nothing does."""
        if self._store is None or not query.strip():
            return ""
        talk = self._store.user(self._user).conversation(session_id or self._session)

        def is_of_another_session(message: Message, viewer: str) -> bool:
            return message.conversation_id != talk.id

        try:
            context = talk.context(
                query,
                budget=1000,
                reserve=0,
                strategy=[],
                viewer="hermes",
                visibility=is_of_another_session,
                min_relevance=DEFAULT_MIN_RELEVANCE,
                format=MemoryText(),
            )
        except MemstoreError as error:
            # The turn goes on without a memory.
            logger.warning("memstore recalls nothing: %s", error)
            return ""
        return context.text or "" if (context.receipt.relevance or 0) >= DEFAULT_MIN_RELEVANCE else ""

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Store a turn in the background, and derive it."""
        turn: list[Json] = [
            {"role": role, "content": text}
            for role, text in (("user", user_content), ("assistant", assistant_content))
            if isinstance(text, str) and text.strip()
        ]
        if turn and self._writes and self._writer is not None:
            self._writer.submit(self._store_turn, self._user, session_id or self._session, turn)

    def _store_turn(self, user: str, session: str, turn: list[Json]) -> None:
        assert self._store is not None
        try:
            self._store.user(user).conversation(session, channel="hermes").add_many(turn)
            self._store.derive(user=user)
        except MemstoreError as error:
            logger.warning("a turn is not stored: %s", error)

    def get_tool_schemas(self) -> list[Json]:
        """Return the tools; those that write only where this agent may."""
        return [tool for tool in TOOLS if self._writes or tool["name"] == SEARCH]

    def handle_tool_call(self, tool_name: str, args: Mapping[str, Any], **options: Any) -> str:
        """Return a tool's result as JSON, of an error what to do."""
        if self._store is None:
            return json.dumps({"error": "The memory is not open: go on without it, and tell the user."})
        user = self._store.user(self._user)
        try:
            if tool_name == SEARCH:
                hits = user.recall(str(args.get("query", "")), limit=int(args.get("limit") or 10))
                found = [
                    {"text": hit.text, "said": f"{hit.occurred_at:%Y-%m-%d}", "kind": str(hit.tier)} for hit in hits
                ]
                return json.dumps({"memories": found}, ensure_ascii=False)
            if tool_name == REMEMBER and self._writes:
                fact = user.add_fact(str(args.get("text", "")))
                return json.dumps({"kept": fact.text}, ensure_ascii=False)
        except (MemstoreError, ValueError) as error:
            return json.dumps({"error": str(error)})
        return json.dumps({"error": f"memstore has no tool {tool_name} here."})

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Keep what Hermes' own memory tool adds as a fact; follow where it replaces or removes an entry.

        `old_text` of the metadata is a part of that entry.
        """
        if self._writes and self._writer is not None:
            old_text = str((metadata or {}).get("old_text") or "").strip()
            self._writer.submit(self._mirror, self._user, action, content.strip(), old_text)

    def _mirror(self, user_name: str, action: str, content: str, old_text: str) -> None:
        assert self._store is not None
        user = self._store.user(user_name)
        try:
            entered = [fact for fact in user.facts() if fact.recipe == HAND and old_text in fact.text]
            old = entered[0] if old_text and action != "add" and len(entered) == 1 else None
            if old and action == "remove":
                user.retract_fact(old)
            elif old and content:
                user.edit_fact(old, text=content)
            elif content and action != "remove":
                user.add_fact(content)
        except MemstoreError as error:
            logger.warning("an entry of Hermes' memory is not kept: %s", error)

    def on_session_switch(self, new_session_id: str, **options: Any) -> None:
        """Go on in another session."""
        self._session = new_session_id or self._session

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Wait until the session's turns are stored."""
        if self._writer is not None:
            self._writer.submit(lambda: None).result()

    def shutdown(self) -> None:
        """Store what waits, and close the store."""
        if self._writer is not None:
            self._writer.shutdown()
        if self._store is not None:
            self._store.close()
        self._store = self._writer = None

    def get_config_schema(self) -> list[Json]:
        """Return the one question of `hermes memory setup`."""
        about = "Where the store is: a Postgres URL, or nothing for an embedded one"
        is_secret = True
        return [{"key": "database_url", "description": about, "env_var": "MEMSTORE_DATABASE_URL", "secret": is_secret}]

    def backup_paths(self) -> list[str]:
        """Return the folder of an embedded store, which `hermes backup` takes along."""
        url = load_settings({}).database_url
        return [str(embedded_folder(url))] if is_embedded(url) else []


def register(context: Any) -> None:
    """Register the provider with Hermes."""
    context.register_memory_provider(MemstoreMemoryProvider())
