"""The process behind `memstore.hook`: it gives a prompt its context, and stores the turns of coding agents.

It keeps the store open, and with it an embedded Postgres, until an hour passes without a hook. A turn is stored by
importing the session's file again, which adds only new messages; then what is pending is derived. Prompts are answered
meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.context.relevance import DEFAULT_MIN_RELEVANCE
from memstore.context.utterances import says_nothing
from memstore.errors import InvalidInput, MemstoreError
from memstore.formats import MemoryText
from memstore.hook import MAX_EVENT_BYTES, PROMPT, VERSION
from memstore.ingest.importers.coding_agents import ClaudeCode, Codex, find_project
from memstore.ingest.importers.files import has_name
from memstore.ingest.redaction import redactor_for
from memstore.models import Message, Receipt, Tier
from memstore.server.background import derive_user
from memstore.settings import load
from memstore.store.embedded import embedded_folder, is_embedded
from memstore.store.embedded.folder import Account, FolderLock
from memstore.store.tokenize import terms
from memstore.text import INVALID_CHARS

IDLE_SECONDS = 3600.0
RETRY_SECONDS = 60.0
# A hook may run before the answer is in the session's file: so long it is waited for.
FLUSH_SECONDS, MAX_FLUSH_SECONDS = 1.0, 20.0

logger = logging.getLogger("memstore")


class HookServer:
    def __init__(
        self,
        store: AsyncMemoryStore,
        user: str,
        *,
        budget: int,
        exclude: Sequence[Path],
        min_relevance: float = DEFAULT_MIN_RELEVANCE,
    ) -> None:
        self._store, self._name, self._budget, self._min_relevance = store, user, budget, min_relevance
        self._user: AsyncUserScope = store.user(user)
        self._exclude = [_whole_path(folder, "--exclude ").resolve() for folder in exclude]
        # Ids and places of the messages that each session got.
        self._shown: dict[str, set[object]] = {}
        self._asked = asyncio.Event()
        self._last_asked = time.monotonic()

    async def run(self) -> None:
        # It loads the embedder and what is searched.
        await self._context({"prompt": "What do we use?"}, "hook")
        # An earlier process may have left something.
        pending = True
        # The hook sends ASCII, which may be three times as long.
        async with await asyncio.start_unix_server(self._answer, f"{VERSION}.socket", limit=4 * MAX_EVENT_BYTES):
            # A prompt may wait that had to start this process.
            await asyncio.sleep(FLUSH_SECONDS)
            while time.monotonic() < self._last_asked + IDLE_SECONDS:
                self._asked.clear()
                stored, seconds = await self._store_turns()
                if stored or pending:
                    pending = not await derive_user(self._store, self._name)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._asked.wait(), seconds)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._last_asked = time.monotonic()
        self._asked.set()
        answer, receipt, session = dict[str, str | None](context=None), None, ""
        try:
            event = json.loads(await reader.readline())
            session = str(event.get("session_id"))
            if event.get("hook_event_name") == PROMPT:
                answer["context"], receipt = await self._context(event, session)
            elif event.get("hook_event_name") == "SessionStart" and event.get("source") != "resume":
                # The session begins, or was compacted; one that is resumed has them still.
                self._shown.pop(session, None)
        except Exception as error:
            # The hook says it, where the person sees it.
            answer["error"] = f"{type(error).__name__}: {error}"
        with suppress(ConnectionError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()
        if receipt is not None:
            await self._remember_shown(session, receipt)

    async def _context(self, event: dict[str, Any], session: str) -> tuple[str | None, Receipt | None]:
        """Return the memory of other sessions for a prompt, without items that this session got before."""
        prompt = INVALID_CHARS.sub("", str(event["prompt"])).strip()
        # "Continue", "ok", "2": whatever would be found, it is not what was asked.
        if not terms(prompt) or says_nothing(prompt) or prompt.isdecimal():
            return None, None
        if self._is_excluded(event) or event.get("agent_id"):  # a subagent's
            return None, None
        if len(prompt) > 1000:
            # Redacted before it is cut: half a key is not known as one.
            redact = redactor_for(self._store.settings).redact
            prompt = f"{redact(prompt[:10_000])[:500]} {redact(prompt[-10_000:])[-500:]}"
        project = find_project(str(event.get("cwd") or "/")) or "/"
        own_id = self._user.conversation(session).id
        conversation = self._user.conversation(session, scope=project, private=bool(event.get("private")))
        shown = self._shown.setdefault(session, set())

        def is_new(message: Message, viewer: str) -> bool:
            place = (message.conversation_id, message.seq)
            return message.conversation_id != own_id and message.id not in shown and place not in shown

        context = await conversation.context(
            prompt,
            budget=self._budget,
            reserve=0,
            system="From memstore, of earlier sessions with this person:",
            strategy=[],
            viewer="coding agent",
            visibility=is_new,
            # What was said in a folder holds below it.
            scope=[project, *map(str, Path(project).parents), None],
            min_relevance=self._min_relevance,
            format=MemoryText(),
        )
        is_relevant = (context.receipt.relevance or 0) >= self._min_relevance
        if not is_relevant or not any(context.receipt.sections.get(name) for name in ("facts", "hits")):
            return None, None
        return context.text, context.receipt

    async def _remember_shown(self, session: str, receipt: Receipt) -> None:
        shown = self._shown.setdefault(session, set())
        ids = {
            kind: [decision.id for decision in receipt.included if decision.kind == kind and decision.id]
            for kind in ("fact", *Tier)
        }
        shown.update(ids[Tier.MESSAGES])
        for fact in await self._user.facts(ids=ids["fact"]):
            shown.update(fact.sources)
        for id in ids[Tier.SUMMARIES]:
            # A summary may have been made anew meanwhile.
            with suppress(MemstoreError):
                summary = await self._user.summary(id)
                # A summary is seen where all messages are.
                shown.add((summary.conversation_id, summary.from_seq))

    def _is_excluded(self, event: dict[str, Any]) -> bool:
        folder = Path(event.get("cwd") or "/").resolve()
        return any(folder.is_relative_to(excluded) for excluded in self._exclude)

    async def _store_turns(self) -> tuple[int, float]:
        """Store the turns that are due; return how many messages are new, and when to look again."""
        stored, seconds = 0, IDLE_SECONDS
        for file in Path.cwd().glob("*.json"):
            if _is_due(file):
                # A later turn of the session gets a file of its own.
                file.replace(file.with_suffix(".taken"))
            else:
                seconds = FLUSH_SECONDS
        for file in Path.cwd().glob("*.taken"):
            try:
                event = _read_event(file)
                if not self._is_excluded(event):
                    session, format = _session_file(event)
                    report = await self._store.import_file(session, user=self._name, format=format)
                    stored += report.new
            except InvalidInput as error:
                # Such as a file that is gone, or holds no session.
                logger.warning("a turn was not stored: %s", error)
            except Exception as error:
                # Whatever it is, other turns are stored, and this one is tried again.
                logger.warning("a turn is not stored yet: %s", error)
                seconds = min(seconds, RETRY_SECONDS)
                continue
            file.unlink(missing_ok=True)
        return stored, seconds


def _is_due(file: Path) -> bool:
    """Return whether the last answer of a turn is in the session's file, or was waited for long enough."""
    age = time.time() - file.stat().st_mtime
    try:
        event = _read_event(file)
    except InvalidInput:
        # It is told where the turn would be stored.
        return True
    answer = event.get("last_assistant_message") or event.get("last-assistant-message")
    if not answer or age > MAX_FLUSH_SECONDS:
        return age > FLUSH_SECONDS
    # What is no path, such as one of a user who is not there, is told where the turn would be stored, too.
    with suppress(InvalidInput, OSError, RuntimeError, ValueError), _session_file(event)[0].open("rb") as session:
        session.seek(max(0, session.seek(0, os.SEEK_END) - (1 << 20)))
        return json.dumps(answer, ensure_ascii=False)[1:-1][:200].encode("utf-8", "replace") in session.read()
    return False


def _read_event(file: Path) -> dict[str, Any]:
    """Return a turn's event; raise `InvalidInput` for what is none, such as a file that a full disk left empty."""
    try:
        event = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file.name} is damaged: {error}") from None
    texts = [event.get(name) for name in ("transcript_path", "cwd")] if isinstance(event, dict) else [0]
    if not all(text is None or (isinstance(text, str) and "\0" not in text) for text in texts):
        raise InvalidInput(f"{file.name} is no event of a turn")
    return cast(dict[str, Any], event)


def _session_file(event: dict[str, Any]) -> tuple[Path, str]:
    """Return a session's file and its format.

    It may lie anywhere: the program that says where has its own settings for that, and the person's rights.
    """
    if event.get("transcript_path"):
        file = Path(event["transcript_path"]).expanduser()
        for importer in (ClaudeCode, Codex):
            if has_name(file.as_posix(), importer.files):
                return file, importer.name
        raise InvalidInput(f"{file} is not named as the file of a session")
    sessions = Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser() / "sessions"
    thread = event.get("session_id") or event.get("thread-id")
    for file in sessions.glob(f"*/*/*/rollout-*-{thread}.jsonl"):
        return file, Codex.name
    raise InvalidInput(f"{sessions} has no session {thread}")


async def serve(user: str, database: str | None, *, budget: int, exclude: Sequence[Path], min_relevance: float) -> None:
    """Answer the hooks of a user, unless another process does already. SIGTERM and SIGHUP cancel it."""
    task = asyncio.current_task()
    assert task is not None
    # Not by an exception: within a statement another would replace it.
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with FolderLock(Path(f"{VERSION}.lock"), Account.of(Path.cwd())) as lock:
        if lock.take():
            url = load({}).database_url if database is None else database
            if is_embedded(url):
                _whole_path(embedded_folder(url), "embedded:")
            async with await AsyncMemoryStore.open(url) as store:
                await HookServer(store, user, budget=budget, exclude=exclude, min_relevance=min_relevance).run()


def _whole_path(folder: Path, option: str) -> Path:
    whole = folder.expanduser()
    # Of which folder? This process has one of its own.
    if not whole.is_absolute():
        raise InvalidInput(f"{option}{whole}: give the whole path.")
    return whole
