"""Secrets are recognised by their documented shapes, masked for good, and nothing else is.

Every secret here is made up and put together from parts, so that no scanner takes this file for a leak.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore.ingest.add import ConversationRef, build_row
from memstore.ingest.redaction import Redactor, redactor_for
from memstore.settings import Settings
from tests.timing import assert_linear

REDACTOR = redactor_for(Settings(mask_secrets=True))
HEX, ALNUM = "0123456789abcdef" * 8, "A1b2C3d4E5f6G7h8I9j0" * 8
JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0", ALNUM[:43]))
PEM = "\n".join(
    ("-----BEGIN RSA PRIVATE" + " KEY-----", ALNUM[:64], ALNUM[:64], "ab==", "-----END RSA PRIVATE" + " KEY-----")
)

SECRETS = {
    "AWS id": ("key", "AKIA" + "IOSFODNN7EXAMPL2"),
    "AWS secret": ("key", 'aws_secret_access_key = "' + ALNUM[:40] + '"'),
    "GitHub": ("key", "ghp" + "_" + ALNUM[:36]),
    "GitHub fine-grained": ("key", "github" + "_pat_" + ALNUM[:60]),
    "GitLab": ("key", "glp" + "at-" + ALNUM[:20]),
    "OpenAI": ("key", "sk-" + "proj-" + ALNUM[:48]),
    "Anthropic": ("key", "sk-" + "ant-api03-" + ALNUM[:80]),
    "Slack token": ("key", "xoxb" + "-123456789012-1234567890123-" + HEX[:24]),
    "Slack webhook": ("key", "https://hooks.slack" + ".com/services/T0AB12CD3/B0AB12CD3/" + ALNUM[:24]),
    "Stripe": ("key", "sk" + "_live_" + ALNUM[:24]),
    "Google": ("key", "AIza" + ALNUM[:35]),
    "SendGrid": ("key", "SG." + ALNUM[:22] + "." + ALNUM[:43]),
    "Twilio": ("key", "SK" + HEX[:32]),
    "Mailchimp": ("key", HEX[:32] + "-us12"),
    "npm": ("key", "//registry.example/:_authToken=" + "npm" + "_" + ALNUM[:36]),
    "PyPI": ("key", "pypi-" + "AgEIcHlwaS5vcmc" + ALNUM[:80]),
    "Telegram": ("key", "123456789:" + "AA" + ALNUM[:33]),
    "Azure": ("key", "AccountKey=" + ALNUM[:86] + "=="),
    "JWT": ("key", JWT),
    "URL": ("key", "postgresql://bob:" + "pa55" + "word@db.example/app"),
    "PEM": ("key", PEM),
    "PEM on one line": ("key", PEM.replace("\n", "\\n")),
    "Visa": ("card", "4111 1111 " + "1111 1111"),
    "Mastercard": ("card", "5555-5555-" + "5555-4444"),
    "Amex": ("card", "3782 822463 " + "10005"),
    "UnionPay": ("card", "6200000000" + "000005"),
    "Diners": ("card", "3056 930902 " + "5904"),
    "IBAN": ("account", "DE89 3704 0044 " + "0532 0130 00"),
    "IBAN unspaced": ("account", "GB82WEST" + "12345698765432"),
    "password": ("password", "my password is hunt" + "er2"),
    "password of signs": ("password", "My password is correct" + "!horse"),
    "password quoted": ("password", 'Passwort: "S0nne' + 'nschein!"'),
    "PIN": ("password", "the PIN for the safe is 49" + "21"),
    "API key by name": ("password", "api_key=" + HEX[:12]),
    "Spanish": ("password", "mi contraseña es Lu" + "na2024"),
    "Visa by dots": ("card", "4111.1111." + "1111.1111"),
    "Visa with no-break spaces": ("card", "4111\u00a01111\u00a01111" + "\u00a01111"),
    "Maestro": ("card", "6759 6498 " + "2643 8453"),
    "IBAN by dots": ("account", "DE89.3704.0044." + "0532.0130.00"),
    "IBAN over lines": ("account", "DE89 3704 0044\n" + "0532 0130 00"),
    "token": ("password", "token: a8f3" + "Kq92LmZx71Qw"),
    "sshpass": ("password", "sshpass -p 'hunt" + "er' ssh root@host"),
    "sshpass joined": ("password", "sshpass -phunt" + "er2 ssh host"),
    "curl": ("password", "curl -s -u bob:hunt" + "er https://api.example"),
    "curl in words": ("password", "curl --user 'bob:hunt" + "er' https://api.example"),
    "mysql": ("password", "mysql -u root -phunt" + "er shop"),
    "mysqldump": ("password", 'mysqldump -p"hunt ' + 'er" shop'),
    "redis-cli": ("password", "redis-cli -h cache -a hunt" + "er ping"),
    "docker login": ("password", "docker login -u bob -p hunt" + "er reg.example"),
    "option": ("password", "backup --db-password=hunt" + "er run"),
    "option apart": ("password", "backup --token hunt" + "er2 run"),
    "variable": ("password", "export DB_PASSWORD=hunt" + "er"),
    "Basic": ("password", "Authorization: Basic " + "Ym9iOmh1bnRlcg"),
    "token in a URL": ("password", "https://x.example/?token=ab12" + "cd34ef"),
    "several words": ("password", 'my password is "correct horse ' + 'battery staple"'),
    "several words bare": ("password", "password: correct horse " + "battery staple"),
    "several words German": ("password", "Mein Passwort ist „blauer Elch " + "tanzt“"),
    "token in JSON": ("password", '{"token": "' + HEX[:24] + '"}'),
}

ORDINARY = [
    "My password is long, and the PIN is wrong.",
    "password: required, at least 12 characters",
    "password = os.environ['DB_PASSWORD']; api_key = settings.API_KEY; token = get_token(user1)",
    "postgresql://user:password@localhost/app and redis://<user>:<password>@host",
    "At 1700000000000 ms the order 4111 1111 1111 1112 was shipped; tracking 00340434161094015902.",
    "Call +49 30 901820 or +1 (555) 010-9999 on 2024-03-01, 12:30:45.123456.",
    "ISBN 978-3-16-148410-0, EAN 4006381333931, commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
    "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8, version 1.2.3.4, 192.168.0.1, #ff8800",
    "The account DE89 3704 0044 0532 0130 01 is mistyped.",
    "https://example.org/a/very/long/path/with-many-words/index.html?utm_source=newsletter&id=123456",
    "My passport expires in 2027. Case 123-45-678, room 12-34-5678.",
    "Ich arbeite seit 2019 in der Kanzlei Horn, und mein Ausweis gilt bis 2030.",
    '{"score": 0.4111111111111111}',  # a fraction is no card
    "Version 4.11.1111.1111, 2024.10.12.3, hosts 10.200.300.4 and 192.168.111.111, pi 3.14159265358979.",
    "22-04-2025 02-08-2003, 4.5.2021 10.6.2022, 12/24/2024 4/11/1111, 2024_01_02_0304, 2021/2022/2023/2024",
    "+49.30.901820.1234.5678",
    "4111.1111.1111.1112, 4111.1111/1111.1111, 4111.1111.1111.1111.1111, 1.4111.1111.1111.1111",
    "order-4347954152226330, run-4421875134052297, 4347954152226330-abc and 4111-1111-1111-1111-x are ids",
    "The token: authentication_required, next page token: a8f3Kq92LmZx71Qw, tokens: 4096, max_tokens=128000",
    "token: jwt_decode_result_v2_final and token = settings.GITHUB_ACCESS_2 and token: ${CI_JOB_TOKEN_V2_A1B2}",
    "acc-4347954152226330, order-number-4347954152226330 and discard-4347954152226330 are ids",
    "ab" * 100 + "4111111111111111" + "cd" * 100,
    '{"passwords": ["x",1234567,"y"]}',
    '{"passwords": 3, "passwords_tried": ["one", "two"], "api_keys": [], "tokens": [12, 13]}',
    "2019\n2020\n2021\n2022\n2023\n2024\n2025\n2026",
    "a6ba7b4111111111111111bb00c04fd430c8dead00",  # a digest, and a UUID, with what would be a card
    "4b411111-1111-1111-1111-00c04fd430c8",
    "docker run -p 8080:80 -u 1000:1000 nginx, mysql -p shop, mkdir -p build, curl -u $USER:$PASS https://x.example",
    "Add --password or --token to the command, --max-tokens=4000 and --token FILE to the other; GITHUB_TOKEN=${TOKEN}",
    "My password is 'at least 12 characters', and the password: required for every user of the site.",
    "password: the new site asks for another one every month",
    "width 5500\nheight 0000\nleft 0000\ntop 0004",
]


def marked(text: str) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    return REDACTOR.redact(text, counts), dict(counts)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_for_good_wherever_it_stands(name: str) -> None:
    kind, secret = SECRETS[name]
    core = max((secret[one.start : one.stop] for one in REDACTOR.find(secret)), key=len)
    assert len(core) >= (12 if kind in ("key", "card", "account") and name != "URL" else 4)
    for around in ("{}", "I wrote it down: {}. Keep it, please!", "first line\n{}\nlast line", "Es ist ({}), ja"):
        text = around.format(secret)
        once, counts = marked(text)
        assert counts == {kind: 1}, (text, once)
        assert core not in once and f"[masked {kind}]" in once
        assert marked(once) == (once, {}), "what is masked stays as it is"
    without = Redactor({name: detect for name, detect in REDACTOR.detectors.items() if name != kind})
    assert [one for one in without.find(secret) if one.kind == kind] == []


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert marked(text) == (text, {})


def test_ids_and_metadata_are_masked_too_and_it_is_told() -> None:
    card, key = SECRETS["Visa"][1], SECRETS["GitHub"][1]
    call = {"id": key, "type": "function", "function": {"name": "log_in", "arguments": {"password": "sunshine"}}}
    asked: dict[str, Any] = {"role": "assistant", "content": f"Pay with {card}", "tool_calls": [call]}
    asked["metadata"] = {"note": card, "trust": "untrusted"}
    answered, plain = {"role": "tool", "content": "paid", "tool_call_id": key}, {"role": "user", "content": "Hello"}
    rows = [build_row(one, ConversationRef("alice", "c"), 10_000) for one in (asked, answered, plain)]
    assert [REDACTOR.redact_message(row) for row in rows] == [True, True, False]
    [made] = rows[0].tool_calls or []
    assert made["function"]["arguments"] == {"password": "[masked password]"}
    assert made["id"] == rows[1].tool_call_id == "[masked key]", "they are still a pair"
    assert rows[0].text == "Pay with [masked card]"
    masked = {"card": 2, "key": 1, "password": 1}
    assert rows[0].meta == {"note": "[masked card]", "trust": "untrusted", "masked": masked}
    assert not REDACTOR.redact_message(rows[0]), "the second time there is nothing"


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ('{"card": 4111111111111111, "n": 2}', {"card": "[masked card]", "n": 2}),  # a bare mark would be no JSON
        (r'{"password": "hunt\"er 2!"}', {"password": "[masked password]"}),
        ('{"login": {"password": 123456, "stay": true}}', {"login": {"password": "[masked password]", "stay": True}}),
        ('[{"id": "4111 1111 1111 1111"}]', [{"id": "[masked card]"}]),
        (r'{"card": "4111111111111111", "half": "\ud83d"}', {"card": "[masked card]", "half": "\ud83d"}),
    ],
)
def test_arguments_of_a_call_stay_json(given: str, masked: object) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": given}}
    made = build_row({"role": "assistant", "tool_calls": [call]}, ConversationRef("alice", "c"), 10_000)
    assert REDACTOR.redact_message(made)
    assert made.tool_calls is not None
    assert json.loads(made.tool_calls[0]["function"]["arguments"]) == masked
    assert not REDACTOR.redact_message(made), "the second time there is nothing"


def test_a_line_of_megabytes_is_searched_through() -> None:
    card = SECRETS["Visa"][1]
    for filler in (
        "//" * 60_000,
        "password for " * 8_000,
        "a" * 150_000,
        "4111 " * 20_000,
        "-----BEGIN PRIVATE KEY-----" * 3_000,
    ):
        assert card not in marked(f"{filler} x {card}")[0]


@pytest.mark.parametrize("end", ["\n", "Abc: ", "a b\n", "A" * 64 + "\n", "\\n"])
def test_private_keys_without_an_end_are_searched_in_linear_time(end: str) -> None:
    assert_linear(REDACTOR.find, "-----BEGIN PRIVATE KEY-----" + end, 20_000)
    assert_linear(lambda text: REDACTOR.find("-----BEGIN PRIVATE KEY-----" + text), end, 20_000)


def test_no_pattern_has_atomic_or_possessive_groups() -> None:
    """`re` of Python 3.11.2 and before finds the wrong spans with them."""
    atomic = re.compile(r"\(\?>|\)(?:[*+?]|\{{1,2}\d*,?\d*\}{1,2})\+")
    files = [file for file in Path(memstore.__file__).parent.rglob("*") if file.suffix in (".py", ".toml", ".txt")]
    assert len(files) > 100
    assert [file.name for file in files if atomic.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("password", ["pa55!word", "b!g$ecret&", "hunter2,now", "(9lives)", "p@ss!word1"])
def test_a_password_in_a_url_may_have_any_sign(password: str) -> None:
    once, counts = marked(f"Use postgresql://bob:{password}@db.example/app?x=1 for it, see https://x.example:443/@bob.")
    assert once == "Use postgresql://bob:[masked key]@db.example/app?x=1 for it, see https://x.example:443/@bob."
    assert counts == {"key": 1}


@pytest.mark.parametrize("before", [0, 1300, 1500, 1700, 1900])
def test_a_long_token_in_a_long_line_is_masked_whole(before: int) -> None:
    token = ".".join((JWT.split(".")[0], "eyJ" + ALNUM * 6, ALNUM[:43]))
    assert marked("x " * (before // 2) + token + " y" * 900) == (
        "x " * (before // 2) + "[masked key]" + " y" * 900,
        {"key": 1},
    )


def test_text_in_parts_is_read_wherever_bytes_may_stand() -> None:
    said = "data: my card is " + SECRETS["Visa"][1]
    image = {"type": "image", "source": {"type": "base64", "data": "4111111111111111" * 8}}
    svg = {"type": "image_url", "image_url": {"url": "data:image/svg+xml,%3Cpath%20d='4111111111111111'/%3E"}}
    text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": said}}
    parts = [{"type": "text", "text": said}, image, svg, text]
    made = build_row({"role": "user", "content": parts}, ConversationRef("alice", "c"), 10_000)
    assert REDACTOR.redact_message(made)
    assert made.text == "data: my card is [masked card]"
    assert (made.parts or [])[1:3] == [image, svg], "bytes stay"
    assert (made.parts or [])[3]["source"]["data"] == made.text


@pytest.mark.parametrize(
    "name", ["password", "dbPassword", "my_db_password", "spring-datasource-password", "v2_api_key"]
)
def test_what_a_name_calls_a_password_is_one_whatever_it_is_of(name: str) -> None:
    assert REDACTOR.redact_json({name: "sunshine"}) == {name: "[masked password]"}
    assert REDACTOR.redact_json({f"{name}_field": "sunshine"}) == {f"{name}_field": "sunshine"}
    assert REDACTOR.redact_json({"a_" * 50_000 + "b": "sunshine"})
