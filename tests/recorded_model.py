"""A server whose model answers from a recording: what a real one has said to these very prompts, or nearly these."""

from __future__ import annotations

import json
import os
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from memstore.derive.llm import load_prompt
from memstore.providers.tiktoken import load as load_counter
from tests.ollama_server import Behaviour, Json, ScriptedOllama, hangs_before_headers, says

FOLDER = Path(__file__).parent / "data" / "model"
WINDOW = 16_384
COUNTER = load_counter("o200k_base")


class RecordedModel(ScriptedOllama):
    """Answers from tests/data/model/NAME.json.

    A prompt is known by its messages and schema; where what is known has changed a little, by the messages that it asks
    about, and the numbers of known facts are set to those of today. With RECORD_ANSWERS an answer that is not there is
    asked of whoever writes FOLDER/HASH.answer beside FOLDER/HASH.json, and recorded.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.path = FOLDER / f"{name}.json"
        self.recording: Json = json.loads(self.path.read_text("utf-8"))
        self.trained = self.allotted = WINDOW
        self.lost: list[str] = []  # known facts that a recorded answer names, and that are not shown today
        self.hangs = False  # at every second call
        self.is_hanging = threading.Event()
        self.tokens = 0  # of all prompts and answers, in the vocabulary of o200k
        if not os.environ.get("RECORD_ANSWERS"):
            said = "The prompt has changed: record its answers anew (tests/data/model/README.md)."
            assert self.recording["prompt"] == load_prompt("facts").digest, said

    @property
    def messages(self) -> list[Json]:
        """The history, in the order in which it is taken in."""
        return list(self.recording["messages"])

    def next(self, body: Json) -> Behaviour:
        if self.hangs and len(self.asked()) % 2 == 0:
            self.is_hanging.set()
            return hangs_before_headers
        raw = json.dumps([body["messages"], body["format"]], sort_keys=True, ensure_ascii=False)
        key, shown = sha256(raw.encode()).hexdigest()[:10], body["messages"][-1]["content"]
        asked = sha256(shown.partition("The messages:")[2].encode()).hexdigest()[:10]
        answers = self.recording["answers"]
        entry = answers.get(key) or next((one for one in answers.values() if one["asked"] == asked), None)
        if entry is None:
            entry = answers[key] = {"asked": asked, "known": known_in(shown)} | self._record(key, body)
            self.recording["prompt"] = load_prompt("facts").digest
            self._write()
        prompt_tokens, answer_tokens = entry["tokens"]
        self.tokens += prompt_tokens + answer_tokens
        answer = self._renumber(entry, known_in(shown))
        return says(answer, prompt_eval_count=prompt_tokens, eval_count=answer_tokens)

    def _write(self) -> None:
        said = [json.dumps(one, ensure_ascii=False) for one in self.recording["messages"]]
        answers = [f'"{key}": {json.dumps(one, ensure_ascii=False)}' for key, one in self.recording["answers"].items()]
        prompt, lines, entries = json.dumps(self.recording["prompt"]), ",\n".join(said), ",\n".join(answers)
        text = f'{{\n"prompt": {prompt},\n"messages": [\n{lines}\n],\n"answers": {{\n{entries}\n}}\n}}\n'
        self.path.write_text(text, "utf-8")

    def _renumber(self, entry: Json, known: dict[str, str]) -> Json:
        numbers = {text: k for k, text in known.items()}
        today = {k: numbers.get(text) for k, text in entry["known"].items()}
        self.lost += [entry["known"][k] for k in named_in(entry["answer"]) if today.get(k) is None and k in today]
        text = json.dumps(entry["answer"])
        for k, new in today.items():
            text = text.replace(f'"{k}"', f'"new {new}"')
        answer: Json = json.loads(text.replace('"new ', '"'))
        return answer

    def _record(self, key: str, body: Json) -> Json:
        folder = Path(os.environ["RECORD_ANSWERS"])
        (folder / f"{key}.json").write_text(json.dumps(body, ensure_ascii=False, indent=1), "utf-8")
        written = folder / f"{key}.answer"
        while not written.exists():
            time.sleep(0.2)
        answer = json.loads(written.read_text("utf-8"))
        said = "".join(one["content"] for one in body["messages"])
        sizes = [COUNTER.count(text) for text in (said, json.dumps(answer, ensure_ascii=False, separators=(",", ":")))]
        return {"answer": answer, "tokens": sizes}


def known_in(prompt: str) -> dict[str, str]:
    """Return the known facts that a prompt shows, by their numbers."""
    lines = [json.loads(line) for line in prompt.split("\n") if line.startswith('{"k')]
    return dict(next(iter(line.items())) for line in lines)


def named_in(answer: Json) -> list[Any]:
    return [one["k"] for one in answer["repeats"]] + [k for fact in answer["facts"] for k in fact.get("ends", ())]
