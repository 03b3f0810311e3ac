"""The assistant that remembers, as people use it: sessions, ends of every kind, and a window that is never exceeded."""

import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import date
from typing import Any

import pytest

import memstore
from tests import model_server as does
from tests.client.test_private import everything
from tests.command_line import EMBEDDER, SCRIPT, Ended, Run, Terminal, environment, terminal, variables
from tests.helpers.tokenizers import as_gguf, byte_level
from tests.model_server import Behaviour, Handler, ReadingServer, ScriptedServer, streams

DOSE = int(os.environ.get("TEST_DOSE", "1"))
NUM_CTX, RESERVE = 2048, 200
MODEL = "qwen3:4b-instruct"
SECRET = "58-17-93"
TOLD = f"By the way, the combination of my locker at the rowing club is {SECRET}."
ASKED = "What is the combination of my locker at the rowing club?"
WORDS = [
    "garden", "train", "letter", "window", "market", "tomato", "paint", "river", "shelf", "orange", "winter",
    "engine", "violin", "carpet", "pepper", "bridge", "wash", "plant", "carry", "mend", "draw", "sell", "wait",
    "count", "fold", "the", "a", "we", "you", "they", "green", "slow", "heavy", "bright", "early", "under", "beside",
    "again", "and",
]  # fmt: skip


def chatml(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    """Render as the server's template does; where nobody gives a system prompt, the model has its own."""
    own = [] if messages and messages[0]["role"] == "system" else [{"role": "system", "content": "You are Qwen."}]
    told = (f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in [*own, *messages])
    return "".join(told) + "<|im_start|>assistant\n"


def tokens(prompt: str) -> int:
    return len(byte_level().encode(prompt, add_special_tokens=False))


def answers(prompt: str) -> Behaviour:
    """Answer as a model would that has nothing but its prompt: what the question is about, if it is there."""
    if not prompt.rpartition("<|im_start|>user")[2].strip().startswith(ASKED):
        talk = chatter(random.Random(len(prompt)), 30).split(" ")
        return streams(*(f"{word} " for word in talk))
    found = re.search(r"\b\d\d-\d\d-\d\d\b", prompt)
    return streams("It is ", found[0] + "." if found else "not known to me.")


def talk_long(url: str) -> None:
    """Store more in the conversation than fits into the window."""
    chance = random.Random(2)
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        talk = [{"role": ("user", "assistant")[n % 2], "content": chatter(chance, 40)} for n in range(60)]
        store.user("alice").conversation("chat").add_many(talk)
        store.derive()


def chatter(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words)).capitalize() + "."


@pytest.fixture
def server() -> Iterator[ReadingServer]:
    with ReadingServer(chatml, tokens, answers) as server:
        server.vocabulary = as_gguf(byte_level(), model="gpt2", pre="qwen2")
        server.allotted = NUM_CTX
        yield server


@pytest.fixture
def chat(cli: Run, url: str, server: ReadingServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the chat of alice in this process, its lines from a pipe."""

    def run(*args: str, lines: str = "", **settings: str) -> Ended:
        reading, writing = os.pipe()
        os.write(writing, lines.encode())
        os.close(writing)
        with os.fdopen(reading) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            own = {"ollama_url": server.url, "ollama_num_ctx": str(NUM_CTX)}
            return cli("chat", "-u", "alice", "-m", MODEL, "-d", url, *args, **own | settings)

    return run


def stored(url: str) -> list[tuple[str, str]]:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        return [(one.role, str(one.content)) for one in store.user("alice").conversation("chat").messages()]


# A turn


def test_an_answer_is_shown_kept_and_remembered_in_the_next_session(chat: Run, url: str, server: ReadingServer) -> None:
    server.script.extend([streams("Noted, ", "no peanuts."), streams("Peanuts.")])
    told = chat(lines="I'm allergic to peanuts.\n\n")
    assert (told.code, told.out, told.err) == (0, "Noted, no peanuts.\n", "")
    told = chat("--system", "Be brief.", lines="What must I not eat?\n")
    assert (told.code, told.out, told.err) == (0, "Peanuts.\n", "")
    asked = server.asked()[-1]
    assert asked["messages"][0]["content"].startswith("Be brief.")
    assert "allergic to peanuts" in server.read[-1].prompt
    assert asked["options"] == {"num_ctx": NUM_CTX, "num_predict": NUM_CTX // 4}
    assert stored(url) == [
        ("user", "I'm allergic to peanuts."),
        ("assistant", "Noted, no peanuts."),
        ("user", "What must I not eat?"),
        ("assistant", "Peanuts."),
    ]
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        alice = store.user("alice")
        assert any("peanuts" in fact.text for fact in alice.facts())
        assert store.stats()["pending"] == 0


def test_a_program_is_told_the_answer_and_its_cost(chat: Run, server: ReadingServer) -> None:
    server.script.append(streams("Hello ", "there", done_reason="length"))
    given = chat("--json", "--system", "Be kind.", "--budget", "1000", "--reserve", "100", lines="Hello?\n")
    today = f"Today is {date.today():%Y-%m-%d, %A}."
    assert server.asked()[-1]["messages"][0] == {"role": "system", "content": f"Be kind.\n\n{today}"}
    told = given.json
    assert (told["answer"], told["ended"], told["window"]) == ("Hello there", "length", 1000)
    assert told["tokens"] == told["prompt_tokens"] == server.read[-1].tokens <= 900
    assert server.read[-1][2:] == (NUM_CTX, 100)
    assert "--reserve" in given.err


def test_a_larger_budget_is_a_larger_window_and_the_models_own_is_the_end_of_it(
    chat: Run, server: ReadingServer
) -> None:
    server.trained, server.allotted = 3000, 4096
    assert chat("--budget", "4096", "--json", lines="Hello?\n").json["window"] == 3000
    assert server.read[-1].num_ctx == 4096
    assert {body["options"]["num_ctx"] for body in server.asked()} == {4096}


def test_commands_are_obeyed_and_not_said(chat: Run, url: str, server: ReadingServer) -> None:
    server.script.append(streams("Noted."))
    lines = "/why\nI'm allergic to peanuts.\n/facts\n/why\n/recall peanuts\n/recall\n/nonsense\n/help\n/quit\nno"
    told = chat(lines=lines)
    assert told.code == 0
    assert re.search(r"^[0-9a-f]{8}\tconstraint\t.*peanuts", told.out, re.MULTILINE)
    assert f"tokens, {NUM_CTX // 4} of them kept free (ollama:{MODEL}, exact)" in told.out
    assert re.search(r"\tmessages\t.*\tI'm allergic to peanuts\.$", told.out, re.MULTILINE)
    assert "/quit           end" in told.out
    assert "no context was made yet" in told.err
    assert "no such command" in told.err
    assert "/recall is about something" in told.err
    assert [role for role, _ in stored(url)] == ["user", "assistant"]
    again = chat(lines="/why\n/etc/hosts is what?\n")
    assert "(ollama:" in again.out
    assert stored(url)[2] == ("user", "/etc/hosts is what?")


def test_of_a_private_part_nothing_is_left(chat: Run, url: str, server: ReadingServer) -> None:
    server.script.extend([streams("Noted."), streams("I am sorry."), streams("Good night.")])
    told = chat(
        lines="I'm allergic to peanuts.\n/private\nI was fired at Quarzhof today.\n/why\n/private off\nGood night.\n"
    )
    assert told.code == 0
    assert "nothing of what follows is stored" in told.err and "nothing is left of the private part" in told.err
    private, after = server.read[-2].prompt, server.read[-1].prompt
    assert "allergic to peanuts" in private and "Quarzhof" in private
    assert "Quarzhof" not in after
    assert f"(ollama:{MODEL}, exact)" in told.out
    assert [text for _, text in stored(url)] == ["I'm allergic to peanuts.", "Noted.", "Good night.", "Good night."]
    assert "Quarzhof" not in str(everything(url))


def test_a_fact_is_forgotten_and_is_so_in_every_session(chat: Run, url: str, server: ReadingServer) -> None:
    server.script.append(streams("Noted."))
    told = chat(lines="I'm allergic to peanuts.\n/facts\n/why\n")
    (known,) = re.findall(r"^([0-9a-f]{8})\tconstraint\t", told.out, re.MULTILINE)
    assert "(ollama:" in told.out
    server.script.append(streams("Good evening."))
    told = chat("-c", "dinner", lines=f"Hello!\n/forget\n/forget 12345678\n/forget {known}\n/facts\n")
    assert "no longer used: The user is allergic to peanuts" in told.out
    assert not re.search(r"^[0-9a-f]{8}\tconstraint", told.out, re.MULTILINE)
    assert "no fact" in told.err.lower() and "/forget ID" in told.err
    with memstore.open(url, settings={"embedder": "none"}) as store:
        (fact,) = store.user("alice").facts(state="retracted")
        assert fact.text in told.out


# What goes wrong


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (streams("It ", "is ", then=does.ends_in_the_stream), "ended before it was done"),
        (streams("It ", "is ", then=does.fails_in_the_stream), "llama runner process has terminated"),
        (streams("It ", "is ", then=does.resets), "broke off"),
        (streams("It ", "is ", then=does.hangs), "within 1 s"),
        (does.hangs, "within 1 s"),
        (does.status(404, "model 'qwen3:4b-instruct' not found"), "ollama pull qwen3:4b-instruct"),
        (does.status(400, "the input length exceeds the context length"), "does not fit"),
        (does.status(400, "invalid option"), "refuses"),
        (streams(" ", done_reason="length"), "--reserve"),
    ],
)
def test_what_is_no_answer_is_told_and_not_kept_and_the_chat_goes_on(
    chat: Run, url: str, server: ReadingServer, trouble: Behaviour, why: str
) -> None:
    server.script.extend([trouble, streams("Yes.")])
    told = chat(lines="First?\nSecond?\n", ollama_timeout_seconds="1")
    assert told.out.endswith("Yes.\n")
    assert (told.code, why in told.err) == (1, True), told.err
    assert "Traceback" not in told.err
    assert stored(url) == [("user", "First?"), ("user", "Second?"), ("assistant", "Yes.")]
    assert "First?" in server.read[-1].prompt


def test_a_server_that_is_away_and_a_model_that_is_not_there(chat: Run, url: str, server: ReadingServer) -> None:
    told = chat(lines="Are you there?\n", ollama_url="http://127.0.0.1:9", ollama_timeout_seconds="1")
    assert (told.code, told.out) == (1, "")
    assert "Ollama at http://127.0.0.1:9 is away" in told.err
    told = chat("--model", "nosuch", lines="And you?\n")
    assert (told.code, "ollama pull nosuch" in told.err) == (1, True)
    server.capabilities = ["embedding"]
    assert "cannot chat" in chat(lines="Or you?\n").err
    assert stored(url) == [("user", "Are you there?"), ("user", "And you?"), ("user", "Or you?")]


def test_a_message_that_is_too_long_for_the_window_is_kept(chat: Run, url: str, server: ReadingServer) -> None:
    long = chatter(random.Random(1), 3000)
    told = chat(lines=f"{long}\n")
    assert (told.code, "budget" in told.err) == (1, True)
    assert chat(lines="And now?\n").code == 0
    assert [role for role, _ in stored(url)] == ["user", "user", "assistant"]


def test_a_message_that_is_refused_is_not_said_to_be_stored(chat: Run, url: str, server: ReadingServer) -> None:
    server.script.append(streams("Yes."))
    told = chat(lines=f"{chatter(random.Random(1), 60)}\nHello?\n", max_message_bytes="150")
    assert (told.code, "what you said is not stored" in told.err) == (1, True)
    assert "what you said is stored" not in told.err
    assert stored(url)[0] == ("user", "Hello?")


def test_an_answer_is_not_obeyed_by_the_terminal(chat: Run, server: ReadingServer) -> None:
    server.script.append(streams("\x1b[31m", "red"))
    assert chat(lines="Colour?\n").out == "\\x1b[31mred\n"


def test_a_derivation_that_fails_breaks_nothing(
    chat: Run, server: ReadingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no more memory")

    monkeypatch.setattr(memstore.MemoryStore, "derive", fails)
    told = chat(lines="One.\nTwo.\n")
    assert (told.code, len(told.out.splitlines())) == (0, 2)
    assert told.err.count("not derived: no more memory") == 1


@pytest.mark.parametrize("more", [300, 500])
def test_a_server_that_counts_more_is_noticed_and_room_is_left_for_it(
    chat: Run, url: str, server: ReadingServer, more: int
) -> None:
    """Its own count tells, or that it refused the prompt, which nobody counts where it is longer than the window."""
    talk_long(url)
    server.tokens = lambda prompt: tokens(prompt) + more
    told = chat("--reserve", str(RESERVE), lines="First?\nSecond?\nThird?\n")
    assert (server.read[0].tokens > NUM_CTX) == (more == 500), told.err
    assert told.err.count("the server counted 300 tokens more than") == (more == 300)
    assert [read.fits for read in server.read] == [False, True, True]


# At a terminal


def chatting(url: str, server: ReadingServer, **settings: str) -> AbstractContextManager[Terminal]:
    own = {"MEMSTORE_OLLAMA_URL": server.url, "MEMSTORE_OLLAMA_NUM_CTX": str(NUM_CTX)}
    return terminal("chat", "-u", "alice", "-m", MODEL, "-d", url, TERM="dumb", NO_COLOR="1", **own, **settings)


def derived(url: str) -> tuple[list[str], dict[str, int]]:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        return [fact.text for fact in store.user("alice").facts()], store.stats()


def test_ctrl_c_stops_an_answer_and_at_the_prompt_the_chat(url: str, server: ReadingServer) -> None:
    hung_up = threading.Event()

    def hangs_until_hung_up(handler: Handler) -> None:
        handler.connection.settimeout(20)
        if handler.connection.recv(1) == b"":
            hung_up.set()

    server.script.extend([streams("It takes ", "long ", then=hangs_until_hung_up), streams("Yes.")])
    with chatting(url, server) as person:
        person.expect("nothing was said yet")
        person.expect("> ")
        person.type("First?\n")
        person.expect("It takes long ")
        person.process.send_signal(signal.SIGINT)
        person.expect("the unfinished answer is not")
        assert hung_up.wait(20), "the server goes on with an answer that nobody waits for"
        person.type("Second?\n")
        person.expect("Yes.\n")
        person.expect("> ", 3)
        person.process.send_signal(signal.SIGINT)
        assert person.ended() == 130
        assert "Traceback" not in person.shown
    assert stored(url) == [("user", "First?"), ("user", "Second?"), ("assistant", "Yes.")]


def test_what_was_said_is_derived_before_the_next_line(url: str, server: ReadingServer) -> None:
    with chatting(url, server) as person:
        person.expect("> ")
        person.type("/facts\n")
        person.expect("nothing is known of you yet")
        person.type("I'm allergic to peanuts.\n")
        person.expect("1 new fact; /facts lists what is known")
        person.expect("> ", 3)
        assert derived(url)[1]["pending"] == 0
        person.type("/facts\n")
        person.expect("The user is allergic to peanuts.\n")
        person.expect("constraint")
        person.expect("> ", 4)
        person.type("\x04")
        assert person.ended() == 0


BEES = {
    "sources": [{"message": 1, "quote": "I keep bees on the roof"}],
    "text": "The user keeps bees on the roof.", "type": "statement", "subject": "the user",
}  # fmt: skip


class FactsServer(ScriptedServer):
    """A server with a model for facts, which answers once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer, self.is_hung_up = threading.Event(), threading.Event(), threading.Event()
        self.settings = {"facts_model": "openai:tiny", "openai_url": f"{self.url}/v1"}

    def next(self, body: dict[str, Any]) -> Behaviour:
        def work(handler: Handler) -> None:
            self.is_asked.set()
            handler.connection.settimeout(0.05)
            while not self.may_answer.is_set():
                with suppress(TimeoutError):
                    assert handler.connection.recv(1) == b""
                    return self.is_hung_up.set()
            says_bees = "bees" in body["messages"][-1]["content"].partition("The messages:")[2]
            return does.says({"facts": [BEES] if says_bees else []}, prompt_eval_count=None)(handler)

        return work


def test_a_model_is_asked_for_facts_after_six_turns_however_fast_they_come_and_at_the_end(
    url: str, server: ReadingServer
) -> None:
    lines = ["I keep bees on the roof.", *(f"Line {number}?" for number in range(2, 9))]
    server.script += [streams(f"Answer {number}.") for number in range(1, 9)]
    with memstore.open(url, settings={"embedder": "none"}) as store:
        store.user("alice").conversation("earlier").add("user", "I sail.")
    with FactsServer() as facts, chatting(url, server, **variables(facts.settings)) as person:
        person.expect("> ")
        for number, line in enumerate(lines, 1):
            person.type(f"{line}\n")
            person.expect(f"Answer {number}.")
            assert facts.is_asked.wait(20 if number == 6 else 0) == (number >= 6)
            person.expect("> ", number + 1)
            assert derived(url)[1]["chunks"] > 2 * number, "no model is needed for them"
            if number == 7:
                assert not facts.is_hung_up.is_set(), "it would never come to an end"
                facts.may_answer.set()
        assert len(facts.asked()) == 1, "no other call is in the way"
        person.type("\x04")
        person.expect("deriving what was said; Ctrl-C leaves it for later")
        assert person.ended() == 0
        assert "not derived" not in person.shown
        first, second = (body["messages"][-1]["content"].partition("The messages:")[2] for body in facts.asked())
        assert ("I sail." in first, "Line 8?" in second) == (True, True)
    texts, stats = derived(url)
    assert (texts, stats["pending"]) == ([BEES["text"]], 0)


@pytest.mark.parametrize(("said", "code"), [("/quit\n", 0), ("", 130)])
def test_a_call_that_goes_on_at_the_end_can_be_left_for_later(
    url: str, server: ReadingServer, said: str, code: int
) -> None:
    server.script += [streams(f"Answer {number}.") for number in range(1, 7)]
    with FactsServer() as facts, chatting(url, server, **variables(facts.settings)) as person:
        person.expect("> ")
        for number in range(1, 7):
            person.type("I keep bees on the roof.\n")
            person.expect(f"Answer {number}.")
            person.expect("> ", number + 1)
        assert facts.is_asked.wait(20)
        if said:
            person.type(said)
            person.expect("Ctrl-C leaves it for later")
        person.process.send_signal(signal.SIGINT)
        assert person.ended() == code
        assert facts.is_hung_up.wait(20)
        assert "Traceback" not in person.shown
    assert derived(url)[1]["pending"] == 1


def test_what_is_derived_at_the_end_can_be_left_for_later(url: str, server: ReadingServer) -> None:
    server.script.append(streams("Honey."))
    with FactsServer() as facts, chatting(url, server, **variables(facts.settings)) as person:
        person.expect("> ")
        person.type("I keep bees on the roof.\n")
        person.expect("> ", 2)
        person.type("\x04")
        assert facts.is_asked.wait(20)
        person.process.send_signal(signal.SIGINT)
        assert person.ended() == 0
        assert facts.is_hung_up.wait(20)
        assert "Traceback" not in person.shown
    assert derived(url)[1]["pending"] == 1


def test_a_model_is_asked_after_six_lines_of_a_pipe_and_at_its_end(chat: Run, url: str, server: ReadingServer) -> None:
    with FactsServer() as facts:
        facts.may_answer.set()
        told = chat(lines="I keep bees on the roof.\n" + "Well?\n" * 6, **facts.settings)
        assert (told.code, told.err.count("deriving what was said")) == (0, 1)
        assert [body["messages"][-1]["content"].count("Well?") for body in facts.asked()] == [5, 1]
    assert derived(url)[0] == [BEES["text"]]


# A long life


def live(lines: list[str], url: str, server: ReadingServer, sessions: int, embedder: str) -> list[str]:
    """Say the lines in so many sessions, each a process; every third is killed in mid-answer. Give what it printed."""
    printed = []
    size = -(-len(lines) // sessions)
    for number, start in enumerate(range(0, len(lines), size)):
        part = lines[start : start + size]
        own = {"MEMSTORE_OLLAMA_URL": server.url, "MEMSTORE_OLLAMA_NUM_CTX": str(NUM_CTX)}
        env = environment(MEMSTORE_EMBEDDER=embedder, OMP_NUM_THREADS="1", **own)
        command = [SCRIPT, "chat", "-u", "alice", "-m", MODEL, "-d", url, "--reserve", str(RESERVE)]
        answering = threading.Event()
        killed = number % 3 == 1
        if killed:
            server.reply = kills_at(len(part), answering)
        with subprocess.Popen(command, env=env, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
            if killed:
                assert process.stdin
                process.stdin.write("\n".join(part) + "\n")
                process.stdin.flush()
                assert answering.wait(120)
                process.kill()
                process.communicate()
                server.reply = answers
                continue
            out, err = process.communicate("\n".join(part) + "\n", timeout=300)
        assert (process.returncode, err) == (0, "")
        printed.append(out)
    return printed


def kills_at(turn: int, answering: threading.Event) -> Callable[[str], Behaviour]:
    """Give a model that answers until this turn, at which it begins, and says that it has begun."""
    left = iter(range(turn - 1, -1, -1))

    def hangs(handler: Handler) -> None:
        answering.set()
        handler.server.closing.wait(60)

    return lambda prompt: answers(prompt) if next(left) else streams("To be ", "honest, ", then=hangs)


def check_life(turns: int, sessions: int, url: str, server: ReadingServer, embedder: str) -> None:
    """The window is never exceeded, nothing that was said is lost, and at the end turn 3 is remembered."""
    chance = random.Random(turns)
    lines = [chatter(chance, chance.randint(10, 60)) for _ in range(turns)]
    lines[2], lines[-1] = TOLD, ASKED
    printed = live(lines, url, server, sessions, embedder)
    assert len(server.read) == turns
    assert all(read.fits for read in server.read)
    largest = max(read.tokens for read in server.read)
    print(f"{turns} turns: the largest prompt has {largest} of {NUM_CTX - RESERVE} tokens")
    assert largest > 0.9 * (NUM_CTX - RESERVE)
    said = stored(url)
    assert [text for role, text in said if role == "user"] == lines
    answered = turns - len(range(1, sessions, 3))
    assert sum(role == "assistant" for role, _ in said) == answered
    assert sum(tokens(text) for _, text in said) > 4 * NUM_CTX
    assert SECRET in server.read[-1].prompt
    assert printed[-1].endswith(f"It is {SECRET}.\n")


def test_sixty_turns_over_sessions_and_kills_never_exceed_the_window(url: str, server: ReadingServer) -> None:
    """With TEST_DOSE=5 three hundred."""
    check_life(60 * DOSE, 3 * DOSE, url, server, EMBEDDER if DOSE == 1 else "onnx:all-MiniLM-L6-v2")
