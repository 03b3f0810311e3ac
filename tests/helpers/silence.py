"""What the hook tells for prompts that need a memory and for those that need none (tests/data/silence).

The prompts and the memories were written by a language model for this purpose, which had not seen the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import memstore
from memstore.server.hook import HookServer

SETS = Path(__file__).parents[1] / "data" / "silence"
BUDGET = 1_000


def read_set(name: str) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, (SETS / f"{name}.jsonl").read_text("utf-8").splitlines())


@dataclass
class Silence:
    """The prompts that need a memory and did not get it, and those that need none and got something."""

    needed: int = 0
    nothing: int = 0
    missed: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        got, silent = 1 - len(self.missed) / self.needed, 1 - len(self.told) / self.nothing
        return f"{got:.1%} of {self.needed} get the memory that they need, {silent:.1%} of {self.nothing} get nothing"


async def add_memories(store: memstore.AsyncMemoryStore, user: str, count: int) -> dict[str, str]:
    """Store the first memories, and return their texts."""
    memories = list(read_set("memories"))[:count]
    for memory in memories:
        talk = store.user(user).conversation(f"session {memory['session']}")
        await talk.add("user", memory["text"], occurred_at=datetime.fromisoformat(memory["occurred_at"]))
    return {memory["id"]: memory["text"] for memory in memories}


async def ask_hook(store: memstore.AsyncMemoryStore, user: str, memories: Mapping[str, str]) -> Silence:
    """Return what the hook tells for the prompts, each in a session of its own."""
    server, silence = HookServer(store, user, budget=BUDGET, exclude=()), Silence()
    for number, each in enumerate(read_set("needed")):
        if set(each["needs"]) <= memories.keys():
            silence.needed += 1
            text, _ = await server._context({"prompt": each["prompt"], "cwd": "/"}, f"needed {number}")
            if not all(tells(text or "", memories[name]) for name in each["needs"]):
                silence.missed.append(("silent: " if text is None else "") + each["prompt"])
    for number, each in enumerate(read_set("nothing")):
        silence.nothing += 1
        text, _ = await server._context({"prompt": each["prompt"], "cwd": "/"}, f"nothing {number}")
        if text is not None:
            silence.told.append(each["prompt"])
    return silence


def tells(text: str, memory: str) -> bool:
    """Whether a context has nine of ten words of a memory, as a message, a fact or a summary of it."""
    said, words = set(re.findall(r"\w+", text.casefold())), set(re.findall(r"\w+", memory.casefold()))
    return len(words & said) >= 0.9 * len(words)
