"""`facts` and `fact`: list facts, and look after them by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memstore.cli.options import AsOfOption, UserOption, command, group, id_argument, name_option, option
from memstore.cli.output import one_line, print_result, print_rows, short_id
from memstore.cli.session import hint_why_little, open_store

if TYPE_CHECKING:
    from memstore import Fact, FactChange

app = group("Look after facts by hand.")
FactArgument = Annotated[str, id_argument("fact")]


def facts(
    user: UserOption,
    type: Annotated[str | None, option("TYPE", "Of this type only, such as plan.")] = None,
    state: Annotated[
        Literal["active", "ended", "quarantined", "superseded", "retracted", "erased", "all"],
        typer.Option(help="In this state only."),
    ] = "active",
    subject: Annotated[str | None, name_option("About this one only.")] = None,
    as_of: AsOfOption = None,
) -> None:
    """List what is known of a user, the latest first; of an id it is how it begins, which other commands take."""
    with open_store() as store:
        rows = store.user(user).facts(type=type, state=state, subject=subject, as_of=as_of)
        if not rows:
            hint_why_little(store, user)
    print_facts(rows)


def print_facts(facts: Sequence[Fact]) -> None:
    """Print facts as JSON or as a table."""
    from memstore.models.facts import state_of

    columns = ("id", "type", "state", "said", "confidence", "fact")
    rows = [
        (short_id(each.id), each.type, state_of(each), each.occurred_at, each.confidence, each.text) for each in facts
    ]
    print_rows(facts, columns, rows)


@command(app)
def confirm(fact: FactArgument, user: UserOption) -> None:
    """Let a fact hold that is quarantined, since who says it is not believed alone."""
    with open_store() as store:
        scope = store.user(user)
        _print_fact(scope.confirm_fact(scope.resolve_id(fact, kind="fact")))


@command(app)
def retract(fact: FactArgument, user: UserOption) -> None:
    """Take a fact back; it is no longer recalled, also where it is said again."""
    with open_store() as store:
        scope = store.user(user)
        _print_fact(scope.retract_fact(scope.resolve_id(fact, kind="fact")))


@command(app)
def undo(change: Annotated[str, id_argument("change, from fact history,")], user: UserOption) -> None:
    """Set what a change did to a fact back to what was before; refused where the fact was changed again since."""
    with open_store() as store:
        scope = store.user(user)
        done = scope.undo(scope.resolve_id(change, kind="change"))
    _print_changes(done, [done])


@command(app)
def history(fact: FactArgument, user: UserOption) -> None:
    """Show what happened to a fact, from the first day on; undo takes the ids."""
    with open_store() as store:
        scope = store.user(user)
        changes = scope.fact_history(scope.resolve_id(fact, kind="fact"))
    _print_changes(changes, changes)


def _print_fact(fact: Fact) -> None:
    print_result(fact, f"{short_id(fact.id)} {one_line(fact.text)} ({fact.type}, {fact.state})")


def _print_changes(value: object, changes: Sequence[FactChange]) -> None:
    rows = []
    for change in changes:
        about = short_id(change.other_id) if change.other_id else change.source
        what = [f"{name}: {was} → {change.after.get(name)}" for name, was in change.changed.items()]
        rows.append((f"{change.at:%Y-%m-%d %H:%M:%S}", change.action, change.actor, about, change.id, "; ".join(what)))
    print_rows(value, ("when", "change", "by", "fact or message", "id", "what"), rows)
