"""Small tokenizers, trained here, of the kinds that open models have, and chat templates in the shapes of theirs."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from memstore.providers.ollama_counter import PATTERNS

USER: dict[str, Any] = {"role": "user", "content": "When does the ferry leave?"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"what": "ferry"}'}}],
}
CORPUS = [
    "The ferry to Ischia leaves at nine, and I'm allergic to peanuts.",
    "Die Fähre nach Ischia fährt um neun; Ängste und Öfen, größer als 12345.",
    "去伊斯基亚的渡轮九点出发。我住在波尔图。",
    "def count(text: str) -> int:\n    return len(tokenizer.encode(text))\n\n\n",
    "user assistant system tool <0x41> ﬁ ㌀ é e\u0301 ä 각 한글 👩‍👩‍👧",
] * 4

LLAMA_3 = """{{ bos_token }}{% for message in messages %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

DATED = """{{ bos_token }}{{ 'Today Date: ' + strftime_now('%d %b %Y') }}
{%- for message in messages %}{{ message.role + ': ' + message.content }}{% endfor %}"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

CHATML = """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n<tools>' }}
    {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "assistant" and message.tool_calls %}
        {{- '<|im_start|>' + message.role }}
        {%- for tool_call in message.tool_calls %}
            {%- set tool_call = tool_call.function %}
            {{- '\\n<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}{{ '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

SPECIAL = [
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>"),
]


@cache
def byte_level(pre: str = "qwen2", vocabulary: int = 500, normal: str | None = None, bos: bool = False) -> Tokenizer:
    """Give a BPE over bytes as GPT, Llama 3 and Qwen have."""
    tokenizer = Tokenizer(models.BPE())
    if normal:
        tokenizer.normalizer = getattr(normalizers, normal)()
    split = pre_tokenizers.Split(Regex(PATTERNS[pre]), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(one, special=True, normalized=False) for one in SPECIAL])
    if bos:
        begin = "<|begin_of_text|>"
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=[(begin, tokenizer.token_to_id(begin))]
        )
    return tokenizer


@cache
def sentencepiece(vocabulary: int = 500) -> Tokenizer:
    """Give a BPE over characters with a fallback to bytes, as Llama 2 and Gemma have."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=pieces, limit_alphabet=60, show_progress=False, max_token_length=12
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    told = json.loads(tokenizer.to_str())
    told["added_tokens"] = [one for one in told["added_tokens"] if not one["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(told))


@cache
def unigram(normal: str = "NFKC") -> Tokenizer:
    """Give a Unigram model with a fallback to bytes, its text normalised as SentencePiece does by default."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = getattr(normalizers, normal)()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    told = json.loads(tokenizer.to_str())
    known = {piece for piece, _ in told["model"]["vocab"]}
    lowest = min(score for _, score in told["model"]["vocab"]) - 10
    told["model"]["vocab"] += [[f"<0x{b:02X}>", lowest] for b in range(256) if f"<0x{b:02X}>" not in known]
    told["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(told))


def as_gguf(tokenizer: Tokenizer, **told: Any) -> dict[str, Any]:
    """Give what `/api/show` tells of a tokenizer like this one."""
    model = json.loads(tokenizer.to_str())["model"]
    ids = tokenizer.get_vocab(with_added_tokens=True)
    tokens = sorted(ids, key=lambda token: ids[token])
    kinds = [3 if token in SPECIAL else 6 if token.startswith("<0x") else 1 for token in tokens]
    merges = model["merges"]
    rank = {"".join(pair): number for number, pair in enumerate(merges)}
    info = {
        "tokens": tokens,
        "token_type": [2 if token == "<unk>" else kind for token, kind in zip(tokens, kinds, strict=True)],
        "merges": [" ".join(pair) for pair in merges],
        "scores": [-float(rank.get(token, len(merges) + number)) for number, token in enumerate(tokens)],
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (info | told).items() if value is not None}


def write(folder: Path, tokenizer: Tokenizer, template: str | None, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    config = {"bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|eot_id|>"}} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
