"""`facts` and `fact`: list facts, and look after them by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import (
    AsOfOption,
    DatabaseOption,
    JsonFlag,
    UserOption,
    choice_option,
    id_prefix,
    name_option,
    parse_name,
    time_option,
)
from memstore.cli.output import echo, echo_hint, one_line, print_json, print_table, short_id
from memstore.cli.session import hint_why_empty, open_store

if TYPE_CHECKING:
    from uuid import UUID

    from memstore import Fact, FactChange, UserScope

app = typer.Typer(help="Look after facts by hand.", no_args_is_help=True, rich_markup_mode=None)
KINDS = ("episodic", "semantic", "procedural")
STATES = ("active", "ended", "quarantined", "superseded", "retracted", "erased", "all")
FactArgument = Annotated[
    str,
    typer.Argument(parser=id_prefix("memstore facts"), metavar="ID", help="The id of the fact, or how it begins."),
]
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
    state: Annotated[str, choice_option(STATES, help="In this state only.")] = "active",
    subject: Annotated[str | None, name_option("About this one only.")] = None,
    kind: Annotated[str | None, choice_option(KINDS, help="Of this kind only.")] = None,
    as_of: AsOfOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List what is known of a user, the latest first.

    On a pipe, a line a fact, its cells parted by tabs: id, type, day, confidence, text. Of the id it is how it begins:
    other commands take it so. With --state all, the state is before the text.

    JSON: [{"user_id", "id", "type", "kind", "subject", "attribute", "value", "text", "language", "confidence", "state",
    "valid_from", "valid_to", "recipe", "occurred_at", "recorded_at", "sources", "spans": [{"message_id", "start",
    "stop", "trust"}]}].
    """
    with open_store(database) as store:
        rows = store.user(user).facts(type=type, state=state, subject=subject, kind=kind, as_of=as_of)
        if not rows:
            hint_why_empty(store, user)
    if as_json:
        print_json(rows)
    else:
        print_facts(rows, states=state == "all")


def print_facts(facts: Sequence[Fact], *, states: bool = False) -> None:
    """Print facts as a table, on a pipe with tabs; their states too where that is asked for."""
    from memstore.models.facts import state_of

    rows = [
        (short_id(fact.id), fact.type, f"{fact.occurred_at:%Y-%m-%d}", f"{fact.confidence:.2f}")
        + ((state_of(fact),) if states else ())
        + (fact.text,)
        for fact in facts
    ]
    print_table(("id", "type", "said", "confidence", *(("state",) if states else ()), "fact"), rows)


@app.command()
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
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Enter a fact; recall finds it at once.

    JSON: the fact, as memstore facts has it.
    """
    with open_store(database) as store:
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
    _print_fact(fact, as_json)


@app.command()
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
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Put another fact in the place of an active one; what is not given stays.

    JSON: the fact that is there now, as memstore facts has it.
    """
    columns: dict[str, Any] = {"text": text, "type": type, "subject": subject, "attribute": attribute, "value": value}
    columns |= {"confidence": confidence, "valid_from": begin, "valid_to": end}
    changes = {name: column for name, column in columns.items() if column is not None}
    with open_store(database) as store:
        scope = store.user(user)
        edited = scope.edit_fact(scope.resolve_id(fact, kind="fact"), **changes)
    _print_fact(edited, as_json)


@app.command()
def confirm(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Let a fact hold that is quarantined, since who says it is not believed alone.

    JSON: the fact, as memstore facts has it.
    """
    with open_store(database) as store:
        scope = store.user(user)
        _print_fact(scope.confirm_fact(scope.resolve_id(fact, kind="fact")), as_json)


@app.command()
def retract(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Take a fact back; it is no longer recalled, also where it is said again.

    JSON: the fact, as memstore facts has it.
    """
    with open_store(database) as store:
        scope = store.user(user)
        _print_fact(scope.retract_fact(scope.resolve_id(fact, kind="fact")), as_json)


@app.command()
def undo(
    change: Annotated[
        str,
        typer.Argument(
            parser=id_prefix("memstore fact history"),
            metavar="CHANGE",
            help="The id of a change, or how it begins, from fact history.",
        ),
    ],
    user: UserOption,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set what a change did to a fact back to what was before; refused where the fact was changed again since.

    JSON: the change that did so, as memstore fact history has it.
    """
    with open_store(database) as store:
        scope = store.user(user)
        done = scope.undo(scope.resolve_id(change, kind="change"))
        rows = [] if as_json else _change_rows(scope, [done])
    if as_json:
        print_json(done)
    for at, what, by, _, words in rows:
        echo(f"{at} {what} {by} ", one_line(words))


@app.command()
def history(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Show what happened to a fact, from the first day on, and what each step is about.

    On a pipe, a line a change, its cells parted by tabs: time, change, by whom, id, words: those of the fact that took
    the place or had it, of the message that said it again, or what was changed. Undo takes the id.

    JSON: [{"id", "fact_id", "action", "at", "actor", "other_id", "before", "after", "undoes", "source"}].
    """
    with open_store(database) as store:
        scope = store.user(user)
        changes = scope.fact_history(scope.resolve_id(fact, kind="fact"))
        rows = [] if as_json else _change_rows(scope, changes)
    if as_json:
        print_json(changes)
    else:
        print_table(("when", "change", "by", "id", "words"), rows)


@app.command()
def audit(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Look for duplicates, conflicts, and what is stale.

    On a pipe, a line a finding, its cells parted by tabs: problem, ids, detail.

    JSON: [{"problem", "facts": [ids], "detail"}].
    """
    with open_store(database) as store:
        findings = store.user(user).audit_facts()
    if as_json:
        print_json(findings)
    elif findings:
        rows = [(each.problem, " ".join(map(short_id, each.facts)), each.detail) for each in findings]
        print_table(("problem", "facts", "detail"), rows)
    else:
        echo_hint("nothing is wrong")


@app.command()
def entity(
    entity: Annotated[str, typer.Argument(parser=parse_name, help="Somebody or something that facts are about.")],
    user: UserOption,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what is known of somebody or something, and how it is related to others.

    Its own facts come first, then those that name it.

    JSON: {"name", "facts": [as memstore facts has them], "edges": [{"subject", "attribute", "value", "fact_id"}]}.
    """
    with open_store(database) as store:
        about = store.user(user).entity(entity)
        if not about.facts and not about.edges:
            hint_why_empty(store, user)
    if as_json:
        print_json(about)
        return
    for fact in about.facts:
        echo(one_line(fact.text))
    print_table(("subject", "attribute", "value"), [(edge.subject, edge.attribute, edge.value) for edge in about.edges])


def _print_fact(fact: Fact, as_json: bool) -> None:
    if as_json:
        print_json(fact)
    else:
        echo(
            (f"{short_id(fact.id)} ", "bright_black"),
            one_line(fact.text),
            (f" ({fact.type}, {fact.state})", "bright_black"),
        )


def _change_rows(scope: UserScope, changes: Sequence[FactChange]) -> list[tuple[str, str, str, str, str]]:
    fact_ids = [id for change in changes for id in (change.fact_id, change.other_id) if id is not None]
    texts = {fact.id: fact.text for fact in scope.facts(state=None, ids=fact_ids)}
    sources = scope.messages([change.source for change in changes if change.source is not None])
    texts |= {each.id: f"{each.name or each.role}: {each.text or ''}"[:MAX_SOURCE_TEXT] for each in sources}
    return [
        (f"{change.at:%Y-%m-%d %H:%M:%S}", _step(change), change.actor, str(change.id or ""), _words(change, texts))
        for change in changes
    ]


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
