"""What people do to facts by hand, and what they ask of one: `fact add`, `edit`, `retract`, `undo`, `history`…"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import KINDS, DatabaseOption, JsonFlag, UserOption, beginning, moment, name, one_of
from memstore.cli.show import hint, line, print_json, say, short_id, short_ids, table
from memstore.cli.stores import Asked, hint_why, new_names, opened

if TYPE_CHECKING:
    from uuid import UUID

    from memstore import Fact, FactChange, UserScope

app = typer.Typer(help="Look after facts by hand.", no_args_is_help=True, rich_markup_mode=None)
FactArgument = Annotated[
    str,
    typer.Argument(parser=beginning("memstore facts"), metavar="ID", help="The id of the fact, or how it begins."),
]
TypeOption = Annotated[
    str | None, typer.Option(metavar="TYPE", help="What it is, such as preference, identity, constraint or plan.")
]
SubjectOption = Annotated[str | None, typer.Option(parser=name, metavar="NAME", help="Whom it is about.")]
KindOption = Annotated[
    str | None,
    typer.Option(parser=one_of(*KINDS), metavar=f"[{'|'.join(KINDS)}]", help="Else it follows from the type."),
]
AttributeOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="What of the subject it tells, such as residence.")
]
ValueOption = Annotated[str | None, typer.Option(metavar="TEXT", help="What it says that the attribute is.")]
LanguageOption = Annotated[str | None, typer.Option(metavar="CODE", help="ISO 639, such as en.")]
ConfidenceOption = Annotated[float | None, typer.Option(metavar="N", help="How sure it is, from 0 to 1.")]
FromOption = Annotated[
    datetime | None, typer.Option("--from", parser=moment, metavar="TIME", help="Since when it holds, in ISO 8601.")
]
ToOption = Annotated[
    datetime | None, typer.Option("--to", parser=moment, metavar="TIME", help="Until when it holds, in ISO 8601.")
]

BEGINNING = 160  # characters of a message that said a fact


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
    return {key: one for key, one in columns.items() if one is not None}


def _with_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `_columns` in the place of its parameter `columns`, which is what they give."""
    options = signature(_columns, eval_str=True).parameters
    own = signature(command, eval_str=True).parameters
    shown = [one for key, each in own.items() for one in (options.values() if key == "columns" else (each,))]

    @wraps(command)
    def run(**given: Any) -> None:
        columns = _columns(**{key: given.pop(key) for key in options})
        command(**given, columns=columns)

    run.__dict__["__signature__"] = Signature(shown)  # what typer reads options from
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


@app.command()
@_with_columns
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
    with opened(database) as store:
        new = new_names(store, user)
        _show(store.user(user).add_fact(text, type=type, **columns), as_json)
        if new is not None:
            hint(new)


@app.command()
@_with_columns
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
    columns |= {key: one for key, one in (("text", text), ("type", type)) if one is not None}
    with opened(database) as store:
        whose = store.user(user)
        _show(whose.edit_fact(whose.find_id(fact, of="fact"), **columns), as_json)


@app.command()
def confirm(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Let a fact hold that is quarantined, since who says it is not believed alone.

    JSON: the fact, as memstore facts has it.
    """
    with opened(database) as store:
        whose = store.user(user)
        _show(whose.confirm_fact(whose.find_id(fact, of="fact")), as_json)


@app.command()
def retract(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Take a fact back; it is no longer recalled, also where it is said again.

    JSON: the fact, as memstore facts has it.
    """
    with opened(database) as store:
        whose = store.user(user)
        _show(whose.retract_fact(whose.find_id(fact, of="fact")), as_json)


@app.command()
def undo(
    change: Annotated[
        str,
        typer.Argument(
            parser=beginning("memstore fact history"),
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
    with opened(database) as store:
        whose = store.user(user)
        done = whose.undo(whose.find_id(change, of="change"))
        rows = [] if as_json else _rows(whose, [done])
    if as_json:
        print_json(done)
    for at, what, by, _, words in rows:
        say(f"{at} {what} {by} ", line(words))


@app.command()
def history(fact: FactArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Show what happened to a fact, from the first day on, and what each step is about.

    On a pipe, a line a change, its cells parted by tabs: time, change, by whom, id, words: those of the fact that took
    the place or had it, of the message that said it again, or what was changed. Undo takes the id.

    JSON: [{"id", "fact_id", "action", "at", "actor", "other_id", "before", "after", "undoes", "source"}].
    """
    with opened(database) as store:
        whose = store.user(user)
        found = whose.fact_history(whose.find_id(fact, of="fact"))
        rows = [] if as_json else _rows(whose, found)
    if as_json:
        print_json(found)
    else:
        table(("when", "change", "by", "id", "words"), rows)


@app.command()
def audit(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Look for duplicates, conflicts, loops, what is stale, secrets, and facts without a source.

    On a pipe, a line a finding, its cells parted by tabs: problem, ids, detail.

    JSON: [{"problem", "facts": [ids], "detail"}].
    """
    with opened(database) as store:
        found = store.user(user).audit_facts()
    if as_json:
        print_json(found)
    elif found:
        ids = short_ids(fact for one in found for fact in one.facts)
        rows = [(one.problem, " ".join(ids[fact] for fact in one.facts), one.detail) for one in found]
        table(("problem", "facts", "detail"), rows)
    else:
        hint("nothing is wrong")


@app.command()
def entity(
    entity: Annotated[str, typer.Argument(parser=name, help="Somebody or something that facts are about.")],
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
    with opened(database) as store:
        found = store.user(user).entity(entity, depth=depth)
        if not found.facts and not found.edges:
            hint_why(store, Asked(user, subject=entity))
    if as_json:
        print_json(found)
        return
    for fact in found.facts:
        say(line(fact.text))
    table(
        ("steps", "subject", "attribute", "value"),
        [(str(edge.steps), edge.subject, edge.attribute, edge.value) for edge in found.edges],
    )


def _show(fact: Fact, as_json: bool) -> None:
    if as_json:
        print_json(fact)
    else:
        say(
            (f"{short_id(fact.id)} ", "bright_black"),
            line(fact.text),
            (f" ({fact.type}, {fact.state})", "bright_black"),
        )


def _rows(whose: UserScope, changes: Sequence[FactChange]) -> list[tuple[str, str, str, str, str]]:
    """Give changes for people: when, what, by whom, the change's id, and the words that it is about."""
    named = [id for one in changes for id in (one.fact_id, one.other_id) if id is not None]
    texts = {fact.id: fact.text for fact in whose.facts_of(named)}
    said = [one.source for one in changes if one.source is not None]
    texts |= {one.id: f"{one.name or one.role}: {one.text or ''}"[:BEGINNING] for one in whose.messages(said)}
    return [
        (f"{one.at:%Y-%m-%d %H:%M:%S}", _step(one), one.actor, str(one.id or ""), _words(one, texts)) for one in changes
    ]


def _step(change: FactChange) -> str:
    made = change.action == "edited" and not change.before  # another fact was edited to be this one
    if change.other_id:
        return f"{change.action} {'from' if made else 'by'} {short_id(change.other_id)}"
    return f"{change.action} in {change.source}" if change.source else change.action


def _words(change: FactChange, texts: Mapping[UUID, str]) -> str:
    """Give what a step is about: the words of the other fact, of the message, or what it changed; else of the fact."""
    if (about := change.other_id or change.source) and change.action != "added":
        return texts.get(about, "(it is gone)")
    changed = [f"{name}: {_value(was)} → {_value(change.after.get(name))}" for name, was in change.changed.items()]
    return "; ".join(changed) or texts.get(change.fact_id, "")


def _value(value: object) -> str:
    return "nothing" if value is None else str(value)
