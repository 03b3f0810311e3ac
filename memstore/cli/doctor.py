"""`stats` and `doctor`: how much is stored, and whether memstore can work here."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from memstore.cli.options import OnlyUserOption, common
from memstore.cli.output import describe_usage, echo, echo_hint, print_json, print_rows
from memstore.cli.session import hint_why_little, open_store
from memstore.errors import MemstoreError
from memstore.text import quantify

if TYPE_CHECKING:
    from memstore import MemoryStore, Settings


def stats(user: OnlyUserOption = None) -> None:
    """Count what is stored, and what calls of chat models cost.

    JSON: {what: how many, "usage": [{"deriver", "model", "calls", "prompt_tokens", "completion_tokens", "seconds",
    "cost"}]}.
    """
    with open_store() as store:
        counts, usage = store.stats(user=user), store.usage(user=user)
        if user is not None and not counts["conversations"]:
            hint_why_little(store, user)
    costs = [(f"{each.deriver} by a model", describe_usage(each)) for each in usage]
    print_rows({**counts, "usage": usage}, ("what", "how many"), [*counts.items(), *costs])


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check: fine, or what to do; `code` is the exit code that it calls for."""

    what: str
    detail: str
    code: int = 0


def doctor() -> None:
    """Say whether memstore can work here, or what to do.

    Each model is asked something of a few tokens, which no budget counts; one that must be loaded first takes longer.
    The exit code is that of the first thing that is wrong: 1, 2 for settings, 3 for the database.

    JSON: {"ok": true or false, "checks": [{"what", "ok", "detail"}]}.
    """
    checks = []
    for check in run_checks():
        checks.append(check)
        if not common.as_json:
            mark = ("FAIL ", "bold red") if check.code else ("ok   ", "green")
            echo(mark, (f"{check.what}: ", "bold"), check.detail)
    code = next((check.code for check in checks if check.code), 0)
    if common.as_json:
        rows = [{"what": check.what, "ok": not check.code, "detail": check.detail} for check in checks]
        print_json({"ok": not code, "checks": rows})
    sys.exit(code)


def run_checks() -> Iterator[Check]:
    """Run one check after the other; a failure of one does not hide those that do not need it."""
    from memstore.client.runtime import validate_settings
    from memstore.providers import load_counter
    from memstore.settings import load

    try:
        settings = load({})
    except MemstoreError as error:
        yield Check("settings", str(error), error.exit_code)
        return
    # Not the URL, which may hold a password.
    set_here = sorted(settings.model_fields_set - {"database_url"})
    shown = ", ".join(f"{name}={getattr(settings, name)}" for name in set_here) or "the defaults"
    usable = _check("settings", lambda: validate_settings(settings), shown)
    yield usable
    counter = f"{settings.counter}, vocabulary checked, no network"
    yield _check("token counter", lambda: load_counter(settings.counter).count("memstore"), counter)
    yield _check("embedder", partial(_ask_embedder, settings))
    if settings.reranker != "none":
        yield _check("reranker", partial(_ask_reranker, settings))
    for what, name in {"facts model": settings.facts_model, "summary model": settings.summary_model}.items():
        yield _check(what, partial(_ask_chat_model, what, name, settings))
    if not usable.code:
        try:
            with open_store() as store:
                yield from _store(store)
        except MemstoreError as error:
            yield Check("database", str(error), error.exit_code)


def _check(what: str, check: Callable[[], object], detail: str = "") -> Check:
    try:
        result = check()
        return Check(what, detail or str(result))
    except MemstoreError as error:
        return Check(what, str(error), error.exit_code)
    except Exception as error:
        # Of a provider of one's own, or its library.
        return Check(what, f"{type(error).__name__}: {error}", 1)


def _ask_embedder(settings: Settings) -> str:
    from memstore.providers import embed_query, load_embedder

    embedder = load_embedder(settings.embedder, settings)
    if embedder is None:
        return "none: recall goes by words alone"
    return f"{settings.embedder} gives vectors of {len(embed_query(embedder, 'memstore'))} dimensions"


def _ask_reranker(settings: Settings) -> str:
    from memstore.providers import load_reranker

    reranker = load_reranker(settings.reranker, settings)
    assert reranker is not None
    return f"{settings.reranker} gives {len(reranker.scores('a', ['a', 'b']))} scores for 2 texts"


def _ask_chat_model(what: str, name: str, settings: Settings) -> str:
    from pydantic import BaseModel

    from memstore.providers import load_chat_model

    class Reply(BaseModel):
        ok: bool

    model = load_chat_model(name, settings)
    if model is None:
        if what == "summary model":
            return "none: summaries are chosen sentences"
        unheard = ", which cannot follow fact_instructions: those are for a model" if settings.fact_instructions else ""
        return f"none: the reader{unheard}"
    echo_hint(f"asking {name}; a model that must be loaded first may take minutes")
    prompt = [{"role": "user", "content": 'Answer with the JSON object {"ok": true} alone.'}]
    # Room for thoughts, without which some models do not answer.
    reply = model.complete(prompt, Reply, max_tokens=min(1000, model.context_tokens // 2))
    window = f"a window of {model.context_tokens:,} tokens"
    advice = list(getattr(model, "advice", ()))
    # What is longer has thoughts in it.
    if reply.completion_tokens > 60 * reply.calls:
        many = f"it wrote {reply.completion_tokens} tokens where a few were asked for"
        advice.append(f"{many}: thoughts take the tokens of answers, so take a model that does not think")
    return "; ".join([f"{model.name} answers, with {getattr(model, 'abilities', window)}", *advice])


def _store(store: MemoryStore) -> Iterator[Check]:
    from memstore.providers import setting_of
    from memstore.store.errors import describe_url
    from memstore.store.roles import capabilities

    able = capabilities(store.url)
    server = f"PostgreSQL {able.server_version // 10000}, pgvector {able.pgvector}"
    yield Check("database", f"{describe_url(store.url)}, {server}")
    if able.role is None and able.ignores_policies:
        yield Check("isolation", "this login ignores row-level security; give one that is no superuser", 1)
    else:
        role = f"as {able.role}" if able.role else "as the login itself"
        pooler = ", through a pooler" if able.pooled else ""
        more = "; this login may become more than that (docs/reference/roles.md)" if able.ignores_policies else ""
        yield Check("isolation", f"row-level security holds; statements run {role}{pooler}{more}")
    # Slow recall is no failure: it finds the same.
    if users := store.unindexed_users():
        yield Check("indexes", f"recall is slow for {', '.join(map(repr, users))}: memstore db index")
    counts = store.stats()
    if counts["failed"]:
        again = "memstore --verbose derive tries again, and shows why"
        yield Check("derivations", f"{counts['failed']} failed; {again}", 1)
    else:
        pending = counts["pending"] and f"{counts['pending']} pending: memstore derive"
        yield Check("derivations", pending or "nothing is pending")
    embedder, made, without = store.settings.embedder, counts["vectors"], counts["without_vectors"]
    if embedder == "none" and made:
        unset = f"{made} were made by an embedder, and none is set: nothing is derived of their users"
        yield Check("vectors", f"{unset} until MEMSTORE_EMBEDDER names it again")
    elif (mismatch := _check("vectors", store.warm_up)).code:
        yield mismatch
    elif embedder != "none" and without:
        active = [setting_of(model.name) for model in store.embeddings.status() if model.state == "serving"]
        problem = f"{quantify(without, 'chunk')} without a vector, found by words alone"
        yield Check("vectors", f"{problem}: memstore embeddings migrate --to {(active or [embedder])[0]}")
    if counts["invalid_responses"] or counts["refused"]:
        many = f"{counts['invalid_responses']} could not be used, and {counts['refused']} facts were not believed"
        again = "memstore derive --redo facts or summaries asks again; user.invalid_responses() has them"
        yield Check("chat answers", f"{many}: {_reasons(store)}; {again}")


def _reasons(store: MemoryStore) -> str:
    reasons: Counter[str] = Counter()
    for name in store.users():
        for response in store.user(name).invalid_responses():
            for part in response.error.rstrip(".").split("; "):
                count, because, why = part.removeprefix("Not believed: ").partition(" because ")
                reasons[_without_detail(why if because else part)] += int(count) if count.isdecimal() else 1
    return "; ".join(f"{count} because {why}" for why, count in reasons.most_common(5))


def _without_detail(why: str) -> str:
    """Return a reason without the number or name of one fact at its end, which others of the same reason lack."""
    words = why.split(" ")
    while len(words) > 1 and (words[-1][:1].isupper() or words[-1][:1].isdecimal()):
        words.pop()
    return " ".join(words)
