"""Writes a model of random weights that the llama.cpp server takes for a real one: two layers, a token a byte.

    python random_model.py FILE.gguf     needs the package gguf

What it says means nothing. It prefers the bytes that end JSON's texts, lists and objects, or texts would never end.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np

SEED, WINDOW = 7, 16_384
LAYERS, WIDTH, HEADS, INNER = 2, 64, 4, 128
SPECIAL = ["<unk>", "<s>", "</s>"]
PREFERRED = {b'"': 1.6, b"{": 1.5, b"}": 1.4, b"]": 1.4, b":": 1.0, b",": 0.0, b" ": -3.0, b"\n": -3.0}
LETTERS = 0.8  # more than to bytes that are no ASCII letters
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def tokens() -> tuple[list[str], list[float], list[int]]:
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    texts = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    return texts, [0.0] * len(texts), [int(kind) for kind in kinds]


def preferences() -> np.ndarray:
    """Return how much likelier than others each token is."""
    preferred = np.zeros(len(SPECIAL) + 256)
    for byte in range(256):
        text = bytes([byte])
        preferred[len(SPECIAL) + byte] = PREFERRED.get(text, LETTERS if text.isalpha() else -2.0)
    preferred[SPECIAL.index("</s>")] = 2.0
    return preferred


def weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(SEED)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.normal(0, 1 / np.sqrt(columns), (rows, columns))

    embeddings, output = matrix(len(SPECIAL) + 256, WIDTH) * 8, matrix(len(SPECIAL) + 256, WIDTH)
    # The first dimension is the same of every token, so what the last layer makes of it is a preference.
    embeddings[:, 0], output[:, 0] = 3.5, preferences()
    quote = len(SPECIAL) + ord('"')
    output[quote] -= 0.15 * embeddings[quote]  # no text is empty
    tensors = {"token_embd": embeddings, "output_norm": np.ones(WIDTH), "output": output}
    for layer in range(LAYERS):
        tensors |= {f"blk.{layer}.{name}": np.ones(WIDTH) for name in ("attn_norm", "ffn_norm")}
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"blk.{layer}.{name}"] = matrix(WIDTH, WIDTH)
        for name, rows, columns in (("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER)):
            tensors[f"blk.{layer}.ffn_{name}"] = matrix(rows, columns)
        for name in ("attn_output", "ffn_down"):
            tensors[f"blk.{layer}.{name}"][0] = 0
    return tensors


def write(path: str) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_vocab_size(len(SPECIAL) + 256)
    texts, scores, kinds = tokens()
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    for name, values in weights().items():
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
