"""The reader's model: a small encoder by ONNX Runtime, with the tokenizer and the word embeddings of the embedder.

A message is read alone: in int8 the others of a batch would change its numbers. So a history gives the same notes
however it is cut. A pool of threads reads messages; a session has no threads of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from memstore.derive.reader import notes
from memstore.derive.reader.notes import Note, Pair, ReaderInput
from memstore.language.sentences import sentences
from memstore.providers.batching import BatchWorkers
from memstore.providers.minilm import GraphSessions, default_threads, load_tokenizer
from memstore.text import replace_surrogates

GRAPH_FILE, CARD_FILE = "reader.onnx", "reader.json"
CLS, SEP = 101, 102
FRIEND_TOKEN = 2767
# A pair of statements begins with it.
CHANGED_TOKEN = 2904
MAX_STATEMENT_TOKENS = 60
# What a prompt calls for stands in its first tokens, or a paste hides it.
MAX_PROMPT_TOKENS = 120
# What two processors compute otherwise is not compared.
LOGIT_DIGITS = 3


class Window(NamedTuple):
    before: list[int]
    ids: list[int]
    places: list[tuple[int, int]]


@cache
def load() -> Reader:
    return Reader()


class Reader:
    """Reads messages. Safe to share by threads, and to use in forked children."""

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
        self._phrases: list[str] = card["phrases"]
        self._line: list[float] = card["line"]
        self._workers = BatchWorkers(default_threads())
        self._tokenizer = load_tokenizer()
        self._splits = np.cumsum([*notes.sizes(self._phrases).values()])[:-1]
        self._sessions = GraphSessions(folder / GRAPH_FILE)

    def read(self, turns: Sequence[ReaderInput]) -> list[list[Note]]:
        return self._workers.run(self._read, turns)

    def relations(self, pairs: Sequence[Pair]) -> list[dict[str, float]]:
        return self._workers.run(self._relation, pairs)

    def prompt_vector(self, text: str) -> NDArray[np.float32]:
        """Return what the first layers make of a prompt: the mean of its tokens' vectors; zeros of an empty one."""
        text = replace_surrogates(text[: 8 * MAX_PROMPT_TOKENS])
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids[:MAX_PROMPT_TOKENS]
        # Both readings share the layers up to this one.
        rows = self._run("layer_2_result", [], ids)[2:-1]
        mean: NDArray[np.float32] = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1], dtype=np.float32)
        return mean

    def _relation(self, pair: Pair) -> dict[str, float]:
        earlier, later = (
            self._tokenizer.encode(replace_surrogates(text[: 8 * MAX_STATEMENT_TOKENS]), add_special_tokens=False).ids
            for text in pair
        )
        [logits] = self._run("relation", [CHANGED_TOKEN, *earlier[:MAX_STATEMENT_TOKENS]], later[:MAX_STATEMENT_TOKENS])
        shares = np.exp(logits - logits.max())
        return dict(zip(notes.RELATIONS, np.round(shares / shares.sum(), LOGIT_DIGITS).tolist(), strict=True))

    def _read(self, turn: ReaderInput) -> list[Note]:
        # Longer ones are pastes, and their ends are not read.
        text = replace_surrogates(turn.text)[:40_000]
        return [
            replace(note, confidence=notes.probability(note.score, note.gate, self._line))
            for window in self._windows(turn, text)
            for note in notes.notes_of(text, window.places, self._logits(window), self._phrases)
        ]

    def _windows(self, turn: ReaderInput, text: str) -> Iterator[Window]:
        """Return the windows of a message, which begin with a sentence where one begins."""
        before = replace_surrogates(turn.before[-8 * notes.MAX_BEFORE_TOKENS :])
        marker = [FRIEND_TOKEN] if turn.to_friend else []
        said = self._tokenizer.encode(before, add_special_tokens=False).ids[-notes.MAX_BEFORE_TOKENS :]
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        ids, places = tokens.ids, tokens.offsets
        begins = {start for start, _ in sentences(text)} if len(ids) > notes.MAX_WINDOW_TOKENS else set()
        start = 0
        while start < len(ids):
            stop = min(len(ids), start + notes.MAX_WINDOW_TOKENS)
            if stop < len(ids):
                stop = next(
                    (at for at in range(stop, start + notes.MAX_WINDOW_TOKENS // 2, -1) if places[at][0] in begins),
                    stop,
                )
            yield Window([*marker, *said], ids[start:stop], places[start:stop])
            said, start = ids[max(0, stop - notes.MAX_BEFORE_TOKENS) : stop], stop

    def _logits(self, window: Window) -> notes.Logits:
        rows = self._run("logits", window.before, window.ids)
        parts = dict(zip(notes.sizes(self._phrases), np.split(rows, self._splits, axis=1), strict=True))
        begin = len(window.before) + 2
        return {name: each[0] if name == "any" else each[begin:-1] for name, each in parts.items()}

    def _run(self, output: str, before: Sequence[int], said: Sequence[int]) -> NDArray[np.float32]:
        """Return an output of the graph, of which only the layers that lead to it are computed."""
        ids = np.array([[CLS, *before, SEP, *said, SEP]], dtype=np.int64)
        segments = np.zeros_like(ids)
        segments[:, len(before) + 2 :] = 1
        options = onnxruntime.RunOptions()
        options.only_execute_path_to_fetches = True
        [logits] = self._sessions.get().run([output], {"ids": ids, "segments": segments}, options)
        rounded: NDArray[np.float32] = np.round(logits, LOGIT_DIGITS)
        return rounded
