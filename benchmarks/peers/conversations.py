"""Conversations to be cut to a budget, drawn from a seed: every kind of text that token counts go wrong on.

All texts are made here, of words and patterns written for this; none is anybody's. A conversation has more tokens than
its budget, grows with it in the length of its messages, and ends with the user's question.
"""

# ruff: noqa: E501, SIM905
from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from measure import chat_tokens, message_tokens

Json = dict[str, Any]
Draw = Callable[[Random], str]
BUDGETS = (200, 500, 1_000, 2_000, 8_000, 32_000)
LONG_QUESTION = 1_200  # tokens, about

NOUNS = "invoice garden ticket bicycle recipe report window meeting kitchen contract train battery market library sensor".split()
PLACES = "Lisbon|the harbour|the old office|Ghent|our cellar|the north platform|the second floor|Bergen".split("|")
PEOPLE = "Mara Jonas Priya Tomas Ines Bela Oskar Noor".split()
VERBS = "moved repaired ordered measured forgot postponed compared returned sold painted".split()
WORDS = "yes no maybe ok why sure thanks when where later fine great done go stop wait next right left hello".split()
GERMAN = "Steuererklärung Wohnungsübergabe Nebenkostenabrechnung Geschwindigkeitsbegrenzung Krankenversicherungskarte Straßenbahnhaltestelle Küchenschränke Fahrradwerkstatt Grundstücksverkehrsgenehmigung Öffnungszeiten".split()
CHINESE = "明天的会议 厨房的窗户 新的合同 图书馆的规则 电池的价格 去里斯本的火车 邻居的自行车 医生的建议".split()
JAPANESE = "来週の打ち合わせ 台所の窓 新しい契約書 図書館の規則 電池の値段 港までの電車 隣の自転車 医者の助言".split()
KOREAN = (
    "다음 주 회의|부엌 창문|새로운 계약서|도서관 규칙|배터리 가격|항구까지 가는 기차|이웃의 자전거|의사의 조언"
).split("|")
EMOJI = "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇵🇹 🧑🏿‍🚀 🥜 🚲 ❤️‍🔥 🫠 🇺🇳 👨‍🔬 🤦🏻‍♀️ 🎉 🍋 🐈‍⬛ ✈️ 🧶 🫡".split()
SPECIAL = "<|endoftext|> <|im_start|> <|endofprompt|> <|fim_prefix|> <|im_end|>".split()


@dataclass(frozen=True)
class Case:
    """A conversation in OpenAI's format, with what is to stand above it, and the tokens that it may take."""

    id: str
    kind: str
    budget: int
    messages: list[Json]
    system: str | None = None
    facts: list[str] = field(default_factory=list)

    @property
    def question(self) -> str:
        """The newest thing that the user said."""
        return next(str(one["content"]) for one in reversed(self.messages) if one["role"] == "user")

    @property
    def least(self) -> int:
        """The tokens of what cannot be left out: the system prompt, and all from the question on."""
        last = max(n for n, one in enumerate(self.messages) if one["role"] == "user")
        system = [{"role": "system", "content": self.system}] if self.system else []
        return chat_tokens([*system, *self.messages[last:]])

    @property
    def is_plenty(self) -> bool:
        """Whether the budget can be filled: the conversation has more, in messages of a fifth of the budget at most."""
        largest = max(map(message_tokens, self.messages))
        return chat_tokens(self.messages) >= 1.25 * self.budget and largest <= self.budget / 5

    def as_json(self) -> Json:
        """Give the case as it is sent to a system."""
        return asdict(self)


def english(draw: Random) -> str:
    noun, other = draw.sample(NOUNS, 2)
    return draw.choice(
        [
            f"{draw.choice(PEOPLE)} {draw.choice(VERBS)} the {noun} near {draw.choice(PLACES)} and asked about the {other}.",
            f"I still think that the {noun} should come before the {other}, whatever {draw.choice(PEOPLE)} says.",
            f"On day {draw.randint(2, 90)} we {draw.choice(VERBS)} {draw.randint(2, 40)} of them for the {noun} in {draw.choice(PLACES)}.",
            f"Could you remind {draw.choice(PEOPLE)} that the {noun} costs {draw.randint(5, 900)} euros this year?",
        ]
    )


def german(draw: Random) -> str:
    noun, other = draw.sample(GERMAN, 2)
    return draw.choice(
        [
            f"Die {noun} müsste bis zum {draw.randint(1, 28)}. geändert werden, sonst wird die {other} schwierig.",
            f"Können Sie mir erklären, weshalb {draw.choice(PEOPLE)} die {noun} zurückgeschickt hat?",
            f"Für die {noun} bräuchten wir außerdem {draw.randint(2, 30)} Unterschriften, hieß es gestern.",
        ]
    )


def cjk(draw: Random) -> str:
    return draw.choice(
        [
            f"关于{draw.choice(CHINESE)}，我觉得我们应该在第{draw.randint(2, 30)}天之前做出决定，你怎么看？",
            f"{draw.choice(JAPANESE)}について、{draw.randint(2, 30)}日までに返事をいただけると助かります。",
            f"{draw.choice(KOREAN)}에 대해서 {draw.randint(2, 30)}일까지 알려 주시면 정말 감사하겠습니다.",
        ]
    )


def code(draw: Random) -> str:
    noun, other = draw.sample(NOUNS, 2)
    name = f"{draw.choice(VERBS)}_{noun}_{draw.randint(1, 99)}"
    return draw.choice(
        [
            f"def {name}({noun}: dict[str, list[int]], *, {other}_id: int = {draw.randint(0, 9999)}) -> bool:\n    return all(v >> {draw.randint(1, 8)} for v in {noun}.values()) and not {other}_id & 0x{draw.randint(0, 65535):04x}\n",
            f"for (let i = 0; i < {noun}s.length; i++) {{ if (!{noun}s[i]?.{other}) {{ await this.{name}({noun}s[i], {{ retry: {draw.randint(1, 5)} }}); }} }}\n",
            f"SELECT {noun}.id, count(*) FILTER (WHERE {other} IS NOT NULL) FROM {noun} JOIN {other}_{noun} USING ({noun}_id) GROUP BY 1 HAVING sum({other}_{noun}.n) > {draw.randint(1, 999)};\n",
        ]
    )


def identifiers(draw: Random) -> str:
    random = bytes(draw.getrandbits(8) for _ in range(24))
    return draw.choice(
        [
            f"{uuid.UUID(int=draw.getrandbits(128), version=4)} replaced {uuid.UUID(int=draw.getrandbits(128), version=4)}",
            f"token={base64.b64encode(random).decode()} sha256:{random.hex()}",
            f"https://files.example/{random[:6].hex()}/v{draw.randint(1, 9)}?sig={base64.urlsafe_b64encode(random).decode()}&t={draw.getrandbits(40)}",
            f"IBAN-like {draw.getrandbits(60):020d}, key {draw.getrandbits(80):X}-{draw.getrandbits(16):04X}",
        ]
    )


def emoji(draw: Random) -> str:
    return (
        f"{''.join(draw.choices(EMOJI, k=4))} {draw.choice(NOUNS)} {''.join(draw.choices(EMOJI, k=draw.randint(1, 5)))}"
    )


def special(draw: Random) -> str:
    return f"Our tokenizer test writes {draw.choice(SPECIAL)} after the {draw.choice(NOUNS)}. {english(draw)}"


def text(sentence: Draw, draw: Random, tokens: float) -> str:
    """Give sentences of about so many tokens together, one at least."""
    said = [sentence(draw)]
    while message_tokens({"content": " ".join(said)}) < tokens:
        said.append(sentence(draw))
    return " ".join(said)


def usual(budget: int) -> float:
    """Give the mean tokens of a message: longer where there is room for longer ones."""
    return min(500.0, max(16.0, budget / 40))


def exchange(sentence: Draw, draw: Random, budget: int) -> list[Json]:
    """Give a user's message and the answer."""
    size = usual(budget)
    asked, answered = (text(sentence, draw, draw.uniform(0.2, 1.8) * size) for _ in (0, 1))
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]


def one_word(draw: Random, budget: int) -> list[Json]:
    return [{"role": role, "content": draw.choice(WORDS)} for role in ("user", "assistant")]


def long_messages(draw: Random, budget: int) -> list[Json]:
    """Give two usual messages, and now and then one of half of the budget up to half as much again."""
    said = exchange(english, draw, budget)
    if draw.random() < 0.3:
        said[1]["content"] = text(english, draw, draw.uniform(0.5, 1.5) * budget)
    return said


def with_tools(draw: Random, budget: int) -> list[Json]:
    """Give a request, one or two rounds of calls with their results, some in parallel, and the answer."""
    said: list[Json] = [{"role": "user", "content": text(english, draw, usual(budget) / 2)}]
    for _ in range(draw.randint(1, 2)):
        said += called(draw, budget)
    return [*said, {"role": "assistant", "content": text(english, draw, usual(budget) / 2)}]


def called(draw: Random, budget: int) -> list[Json]:
    """Give a message of one to three calls, and the result of each."""
    calls, results = [], []
    for _ in range(draw.choice([1, 1, 2, 3])):
        id = f"call_{draw.getrandbits(96):024x}"
        arguments = {"query": english(draw), "limit": draw.randint(1, 50), "order": [draw.choice(NOUNS), "desc"]}
        name = f"search_{draw.choice(NOUNS)}s"
        calls.append({"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}})
        rows = [
            {"id": draw.getrandbits(32), draw.choice(NOUNS): draw.choice(PLACES)}
            for _ in range(int(usual(budget)) // 12)
        ]
        results.append({"role": "tool", "tool_call_id": id, "content": json.dumps({"rows": rows})})
    beside = draw.choice(["", "", english(draw)])
    return [{"role": "assistant", "content": beside, "tool_calls": calls}, *results]


def said_in(sentence: Draw) -> Callable[[Random, int], list[Json]]:
    return lambda draw, budget: exchange(sentence, draw, budget)


KINDS: dict[str, Callable[[Random, int], list[Json]]] = {
    "English chat": said_in(english),
    "German": said_in(german),
    "Chinese, Japanese, Korean": said_in(cjk),
    "code": said_in(code),
    "identifiers": said_in(identifiers),
    "emoji": said_in(emoji),
    "special tokens as text": said_in(special),
    "one word a message": one_word,
    "some long messages": long_messages,
    "a long question": said_in(english),
    "tools": with_tools,
    "tools, answer awaited": with_tools,
    "system prompt": said_in(english),
    "system prompt and facts": said_in(english),
}


def drawn(kind: str, budget: int, seed: int) -> Case:
    """Give the case of a kind, a budget and a seed."""
    draw = Random(f"{kind} {budget} {seed}")
    most = budget * (2.5 if budget <= 2_000 else 1.6)
    messages: list[Json] = []
    total = 0
    while total < most:
        more = KINDS[kind](draw, budget)
        messages += more
        total += sum(map(message_tokens, more))
    asked = text(english, draw, LONG_QUESTION) if kind == "a long question" else f"What about the {draw.choice(NOUNS)}?"
    messages.append({"role": "user", "content": asked})
    if kind == "tools, answer awaited":
        messages += called(draw, budget)
    system = facts = None
    if kind == "system prompt":
        system = "You are a patient assistant. " + text(english, draw, 300)
    elif kind == "system prompt and facts":
        system = "You are a patient assistant. " + text(english, draw, 80)
        facts = [english(draw) for _ in range(12)]
    return Case(f"{kind} {budget} {seed}", kind, budget, messages, system, facts or [])


def cases(kinds: list[str], budgets: list[int], seeds: list[int]) -> Iterator[Case]:
    """Give every case, each time the same."""
    for budget in budgets:
        for kind in kinds:
            for seed in seeds:
                yield drawn(kind, budget, seed)
