"""The real llama.cpp server with a model of random weights: its grammar makes even of that what was asked for."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import memstore
from memstore.derive.facts.answers import AnsweredFacts
from memstore.errors import PromptTooLong
from memstore.providers import load_chat_model
from memstore.settings import Settings
from tests.command_line import SCRIPT, environment, variables
from tests.helpers.conformance import check_chat_model, check_embedder

PYTHON = Path(__file__).parents[2] / ".venv-llama" / "bin" / "python"
WINDOW = 16_384
SAID = [
    {"role": "user", "content": "I moved to Lisbon, and I am allergic to peanuts."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "My sister Eva works as a nurse."},
]

pytestmark = pytest.mark.skipif(
    "THIRD_PARTY" not in os.environ or not PYTHON.exists(), reason="builds llama.cpp: make test-llama-cpp"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llama") / "random.gguf"
    subprocess.run([PYTHON, Path(__file__).with_name("random_model.py"), path], check=True)
    return path


@contextmanager
def serving(model: Path, window: int = WINDOW) -> Iterator[Settings]:
    """A server of the model, and the settings that find it."""
    options = f"--model_alias random --embedding true --host 127.0.0.1 --port 0 --n_ctx {window}".split()
    command = [PYTHON, "-m", "llama_cpp.server", "--model", model, *options]
    log = model.with_name(f"server-{window}.log")
    with log.open("w") as written, subprocess.Popen(command, stdout=written, stderr=written) as process:
        try:
            while process.poll() is None and not (found := re.search(r"running on (\S+)", log.read_text())):
                time.sleep(0.1)
            assert process.poll() is None and found, log.read_text()
            url = f"{found[1]}/v1"
            yield Settings(openai_url=url, openai_context_tokens=WINDOW, embedding_url=url)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def settings(model: Path) -> Iterator[Settings]:
    with serving(model) as settings:
        yield settings


def test_chat_and_schema(settings: Settings) -> None:
    model = load_chat_model("openai:random", settings)
    check_chat_model(model)
    pieces: list[str] = []
    answer = model.stream([{"role": "user", "content": "Where to?"}], max_tokens=40, show=pieces.append)
    assert answer.text == "".join(pieces) != ""


@pytest.mark.parametrize("said", [message["content"] for message in SAID])
def test_facts_by_a_grammar(settings: Settings, said: str) -> None:
    completion = load_chat_model("openai:random", settings).complete(
        [{"role": "user", "content": said}], AnsweredFacts, max_tokens=1400
    )
    assert completion.is_whole
    assert completion.calls == 1, "the first answer was of use"
    assert completion.answer.facts


def test_embeddings(settings: Settings) -> None:
    from memstore.providers.openai import load_embedder

    embedder = load_embedder("random", settings)
    check_embedder(embedder)
    assert embedder.dimensions == 64
    assert np.allclose(np.linalg.norm(embedder.embed_documents(["Lisbon", "Porto"]), axis=1), 1)


def test_deriving_believes_no_nonsense(settings: Settings, url: str) -> None:
    own = {"facts_model": "openai:random", "summary_model": "openai:random", "embedder": "openai:random"}
    served = {name: getattr(settings, name) for name in ("openai_url", "openai_context_tokens")}
    with memstore.open(url, settings=own | served) as store:
        ann = store.user("ann")
        ann.conversation("home").add_many(SAID)
        report = store.derive()
        assert (report.chunks, report.facts, report.failed, report.waiting) == (3, 0, (), ())
        assert report.refused > 0
        assert ann.facts(state="all") == []
        assert len(ann.recall("Lisbon")) == 3
    env = environment(**variables(own | {name: str(value) for name, value in served.items()}))
    doctor = subprocess.run([SCRIPT, "doctor", "-d", url], env=env, capture_output=True, text=True)
    told = doctor.stdout + doctor.stderr
    assert f"facts model: openai:random answers, with a window of {WINDOW:,} tokens (set)" in told
    assert "embedder: openai:random gives vectors of 64 dimensions" in told


def test_a_window_smaller_than_the_prompt(model: Path) -> None:
    with serving(model, 512) as settings, pytest.raises(PromptTooLong, match="context length is 512 tokens"):
        load_chat_model("openai:random", settings).complete(
            [{"role": "user", "content": "word " * 200}], AnsweredFacts, max_tokens=100
        )
