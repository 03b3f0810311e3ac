"""`chat`: an assistant that remembers between sessions, with any chat model behind a server.

Each message is stored before the model is asked, so no failure of the model loses it. An answer is stored when it is
complete: half a sentence would be remembered as what the assistant meant.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from memstore import errors
from memstore.cli.options import ConversationOption, UserOption, common, name_option
from memstore.cli.output import echo_error, echo_hint, escape, print_json
from memstore.cli.recall import print_facts, print_hits
from memstore.cli.session import open_store
from memstore.text import quantify

if TYPE_CHECKING:
    from memstore import Context, ConversationScope, MemoryStore
    from memstore.models import CallProgress
    from memstore.providers.services import RawAnswer, ServedChatModel
    from memstore.settings import Settings

HELP = """\
/facts          what is known of you
/forget ID      use a fact no more
/why            what the last answer was made from, and what was left out
/recall QUERY   what was said about something
/private        store nothing of what follows, until /private off
/quit           end, as Ctrl-D does; Ctrl-C stops an answer
Facts are found after each answer. If a model is set for facts, it is asked after six turns, and at the end."""


def chat(
    user: UserOption,
    model: Annotated[
        str,
        name_option("The model: KIND:NAME, or as ollama list shows it.", "--model", "-m"),
    ],
    conversation: ConversationOption = "chat",
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="A system prompt.")] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, metavar="N", help="Tokens of prompt and answer; else the window."),
    ] = None,
    reserve: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The most tokens of an answer; else a quarter of the window.")
    ] = None,
) -> None:
    """Talk to a model that remembers what was said, in this session and in those before. It knows today's date.

    Each line is a message; /help names the commands. Ctrl-C stops an answer, at the prompt it ends the chat. A message
    is stored before the model is asked, an answer once it is complete. Where lines come from a pipe and one was not
    answered, the others go on, and the exit code is 1.

    JSON, of each answer: {"answer", "ended": "stop" or "length", "tokens", "prompt_tokens", "answer_tokens", "window",
    "receipt": id}.
    """
    from memstore.settings import load as load_settings

    # The same window in every call, whatever it is for: Ollama loads a model anew for another one.
    num_ctx = max(load_settings({}).ollama_num_ctx, budget or 0)
    with open_store(ollama_num_ctx=num_ctx) as store:
        scope = store.user(user).conversation(conversation)
        _Session(store, scope, _load_model(model, store.settings), system, budget, reserve).talk()


def _load_model(name: str, settings: Settings) -> ServedChatModel:
    from memstore.plugins import installed_entry_points
    from memstore.providers import load_chat_model
    from memstore.providers.services import ServedChatModel

    kinds = installed_entry_points("memstore.chat_models").names
    try:
        model = load_chat_model(name, settings)
    except errors.ProviderMissing:
        if name.partition(":")[0] in kinds:
            raise
        model = load_chat_model(f"ollama:{name}", settings)
    if not isinstance(model, ServedChatModel):
        known = ", ".join(f"{kind}:" for kind in sorted(kinds))
        raise errors.ProviderMissing(f"{name} cannot be chatted with: name one of {known}.")
    return model


@dataclass(slots=True)
class _Session:
    """Answers in one conversation, within a window of tokens, and derives its messages.

    `budget` bounds prompt and answer together, by default by the model's window; `reserve` bounds the answer.
    `margin` tokens are kept free, as the server was seen to count more than we did. `turns` are those since a
    model was asked for facts. `outcomes` are new facts and problems that are not printed yet.
    `stored_scope` is the conversation to return to from a private one, `last_context` its last context.
    """

    store: MemoryStore
    scope: ConversationScope
    model: ServedChatModel
    system: str | None
    budget: int | None
    reserve: int | None
    margin: int = 0
    line_open: bool = False
    turns: int = 0
    asking: threading.Thread | None = None
    may_ask: threading.Event = field(default_factory=threading.Event)
    outcomes: list[tuple[int, int, list[str]]] = field(default_factory=list)
    has_told_of_backlog: bool = False
    stored_scope: ConversationScope | None = None
    last_context: Context | None = None
    printed: set[str] = field(default_factory=set)

    def talk(self) -> None:
        """Answer each line; derive between them. At a terminal a thread asks chat models for facts and summaries."""
        at_terminal, all_answered = sys.stdin.isatty() and sys.stdout.isatty(), True
        if at_terminal:
            self._welcome()
        for text in _typed_lines() if at_terminal else _piped_lines():
            if text == "/quit":
                break
            self._print_outcomes()
            if not text or self._run_command(text):
                continue
            self.may_ask.clear()
            all_answered &= self._try_answer(text, may_stop=at_terminal)
            self.turns += 1
            # HELP says after how many turns a model is asked for facts and summaries.
            is_due = self.turns >= 6
            with suppress(KeyboardInterrupt) if at_terminal else nullcontext():
                self._derive(may_ask=is_due and not at_terminal)
            if is_due and at_terminal:
                self._begin_asking()
        if self.store.stats(user=self.scope.user.name)["pending"]:
            echo_hint("deriving what was said; Ctrl-C leaves it for later")
            with suppress(KeyboardInterrupt):
                if self.asking is not None:
                    self.asking.join()
                self._derive(may_ask=True)
        raise typer.Exit(0 if at_terminal or all_answered else 1)

    def _begin_asking(self) -> None:
        """Derive in a thread what needs a model. After the next line each deriver ends with the step that it makes."""
        if self.asking is not None and self.asking.is_alive():
            return

        def check(*_: object) -> None:
            if not self.may_ask.is_set():
                raise errors.ModelUnavailable("The chat goes on.")

        self.turns = 0
        self.may_ask.set()
        # Between steps, so that an answer that comes is kept. The end of the chat does not wait for its call: what it
        # was about stays pending.
        arguments = self.may_ask.is_set, check, lambda _: None
        self.asking = threading.Thread(target=self._run_derivation, args=arguments, daemon=True)
        self.asking.start()

    def _derive(self, *, may_ask: bool) -> None:
        def tell(kind: str, done: int, total: int) -> None:
            if kind == "chunks" and total > 500 and done < total and not self.has_told_of_backlog:
                self.has_told_of_backlog = True
                echo_hint(f"reading {quantify(total, 'message')} that came in before; Ctrl-C leaves them for later")

        def check(_: CallProgress) -> None:
            if not may_ask:
                raise errors.ModelUnavailable("It is asked after some turns.")

        self._run_derivation(lambda: may_ask, tell, check)
        self._print_outcomes()
        if may_ask:
            self.turns = 0

    def _run_derivation(
        self,
        may_ask: Callable[[], bool],
        progress: Callable[[str, int, int], None],
        on_call: Callable[[CallProgress], None],
    ) -> None:
        try:
            report = self.store.derive(user=self.scope.user.name, progress=progress, on_call=on_call)
            problems = [*report.failed, *(report.waiting if may_ask() else ())]
            self.outcomes.append((report.facts, report.quarantined, problems))
        except Exception as error:
            # Whatever it is: it costs the chat what it would have found, and nothing else.
            self.outcomes.append((0, 0, [str(error)]))

    def _print_outcomes(self) -> None:
        while self.outcomes:
            facts, waiting, problems = self.outcomes.pop(0)
            if waiting and "waiting" not in self.printed:
                self.printed.add("waiting")
                echo_hint(f"what is found waits until you accept it: memstore review -u {self.scope.user.name}")
            if facts and sys.stdin.isatty() and sys.stdout.isatty():
                echo_hint(f"{quantify(facts, 'new fact')}; /facts lists what is known")
            for text in problems:
                if text not in self.printed:
                    self.printed.add(text)
                    echo_hint(f"not derived: {text}")

    def _welcome(self) -> None:
        # readline is not everywhere; it lets a line be edited.
        with suppress(ImportError):
            import readline  # noqa: F401
        info = self.scope.info()
        history = "nothing was said yet" if info is None else f"{quantify(info.last_seq, 'message')} so far"
        echo_hint(f"{self.scope.user.name}, {self.scope.name}: {history}; /help names the commands")

    def _try_answer(self, text: str, *, may_stop: bool) -> bool:
        """Answer a message; return whether there is an answer, having printed why not. Ctrl-C may stop it."""
        try:
            self.scope.add("user", text)
        except errors.InvalidInput as error:
            echo_error(str(error))
            echo_hint("what you said is not stored")
            return False
        try:
            context, answer = self._answer((lambda _: None) if common.as_json else self._show)
        except (errors.ProviderError, errors.BudgetTooSmall, errors.InvalidInput) as error:
            self._end_line()
            echo_error(str(error))
            echo_hint("an answer is not stored" if self._is_private else "what you said is stored, an answer is not")
            return False
        except KeyboardInterrupt:
            if not may_stop:
                raise
            self._end_line()
            kept = "your message is stored, the unfinished answer is not"
            echo_hint(f"stopped; {'nothing of it is stored' if self._is_private else kept}")
            return False
        if common.as_json:
            shown = {"answer": answer.text, "ended": _end_reason(answer), "tokens": int(context.tokens)}
            counts = {"prompt_tokens": answer.prompt_tokens, "answer_tokens": answer.completion_tokens}
            print_json(shown | counts | {"window": self._window, "receipt": context.receipt.id})
        return True

    def _answer(self, show: Callable[[str], object]) -> tuple[Context, RawAnswer]:
        name, max_tokens = self.model.counter_name, self._window // 4 if self.reserve is None else self.reserve
        # At most the window's fourth part is kept free because the server counts otherwise.
        margin = min(self.margin, self._window // 4)
        system = "\n\n".join(filter(None, [self.system, f"Today is {date.today():%Y-%m-%d, %A}."]))
        context = self.scope.context(
            budget=self._window - margin,
            reserve=max_tokens,
            system=system,
            model=name,
            format="ollama" if name.startswith("ollama:") else "openai",
        )
        self.last_context = context
        try:
            answer = self.model.stream(context.messages, max_tokens=max_tokens, show=show)
        except errors.PromptTooLong:
            # The server counted more than the window has: at least so many tokens more than we did.
            self.margin = max(margin, self._window - context.tokens) + self._window // 16
            raise
        self._end_line()
        if answer.text.strip():
            self.scope.add("assistant", answer.text, metadata={"model": name, "ended": _end_reason(answer)})
        if answer.prompt_tokens is not None and (excess := answer.prompt_tokens - context.tokens) > margin:
            self.margin = excess + excess // 4
            echo_hint(f"the server counted {excess} tokens more than {context.receipt.counter} did; room is kept free")
        if not answer.text.strip():
            hint = f"{name} said nothing in {max_tokens} tokens: if it thinks, give it more (--reserve)."
            raise errors.ModelAnswerInvalid(hint, "")
        if not answer.is_whole:
            echo_hint("the answer was cut off: it may have no more tokens (--reserve)")
        return context, answer

    @property
    def _window(self) -> int:
        return self.model.context_tokens if self.budget is None else min(self.budget, self.model.context_tokens)

    def _show(self, piece: str) -> None:
        print(escape(piece), end="", flush=True)
        self.line_open = True

    def _end_line(self) -> None:
        if self.line_open:
            print(flush=True)
        self.line_open = False

    def _run_command(self, text: str) -> bool:
        command, *rest = text.split(maxsplit=1)
        argument = "".join(rest)
        # Not a path, and not what stands in a sentence.
        if command != "/" and not (command.startswith("/") and command[1:].isalpha()):
            return False
        user = self.scope.user
        if command in ("/forget", "/recall") and not argument:
            echo_hint(f"{command} is about something: /forget ID, /recall QUERY")
        elif command == "/facts":
            print_facts(user.facts(), "nothing is known of you yet")
        elif command == "/recall":
            print_hits(user.recall(argument))
        elif command == "/forget":
            try:
                fact = user.retract_fact(user.resolve_id(argument, kind="fact"))
            except (errors.InvalidInput, errors.Conflict) as error:
                echo_error(str(error))
            else:
                print(escape(f"no longer used: {fact.text}"))
                erase = f"memstore erase fact {fact.id} removes it for good"
                echo_hint(f"memstore fact history and undo bring it back; {erase}")
        elif command == "/why":
            if self._is_private and self.last_context is not None:
                print(escape(self.last_context.explain()))
            elif receipts := self.scope.receipts(limit=1):
                print(escape(user.receipt(receipts[0]).explain()))
            else:
                echo_hint("no context was made yet")
        elif command == "/private":
            self._switch_privacy(argument)
        elif command == "/help":
            print(HELP)
        else:
            echo_hint("no such command: /facts, /forget ID, /why, /recall QUERY, /private, /quit, /help")
        return True

    @property
    def _is_private(self) -> bool:
        return self.stored_scope is not None

    def _switch_privacy(self, argument: str) -> None:
        """Go on in a conversation of which nothing is stored, or return to the stored one."""
        if argument not in ("", "off"):
            echo_hint("/private begins a private part, /private off ends it")
        elif argument == "off" and self.stored_scope is not None:
            self.scope, self.stored_scope, self.last_context = self.stored_scope, None, None
            echo_hint("messages are stored again; nothing is left of the private part")
        elif argument == "off":
            echo_hint("messages are stored already; /private begins a private part")
        elif self.stored_scope is None:
            private = self.scope.user.conversation(self.scope.name, private=True)
            private.add_many(self.scope.recent(limit=100))
            self.scope, self.stored_scope, self.last_context = private, self.scope, None
            echo_hint("private: nothing of what follows is stored, until /private off")


def _typed_lines() -> Iterator[str]:
    try:
        while True:
            yield input("> ").strip()
    except EOFError:
        print()


def _piped_lines() -> Iterator[str]:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return map(str.strip, sys.stdin)


def _end_reason(answer: RawAnswer) -> str:
    return "stop" if answer.is_whole else "length"
