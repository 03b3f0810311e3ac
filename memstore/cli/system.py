"""How much is stored (`stats`), what a chat model spoilt (`letters`), and whether all is well (`doctor`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.exits import exit_code
from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption, UserOption
from memstore.cli.show import hint, print_json, say, table
from memstore.cli.stores import hint_if_unknown, opened
from memstore.cli.watch import watched
from memstore.errors import MemstoreError

if TYPE_CHECKING:
    from memstore import DeadLetter, MemoryStore, Settings
    from memstore.models import Drift
    from memstore.store.capabilities import Capabilities

LOCAL = ("sentence-transformers", "cross-encoder")  # kinds of models that take seconds to load
ENGLISH = "it knows English above all; for other languages see docs/reference/embedders.md"
LETTER_COLUMNS = ("deriver", "conversation", "messages", "attempts", "error", "answer")


def stats(
    user: OnlyUserOption = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Count again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="How often, with --watch.")] = 2,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count what is stored.

    With --watch what has changed is shown beside it; on a pipe and with --json each count is a line of JSON.

    JSON: {"users", "conversations", "messages", "tokens", "summaries", "facts", "units", "vectors", "receipts",
    "pending", "failed", "dead_letters", "without_vectors": integers}; pending and failed count derivations, of which a
    conversation has three, dead_letters answers of chat models that could not be used, without_vectors units that are
    found by words alone.
    """
    with opened(database) as store:
        counts = store.stats(user=user)
        if user is not None and not counts["conversations"]:
            hint_if_unknown(store, user)
        lacking = _vectors(counts, store.settings.embedder)
        if lacking is not None:
            hint(lacking)
        if watch:
            watched(lambda: store.stats(user=user), every, as_json=as_json)
    if as_json and not watch:
        print_json(counts)
    elif not watch:
        table(("what", "how many"), [(name, f"{count:,}") for name, count in counts.items()])


def letters(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List the answers of chat models that could not be used, the oldest first.

    Rules and sentences stood in for them. memstore derive --redo facts, or summaries, asks again, and what is answered
    then is no longer listed; a summary made on demand (its deriver is "summary") is asked for again by asking for it.

    On a pipe, a line a letter, its cells parted by tabs: deriver, conversation, messages, attempts, error, answer.

    JSON: [{"user_id", "id", "conversation_id", "deriver", "from_seq", "to_seq", "recipe", "error", "payload",
    "attempts", "recorded_at"}].
    """
    with opened(database) as store:
        found = store.user(user).dead_letters()
        names = {} if as_json else {one.id: one.name for one in store.user(user).conversations()}
        if not found:
            hint_if_unknown(store, user)
    if as_json:
        print_json(found)
    else:
        table(LETTER_COLUMNS, [_letter(one, names[one.conversation_id]) for one in found])


def _letter(one: DeadLetter, conversation: str) -> tuple[object, ...]:
    return one.deriver, conversation, f"{one.from_seq}-{one.to_seq}", one.attempts, one.error, one.payload


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: fine, or what to do; `code` is the exit code that it calls for."""

    what: str
    detail: str
    code: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is to be done."""
        return self.code == 0


def doctor(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say whether memstore can work here, or what to do.

    The exit code is that of the first thing that is wrong: 1, 2 for settings, 3 for the database.

    JSON: {"ok": true or false, "checks": [{"what", "ok", "detail"}]}.
    """
    found = []
    for one in findings(database):
        found.append(one)
        if not as_json:
            mark = ("ok   ", "green") if one.ok else ("FAIL ", "bold red")
            say(mark, (f"{one.what}: ", "bold"), one.detail)
    codes = [one.code for one in found if not one.ok]
    if as_json:
        checks = [{"what": one.what, "ok": one.ok, "detail": one.detail} for one in found]
        print_json({"ok": not codes, "checks": checks})
    raise typer.Exit(codes[0] if codes else 0)


def findings(database: str | None) -> Iterator[Finding]:
    """Look at one thing after the other; a failure of one does not hide those that do not need it."""
    version = sys.version_info
    yield Finding("python", f"{version.major}.{version.minor}.{version.micro} on {sys.platform}")
    try:
        from memstore.settings import load

        settings = load({})
    except MemstoreError as error:
        yield _failed("settings", error)
        return
    names = _names(settings)
    yield names
    yield _counter(settings.counter)
    yield _embedder(settings.embedder)
    yield from _reranker(settings.reranker)
    yield from _chat_models(settings)
    if names.ok:  # else no store is opened
        yield from _database(database)


def _failed(what: str, error: MemstoreError) -> Finding:
    return Finding(what, str(error), exit_code(error))


def _names(settings: Settings) -> Finding:
    """Look whether somebody knows what the settings name."""
    from memstore.memory.opened import check_usable

    try:
        check_usable(settings)
    except MemstoreError as error:
        return _failed("settings", error)
    return Finding("settings", _told(settings))


def _told(settings: Settings) -> str:
    """Name the settings that are not the defaults; the URL, which may hold a password, comes with the database."""
    set_here = sorted(settings.model_fields_set - {"database_url"})
    return ", ".join(f"{name}={getattr(settings, name)}" for name in set_here) or "the defaults"


def _counter(name: str) -> Finding:
    from memstore.providers import load_counter

    try:
        load_counter(name).count("memstore")
    except MemstoreError as error:
        return _failed("token counter", error)
    return Finding("token counter", f"{name}, vocabulary checked, no network")


def _embedder(name: str) -> Finding:
    """Look whether the embedder is there, and of the default one whether its weights are the published ones."""
    from memstore.providers import MINILM, load_embedder
    from memstore.settings import ONNX_MINILM

    found = _there("embedder", name, load_embedder)
    english = found.ok and name in (ONNX_MINILM, MINILM)
    return replace(found, detail=f"{found.detail}; {ENGLISH}") if english else found


def _reranker(name: str) -> Iterator[Finding]:
    """The same for what reads the best hits once more, where it is set."""
    from memstore.providers import load_reranker

    if name != "none":
        yield _there("reranker", name, load_reranker)


def _there(what: str, name: str, load: Callable[[str], object]) -> Finding:
    """Look whether a model of this machine is there; others are loaded, which takes no time."""
    kind, _, model = name.partition(":")
    try:
        if kind not in LOCAL:
            load(name)
            return Finding(what, name)
        from memstore.providers import local_models

        local_models.check(model)
    except MemstoreError as error:
        return _failed(what, error)
    return Finding(what, f"{name} is installed")


def _chat_models(settings: Settings) -> Iterator[Finding]:
    """Look whether the chat models that are named answer; nothing is asked of a server where none is."""
    named = {"facts model": settings.facts_model, "summary model": settings.summary_model}
    if set(named.values()) == {"none"}:
        yield Finding("chat models", "none: rules find facts, and summaries are chosen sentences")
        return
    from memstore.providers import load_chat_model

    for what, name in named.items():
        try:
            model = load_chat_model(name, settings)
            window = f"{model.name} answers, with a window of {model.context_tokens} tokens" if model else "none: rules"
            yield Finding(what, window)
        except MemstoreError as error:
            yield _failed(what, error)


def _database(database: str | None) -> Iterator[Finding]:
    try:
        with opened(database) as store:
            yield from _store(store)
    except MemstoreError as error:
        yield _failed("database", error)


def _store(store: MemoryStore) -> Iterator[Finding]:
    from memstore.store.capabilities import capabilities
    from memstore.store.faults import masked
    from memstore.store.migrations import status

    able = capabilities(store.url)
    yield Finding("database", masked(store.url))
    yield Finding("server", f"PostgreSQL {able.server_version // 10000}, pgvector {able.pgvector}")
    yield Finding("schema", f"revision {status(store.url).revision}")
    if able.role is None and able.ignores_policies:
        yield Finding("isolation", "this login ignores row-level security; give one that is no superuser", 1)
    else:
        yield Finding("isolation", f"row-level security holds; {_standing(able)}")
    yield from _large_users(store)
    counts = store.stats()
    yield _derivations(counts)
    lacking = _vectors(counts, store.settings.embedder)
    if lacking is not None:
        yield Finding("vectors", lacking)
    yield from _embeddings(store)
    yield from _drift(store)
    if counts["dead_letters"]:
        yield _dead_letters(store, counts["dead_letters"])


def _standing(able: Capabilities) -> str:
    """Say as whom the store runs its statements, and through what."""
    role = f"as {able.role}" if able.role else "as the login itself"
    escapes = "; this login may become more than that (docs/reference/roles.md)" if able.ignores_policies else ""
    return f"statements run {role}{', through a pooler' if able.pooled else ''}{escapes}"


def _large_users(store: MemoryStore) -> Iterator[Finding]:
    """Tell of users over whom recall is slow: no failure, as it finds the same."""
    if found := store.large_users():
        lacking = ", ".join(repr(user.name) for user in found if not user.indexed)
        told = f"recall is slow for {lacking}: memstore db index" if lacking else "all are indexed"
        yield Finding("large users", f"{len(found)} with more than {store.settings.units_in_memory:,} units; {told}")


def _vectors(counts: dict[str, int], embedder: str) -> str | None:
    """Tell of units without vectors, and of vectors without an embedder: what to do."""
    if embedder == "none":
        made = (
            counts["vectors"] and f"{counts['vectors']} were made by an embedder, and none is set: nothing is derived"
        )
        return f"{made} of their users until MEMSTORE_EMBEDDER names it again" if made else None
    lacking = counts["without_vectors"]
    return (
        f"{lacking} units have none and are found by words alone: memstore derive --redo vectors" if lacking else None
    )


def _embeddings(store: MemoryStore) -> Iterator[Finding]:
    """Tell of a migration that is not done, and of what one has left."""
    found = store.embeddings.status()
    if begun := [one for one in found if one.state == "building"]:
        left = f"{begun[0].missing:,} vectors of {begun[0].name} are not made yet"
        yield Finding(
            "embeddings", f"{left}: memstore embeddings migrate goes on, memstore embeddings rollback gives up"
        )
    elif kept := sum(one.vectors for one in found if one.state == "retired"):
        yield Finding("embeddings", f"{kept:,} vectors of embedders that serve no more: memstore embeddings clean")


def _derivations(counts: dict[str, int]) -> Finding:
    if counts["failed"]:
        return Finding(
            "derivations", f"{counts['failed']} failed; memstore --verbose derive tries again, and shows why", 1
        )
    waiting = f"{counts['pending']} pending: memstore derive" if counts["pending"] else "nothing is pending"
    return Finding("derivations", waiting)


def _drift(store: MemoryStore) -> Iterator[Finding]:
    """Tell how far token counts were from what models' servers told, all users together."""
    pairs: dict[tuple[str, str], list[Drift]] = {}
    for user in store.users():
        for one in store.user(user).drift():
            pairs.setdefault((one.model, one.counter), []).append(one)
    for (model, counter), found in sorted(pairs.items()):
        observed, calls = sum(one.observed for one in found), sum(one.calls for one in found)
        bias = sum(one.predicted for one in found) / observed - 1
        miss, share = max(one.largest_miss for one in found), max(one.largest_share for one in found)
        apart = f"{bias:+.2%} over {calls} calls, at most {miss} tokens ({share:.2%}) in one"
        yield Finding("token counts", f"{model} by {counter}: {apart}")


def _dead_letters(store: MemoryStore, count: int) -> Finding:
    """Tell of answers that could not be used: no failure, as rules stood in, but worth another try."""
    counted = ((user, store.stats(user=user)["dead_letters"]) for user in store.users())
    whose = ", ".join(f"{letters} of {user!r}" for user, letters in counted if letters)
    again = "memstore letters --user NAME shows them, memstore derive --redo facts (or summaries) asks again"
    return Finding("dead letters", f"{count} answers of chat models could not be used ({whose}): {again}")
