"""What a message of many parts says in plain text: texts as they are, everything else by its kind. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from memstore.errors import InvalidInput

from .records import LeftOut, word

# Kinds that are no part of what was said, and what a report calls them.
UNSAID = {
    "thinking": "thoughts of the model",
    "redacted_thinking": "thoughts of the model",
    "reasoning": "thoughts of the model",
    "tool_use": "calls of tools",
    "tool_call": "calls of tools",
    "server_tool_use": "calls of tools",
    "tool_result": "results of tools",
}
_KINDS = {
    "image_url": "image",
    "input_image": "image",
    "audio_url": "audio",
    "input_audio": "audio",
    "video_url": "video",
    "input_file": "file",
    "document": "file",
}


def blocks_text(content: object) -> tuple[str, list[LeftOut]]:
    """Give the text of a content, which is a text, a list of texts and parts, or nothing; and what of it is left out.

    An image is "[image]". InvalidInput for what is no content.
    """
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidInput(f"its content is neither a text nor a list of parts but {word(content)}")
    found = list(_blocks(content))
    texts = [one for one in found if isinstance(one, str) and one.strip()]
    return "\n\n".join(texts), [one for one in found if isinstance(one, LeftOut)]


def _blocks(content: list[object]) -> Iterator[str | LeftOut]:
    for block in content:
        if isinstance(block, str):
            yield block
        elif not isinstance(block, dict):
            raise InvalidInput(f"a part of its content is neither a text nor an object but {word(block)}")
        elif word(block.get("type")) in UNSAID:
            yield LeftOut(UNSAID[word(block.get("type"))])
        elif isinstance(text := block.get("text", block.get("refusal")), str):
            yield text
        else:
            kind = word(block.get("type"))
            yield f"[{_KINDS.get(kind, kind)}]"
