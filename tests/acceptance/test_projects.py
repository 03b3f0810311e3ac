"""Two projects of one developer: the hook tells neither of the other, and what protects and who they are in both."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import memstore
from memstore.server import hook as service
from memstore.settings import ONNX_MINILM

DATA = Path(__file__).parents[1] / "data" / "scopes"


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


async def test_the_hook_tells_nothing_of_another_project_and_what_holds_everywhere(url: str) -> None:
    async with await memstore.open_async(url, settings={"embedder": ONNX_MINILM}) as store:
        for message in read("sessions.jsonl"):
            talk = store.user("maren").conversation(message["session"], scope=f"/home/maren/{message['project']}")
            await talk.add(message["role"], message["text"], occurred_at=datetime.fromisoformat(message["occurred_at"]))
        await store.derive()
        server = service.HookServer(store, "maren", budget=1000, exclude=())
        leaks, missing = [], []
        for number, prompt in enumerate(read("prompts.jsonl")):
            event = {"prompt": prompt["prompt"], "cwd": f"/home/maren/{prompt['project']}"}
            context, _ = await server._context(event, f"new {number}")
            told = (context or "").casefold()
            leaks += [(prompt["prompt"], word) for word in prompt["never"] if word.casefold() in told]
            missing += [
                (prompt["prompt"], word) for word in prompt.get("everywhere", ()) if word.casefold() not in told
            ]
    # A message about her allergy names who brings the cake. Four strings stand in instructions of the other project:
    # "that's the commit author everywhere", "I use Helix for everything", "metric units always".
    assert leaks == [
        ("team lunch thursday, we order thai for 6. write the order, for me something i can eat", "wiebke")
    ]
    assert len(missing) <= 5, missing
