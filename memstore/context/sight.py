"""What a viewer sees of what is stored: rows filtered right after they are read, and the record of how many were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import UUID

from memstore.context.visibility import Rule, Rules, canonical, rule_of, same_name, seen, visible
from memstore.models import Decision, Fact, Hit, Message, Reason, Role, Summary, Tier
from memstore.store import chunks, messages
from memstore.store.database import Transaction
from memstore.store.summaries import Outline


class Sight:
    """What one viewer sees in the course of one request; everything where there is no viewer.

    Messages are seen by the rule, a tool's result with its call. Of what is made of messages, a summary is seen where
    all of them are, a fact where one of them is, or where it has none: then somebody entered it by hand.
    """

    def __init__(self, viewer: str | None = None, rule: Rule | str | None = None, conversation: UUID | None = None):
        self.viewer = viewer
        self._rule = rule_of(rule)
        self._known: dict[int, bool] = {}  # by number, of the conversation that is looked at
        self._seen: dict[UUID, bool] = {}
        self._hidden: dict[tuple[str, str], dict[UUID, int]] = defaultdict(dict)
        self._conversation = conversation
        self._looked_at = 0  # messages of the conversation
        self._is_known = False  # the viewer, in that conversation
        self._nameless: set[UUID] = set()  # hidden, of assistants without a name, in other conversations

    @property
    def filters(self) -> bool:
        """Whether there is a viewer."""
        return self.viewer is not None

    def sees(self, message: Message) -> bool:
        """Whether a message other than a tool's result is seen."""
        return self.viewer is None or visible(message, self.viewer, self._rule).visible

    def may_see(self, message: Message) -> bool:
        """The same, and True for a tool's result, whose call is not at hand."""
        return message.role == Role.TOOL or self.sees(message)

    def of(self, found: Sequence[Message]) -> list[Message]:
        """Give those of a conversation's messages, in order, that are seen."""
        if self.viewer is None or not found:
            return list(found)
        verdicts = seen(found, self.viewer, self._rule)
        self._looked_at = len(found)
        self._is_known = self._is_known or any(map(self._concerns, reversed(found)))
        for one, verdict in zip(found, verdicts, strict=True):
            if one.role != Role.TOOL:  # its call may stand before the first of these
                self._seen[one.id] = self._known[one.seq] = verdict
            if not verdict:
                self._hide("recent", "message", one.id, one.tokens)
        return [one for one, verdict in zip(found, verdicts, strict=True) if verdict]

    async def hits(self, scope: Transaction, found: Sequence[Hit]) -> list[Hit]:
        """Give those hits that are seen."""
        if not self.filters:
            return list(found)
        said = {hit.id: hit.sources for hit in found}
        later = await chunks.load_sources(scope, [], [hit.id for hit in found if not hit.sources])
        kept = await self._kept(scope, said | later, {hit.id for hit in found if hit.tier == Tier.FACTS})
        for hit in found:
            if hit.id not in kept:
                self._hide("facts" if hit.tier == Tier.FACTS else "hits", hit.tier, hit.id, 0)
        return [hit for hit in found if hit.id in kept]

    async def facts(self, scope: Transaction, found: Sequence[Fact]) -> list[Fact]:
        """Give those facts that are seen."""
        kept = set(await self.fact_ids(scope, [one.id for one in found]))
        return [one for one in found if one.id in kept]

    async def fact_ids(self, scope: Transaction, found: Sequence[UUID]) -> list[UUID]:
        """Give the ids of those facts that are seen."""
        if not self.filters or not found:
            return list(found)
        said = dict.fromkeys(found, ()) | await chunks.load_sources(scope, [], found)
        kept = await self._kept(scope, said, set(found))
        return [one for one in found if one in kept]

    async def outlines(self, scope: Transaction, conversation: UUID, found: Sequence[Outline]) -> list[Outline]:
        """Give those of a conversation's summaries that are seen."""
        if not self.filters or not found:
            return list(found)
        # Where much is hidden, the ends of a stretch tell of most summaries that they are: few are read as a whole.
        await self._number(scope, conversation, (seq for one in found for seq in _ends(one)))
        likely = [one for one in found if all(map(self._known.get, _ends(one)))]
        await self._number(scope, conversation, (seq for one in likely for seq in _stretch(one)))
        kept = {one.id for one in likely if all(map(self._known.get, _stretch(one)))}
        for one in found:
            if one.id not in kept:
                self._hide("summaries", "summary", one.id, one.tokens)
        return [one for one in found if one.id in kept]

    async def summaries(self, scope: Transaction, found: Sequence[Summary]) -> list[Summary]:
        """Give those summaries, of any level, that are seen."""
        if not self.filters or not found:
            return list(found)
        said = await chunks.load_sources(scope, [one.id for one in found], [])
        kept = await self._kept(scope, {one.id: said.get(one.id, ()) for one in found}, set())
        return [one for one in found if one.id in kept]

    def hidden(self, *sections: str) -> int:
        """Give how many items of these sections were looked at and are not seen."""
        return sum(len(sizes) for (section, _), sizes in self._hidden.items() if section in sections)

    def decisions(self) -> list[Decision]:
        """Give what was left out because the viewer does not see it: one decision for each section and kind."""
        made = []
        for (section, kind), sizes in self._hidden.items():
            many = f" ({len(sizes)} of this kind)" if len(sizes) > 1 else ""
            note = f"not visible to {self.viewer}{many}"
            first, tokens = next(iter(sizes)), sum(sizes.values())
            made.append(Decision(section, kind, first, tokens, Reason.NOT_VISIBLE, note=note))
        return made

    def hints(self) -> list[str]:
        """Give what people should know: that nobody knows the viewer, and what is hidden for want of a name."""
        made = []
        if self._looked_at and not self._is_known and isinstance(self._rule, Rules):
            made.append(
                f"nobody called {self.viewer!r} spoke or was mentioned in the newest {self._looked_at:,} messages that "
                "were looked at: is that the viewer's name?"
            )
        if self._nameless:
            made.append(
                f"{len(self._nameless):,} messages of assistants without a name, in other conversations, are hidden "
                f"from {self.viewer!r}: nobody can tell whose they are. Add messages of assistants with name=…"
            )
        return made

    def _concerns(self, message: Message) -> bool:
        """Whether the viewer said the message or is mentioned by it."""
        if self.viewer is None or same_name(message.name, self.viewer):
            return True
        return isinstance(self._rule, Rules) and canonical(self.viewer) in self._rule.addressees(message)

    async def _kept(self, scope: Transaction, said: dict[UUID, tuple[UUID, ...]], facts: set[UUID]) -> set[UUID]:
        """Give the items that are seen, of these and the messages that each was made of."""
        await self._look(scope, {message for sources in said.values() for message in sources})
        return {
            item
            for item, sources in said.items()
            if (any(map(self._seen.get, sources)) or not sources if item in facts else self._whole(sources))
        }

    def _whole(self, sources: Sequence[UUID]) -> bool:
        return bool(sources) and all(map(self._seen.get, sources))

    async def _look(self, scope: Transaction, ids: set[UUID]) -> None:
        """See which of these messages are visible, those of which it is not known yet."""
        if unknown := sorted(ids - self._seen.keys()):
            found = await messages.known(scope, unknown)
            said: dict[UUID, Message | None] = dict.fromkeys(unknown) | found
            if results := [id for id, one in found.items() if one.role == Role.TOOL]:
                said |= await messages.sayings(scope, results)
            for id, one in said.items():
                self._seen[id] = one is not None and self.sees(one)
                if one is not None and not self._seen[id] and self._is_nameless(one):
                    self._nameless.add(one.id)

    def _is_nameless(self, message: Message) -> bool:
        return message.role == Role.ASSISTANT and not message.name and message.conversation_id != self._conversation

    async def _number(self, scope: Transaction, conversation: UUID, seqs: Iterable[int]) -> None:
        """See which messages of these numbers are visible, those of which it is not known yet."""
        if unknown := sorted(set(seqs) - self._known.keys()):
            found = await messages.numbered(scope, conversation, unknown)
            said: dict[UUID, Message | None] = {one.id: one for one in found.values()}
            if results := [one.id for one in found.values() if one.role == Role.TOOL]:
                said |= await messages.sayings(scope, results)
            for seq, one in found.items():
                decides = said[one.id]
                self._known[seq] = decides is not None and self.sees(decides)

    def _hide(self, section: str, kind: str, id: UUID, tokens: int) -> None:
        self._hidden[section, str(kind)][id] = tokens


def _stretch(one: Outline) -> range:
    return range(one.from_seq, one.to_seq + 1)


def _ends(one: Outline) -> tuple[int, ...]:
    seqs = _stretch(one)
    return (*seqs[:2], *seqs[-2:])
