"""`stats` and `doctor`: how much is stored, and whether memstore can work here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from memstore.cli.errors import exit_code
from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption
from memstore.cli.output import echo, echo_hint, print_json, print_table
from memstore.cli.session import hint_if_unknown, open_store
from memstore.errors import MemstoreError

if TYPE_CHECKING:
    from memstore import MemoryStore, Settings
    from memstore.models import Drift
    from memstore.store.capabilities import Capabilities

LOCAL = ("sentence-transformers", "cross-encoder")  # kinds of models that take seconds to load
ENGLISH = "it knows English above all; for other languages see docs/reference/embedders.md"
UNUSABLE = "answers of chat models could not be used, and rules stood in"


def stats(
    user: OnlyUserOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count what is stored.

    JSON: {"users", "conversations", "messages", "tokens", "summaries", "facts", "units", "vectors", "receipts",
    "pending", "failed", "dead_letters", "without_vectors": integers}; pending and failed count derivations, of which a
    conversation has three, dead_letters answers of chat models that could not be used, without_vectors units that are
    found by words alone.
    """
    with open_store(database) as store:
        counts = store.stats(user=user)
        if user is not None and not counts["conversations"]:
            hint_if_unknown(store, user)
        lacking = _vectors(counts, store.settings.embedder)
        if lacking is not None:
            echo_hint(lacking)
    if counts["dead_letters"]:
        echo_hint(f"{counts['dead_letters']} {UNUSABLE}: memstore doctor says why")
    if as_json:
        print_json(counts)
    else:
        print_table(("what", "how many"), [(name, f"{count:,}") for name, count in counts.items()])


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: fine, or what to do; `code` is the exit code that it calls for."""

    what: str
    detail: str
    code: int = 0

    @property
    def ok(self) -> bool:
        """Return whether nothing is to be done."""
        return self.code == 0


def doctor(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say whether memstore can work here, or what to do.

    The exit code is that of the first thing that is wrong: 1, 2 for settings, 3 for the database.

    JSON: {"ok": true or false, "checks": [{"what", "ok", "detail"}]}.
    """
    checks = []
    for check in findings(database):
        checks.append(check)
        if not as_json:
            mark = ("ok   ", "green") if check.ok else ("FAIL ", "bold red")
            echo(mark, (f"{check.what}: ", "bold"), check.detail)
    codes = [check.code for check in checks if not check.ok]
    if as_json:
        rows = [{"what": check.what, "ok": check.ok, "detail": check.detail} for check in checks]
        print_json({"ok": not codes, "checks": rows})
    raise typer.Exit(codes[0] if codes else 0)


def findings(database: str | None) -> Iterator[Finding]:
    """Run one check after the other; a failure of one does not hide those that do not need it."""
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
    if names.ok:  # else no store is open_store
        yield from _database(database)


def _failed(what: str, error: MemstoreError) -> Finding:
    return Finding(what, str(error), exit_code(error))


def _names(settings: Settings) -> Finding:
    """Check that the providers, strategies and rules that the settings name exist."""
    from memstore.client.opened import check_usable

    try:
        check_usable(settings)
    except MemstoreError as error:
        return _failed("settings", error)
    return Finding("settings", _non_default(settings))


def _non_default(settings: Settings) -> str:
    """Return the settings that are not the defaults, without the URL, which may hold a password."""
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
    """Check that the embedder is there, and the weights of the default one."""
    from memstore.providers import MINILM, load_embedder
    from memstore.settings import ONNX_MINILM

    found = _check_model("embedder", name, load_embedder)
    english = found.ok and name in (ONNX_MINILM, MINILM)
    return replace(found, detail=f"{found.detail}; {ENGLISH}") if english else found


def _reranker(name: str) -> Iterator[Finding]:
    """Check that the reranker is there, if one is set."""
    from memstore.providers import load_reranker

    if name != "none":
        yield _check_model("reranker", name, load_reranker)


def _check_model(what: str, name: str, load: Callable[[str], object]) -> Finding:
    """Check that a local model is installed; load any other, which takes no time."""
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
    """Check that the chat models that are set answer."""
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
        with open_store(database) as store:
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
        yield Finding("isolation", f"row-level security holds; {_describe_role(able)}")
    yield from _large_users(store)
    counts = store.stats()
    yield _derivations(counts)
    lacking = _vectors(counts, store.settings.embedder)
    if lacking is not None:
        yield Finding("vectors", lacking)
    yield from _embeddings(store)
    yield from _drift(store)
    if counts["dead_letters"]:
        yield _unusable_answers(store)


def _describe_role(able: Capabilities) -> str:
    """Return under which role the store runs its statements."""
    role = f"as {able.role}" if able.role else "as the login itself"
    escapes = "; this login may become more than that (docs/reference/roles.md)" if able.ignores_policies else ""
    return f"statements run {role}{', through a pooler' if able.pooled else ''}{escapes}"


def _large_users(store: MemoryStore) -> Iterator[Finding]:
    """Report users over whom recall is slow: no failure, as it finds the same."""
    if found := store.large_users():
        lacking = ", ".join(repr(user.name) for user in found if not user.indexed)
        advice = f"recall is slow for {lacking}: memstore db index" if lacking else "all are indexed"
        yield Finding("large users", f"{len(found)} with more than {store.settings.units_in_memory:,} units; {advice}")


def _vectors(counts: dict[str, int], embedder: str) -> str | None:
    """Return what to do about units without vectors, or vectors without an embedder."""
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
    """Report a migration that is not done, and vectors that one has left."""
    found = store.embeddings.status()
    if begun := [row for row in found if row.state == "building"]:
        left = f"{begun[0].missing:,} vectors of {begun[0].name} are not made yet"
        yield Finding(
            "embeddings", f"{left}: memstore embeddings migrate goes on, memstore embeddings rollback gives up"
        )
    elif kept := sum(row.vectors for row in found if row.state == "retired"):
        yield Finding("embeddings", f"{kept:,} vectors of embedders that serve no more: memstore embeddings clean")


def _derivations(counts: dict[str, int]) -> Finding:
    if counts["failed"]:
        return Finding(
            "derivations", f"{counts['failed']} failed; memstore --verbose derive tries again, and shows why", 1
        )
    waiting = f"{counts['pending']} pending: memstore derive" if counts["pending"] else "nothing is pending"
    return Finding("derivations", waiting)


def _drift(store: MemoryStore) -> Iterator[Finding]:
    """Report how far token counts were from those of the models' servers, all users together."""
    pairs: dict[tuple[str, str], list[Drift]] = {}
    for user in store.users():
        for drift in store.user(user).drift():
            pairs.setdefault((drift.model, drift.counter), []).append(drift)
    for (model, counter), found in sorted(pairs.items()):
        observed, calls = sum(drift.observed for drift in found), sum(drift.calls for drift in found)
        bias = sum(drift.predicted for drift in found) / observed - 1
        miss, share = max(drift.largest_miss for drift in found), max(drift.largest_share for drift in found)
        apart = f"{bias:+.2%} over {calls} calls, at most {miss} tokens ({share:.2%}) in one"
        yield Finding("token counts", f"{model} by {counter}: {apart}")


def _unusable_answers(store: MemoryStore) -> Finding:
    """Report answers of chat models that could not be used: no failure, as rules stood in, but worth another try."""
    lines, total = [], 0
    for user in store.users():
        if answers := store.user(user).dead_letters():
            last, total = answers[-1], total + len(answers)
            lines.append(f"{len(answers)} of {user!r}, the last of {last.deriver}: {last.error}")
    again = "memstore derive --redo facts (or summaries) asks again"
    return Finding("chat answers", f"{total} {UNUSABLE} ({'; '.join(lines)}): {again}")
