"""What is offered to packing: each thing that may stand in a context, with the tokens that it is expected to add. Pure.

Lines are counted as they will stand there, and headings apart, so that the sum is the count of the whole but for what
an encoding merges over the ends of lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from memstore import text as fences
from memstore.context import formats as render
from memstore.context.cut import cut_closely, cut_text, cut_turn
from memstore.context.dedupe import TextFingerprint
from memstore.context.pack import Heading, Piece
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, Allowance
from memstore.context.strategies.view import FENCE, Block, Entry
from memstore.context.turns import Turn
from memstore.models import Hit, Message, Role, Section, Summary, Tier
from memstore.providers import TokenCounter
from memstore.text import format_day

SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
OLDER = "older than the recent turns"
LEAST = 8  # tokens of a hit: fewer say nothing


class Offering:
    """Makes pieces, counting with one counter. What stands around pieces is counted once."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._memory = self._fence("memory", fences.MEMORY_HEAD, fences.MEMORY_FOOT)
        self._facts = (self._memory, Heading("facts", self._line(render.FACTS_HEAD)))
        self._hits = (self._memory, Heading("hits", self._line(render.HITS_HEAD)))
        self._days: dict[str, Heading] = {}
        self._around: dict[tuple[str | None, ...], int] = {}

    def summaries(self, summaries: Sequence[Summary]) -> list[Piece]:
        """Give summaries of the conversation."""
        under = (self._fence(SUMMARIES, fences.SUMMARIES_HEAD, fences.SUMMARIES_FOOT),) if summaries else ()
        return [
            Piece(
                SUMMARIES,
                "summary",
                one.id,
                self._line(render.summary_lines(one)),
                one,
                first_seq=one.from_seq,
                wording=TextFingerprint(one.text),
                under=under,
            )
            for one in summaries
        ]

    def standing(self, facts: Sequence[Hit]) -> list[Piece]:
        """Give facts that are in whatever is asked."""
        under = (self._fence("standing", fences.STANDING_HEAD, fences.STANDING_FOOT),) if facts else ()
        return [self._fact(one, under, pinned=True) for one in facts]

    def facts(self, facts: Sequence[Hit]) -> list[Piece]:
        """Give facts that answer to the question."""
        return [self._fact(one, self._facts) for one in facts]

    def hits(self, hits: Sequence[Hit]) -> list[Piece]:
        """Give hits, each under its day."""
        return [self._hit(one) for one in hits]

    def turns(self, turns: Sequence[Entry], longest: int | None) -> list[Piece]:
        """Give recent turns; those that take more than `longest` tokens are cut there, None for none."""
        pieces = [self._block(turn) if isinstance(turn, Block) else self._turn(turn) for turn in turns]
        return pieces if longest is None else [self._shortened(one, longest) for one in pieces]

    def texts(self, section: Section, allowance: Allowance) -> list[Piece]:
        """Give the texts of a section of the user's own."""
        around = {"role": "system", "content": f"<{section.name}>\n</{section.name}>"}
        under = (Heading(section.name, self.counter.count_message(around)),)
        most = (allowance.longest or (allowance.share if section.steady else allowance.maximum)) - under[0].tokens
        pieces = []
        for text in section.texts:
            tokens, note = self._line(render.section_lines(text)), ""
            if allowance.cut and tokens > most and (shorter := cut_text(text, most - 8, self.counter)):
                whole, tokens, text = tokens, self._line(render.section_lines(shorter)), shorter
                note = f"cut at a sentence: {tokens} of {whole} tokens"
            pieces.append(
                Piece(section.name, "text", None, tokens, text, note=note, wording=TextFingerprint(text), under=under)
            )
        return pieces

    def beginning(self, piece: Piece, tokens: int) -> Piece | None:
        """Give the first sentences or words of a hit, in at most so many tokens; None where they would say nothing."""
        hit = piece.content
        if not isinstance(hit, Hit):
            return None
        around = self._line(render.hit_line(replace(hit, text="")))
        text = cut_closely(hit.text, tokens - around, self.counter) if tokens - around >= LEAST else None
        if text is None:
            return None
        shorter = replace(hit, text=text)
        counted = self._line(render.hit_line(shorter))
        note = "; ".join([*filter(None, [piece.note]), f"cut: {counted} of {piece.tokens} tokens"])
        if counted > tokens:
            return None
        return replace(piece, tokens=counted, content=shorter, wording=TextFingerprint(text), note=note, whole=piece)

    def older(self, turns: Iterable[Piece]) -> Iterator[Piece]:
        """Give messages of turns that are not in the window as hits."""
        for turn in turns:
            if isinstance(turn.content, Turn) and len(turn.content.messages) == 1:
                (message,) = turn.content.messages
                if message.role in SPOKEN and message.text:
                    yield self._hit(_as_hit(message), OLDER)

    def _fact(self, fact: Hit, under: tuple[Heading, ...], *, pinned: bool = False) -> Piece:
        tokens = self._line(render.fact_line(fact))
        return Piece(
            FACTS,
            "fact",
            fact.id,
            tokens,
            fact,
            fact.score,
            pinned=pinned,
            wording=TextFingerprint(fact.text),
            sources=fact.sources,
            under=under,
        )

    def _hit(self, hit: Hit, note: str = "") -> Piece:
        tokens = self._line(render.hit_line(hit))
        under = (*self._hits, self._day(hit))
        score = None if note else hit.score
        return Piece(
            HITS, hit.tier, hit.id, tokens, hit, score, wording=TextFingerprint(hit.text), under=under, note=note
        )

    def _day(self, hit: Hit) -> Heading:
        line = f"[{format_day(hit.occurred_at)}]"
        if line not in self._days:
            self._days[line] = Heading(line, self._line(line))
        return self._days[line]

    def _block(self, block: Block) -> Piece:
        tokens = FENCE + self._line(render.record_lines(block))
        took = f"{block.strategy}: messages {block.first_seq} to {block.last_seq}"
        return Piece(RECENT, "block", block.messages[0].id, tokens, block, note=took, first_seq=block.first_seq)

    def _turn(self, turn: Turn) -> Piece:
        return Piece(
            RECENT,
            "turn",
            turn.messages[0].id,
            sum(map(self._message, turn.messages)),
            turn,
            shows=frozenset(message.id for message in turn.messages),
            first_seq=turn.first_seq,
            wording=TextFingerprint("\n".join(message.text or "" for message in turn.messages)),
        )

    def _message(self, message: Message) -> int:
        """Give what a message adds: what is stored for its text, where the same counter counted it."""
        if message.counter != self.counter.name or message.parts is not None or message.tool_calls:
            return self.counter.count_message(message.as_chat())
        around = (message.role, message.name, message.tool_call_id)
        if around not in self._around:
            self._around[around] = self.counter.count_message(message.as_chat() | {"content": ""})
        return message.tokens + self._around[around]

    def _shortened(self, piece: Piece, tokens: int) -> Piece:
        turn = piece.content
        shorter = cut_turn(turn, tokens, self.counter) if isinstance(turn, Turn) and piece.tokens > tokens else None
        if shorter is None:
            return piece
        text = shorter.messages[0].text or ""
        counted = self.counter.count_message(shorter.messages[0].as_chat())
        note = f"cut at a sentence: {counted} of {piece.tokens} tokens"
        return replace(piece, tokens=counted, content=shorter, note=note, wording=TextFingerprint(text))

    def _fence(self, name: str, head: str, foot: str) -> Heading:
        return Heading(name, self.counter.count_message({"role": "system", "content": f"{head}\n{foot}"}))

    def _line(self, line: str) -> int:
        return self.counter.count(f"{line}\n")


def _as_hit(message: Message) -> Hit:
    return Hit(
        tier=Tier.MESSAGES,
        id=message.id,
        text=message.text or "",
        score=0.0,
        parts={},
        sources=(message.id,),
        occurred_at=message.occurred_at,
        conversation_id=message.conversation_id,
        seq=message.seq,
        role=message.role,
        speaker=message.name or message.role,
    )
