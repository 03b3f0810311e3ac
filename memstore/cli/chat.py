"""`chat`: an assistant that remembers between sessions, over Ollama or any OpenAI-compatible server.

Each message is stored before the model is asked, so no failure of the model loses it. An answer is stored when it is
complete: half a sentence would be remembered as what the assistant meant.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.facts import print_facts
from memstore.cli.options import ConversationOption, DatabaseOption, JsonFlag, UserOption, name_option
from memstore.cli.output import echo_error, echo_hint, escape, print_json
from memstore.cli.recall import print_hits
from memstore.cli.session import open_store
from memstore.errors import (
    BudgetTooSmall,
    Conflict,
    InvalidInput,
    ModelAnswerInvalid,
    PromptTooLong,
    ProviderError,
    ProviderMissing,
)
from memstore.serialization import to_json

if TYPE_CHECKING:
    from memstore import Context, ConversationScope, MemoryStore
    from memstore.providers.services import RawAnswer, ServedChatModel
    from memstore.settings import Settings

CONVERSATION = "chat"
PROMPT = "> "
MAX_MARGIN = 4  # at most the window's fourth part is kept free because the server counts otherwise
UNANSWERED = (ProviderError, BudgetTooSmall, InvalidInput)  # errors that end a turn, and not the chat
HELP = """\
/facts          what is known of you
/forget ID      use a fact no more
/why            what the last answer was made from, and what was left out
/recall QUERY   what was said about something
/quit           end, as Ctrl-D does; Ctrl-C stops an answer"""
_COMMAND = re.compile(r"/[a-z]*(?!\S)")  # not a path, and not what stands in a sentence


def chat(
    user: UserOption,
    model: Annotated[str, name_option("The model: openai:NAME, or as ollama list shows it.", "--model", "-m")],
    conversation: ConversationOption = CONVERSATION,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="A system prompt.")] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, metavar="N", help="Tokens of prompt and answer; else the window."),
    ] = None,
    reserve: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The most tokens of an answer; else a quarter of the window.")
    ] = None,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Say only this; else lines are read from stdin.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Talk to a model that remembers what was said, in this session and in those before.

    Each line is a message; /help names the commands. Ctrl-C stops an answer, at the prompt it ends the chat. What was
    said is stored before the model is asked, an answer once it came to its end. Where lines come from a pipe and one
    was not answered, the others go on, and the exit code is 1.

    JSON, with --message: {"answer", "ended": "stop" or "length", "tokens", "prompt_tokens", "answer_tokens", "window",
    "receipt": id}.
    """
    from memstore.settings import load as load_settings

    if as_json and message is None:
        raise typer.BadParameter("it is for one message: give --message.", param_hint="--json")
    # The same window in every call, whatever it is for: Ollama loads a model anew for another one.
    num_ctx = max(load_settings({}).ollama_num_ctx, budget or 0)
    with open_store(database, ollama_num_ctx=num_ctx) as store:
        scope = store.user(user).conversation(conversation)
        session = _Session(store, scope, _load_model(model, store.settings), system, budget, reserve)
        if message is not None:
            session.answer_one(message, as_json=as_json)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            session.talk()
        else:
            raise typer.Exit(session.read_lines())


def _load_model(name: str, settings: Settings) -> ServedChatModel:
    from memstore.plugins import installed_entry_points
    from memstore.providers import load_chat_model
    from memstore.providers.services import ServedChatModel

    kinds = installed_entry_points("memstore.chat_models").names
    model = load_chat_model(name if name.partition(":")[0] in kinds else f"ollama:{name}", settings)
    if not isinstance(model, ServedChatModel):
        raise ProviderMissing(f"{name} cannot be chatted with: name one of openai: or ollama:.")
    return model


class _Paused(BaseException):
    """Ends a derivation between two steps. Not an Exception, which `derive` takes for a failed conversation."""


class _Session:
    """Answers in one conversation, within a window of tokens, and derives what was said.

    `budget` bounds prompt and answer together, by default by the model's window; `reserve` bounds the answer.
    """

    def __init__(
        self,
        store: MemoryStore,
        scope: ConversationScope,
        model: ServedChatModel,
        system: str | None,
        budget: int | None,
        reserve: int | None,
    ) -> None:
        self._store, self._scope, self._model = store, scope, model
        self._system, self._budget, self._reserve = system, budget, reserve
        self._context: Context | None = None  # the last one
        self._margin: int | None = None
        self._line_open = self._paused = False
        self._errors: set[str] = set()  # of derivation, each printed once

    def answer_one(self, text: str, *, as_json: bool) -> None:
        """Answer one message, then derive."""
        context, answer = self._answer(text, (lambda _: None) if as_json else self._show)
        if as_json:
            shown = {"answer": answer.text, "ended": _ended(answer), "tokens": int(context.tokens)}
            counts = {"prompt_tokens": answer.prompt_tokens, "answer_tokens": answer.completion_tokens}
            print_json(shown | counts | {"window": self._window, "receipt": context.receipt.id})
        self._derive()

    def read_lines(self) -> int:
        """Answer every line of stdin, and derive between them; return the exit code."""
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        failed = False
        for text in map(str.strip, sys.stdin):
            if text == "/quit":
                break
            if text and not self._run_command(text):
                failed |= not self._try_answer(text)
                self._derive()
        return int(failed)

    def talk(self) -> None:
        """Answer at a terminal, and derive in a thread while the person reads and types."""
        with suppress(ImportError):  # not everywhere; it lets a line be edited
            import readline  # noqa: F401
        info = self._scope.info()
        known = "nothing was said yet" if info is None else f"{info.last_seq:,} messages so far"
        echo_hint(f"{self._scope.user.name}, {self._scope.name}: {known}; /help names the commands")
        with ThreadPoolExecutor(1, "memstore-derive") as background:
            try:
                background.submit(self._derive)  # what an earlier session left
                while (text := _read_line()) not in (None, "/quit"):
                    if text and not self._run_command(text):
                        self._paused = True
                        try:
                            self._try_answer(text)
                        except KeyboardInterrupt:
                            self._end_line()
                            echo_hint("stopped; what you said is stored, the unfinished answer is not")
                        self._paused = False
                        background.submit(self._derive)
            finally:
                self._paused = True

    def _try_answer(self, text: str) -> bool:
        """Answer a message; return whether there is an answer, having printed why not."""
        try:
            self._answer(text, self._show)
        except UNANSWERED as error:
            self._end_line()
            echo_error(str(error))
            echo_hint("what you said is stored, an answer is not")
            return False
        return True

    def _answer(self, text: str, show: Callable[[str], object]) -> tuple[Context, RawAnswer]:
        """Store a message, pass the answer piece by piece to `show`, and store it."""
        self._scope.add("user", text)
        name, max_tokens = self._model.counter_name, self._window // 4 if self._reserve is None else self._reserve
        budget = self._window - self._free_margin()
        self._context = context = self._scope.context(
            budget=budget,
            reserve=max_tokens,
            system=self._system,
            model=name,
            format="ollama" if name.startswith("ollama:") else "openai",
        )
        try:
            answer = self._model.stream(context.messages, max_tokens=max_tokens, show=show)
        except PromptTooLong:  # the server counted more than the window has: at least so many tokens more than we did
            self._margin = max(self._free_margin(), self._window - context.tokens) + self._window // 16
            raise
        self._end_line()
        if answer.text.strip():
            self._scope.add("assistant", answer.text, metadata={"model": name, "ended": _ended(answer)})
        self._compare_counts(context, answer)
        if not answer.text.strip():
            hint = f"{name} said nothing in {max_tokens} tokens: if it thinks, give it more (--reserve)."
            raise ModelAnswerInvalid(hint, "")
        if not answer.is_whole:
            echo_hint("the answer was cut off: it may have no more tokens (--reserve)")
        return context, answer

    @property
    def _window(self) -> int:
        return self._model.context_tokens if self._budget is None else min(self._budget, self._model.context_tokens)

    def _free_margin(self) -> int:
        """Return the tokens that are kept free, as the server was seen to count more than we did."""
        if self._margin is None:
            drifts = [
                drift for drift in self._scope.user.token_count_errors() if drift.model == self._model.counter_name
            ]
            self._margin = max((drift.largest_miss for drift in drifts if drift.observed > drift.predicted), default=0)
        return min(self._margin, self._window // MAX_MARGIN)

    def _compare_counts(self, context: Context, answer: RawAnswer) -> None:
        """Record the server's count; if it exceeds ours by more than the margin, raise the margin."""
        if answer.prompt_tokens is None:
            return
        self._scope.record_usage(context, prompt_tokens=answer.prompt_tokens, model=self._model.counter_name)
        excess = answer.prompt_tokens - context.tokens
        if excess > self._free_margin():
            self._margin = excess + excess // 4  # the next prompt may be longer, and the excess grows with it
            counted = f"the server counted {excess} tokens more than {context.receipt.counter} did"
            echo_hint(f"{counted}; from now on {self._free_margin()} are kept free")

    def _show(self, piece: str) -> None:
        print(escape(piece), end="", flush=True)
        self._line_open = True

    def _end_line(self) -> None:
        if self._line_open:
            print(flush=True)
        self._line_open = False

    def _derive(self) -> None:
        try:
            report = self._store.derive(user=self._scope.user.name, progress=self._stop_if_paused)
            errors = [f"not derived yet: {text}" for text in (*report.failed, *report.waiting)]
        except _Paused:
            return
        except Exception as error:  # whatever it is: it costs the chat what it would have found, and nothing else
            errors = [f"not derived: {error}"]
        for text in errors:
            if text not in self._errors:
                self._errors.add(text)
                echo_hint(text)

    def _stop_if_paused(self, *_: object) -> None:
        if self._paused:
            raise _Paused

    def _run_command(self, text: str) -> bool:
        match = _COMMAND.match(text)
        if match is None:
            return False
        command, argument, user = match[0], text[match.end() :].strip(), self._scope.user
        if command == "/facts":
            print_facts(user.facts())
        elif command == "/recall" and argument:
            print_hits(to_json(user.recall(argument)))
        elif command == "/forget" and argument:
            self._forget(argument)
        elif command == "/why":
            self._explain()
        elif command == "/help":
            print(HELP)
        else:
            echo_hint("no such command: /facts, /forget ID, /why, /recall QUERY, /quit, /help")
        return True

    def _forget(self, prefix: str) -> None:
        user = self._scope.user
        try:
            fact = user.retract_fact(user.resolve_id(prefix, kind="fact"))
        except (InvalidInput, Conflict) as error:
            echo_error(str(error))
            return
        print(escape(f"no longer used: {fact.text}"))
        echo_hint(f"memstore fact history and undo bring it back; memstore erase fact {fact.id} removes it for good")

    def _explain(self) -> None:
        """Print what the last context was made of, of this session or before it."""
        if context := self._context:
            print(escape(context.explain()))
        elif receipts := self._scope.receipts(limit=1):
            print(escape(self._scope.user.receipt(receipts[0]).explain()))
        else:
            echo_hint("no context was made yet")


def _ended(answer: RawAnswer) -> str:
    return "stop" if answer.is_whole else "length"


def _read_line() -> str | None:
    try:
        return input(PROMPT).strip()
    except EOFError:
        print()
        return None
