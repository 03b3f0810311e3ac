"""`chat`: an assistant over Ollama that remembers between sessions."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import (
    AnswerOption,
    ConversationOption,
    DatabaseOption,
    JsonFlag,
    UserOption,
    WindowOption,
    name,
)
from memstore.cli.questions import show_facts, show_hits
from memstore.cli.show import complain, hint, print_json, safe, table
from memstore.cli.stores import opened
from memstore.errors import BudgetTooSmall, Conflict, InvalidInput, ProviderError
from memstore.plain import plain

if TYPE_CHECKING:
    from memstore import ConversationScope
    from memstore.cli.assistant import Assistant, Turn
    from memstore.cli.deriving import Deriving
    from memstore.models import Json

CONVERSATION = "chat"
PROMPT = "> "
MOST_SESSIONS = 20  # that are listed
UNANSWERED = (ProviderError, BudgetTooSmall, InvalidInput)  # what ends a turn, and not the chat
_COMMAND = re.compile(r"/[a-z]*(?!\S)")  # not a path, and not what stands in a sentence


def _instructions(value: str) -> str:
    """Read a system prompt, or the file that has it."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{value[1:]} cannot be read: {error}.") from None


def chat(
    user: UserOption,
    model: Annotated[
        str, typer.Option("--model", "-m", parser=name, metavar="NAME", help="The model, as ollama list shows it.")
    ],
    conversation: ConversationOption = CONVERSATION,
    system: Annotated[
        str | None, typer.Option(parser=_instructions, metavar="TEXT|@FILE", help="A system prompt.")
    ] = None,
    budget: WindowOption = None,
    reserve: AnswerOption = None,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Say only this; else lines are read from stdin.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Talk to a model of Ollama's that remembers what was said, in this session and in those before.

    Each line is a message; /help names the commands. Ctrl-C stops an answer, at the prompt it ends the chat. What was
    said is stored before the model is asked, an answer once it came to its end. Where lines come from a pipe and one
    was not answered, the others go on, and the exit code is 1.

    JSON, with --message: {"answer", "ended": "stop" or "length", "tokens", "prompt_tokens", "answer_tokens", "window",
    "receipt": id}.
    """
    if as_json and message is None:
        raise typer.BadParameter("it is for one message: give --message.", param_hint="--json")
    with _session(database, user, conversation, model, system=system, budget=budget, reserve=reserve) as session:
        if message is not None:
            session.say_only(message, as_json=as_json)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            session.talk()
        else:
            raise typer.Exit(session.read())


@contextmanager
def _session(
    database: str | None,
    user: str,
    conversation: str,
    model: str,
    *,
    system: str | None,
    budget: int | None,
    reserve: int | None,
) -> Iterator[_Session]:
    from memstore.cli.assistant import Assistant
    from memstore.cli.deriving import Deriving
    from memstore.providers.ollama_chat import load
    from memstore.settings import load as load_settings

    # The same window in every call, whatever it is for: Ollama loads a model anew for another one.
    num_ctx = max(load_settings({}).ollama_num_ctx, budget or 0)
    with opened(database, ollama_num_ctx=num_ctx) as store, closing(Deriving(store, user)) as deriving:
        own = load(model, store.settings)

        def begin(name: str) -> tuple[ConversationScope, Assistant]:
            scope = store.user(user).conversation(name)
            return scope, Assistant(scope, own, system=system, budget=budget, reserve=reserve)

        yield _Session(begin, conversation, deriving)


class _Session:
    """One sitting: lines in, answers out."""

    def __init__(
        self, begin: Callable[[str], tuple[ConversationScope, Assistant]], conversation: str, deriving: Deriving
    ) -> None:
        self._begin = begin
        self._scope, self._assistant = begin(conversation)
        self._deriving = deriving
        self._shown = False
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/facts": self._facts,
            "/forget": self._forget,
            "/why": self._why,
            "/context": self._why,
            "/recall": self._recall,
            "/sessions": self._sessions,
            "/session": self._session,
            "/help": self._help,
        }

    def say_only(self, text: str, *, as_json: bool) -> None:
        """Answer one message, then derive."""
        turn = self._answered(text, _silent if as_json else self._show)
        if as_json:
            print_json(_as_json(turn))
        self._deriving.once()

    def read(self) -> int:
        """Answer every line of stdin, and derive between them; give the exit code."""
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        failed = False
        for text in map(str.strip, sys.stdin):
            if text == "/quit":
                break
            if text and not self._obeyed(text):
                failed |= not self._turn(text)
                self._deriving.once()
        return int(failed)

    def talk(self) -> None:
        """Answer whoever sits at the terminal, and derive while they read and type."""
        with suppress(ImportError):  # not everywhere; it lets a line be edited
            import readline  # noqa: F401
        self._greet()
        self._deriving.begin()  # what an earlier session left, and the encoder is loaded meanwhile
        while (text := _typed()) not in (None, "/quit"):
            if text and not self._obeyed(text):
                self._deriving.pause()
                try:
                    self._turn(text)
                except KeyboardInterrupt:
                    self._end_line()
                    hint("stopped; what you said is stored, the unfinished answer is not")
                self._deriving.begin()

    def _turn(self, text: str) -> bool:
        """Show the answer to a message; give whether there is one, having said why not."""
        try:
            self._answered(text, self._show)
        except UNANSWERED as error:
            self._end_line()
            complain(str(error))
            hint("what you said is stored, an answer is not")
            return False
        return True

    def _answered(self, text: str, show: Callable[[str], None]) -> Turn:
        turn = self._assistant.reply(text, show)
        self._end_line()
        if turn.answer.ended == "length":
            hint("the answer was cut off: it may have no more tokens (--reserve)")
        if turn.missed:
            hint(
                f"the server counted {turn.missed} tokens more than {turn.context.receipt.counter} did; "
                f"from now on {self._assistant.margin} are kept free"
            )
        return turn

    def _show(self, piece: str) -> None:
        print(safe(piece), end="", flush=True)
        self._shown = True

    def _end_line(self) -> None:
        if self._shown:
            print(flush=True)
        self._shown = False

    def _greet(self) -> None:
        info = self._scope.info()
        known = "nothing was said yet" if info is None else f"{info.last_seq:,} messages so far"
        hint(f"{self._scope.user.name}, {self._scope.name}: {known}; /help names the commands")
        try:
            hint(f"{self._assistant.window:,} tokens of window")
        except ProviderError as error:
            complain(str(error))

    def _obeyed(self, text: str) -> bool:
        """Do what a line that begins with a command says; give whether it was one."""
        found = _COMMAND.match(text)
        if found is None:
            return False
        self._commands.get(found[0], self._unknown)(text[found.end() :].strip())
        return True

    def _facts(self, _: str) -> None:
        show_facts(self._scope.user.facts())

    def _forget(self, beginning: str) -> None:
        """Take a fact back, by how its id begins."""
        if not beginning:
            hint("/forget ID, as /facts shows it")
            return
        user = self._scope.user
        try:
            fact = user.retract_fact(user.find_id(beginning, of="fact"))
        except (InvalidInput, Conflict) as error:
            complain(str(error))
            return
        print(safe(f"no longer used: {fact.text}"))
        hint(f"memstore fact history and undo bring it back; memstore erase fact {fact.id} removes it for good")

    def _sessions(self, _: str) -> None:
        """List the conversations, the latest first."""
        found = self._scope.user.conversations(limit=MOST_SESSIONS)
        table(
            ("session", "messages", "last"),
            [(one.name, f"{one.last_seq:,}", f"{one.updated_at:%Y-%m-%d %H:%M}") for one in found],
        )

    def _session(self, name: str) -> None:
        """Go on in another conversation, which may be a new one."""
        try:
            self._scope, self._assistant = self._begin(name)
        except InvalidInput as error:
            complain(str(error))
            return
        self._greet()

    def _recall(self, query: str) -> None:
        if query:
            show_hits(plain(self._scope.user.recall(query)))
        else:
            hint("/recall QUERY")

    def _why(self, _: str) -> None:
        """Show what the last context was made of, in this session or before it."""
        if last := self._assistant.last:
            print(safe(last.explain()))
        elif kept := self._scope.receipts(limit=1):
            print(safe(self._scope.user.receipt(kept[0]).explain()))
        else:
            hint("no context was made yet")

    def _help(self, _: str) -> None:
        print(
            "/facts          what is known of you\n"
            "/forget ID      use a fact no more\n"
            "/why            what the last answer was made from, and what was left out\n"
            "/recall QUERY   what was said about something\n"
            "/sessions       your conversations\n"
            "/session NAME   go on in one of them, or in a new one\n"
            "/quit           end, as Ctrl-D does; Ctrl-C stops an answer"
        )

    def _unknown(self, _: str) -> None:
        hint("no such command: /facts, /forget ID, /why, /recall QUERY, /sessions, /session NAME, /quit, /help")


def _silent(_: str) -> None:
    """Show nothing."""


def _typed() -> str | None:
    """Give a line from the terminal; None at its end."""
    try:
        return input(PROMPT).strip()
    except EOFError:
        print()
        return None


def _as_json(turn: Turn) -> Json:
    return {
        "answer": turn.answer.text,
        "ended": turn.answer.ended,
        "tokens": int(turn.context.tokens),
        "prompt_tokens": turn.answer.prompt_tokens,
        "answer_tokens": turn.answer.answer_tokens,
        "window": turn.window,
        "receipt": turn.context.receipt.id,
    }
