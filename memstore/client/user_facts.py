"""The facts of a user: reading them, editing them by hand, and their history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.validation import (
    Scopes,
    When,
    check_choice,
    check_name,
    check_number,
    check_text,
    to_scope,
    to_utc,
    to_uuid,
    to_uuids,
)
from memstore.models import (
    FACT_KINDS,
    FACT_STATES,
    FACT_TYPES,
    NORMAL,
    QUARANTINED,
    Entity,
    Fact,
    FactChange,
    FactColumns,
    FactSpan,
    Importance,
    InboxItem,
    Profile,
    TidyProposal,
    latest_first,
)
from memstore.models.facts import with_state_now
from memstore.store import facts, messages
from memstore.store.database import Database


class FactInput(TypedDict, total=False):
    """The columns of a fact that people set: keywords of `add_fact`, which has a default for each, and `edit_fact`."""

    type: str | None
    subject: str
    kind: str | None
    attribute: str | None
    value: str | None
    language: str
    confidence: float
    valid_from: When | None
    valid_to: When | None
    importance: Importance
    expires_at: When | None


class AsyncUserFacts:
    """The calls of a user's scope for facts."""

    id: UUID
    name: str
    _runtime: Runtime
    _database: Database

    async def facts(
        self,
        *,
        state: str | None = "active",
        type: str | None = None,
        subject: str | None = None,
        kind: str | None = None,
        as_of: When | None = None,
        ids: Sequence[UUID] | None = None,
        before: Fact | UUID | None = None,
        limit: int | None = None,
        scope: Scopes = None,
    ) -> list[Fact]:
        """Return facts with their sources, what matters first.

        That is pinned ones, then those of the types constraint, procedure, identity, relationship, an application's
        own, goal, plan, task, decision, preference, possession, event and statement, unimportant ones last; of each
        the latest first.

        `state` is active, ended (its end has passed), expired (its `expires_at` has), quarantined (it waits to be
        confirmed), superseded, retracted or erased; "all", or None, is any of them. With `as_of` the facts that were
        active at that moment, as they were known then. `ids` are the only ones that are wanted, in the state that is
        asked for; unknown ones are left out. In a `scope` as by `recall`.

        With a `limit` a page of them as they are now: `before` is the last fact of the page before; `NotFound` if it is
        gone.
        """
        if limit is not None:
            check_number(limit, "limit")
        if (limit is None and before is not None) or (limit is not None and (as_of is not None or ids is not None)):
            raise InvalidInput("A page has a limit, and the facts as they are now: leave out as_of and ids.")
        if subject is not None:
            check_text(subject, "the subject")
        check_choice("state", state, (*FACT_STATES, "all"))
        await self._check_type(type)
        check_choice("kind", kind, FACT_KINDS)
        last = None if before is None else to_uuid(before)
        filters: dict[str, Any] = {
            "state": None if state == "all" else state,
            "type": type,
            "subject": subject,
            "kind": kind,
            "scope": to_scope(scope),
        }
        moment, fact_ids = to_utc(as_of, "as_of"), None if ids is None else to_uuids(ids, "ids")
        async with self._database.user_transaction(self.id) as tx:
            hits = await facts.facts(tx, **filters, ids=fact_ids, as_of=moment, before=last, limit=limit)
        return list(map(with_state_now, hits)) if moment is None else hits

    async def fact_types(self) -> list[str]:
        """Return the types that a fact of this user may have: memstore's own, then the others.

        Those are of the setting `fact_types` of the store, the user and each conversation, or of stored facts.
        """
        settings = self._runtime.settings
        async with self._database.user_transaction(self.id) as tx:
            levels = await messages.fact_settings(tx)
            own_types = {*settings.fact_types, *await facts.types(tx)}
        own_types = own_types.union(*(types or () for row in levels for types in (row[1], row[3])))
        return [*FACT_TYPES, *sorted(own_types.difference(FACT_TYPES))]

    async def _check_type(self, type: str | None) -> None:
        if type is not None and type not in FACT_TYPES:
            check_choice("type", type, await self.fact_types())

    async def fact(self, id: Fact | UUID | str) -> Fact:
        """Return a fact in whatever state, as it is now. Raises `NotFound` if this user has none of this id."""
        return with_state_now(await self._stored_fact(to_uuid(id)))

    async def _stored_fact(self, id: UUID) -> Fact:
        async with self._database.user_transaction(self.id) as tx:
            fact = await facts.fact(tx, id)
        if fact is None:
            raise NotFound(f"This user has no fact {id}.")
        return fact

    async def facts_said_by(self, messages: Sequence[UUID], *, limit: int = 100) -> list[Fact]:
        """Return the facts that these messages say, of whatever state, the latest first."""
        message_ids = to_uuids(messages, "messages")
        check_number(limit, "limit")
        async with self._database.user_transaction(self.id) as tx:
            return list(map(with_state_now, await facts.facts_said_by(tx, message_ids, limit=limit)))

    async def superseded_facts(self, fact: Fact | UUID) -> list[Fact]:
        """Return the facts that this one superseded, the latest first."""
        fact_id = to_uuid(fact)
        async with self._database.user_transaction(self.id) as tx:
            older = [change.fact_id for change in await facts.superseded_by(tx, fact_id)]
            return latest_first(await facts.facts(tx, state="superseded", ids=older)) if older else []

    async def entity(self, name: str) -> Entity:
        """Return the facts about a person or thing, and its relations to others.

        The facts of which it is the subject come first, then those that name it as a whole word.
        """
        check_name(name, "entity")
        async with self._database.user_transaction(self.id) as tx:
            about = [*await facts.facts(tx, subject=name), *await facts.facts_mentioning(tx, name)]
            return Entity(name, tuple(map(with_state_now, about)), tuple(await facts.edges(tx, name)))

    async def profile(
        self, budget: int, subject: str | None = None, *, as_of: When | None = None, scope: Scopes = None
    ) -> Profile:
        """Return who somebody is, what holds, what is planned and how to answer them, in at most `budget` tokens.

        Each line names the messages that say it, and no two say the same. `subject` is by default the one that most
        facts are about: "The user", or a name where messages have one. The same facts give the same text.
        """
        from memstore.context.history import read_profile_facts
        from memstore.context.profile import compose_profile

        check_number(budget, "budget")
        if subject is not None:
            check_name(subject, "subject")
        moment = to_utc(as_of, "as_of")
        async with self._database.user_transaction(self.id) as tx:
            about, known_facts = await read_profile_facts(tx, subject=subject, as_of=moment, scope=to_scope(scope))
        return await to_thread(compose_profile, about, known_facts, self._runtime.counter, budget, moment)

    async def add_fact(
        self, text: str, *, sources: Sequence[UUID] = (), quarantined: bool = False, **columns: Unpack[FactInput]
    ) -> Fact:
        """Enter a fact by hand; recall finds it at once, and no derivation changes it. `sources` are ids of messages.

        `columns` are those of `FactInput`: `type` (by default read from the text, else "statement"), `subject` ("The
        user"), `kind`, `attribute`, `value`, `language`, `confidence` (1), `valid_from`, `valid_to`, `importance`
        ("normal") and `expires_at`. Facts with an older value of the same attribute are superseded; contradictions are
        logged. A fact with the same words is edited to be this one, and is active again.

        Without `attribute` and `value` what protects somebody is read from the text. A fact whose `importance` is
        "pinned" is in every context before all else, an "unimportant" one in none; from `expires_at` on it is in none
        and not recalled. With `quarantined` it waits for `confirm_fact`; a fact with the same words is then returned as
        it is.
        """
        from memstore.derive.facts import manual_edits
        from memstore.derive.facts.drafts import STATEMENT
        from memstore.derive.facts.manual_edits import check_fact, redact_fact

        given = _read_columns(text, columns)
        type = given.pop("type", None)
        defaults = {"subject": "The user", "language": "und", "confidence": 1.0, "importance": NORMAL}
        optional = dict.fromkeys(("kind", "attribute", "value", "valid_from", "valid_to", "expires_at"))
        row: dict[str, Any] = {**optional, **defaults, **given, "type": STATEMENT if type is None else type}
        new = FactColumns.model_construct(**row)
        source_ids = to_uuids(sources, "sources")
        check_fact(new)
        await self._check_type(new.type)
        redactor = self._runtime.redactor
        redactor.reject_secret_names(user=self.name)
        new = redact_fact(new, redactor)
        if type is None:
            new = new.model_copy(update={"type": await self._read_type(new)})
        if quarantined:
            return await manual_edits.propose_fact(self._database, self.name, new, source_ids)
        return await self._store(manual_edits.add_fact, self.name, new, source_ids)

    async def _store(self, change: Callable[..., Any], *values: Any) -> Fact:
        run = self._runtime.run_with_dependencies
        return with_state_now(await run(lambda dependencies: change(self._database, dependencies, *values)))

    async def _read_type(self, new: FactColumns) -> str:
        """Return the type of the stored fact with these words; else as the reader reads it."""
        from memstore.derive.facts.guidelines import Guidelines
        from memstore.derive.facts.manual_edits import read_type

        async with self._database.user_transaction(self.id) as tx:
            stored = await facts.fact(tx, ids.fact_id(self.id, new.subject, new.text))
            levels = await messages.fact_settings(tx)
        settings = self._runtime.settings
        guidelines = Guidelines.of((settings.fact_instructions, settings.fact_types), levels[0][:2])
        return await to_thread(read_type, new, guidelines) if stored is None else stored.type

    async def edit_fact(self, fact: Fact | UUID, *, text: str | None = None, **columns: Unpack[FactInput]) -> Fact:
        """Replace an active fact by one with other `text`, `type`, `value`…, as of `add_fact`.

        The old fact is superseded, or changed in place if its words stay; `undo` brings it back.
        """
        from memstore.derive.facts import manual_edits
        from memstore.derive.facts.manual_edits import check_fact, merge_columns, redact_fact

        given = _read_columns(text, columns)
        if not given:
            raise InvalidInput(f"nothing to edit: give some of text, {', '.join(FactInput.__annotations__)}.")
        old = await self._stored_fact(to_uuid(fact))
        # Checked before an embedder is loaded.
        manual_edits.check_active(old)
        new = merge_columns(old, given)
        check_fact(new)
        await self._check_type(new.type)
        new = redact_fact(new, self._runtime.redactor)
        return await self._store(manual_edits.edit_fact, self.id, old, new)

    async def memory_list(self) -> str:
        """Return what is known as the dated list by which people take their memories from one assistant to another.

        It has the text and the day of each active fact, what matters first; instructions stand under their own heading.
        `import_file` takes the list in again, and so do other assistants.
        """
        from memstore.derive.facts.quotations import words_of

        sections: dict[str, list[str]] = {}
        for fact in await self.facts():
            title = "Instructions" if fact.type == "procedure" else fact.type.capitalize()
            words = words_of(fact.text)
            # Words alone say as much where they answer no question.
            text = words if fact.text == f'{fact.subject}: "{words}"' else fact.text
            sections.setdefault(title, []).append(f"[{fact.occurred_at:%Y-%m-%d}] - {' '.join(text.split())}")
        return "\n".join(line for title, lines in sections.items() for line in (f"## {title}", *lines, ""))

    async def inbox(
        self, *, limit: int = 100, before: Fact | UUID | None = None, scope: Scopes = None
    ) -> list[InboxItem]:
        """Return the facts that wait to be accepted, with the words that say them, as pages of `facts`.

        They are in no context, recall or profile. `review` accepts and refuses them. In a `scope` as by `recall`.
        """
        waiting = await self.facts(state=QUARANTINED, limit=limit, before=before, scope=scope)
        quotes = await self._quotes(waiting)
        return [InboxItem(fact, quotes[fact.id]) for fact in waiting]

    async def _quotes(self, said: Sequence[Fact]) -> dict[UUID, tuple[str, ...]]:
        """Return the words that say each of these facts."""
        spans = [span for fact in said for span in fact.spans]
        async with self._database.user_transaction(self.id) as tx:
            sources = await messages.by_ids(tx, [span.message_id for span in spans])
        texts = {id: message.text or "" for id, message in sources.items()}
        return {
            fact.id: tuple(_quote(texts[span.message_id], span) for span in fact.spans if span.message_id in texts)
            for fact in said
        }

    async def review(
        self, *, accept: Sequence[Fact | UUID] = (), refuse: Sequence[Fact | UUID] = ()
    ) -> tuple[list[Fact], list[Fact]]:
        """Accept and refuse facts of the inbox; return them as they are now.

        Each is `confirm_fact` or `retract_fact`. Those that were said first are accepted first, so that of two values
        the later one holds. A refused fact does not come back where it is said again; `undo` brings it back.
        """
        wanted = to_uuids(accept, "accept")
        known = {fact.id: fact for fact in await self.facts(state=None, ids=wanted)} if wanted else {}
        if unknown := [id for id in wanted if id not in known]:
            raise NotFound(f"This user has no fact {unknown[0]}. Nothing was accepted or refused.")
        in_order = sorted(known.values(), key=lambda fact: (fact.occurred_at, fact.id))
        accepted = [await self.confirm_fact(fact) for fact in in_order]
        return accepted, [await self.retract_fact(fact) for fact in refuse]

    async def tidy(self) -> list[TidyProposal]:
        """Return plans whose time has passed ("next month", said in May), with when it had and the words that say them.

        Nothing changes before `decide_tidy` accepts one. Pinned facts, and those edited by hand, are never proposed.
        """
        from memstore.derive.facts import tidy

        async with self._database.user_transaction(self.id) as tx:
            passed = await tidy.passed_plans(tx)
        quotes = await self._quotes([fact for fact, _ in passed])
        return [TidyProposal(fact, ends_at, quotes[fact.id]) for fact, ends_at in passed]

    async def decide_tidy(
        self, *, accept: Sequence[Fact | UUID] = (), refuse: Sequence[Fact | UUID] = ()
    ) -> list[FactChange]:
        """Accept and refuse proposals of `tidy`, by their facts; return the changes.

        An accepted plan has ended, as by `edit_fact` with `valid_to`. It is not proposed again until it is said again,
        nor is a refused one. Raises `NotFound`, and changes nothing, for a fact of which nothing is proposed.
        """
        from memstore.derive.facts import tidy

        return await tidy.decide(self._database, self.id, to_uuids(accept, "accept"), to_uuids(refuse, "refuse"))

    async def undo_tidy(self, change: FactChange | UUID) -> list[FactChange]:
        """Undo a change by which `decide_tidy` ended a plan, and those made with it; return the changes that did so.

        All or none: raises `Conflict` if one of the facts was changed again since.
        """
        from memstore.derive.facts import tidy

        return await tidy.undo_together(self._database, self.id, to_uuid(change))

    async def confirm_fact(self, fact: Fact | UUID) -> Fact:
        """Make a quarantined fact active; recall finds it from now on.

        Older values of its attribute are superseded, contradictions are logged; `undo` quarantines it again. An active
        fact stays as it is; raises `Conflict` for any other state.
        """
        from memstore.derive.facts import manual_edits

        return await self._store(manual_edits.confirm_fact, self.id, to_uuid(fact))

    async def retract_fact(self, fact: Fact | UUID) -> Fact:
        """Retract a fact: it is no longer recalled, even if it is said again; `undo` brings it back."""
        from memstore.derive.facts import manual_edits

        return await manual_edits.retract_fact(self._database, self.id, to_uuid(fact))

    async def undo(self, change: FactChange | UUID) -> FactChange:
        """Undo a change of a fact exactly; return the change that did so.

        Raises `Conflict` if the fact was changed again since. Undoing a `conflicted` settles the contradiction.
        """
        from memstore.derive.facts import manual_edits

        return await manual_edits.undo(self._database, self.id, to_uuid(change))

    async def fact_history(self, fact: Fact | UUID) -> list[FactChange]:
        """Return the changes of a fact in order: added, reinforced, superseded, retracted, edited, restored, …

        An edit that replaced a fact by another is in the history of both.
        """
        stored = await self._stored_fact(to_uuid(fact))
        async with self._database.user_transaction(self.id) as tx:
            return await facts.history(tx, stored)


def _quote(text: str, span: FactSpan) -> str:
    return text if span.start is None or span.stop is None else text[span.start : span.stop]


def _read_columns(text: str | None, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as they are stored. Raises `InvalidInput` for a name that is none."""
    from memstore.derive.facts.manual_edits import strip_blanks

    if unknown := columns.keys() - FactInput.__annotations__:
        known = ", ".join(FactInput.__annotations__)
        raise InvalidInput(f"{', '.join(sorted(unknown))}: a fact has no such column; give some of text, {known}.")
    given = strip_blanks(columns if text is None else {"text": text, **columns})
    times = given.keys() & {"valid_from", "valid_to", "expires_at"}
    return given | {name: to_utc(given[name], name) for name in times}
