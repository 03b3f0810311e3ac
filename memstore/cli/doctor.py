"""`stats` and `doctor`: how much is stored, and whether memstore can work here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption
from memstore.cli.output import echo, echo_hint, print_json, print_table
from memstore.cli.session import exit_code, hint_if_unknown, open_store
from memstore.errors import MemstoreError

if TYPE_CHECKING:
    from memstore import MemoryStore, Settings
    from memstore.models import TokenCountErrors
    from memstore.store.roles import Capabilities

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
class Check:
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
    for check in run_checks(database):
        checks.append(check)
        if not as_json:
            mark = ("ok   ", "green") if check.ok else ("FAIL ", "bold red")
            echo(mark, (f"{check.what}: ", "bold"), check.detail)
    codes = [check.code for check in checks if not check.ok]
    if as_json:
        rows = [{"what": check.what, "ok": check.ok, "detail": check.detail} for check in checks]
        print_json({"ok": not codes, "checks": rows})
    raise typer.Exit(codes[0] if codes else 0)


def run_checks(database: str | None) -> Iterator[Check]:
    """Run one check after the other; a failure of one does not hide those that do not need it."""
    from memstore.client.runtime import validate_settings
    from memstore.providers import load_counter, load_embedder, load_reranker
    from memstore.settings import load

    version = sys.version_info
    yield Check("python", f"{version.major}.{version.minor}.{version.micro} on {sys.platform}")
    try:
        settings = load({})
    except MemstoreError as error:
        yield Check("settings", str(error), exit_code(error))
        return
    usable = _check("settings", lambda: validate_settings(settings), _non_default(settings))
    yield usable
    counter = f"{settings.counter}, vocabulary checked, no network"
    yield _check("token counter", lambda: load_counter(settings.counter).count("memstore"), counter)
    yield _check_model("embedder", settings.embedder, load_embedder)
    if settings.reranker != "none":
        yield _check_model("reranker", settings.reranker, load_reranker)
    yield from _chat_models(settings)
    if usable.ok:  # else no store is opened
        try:
            with open_store(database) as store:
                yield from _store(store)
        except MemstoreError as error:
            yield Check("database", str(error), exit_code(error))


def _check(what: str, check: Callable[[], object], detail: str) -> Check:
    try:
        check()
    except MemstoreError as error:
        return Check(what, str(error), exit_code(error))
    return Check(what, detail)


def _non_default(settings: Settings) -> str:
    """Return the settings that are not the defaults, without the URL, which may hold a password."""
    set_here = sorted(settings.model_fields_set - {"database_url"})
    return ", ".join(f"{name}={getattr(settings, name)}" for name in set_here) or "the defaults"


def _check_model(what: str, name: str, load: Callable[[str], object]) -> Check:
    """Check that a local model is installed; load any other, which takes no time."""
    from memstore.providers import MINILM
    from memstore.settings import ONNX_MINILM

    kind, _, model = name.partition(":")
    if kind in LOCAL:
        from memstore.providers.sentence_transformers import check_model

        detail = f"{name} is installed"
        return _check(what, lambda: check_model(model), f"{detail}; {ENGLISH}" if name == MINILM else detail)
    return _check(what, lambda: load(name), f"{name}; {ENGLISH}" if name == ONNX_MINILM else name)


def _chat_models(settings: Settings) -> Iterator[Check]:
    from memstore.providers import load_chat_model

    names = {"facts model": settings.facts_model, "summary model": settings.summary_model}
    if set(names.values()) == {"none"}:
        yield Check("chat models", "none: rules find facts, and summaries are chosen sentences")
        return
    for what, name in names.items():
        try:
            model = load_chat_model(name, settings)
            window = f"{model.name} answers, with a window of {model.context_tokens} tokens" if model else "none: rules"
            yield Check(what, window)
        except MemstoreError as error:
            yield Check(what, str(error), exit_code(error))


def _store(store: MemoryStore) -> Iterator[Check]:
    from memstore.store.errors import describe_url
    from memstore.store.migrations import status
    from memstore.store.roles import capabilities

    able = capabilities(store.url)
    yield Check("database", describe_url(store.url))
    yield Check("server", f"PostgreSQL {able.server_version // 10000}, pgvector {able.pgvector}")
    yield Check("schema", f"revision {status(store.url).revision}")
    if able.role is None and able.ignores_policies:
        yield Check("isolation", "this login ignores row-level security; give one that is no superuser", 1)
    else:
        yield Check("isolation", f"row-level security holds; {_describe_role(able)}")
    yield from _large_users(store)
    counts = store.stats()
    yield _derivations(counts)
    lacking = _vectors(counts, store.settings.embedder)
    if lacking is not None:
        yield Check("vectors", lacking)
    yield from _embeddings(store)
    yield from _drift(store)
    if counts["dead_letters"]:
        yield _unusable_answers(store)


def _describe_role(able: Capabilities) -> str:
    role = f"as {able.role}" if able.role else "as the login itself"
    escapes = "; this login may become more than that (docs/reference/roles.md)" if able.ignores_policies else ""
    return f"statements run {role}{', through a pooler' if able.pooled else ''}{escapes}"


def _large_users(store: MemoryStore) -> Iterator[Check]:
    """Report users over whom recall is slow: no failure, as it finds the same."""
    if users := store.large_users():
        lacking = ", ".join(repr(user.name) for user in users if not user.indexed)
        advice = f"recall is slow for {lacking}: memstore db index" if lacking else "all are indexed"
        most = store.settings.max_chunks_in_memory
        yield Check("large users", f"{len(users)} with more than {most:,} chunks; {advice}")


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


def _embeddings(store: MemoryStore) -> Iterator[Check]:
    """Report a migration that is not done, and vectors that one has left."""
    embedders = store.embeddings.status()
    if begun := [row for row in embedders if row.state == "building"]:
        left = f"{begun[0].missing:,} vectors of {begun[0].name} are not made yet"
        yield Check("embeddings", f"{left}: memstore embeddings migrate goes on, memstore embeddings rollback gives up")
    elif kept := sum(row.vectors for row in embedders if row.state == "retired"):
        yield Check("embeddings", f"{kept:,} vectors of embedders that serve no more: memstore embeddings clean")


def _derivations(counts: dict[str, int]) -> Check:
    if counts["failed"]:
        return Check(
            "derivations", f"{counts['failed']} failed; memstore --verbose derive tries again, and shows why", 1
        )
    waiting = f"{counts['pending']} pending: memstore derive" if counts["pending"] else "nothing is pending"
    return Check("derivations", waiting)


def _drift(store: MemoryStore) -> Iterator[Check]:
    pairs: dict[tuple[str, str], list[TokenCountErrors]] = {}
    for user in store.users():
        for drift in store.user(user).token_count_errors():
            pairs.setdefault((drift.model, drift.counter), []).append(drift)
    for (model, counter), drifts in sorted(pairs.items()):
        observed, calls = sum(drift.observed for drift in drifts), sum(drift.calls for drift in drifts)
        bias = sum(drift.predicted for drift in drifts) / observed - 1
        miss, share = max(drift.largest_miss for drift in drifts), max(drift.largest_share for drift in drifts)
        apart = f"{bias:+.2%} over {calls} calls, at most {miss} tokens ({share:.2%}) in one"
        yield Check("token counts", f"{model} by {counter}: {apart}")


def _unusable_answers(store: MemoryStore) -> Check:
    """Report answers of chat models that could not be used: no failure, as rules stood in, but worth another try."""
    lines, total = [], 0
    for user in store.users():
        if answers := store.user(user).dead_letters():
            last, total = answers[-1], total + len(answers)
            lines.append(f"{len(answers)} of {user!r}, the last of {last.deriver}: {last.error}")
    again = "memstore derive --redo facts (or summaries) asks again"
    return Check("chat answers", f"{total} {UNUSABLE} ({'; '.join(lines)}): {again}")
