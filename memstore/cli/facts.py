"""`facts` and `fact`: list facts, and look after them by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memstore.cli.options import AsOfOption, UserOption, command, group, id_argument, name_option, time_option
from memstore.cli.output import one_line, print_result, print_rows, short_id
from memstore.cli.session import hint_why_empty, open_store

if TYPE_CHECKING:
    from uuid import UUID

    from memstore import Fact, FactChange, UserScope

app = group("Look after facts by hand.")
FactArgument = Annotated[str, id_argument("fact")]
TYPE_HELP = "What it is, such as preference, identity, constraint or plan."
SubjectOption = Annotated[str | None, name_option("Whom it is about.")]
AttributeOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="What of the subject it tells, such as residence.")
]
ValueOption = Annotated[str | None, typer.Option(metavar="TEXT", help="What it says that the attribute is.")]
ConfidenceOption = Annotated[float | None, typer.Option(metavar="N", help="How sure it is, from 0 to 1.")]
FromOption = Annotated[datetime | None, time_option("Since when it holds, in ISO 8601.", "--from")]
ToOption = Annotated[datetime | None, time_option("Until when it holds, in ISO 8601.", "--to")]

MAX_SOURCE_TEXT = 160  # characters of a message that said a fact


def facts(
    user: UserOption,
    type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Of this type only, such as preference or plan.")
    ] = None,
    state: Annotated[
        Literal["active", "ended", "quarantined", "superseded", "retracted", "erased", "all"],
        typer.Option(help="In this state only."),
    ] = "active",
    subject: Annotated[str | None, name_option("About this one only.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="episodic|semantic|procedural", help="Of this kind only.")] = None,
    as_of: AsOfOption = None,
) -> None:
    """List what is known of a user, the latest first.

    On a pipe, a line a fact, its cells parted by tabs: id, type, day, confidence, text. Of the id it is how it begins:
    other commands take it so. With --state all, the state is before the text.

    JSON: [{"user_id", "id", "type", "kind", "subject", "attribute", "value", "text", "language", "confidence", "state",
    "valid_from", "valid_to", "recipe", "occurred_at", "recorded_at", "sources", "spans": [{"message_id", "start",
    "stop", "trust"}]}].
    """
    with open_store() as store:
        rows = store.user(user).facts(type=type, state=state, subject=subject, kind=kind, as_of=as_of)
        if not rows:
            hint_why_empty(store, user)
    print_facts(rows, states=state == "all")


def print_facts(facts: Sequence[Fact], *, states: bool = False) -> None:
    """Print facts as JSON or as a table, on a pipe with tabs; their states too where that is asked for."""
    from memstore.models.facts import state_of

    rows = [
        (short_id(fact.id), fact.type, f"{fact.occurred_at:%Y-%m-%d}", f"{fact.confidence:.2f}")
        + ((state_of(fact),) if states else ())
        + (fact.text,)
        for fact in facts
    ]
    print_rows(facts, ("id", "type", "said", "confidence", *(("state",) if states else ()), "fact"), rows)


@command(app)
def add(
    text: Annotated[str, typer.Argument(help="A sentence that stands for itself: who, what, when.")],
    user: UserOption,
    type: Annotated[str, typer.Option(metavar="TYPE", help=TYPE_HELP)],
    subject: Annotated[str, name_option("Whom it is about.")] = "The user",
    attribute: AttributeOption = None,
    value: ValueOption = None,
    confidence: Annotated[float, typer.Option(metavar="N", help="How sure it is, from 0 to 1.")] = 1.0,
    begin: FromOption = None,
    end: ToOption = None,
) -> None:
    """Enter a fact; recall finds it at once.

    JSON: the fact, as memstore facts has it.
    """
    with open_store() as store:
        fact = store.user(user).add_fact(
            text,
            type=type,
            subject=subject,
            attribute=attribute,
            value=value,
            confidence=confidence,
            valid_from=begin,
            valid_to=end,
        )
    _print_fact(fact)


@command(app)
def edit(
    fact: FactArgument,
    user: UserOption,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Other words.")] = None,
    type: Annotated[str | None, typer.Option(metavar="TYPE", help=TYPE_HELP)] = None,
    subject: SubjectOption = None,
    attribute: AttributeOption = None,
    value: ValueOption = None,
    confidence: ConfidenceOption = None,
    begin: FromOption = None,
    end: ToOption = None,
) -> None:
    """Put another fact in the place of an active one; what is not given stays.

    JSON: the fact that is there now, as memstore facts has it.
    """
    columns: dict[str, Any] = {"text": text, "type": type, "subject": subject, "attribute": attribute, "value": value}
    columns |= {"confidence": confidence, "valid_from": begin, "valid_to": end}
    changes = {name: column for name, column in columns.items() if column is not None}
    with open_store() as store:
        scope = store.user(user)
        edited = scope.edit_fact(scope.resolve_id(fact, kind="fact"), **changes)
    _print_fact(edited)


@command(app)
def confirm(fact: FactArgument, user: UserOption) -> None:
    """Let a fact hold that is quarantined, since who says it is not believed alone.

    JSON: the fact, as memstore facts has it.
    """
    with open_store() as store:
        scope = store.user(user)
        _print_fact(scope.confirm_fact(scope.resolve_id(fact, kind="fact")))


@command(app)
def retract(fact: FactArgument, user: UserOption) -> None:
    """Take a fact back; it is no longer recalled, also where it is said again.

    JSON: the fact, as memstore facts has it.
    """
    with open_store() as store:
        scope = store.user(user)
        _print_fact(scope.retract_fact(scope.resolve_id(fact, kind="fact")))


@command(app)
def undo(change: Annotated[str, id_argument("change, from fact history,")], user: UserOption) -> None:
    """Set what a change did to a fact back to what was before; refused where the fact was changed again since.

    JSON: the change that did so, as memstore fact history has it.
    """
    with open_store() as store:
        scope = store.user(user)
        done = scope.undo(scope.resolve_id(change, kind="change"))
        _print_changes(scope, done, [done])


@command(app)
def history(fact: FactArgument, user: UserOption) -> None:
    """Show what happened to a fact, from the first day on, and what each step is about.

    On a pipe, a line a change, its cells parted by tabs: time, change, by whom, id, words: those of the fact that took
    the place or had it, of the message that said it again, or what was changed. Undo takes the id.

    JSON: [{"id", "fact_id", "action", "at", "actor", "other_id", "before", "after", "undoes", "source"}].
    """
    with open_store() as store:
        scope = store.user(user)
        changes = scope.fact_history(scope.resolve_id(fact, kind="fact"))
        _print_changes(scope, changes, changes)


def _print_fact(fact: Fact) -> None:
    print_result(fact, f"{short_id(fact.id)} {one_line(fact.text)} ({fact.type}, {fact.state})")


def _print_changes(scope: UserScope, value: object, changes: Sequence[FactChange]) -> None:
    fact_ids = [id for change in changes for id in (change.fact_id, change.other_id) if id is not None]
    texts = {fact.id: fact.text for fact in scope.facts(state=None, ids=fact_ids)}
    sources = scope.messages([change.source for change in changes if change.source is not None])
    texts |= {each.id: f"{each.name or each.role}: {each.text or ''}"[:MAX_SOURCE_TEXT] for each in sources}
    rows = [
        (f"{change.at:%Y-%m-%d %H:%M:%S}", _step(change), change.actor, str(change.id or ""), _words(change, texts))
        for change in changes
    ]
    print_rows(value, ("when", "change", "by", "id", "words"), rows)


def _step(change: FactChange) -> str:
    made = change.action == "edited" and not change.before  # another fact was edited to be this one
    if change.other_id:
        return f"{change.action} {'from' if made else 'by'} {short_id(change.other_id)}"
    return f"{change.action} in {change.source}" if change.source else change.action


def _words(change: FactChange, texts: Mapping[UUID, str]) -> str:
    """Return what a step is about: the text of the other fact or of the message, what changed, else the fact's text."""
    if (about := change.other_id or change.source) and change.action != "added":
        return texts.get(about, "(it is gone)")
    changed = [f"{name}: {was} → {change.after.get(name)}" for name, was in change.changed.items()]
    return "; ".join(changed) or texts.get(change.fact_id, "")
