"""The commands recall, context, profile, users, conversations and facts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from memstore.cli import options, output
from memstore.cli.options import flag, name_option, option, time_option
from memstore.cli.session import hint_why_little, open_store

if TYPE_CHECKING:
    from memstore import UserScope
    from memstore.client.user_facts import FactInput
    from memstore.models import Fact, FactChange, Hit, InboxItem

fact_app = options.group("Look after facts by hand.")
FactArgument = Annotated[str, options.id_argument("fact")]


def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: options.UserOption,
    limit: options.LimitOption = 10,
    tier: Annotated[list[str] | None, option("TIER", "messages, summaries or facts; may be repeated.")] = None,
    conversation: Annotated[str | None, name_option("In this conversation only.", "--conversation", "-c")] = None,
    role: Annotated[list[str] | None, option("ROLE", "user, assistant, tool, …; may be repeated.")] = None,
    tag: Annotated[list[str] | None, option("TAG", "With this tag; may be repeated.")] = None,
    since: Annotated[datetime | None, time_option("Said at or after, in ISO 8601.")] = None,
    until: Annotated[datetime | None, time_option("Said before.")] = None,
    as_of: options.AsOfOption = None,
    viewer: options.ViewerOption = None,
    scope: options.ScopeOption = None,
    spaces: options.SpacesOption = None,
) -> None:
    """Find messages, summaries and facts about something, the best first."""
    with open_store() as store:
        hits = store.user(user).recall(
            query,
            limit=limit,
            tiers=tier or ("messages", "summaries", "facts"),
            conversation=conversation,
            roles=role or None,
            tags=tag or None,
            since=since,
            until=until,
            as_of=as_of,
            viewer=viewer,
            scope=scope,
            spaces=spaces or (),
        )
        if not hits:
            hint_why_little(store, user, conversation)
    print_hits(hits)


def print_hits(hits: Sequence[Hit]) -> None:
    columns = "score", "tier", "occurred_at", "speaker", "text"
    rows = ((hit.score, hit.tier, hit.occurred_at, hit.speaker, hit.text_with_later) for hit in hits)
    output.print_rows(hits, columns, rows)


def context(
    user: options.UserOption,
    conversation: options.ConversationOption,
    query: Annotated[str | None, typer.Argument(help="The question; by default the newest user message.")] = None,
    budget: Annotated[int | None, option("N", "The most tokens of the context.", "--budget", "-b", min=1)] = None,
    system: Annotated[str | None, option("TEXT", "A system prompt.")] = None,
    reserve: Annotated[int | None, option("N", "Tokens of the budget to keep free.", min=0)] = None,
    strategy: Annotated[list[str] | None, option("NAME", "A strategy; may be repeated. none: no compression.")] = None,
    model: Annotated[str | None, option("NAME", "Count tokens as this model does, such as gpt-4o.")] = None,
    as_of: options.AsOfOption = None,
    viewer: options.ViewerOption = None,
    scope: options.ScopeOption = None,
    spaces: options.SpacesOption = None,
    min_relevance: Annotated[
        float, option("SHARE", "Recall nothing where what is stored has less relevance, such as 0.5.", min=0, max=1)
    ] = 0.0,
    format: Annotated[
        Literal["openai", "ollama", "anthropic", "text"], typer.Option(help="How it is written.")
    ] = "openai",
    explain: Annotated[bool, flag("--explain", "Say what is in, what was left out, and why.")] = False,
) -> None:
    """Compose a context: exactly counted, never over the budget.

    Where the system prompt and the question alone are more, the exit code is 4 and stderr says how much is needed.
    """
    with open_store() as store:
        result = (
            store.user(user)
            .conversation(conversation)
            .context(
                query,
                budget=budget,
                system=system,
                reserve=reserve,
                strategy=[name for name in strategy if name != "none"] if strategy else None,
                model=model,
                as_of=as_of,
                viewer=viewer,
                scope=scope,
                spaces=spaces or (),
                min_relevance=min_relevance,
                format=format,
            )
        )
        hint_why_little(store, user, conversation)
    for hint in () if explain else result.receipt.hints:
        output.echo_hint(hint)
    if query is None and result.messages and result.messages[-1]["role"] == "assistant":
        output.echo_hint("the newest user message is the question, and it was answered: give a QUERY for another one")
    output.print_context(result)
    if explain and not options.common.as_json:
        print(output.escape(result.explain()))


def users() -> None:
    """List users by name; memstore stats --user NAME shows how much is stored of one."""
    with open_store() as store:
        names = list(store.users())
    empty = "nothing is stored yet: memstore import FILE --user NAME"
    output.print_rows(names, ("user",), [(name,) for name in names], empty)


def conversations(
    user: options.UserOption,
    channel: Annotated[str | None, name_option("Of this channel only.")] = None,
) -> None:
    """List a user's conversations, the latest first."""
    with open_store() as store:
        listed = store.user(user).conversations(channel=channel)
        if not listed:
            hint_why_little(store, user)
    output.print_models(listed, "last_seq", "created_at", "updated_at", "channel", "scope", "title", "name")


def facts(
    user: options.UserOption,
    type: Annotated[str | None, option("TYPE", "Of this type only, such as plan.")] = None,
    state: Annotated[
        Literal["active", "ended", "expired", "quarantined", "superseded", "retracted", "erased", "all"],
        typer.Option(help="In this state only."),
    ] = "active",
    subject: Annotated[str | None, name_option("About this one only.")] = None,
    as_of: options.AsOfOption = None,
    scope: options.ScopeOption = None,
) -> None:
    """List the facts of a user, what matters first, with the first digits of their ids, which other commands take."""
    with open_store() as store:
        rows = store.user(user).facts(type=type, state=state, subject=subject, as_of=as_of, scope=scope)
        if not rows:
            hint_why_little(store, user, subject=subject)
    print_facts(rows)


def profile(
    user: options.UserOption,
    budget: Annotated[int, typer.Option(min=1, metavar="TOKENS", help="At most so many tokens.")] = 400,
    subject: Annotated[str | None, name_option("Of this one; by default the one that most facts are about.")] = None,
    as_of: options.AsOfOption = None,
    scope: options.ScopeOption = None,
    explain: Annotated[bool, flag("--explain", "Say what is in, what was left out, and why.")] = False,
) -> None:
    """Show who somebody is, what holds, what is planned and how to answer them."""
    with open_store() as store:
        shown = store.user(user).profile(budget, subject, as_of=as_of, scope=scope)
        if not shown.lines:
            hint_why_little(store, user, subject=subject)
    output.print_result(shown.as_dict(), shown.receipt.explain() if explain else shown.text)


def print_facts(facts: Sequence[Fact], empty: str = "") -> None:
    columns = ("id", "type", "state", "said", "confidence", "fact")
    rows = [
        (output.short_id(each.id), each.type, _describe_state(each), each.occurred_at, each.confidence, each.text)
        for each in facts
    ]
    output.print_rows(facts, columns, rows, empty)


def review(
    user: options.UserOption,
    accept: Annotated[list[str] | None, option("ID", "Accept this fact; may be repeated. all: each.")] = None,
    refuse: Annotated[list[str] | None, option("ID", "Refuse this fact; may be repeated. all: each.")] = None,
) -> None:
    """Accept or refuse the facts that wait: those that nobody trusted says, and all where MEMSTORE_REVIEW_FACTS is set.

    Without options, at a terminal, each is shown with the words that say it; otherwise they are listed.
    """
    with open_store() as store:
        scope = store.user(user)
        if accept or refuse:
            chosen = [_find_waiting(scope, names or ()) for names in (accept, refuse)]
            accepted, refused = scope.review(accept=chosen[0], refuse=chosen[1])
            result = {"accepted": accepted, "refused": refused}
            output.print_result(output.to_json(result), f"{len(accepted)} accepted, {len(refused)} refused")
            return
        waiting = _read_inbox(scope)
        if not waiting or options.common.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            rows = [(output.short_id(item.fact.id), item.fact.text, " … ".join(item.quotes)) for item in waiting]
            output.print_rows(waiting, ("id", "fact", "said"), rows, "nothing waits")
        else:
            _ask_about(scope, waiting)


def tidy(
    user: options.UserOption,
    accept: Annotated[list[str] | None, option("ID", "End this plan; may be repeated. all: each.")] = None,
    refuse: Annotated[list[str] | None, option("ID", "Keep this plan as it is; may be repeated. all: each.")] = None,
    undo: Annotated[str | None, option("CHANGE", "Undo what was accepted together with this change.")] = None,
) -> None:
    """Propose to end plans whose time has passed ("next month", said in May); nothing changes unless accepted."""
    with open_store() as store:
        scope = store.user(user)
        if undo:
            done = scope.undo_tidy(scope.resolve_id(undo, kind="change"))
            _print_changes(done, done)
            return
        proposals = scope.tidy()
        if accept or refuse:
            every = [proposal.fact.id for proposal in proposals]
            chosen = [
                every if "all" in names else [scope.resolve_id(name, kind="fact") for name in names]
                for names in (accept or (), refuse or ())
            ]
            done = scope.decide_tidy(accept=chosen[0], refuse=chosen[1])
            _print_changes(done, done)
            return
    rows = [
        (output.short_id(each.fact.id), f"{each.ends_at:%Y-%m-%d}", each.fact.text, " … ".join(each.quotes))
        for each in proposals
    ]
    output.print_rows(proposals, ("id", "over on", "fact", "said"), rows, "nothing is proposed")


def _read_inbox(scope: UserScope) -> list[InboxItem]:
    waiting: list[InboxItem] = []
    while page := scope.inbox(before=waiting[-1].fact if waiting else None, limit=500):
        waiting += page
    return waiting


def _find_waiting(scope: UserScope, names: Sequence[str]) -> list[UUID]:
    if "all" in names:
        return [fact.id for fact in scope.facts(state="quarantined")]
    return [scope.resolve_id(name, kind="fact") for name in names]


def _ask_about(scope: UserScope, waiting: Sequence[InboxItem]) -> None:
    """Show each fact that waits, and do what is typed."""
    for number, item in enumerate(waiting, 1):
        print(f"\n{number} of {len(waiting)}: {output.one_line(item.fact.text)}")
        for quote in item.quotes:
            print(f"    “{output.one_line(quote)}”")
        try:
            answer = input("[a]ccept, [r]efuse, [s]kip, [q]uit? ").strip().lower()[:1]
        except EOFError:
            break
        if answer == "q":
            break
        if answer in ("a", "r"):
            scope.review(**{"accept" if answer == "a" else "refuse": [item.fact]})


@contextmanager
def _open_fact(user: str, prefix: str) -> Iterator[tuple[UserScope, UUID]]:
    with open_store() as store:
        scope = store.user(user)
        yield scope, scope.resolve_id(prefix, kind="fact")


@options.command(fact_app)
def confirm(fact: FactArgument, user: options.UserOption) -> None:
    """Confirm a quarantined fact: its speaker is not trusted alone."""
    with _open_fact(user, fact) as (scope, id):
        _print_fact(scope.confirm_fact(id))


@options.command(fact_app)
def retract(fact: FactArgument, user: options.UserOption) -> None:
    """Retract a fact: it is no longer recalled, even if it is said again."""
    with _open_fact(user, fact) as (scope, id):
        _print_fact(scope.retract_fact(id))


@options.command(fact_app)
def mark(
    fact: FactArgument,
    user: options.UserOption,
    importance: Annotated[
        Literal["pinned", "normal", "unimportant"] | None,
        typer.Option(help="pinned: in every context, before all else; unimportant: in none."),
    ] = None,
    expires_at: Annotated[datetime | None, time_option("It is neither recalled nor in a context from then on.")] = None,
) -> None:
    """Pin a fact, call it unimportant, or let it expire."""
    changes: FactInput = {}
    if importance is not None:
        changes["importance"] = importance
    if expires_at is not None:
        changes["expires_at"] = expires_at
    with _open_fact(user, fact) as (scope, id):
        _print_fact(scope.edit_fact(id, **changes))


@options.command(fact_app)
def undo(change: Annotated[str, options.id_argument("change (see fact history)")], user: options.UserOption) -> None:
    """Undo a change of a fact; refused if the fact was changed again since."""
    with open_store() as store:
        scope = store.user(user)
        done = scope.undo(scope.resolve_id(change, kind="change"))
    _print_changes(done, [done])


@options.command(fact_app)
def history(fact: FactArgument, user: options.UserOption) -> None:
    """Show all changes of a fact; undo takes their ids."""
    with _open_fact(user, fact) as (scope, id):
        changes = scope.fact_history(id)
    _print_changes(changes, changes)


def _describe_state(fact: Fact) -> str:
    return fact.state if fact.importance == "normal" else f"{fact.state}, {fact.importance}"


def _print_fact(fact: Fact) -> None:
    output.print_result(
        fact, f"{output.short_id(fact.id)} {output.one_line(fact.text)} ({fact.type}, {_describe_state(fact)})"
    )


def _print_changes(value: object, changes: Sequence[FactChange]) -> None:
    rows = []
    for change in changes:
        about = output.short_id(change.other_id) if change.other_id else change.source
        what = [f"{name}: {was} → {change.after.get(name)}" for name, was in change.changed.items()]
        rows.append((f"{change.at:%Y-%m-%d %H:%M:%S}", change.action, change.actor, about, change.id, "; ".join(what)))
    output.print_rows(value, ("when", "change", "by", "fact or message", "id", "what"), rows)
