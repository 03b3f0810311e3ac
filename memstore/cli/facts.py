"""`facts` and `fact`: list facts, and look after them by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import KINDS, DatabaseOption, JsonFlag, UserOption, choice, id_prefix, parse_name, parse_time
from memstore.cli.output import echo, echo_hint, one_line, print_json, print_table, short_id, short_ids
from memstore.cli.session import hint_why_empty, open_store

if TYPE_CHECKING:
    from uuid import UUID

    from memstore import Fact, FactChange, UserScope

app = typer.Typer(help="Look after facts by hand.", no_args_is_help=True, rich_markup_mode=None)
STATES = ("active", "ended", "quarantined", "superseded", "retracted", "erased", "all")
FactArgument = Annotated[
    str,
    typer.Argument(parser=id_prefix("memstore facts"), metavar="ID", help="The id of the fact, or how it begins."),
]
TypeOption = Annotated[
    str | None, typer.Option(metavar="TYPE", help="What it is, such as preference, identity, constraint or plan.")
]
SubjectOption = Annotated[str | None, typer.Option(parser=parse_name, metavar="NAME", help="Whom it is about.")]
KindOption = Annotated[
    str | None,
    typer.Option(parser=choice(*KINDS), metavar=f"[{'|'.join(KINDS)}]", help="Else it follows from the type."),
]
AttributeOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="What of the subject it tells, such as residence.")
]
ValueOption = Annotated[str | None, typer.Option(metavar="TEXT", help="What it says that the attribute is.")]
LanguageOption = Annotated[str | None, typer.Option(metavar="CODE", help="ISO 639, such as en.")]
ConfidenceOption = Annotated[float | None, typer.Option(metavar="N", help="How sure it is, from 0 to 1.")]
FromOption = Annotated[
    datetime | None, typer.Option("--from", parser=parse_time, metavar="TIME", help="Since when it holds, in ISO 8601.")
]
ToOption = Annotated[
    datetime | None, typer.Option("--to", parser=parse_time, metavar="TIME", help="Until when it holds, in ISO 8601.")
]

MAX_SOURCE_TEXT = 160  # characters of a message that said a fact


def facts(
    user: UserOption,
    type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Of this type only, such as preference or plan.")
    ] = None,
    state: Annotated[
        str, typer.Option(parser=choice(*STATES), metavar=f"[{'|'.join(STATES)}]", help="In this state only.")
    ] = "active",
    subject: Annotated[str | None, typer.Option(parser=parse_name, metavar="NAME", help="About this one only.")] = None,
    kind: Annotated[
        str | None, typer.Option(parser=choice(*KINDS), metavar=f"[{'|'.join(KINDS)}]", help="Of this kind only.")
    ] = None,
    as_of: Annotated[
        datetime | None, typer.Option("--as-of", parser=parse_time, metavar="TIME", help="As they were known then.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List what is known of a user, the latest first.

    On a pipe, a line a fact, its cells parted by tabs: id, type, day, confidence, text. Of the id it is how it begins,
    as far as that tells these facts apart: other commands take it so. With --state all, the state is before the text.

    JSON: [{"user_id", "id", "type", "kind", "subject", "attribute", "value", "text", "language", "confidence", "state",
    "valid_from", "valid_to", "recipe", "occurred_at", "recorded_at", "sources", "spans": [{"message_id", "start",
    "stop", "trust"}]}].
    """
    with open_store(database) as store:
        found = store.user(user).facts(type=type, state=state, subject=subject, kind=kind, as_of=as_of)
        if not found:
            hint_why_empty(store, user)
    if as_json:
        print_json(found)
    else:
        print_facts(found, states=state == "all")


def print_facts(found: Sequence[Fact], *, states: bool = False) -> None:
    """Print facts as a table, on a pipe with tabs; their states too where that is asked for."""
    from memstore.models.facts import state_of

    ids = short_ids(fact.id for fact in found)
    rows = [
        (ids[fact.id], fact.type, f"{fact.occurred_at:%Y-%m-%d}", f"{fact.confidence:.2f}")
        + ((state_of(fact),) if states else ())
        + (fact.text,)
        for fact in found
    ]
    print_table(("id", "type", "said", "confidence", *(("state",) if states else ()), "fact"), rows)


def _columns(
    *,
    subject: SubjectOption = None,
    kind: KindOption = None,
    attribute: AttributeOption = None,
    value: ValueOption = None,
    language: LanguageOption = None,
    confidence: ConfidenceOption = None,
    begin: FromOption = None,
    end: ToOption = None,
) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "subject": subject,
        "kind": kind,
        "attribute": attribute,
        "value": value,
        "language": language,
        "confidence": confidence,
        "valid_from": begin,
        "valid_to": end,
    }
    return {key: value for key, value in columns.items() if value is not None}


def _with_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `columns` of a command by the options of `_columns`."""
    options = signature(_columns, eval_str=True).parameters
    own = signature(command, eval_str=True).parameters
    parameters = [each for key, option in own.items() for each in (options.values() if key == "columns" else (option,))]

    @wraps(command)
    def run(**arguments: Any) -> None:
        columns = _columns(**{key: arguments.pop(key) for key in options})
        command(**arguments, columns=columns)

    run.__dict__["__signature__"] = Signature(parameters)  # what typer reads options from
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


@app.command()
@_with_column_options
def add(
    text: Annotated[str, typer.Argument(help="A sentence that stands for itself: who, what, when.")],
    user: UserOption,
    *,
    type: Annotated[
        str, typer.Option(metavar="TYPE", help="What it is, such as preference, identity, constraint or plan.")
    ],
    columns: dict[str, Any],
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Enter a fact; recall finds it at once.

    JSON: the fact, as memstore facts has it.
    """
    with open_store(database) as store:
        _show(store.user(user).add_fact(text, type=type, **columns), as_json)


@app.command()
@_with_column_options
def edit(
    fact: FactArgument,
    user: UserOption,
    *,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Other words.")] = None,
    type: TypeOption = None,
    columns: dict[str, Any],
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Put another fact in the place of an active one; what is not given stays.

    JSON: the fact that is there now, as memstore facts has it.
    """
    columns |= {key: value for key, value in (("text", text), ("type", type)) if value is not None}
    with open_store(database) as store:
        scope = store.user(user)
        _show(scope.edit_fact(scope.find_id(fact, of="fact"), **columns), as_json)


@app.command()
def confirm(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Let a fact hold that is quarantined, since who says it is not believed alone.

    JSON: the fact, as memstore facts has it.
    """
    with open_store(database) as store:
        scope = store.user(user)
        _show(scope.confirm_fact(scope.find_id(fact, of="fact")), as_json)


@app.command()
def retract(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Take a fact back; it is no longer recalled, also where it is said again.

    JSON: the fact, as memstore facts has it.
    """
    with open_store(database) as store:
        scope = store.user(user)
        _show(scope.retract_fact(scope.find_id(fact, of="fact")), as_json)


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
        done = scope.undo(scope.find_id(change, of="change"))
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
        found = scope.fact_history(scope.find_id(fact, of="fact"))
        rows = [] if as_json else _change_rows(scope, found)
    if as_json:
        print_json(found)
    else:
        print_table(("when", "change", "by", "id", "words"), rows)


@app.command()
def audit(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Look for duplicates, conflicts, and what is stale.

    On a pipe, a line a finding, its cells parted by tabs: problem, ids, detail.

    JSON: [{"problem", "facts": [ids], "detail"}].
    """
    with open_store(database) as store:
        found = store.user(user).audit_facts()
    if as_json:
        print_json(found)
    elif found:
        ids = short_ids(fact for each in found for fact in each.facts)
        rows = [(each.problem, " ".join(ids[fact] for fact in each.facts), each.detail) for each in found]
        print_table(("problem", "facts", "detail"), rows)
    else:
        echo_hint("nothing is wrong")


@app.command()
def entity(
    entity: Annotated[str, typer.Argument(parser=parse_name, help="Somebody or something that facts are about.")],
    user: UserOption,
    depth: Annotated[int, typer.Option(min=1, max=5, metavar="N", help="At most so many steps to others.")] = 2,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what is known of somebody or something, and how it is related to others.

    Its own facts come first, then those that name it.

    JSON: {"name", "facts": [as memstore facts has them], "edges": [{"subject", "attribute", "value", "steps",
    "fact_id"}]}.
    """
    with open_store(database) as store:
        found = store.user(user).entity(entity, depth=depth)
        if not found.facts and not found.edges:
            hint_why_empty(store, user)
    if as_json:
        print_json(found)
        return
    for fact in found.facts:
        echo(one_line(fact.text))
    print_table(
        ("steps", "subject", "attribute", "value"),
        [(str(edge.steps), edge.subject, edge.attribute, edge.value) for edge in found.edges],
    )


def _show(fact: Fact, as_json: bool) -> None:
    if as_json:
        print_json(fact)
    else:
        echo(
            (f"{short_id(fact.id)} ", "bright_black"),
            one_line(fact.text),
            (f" ({fact.type}, {fact.state})", "bright_black"),
        )


def _change_rows(scope: UserScope, changes: Sequence[FactChange]) -> list[tuple[str, str, str, str, str]]:
    """Return changes for people: when, what, by whom, the change's id, and the words that it is about."""
    fact_ids = [id for change in changes for id in (change.fact_id, change.other_id) if id is not None]
    texts = {fact.id: fact.text for fact in scope.facts_of(fact_ids)}
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
    changed = [f"{name}: {_value(was)} → {_value(change.after.get(name))}" for name, was in change.changed.items()]
    return "; ".join(changed) or texts.get(change.fact_id, "")


def _value(value: object) -> str:
    return "nothing" if value is None else str(value)
