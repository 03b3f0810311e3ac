"""Secrets become marks such as "[masked card]" before anything is stored: counted, embedded and read are the marks.

A message says in its metadata how many secrets of which kind there were. Keys of services are found by detect-secrets,
check digits by python-stdnum (the extra `secrets`), what is called a secret by the patterns here. detect-secrets may
not verify what it finds, which would ask the service over the network.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

from memstore.errors import InvalidInput, ProviderMissing
from memstore.ingest.validation import text_of
from memstore.language import SPOKEN_WORD, WORD, load_words, word_set
from memstore.models import Message
from memstore.plugins import require_extra
from memstore.settings import Settings
from memstore.text import INVALID_CHARS, read_json

T = TypeVar("T")
Text = TypeVar("Text", str, str | None)
Spans = Iterator[tuple[int, int]]
MIN_KEY_CHARS = 16
# Those that detect-secrets does not know, or only in part.
_KEYS = re.compile(
    r"\bgithub_pat_\w{22,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\b[sr]k[-_](?:live[-_]|test[-_]|proj-|ant-)?[A-Za-z0-9_-]{20,}"
    r"|\bAIza[0-9A-Za-z_-]{35}|\bnpm_[A-Za-z0-9]{36}|(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]{8,}+"
)
# A block of PEM or PGP, its lines parted by line ends or by "\n" spelled out; its end may be cut off.
_LINE_END = r"(?:\s|\\[nr])"
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_LINE_END}*(?:[A-Z][A-Za-z-]{{2,20}}: [^\n\\]*|[A-Za-z0-9+/=]{{16,}}))*"
    rf"(?:{_LINE_END}*(?:[A-Za-z0-9+/=]{{1,15}}{_LINE_END}+)*"
    r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
)
# Up to the last @ before a path, whatever signs the password has.
_URL_PASSWORD = re.compile(r"://[^\s/?#@:\"'<>]{0,128}:(?P<value>[^\s/\"'<>]{1,256})@(?=[\w\[])")

_GAP = r"[ \u00a0\u2009\u202f\u2010-\u2015\u2212./_-]"
_CARD = re.compile(
    rf"(?<![\w.-])(?:\d{{4}}(?P<gap>{_GAP})\d{{4}}(?P=gap)\d{{4}}(?P=gap)\d{{4}}"
    rf"|3\d{{3}}(?P<other>{_GAP})\d{{6}}(?P=other)\d{{4,5}}|\d{{14,19}})(?!\w|[./_-]\w)"
)
# The first digits say who issued a card: of the numbers that pass the check digit by chance they rule out nine in ten.
_ISSUER = re.compile(
    r"4\d{15}(?:\d{3})?"  # Visa
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"  # American Express, Diners Club
    r"|(?:6011|64[4-9]\d|65\d\d|35\d\d|62\d\d)\d{12}"  # Discover, JCB, UnionPay
    r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{12}"  # Maestro
)
_IBAN = re.compile(rf"(?<![^\W_])(?=(?P<number>[A-Z]{{2}}\d{{2}}(?:(?:{_GAP}|\s)?[A-Z\d]){{11,30}}))", re.IGNORECASE)

_CALLED = (
    r"pass(?:word|wort|phrase|code|wd)|kennwort|contraseña|mot de passe|(?<![a-z])pwd|(?-i:(?<![A-Za-z])PIN)"
    r"(?: code| number)?|(?:api|secret|access|private)[ _-]?(?:access[ _-]?)?(?:key|token)"
    r"|(?:auth|bearer|refresh)[ _-]?token|client[ _-]?secret"
)
_PASSWORD = re.compile(
    rf"(?:{_CALLED})(?:s?[\"'`])?(?: (?:for|to|of|on|für|zum|de|du|der|von)(?: [^\s:=]{{1,40}}){{1,4}}?)?\s{{0,3}}"
    r"(?:(?<=\s)(?:is|ist|es|est|lautet|was|war)(?=\s)|[:=：])\s{0,3}[\"'“„«`]?"
    r"(?P<value>[^\s\"'“”„«»`,;]{3,128}[^\s\"'“”„«»`.,;:!?)])",
    re.IGNORECASE,
)
# Called a token and nothing else: tokens of a model, a page and a text are called so too.
_TOKEN = re.compile(
    r"(?<![\w-])(?<!page )(?<!next )token[\"'`]?\s{0,3}[:=：]\s{0,3}[\"'“„«`]?"
    r"(?P<value>[A-Za-z0-9._~+/-]{16,}+={0,2})",
    re.IGNORECASE,
)
# Several words: quoted, or alone behind a colon, as a generator of passphrases gives them.
_PHRASE = re.compile(
    rf"(?:{_CALLED})(?:s?[\"'`])?\s{{0,3}}(?:(?<=\s)(?:is|ist|es|est|lautet)(?=\s)|[:=：])\s{{0,3}}"
    r"(?:[\"'“„«`](?P<quoted>[^\s\"'“”„«»`\[]{2,40}(?: [^\s\"'“”„«»`\[]{2,40}){1,11})[\"'“”»`]"
    r"|(?:(?<=[:=：])|(?<=[:=：] ))(?P<words>\w{3,15}(?: \w{3,15}){3,11})(?=\s*(?:[.!?,;)\n]|\Z)))",
    re.IGNORECASE,
)
# The options of programs that take a password, and a variable of the environment.
_COMMANDS = [
    re.compile(
        rf"\b{command}"
        r"(?:\"(?P<double>[^\"\n]{3,128})\"|'(?P<single>[^'\n]{3,128})'|(?P<bare>[^\s\"'|;&()<>\[]{3,128}))"
    )
    for command in (
        r"sshpass[ \t]+-p[ \t]*",
        r"(?:mysql|mariadb)[\w-]{0,12}\b[^\n|;&]{0,200}?[ \t]-p",
        r"(?:curl|wget|https?)\b[^\n|;&]{0,200}?[ \t](?:-u[ \t]?|--(?:proxy-)?user[ =])[\"']?[^\s:\"']{1,64}:",
        r"redis-cli\b[^\n|;&]{0,200}?[ \t]-a[ \t]+",
        r"(?:docker|podman|helm|az)[ \t]+(?:\w+[ \t]+)?login\b[^\n|;&]{0,200}?[ \t]-p[ \t]+",
        r"(?<=-)(?:[a-z]{1,16}-)?(?:password|passwd|passphrase|pass|secret|token)=",
        r"(?<=-)(?:[a-z]{1,16}-)?(?:password|passwd|passphrase|pass|secret|token)[ \t]+(?=\S*[\d!@#$%^&*])",
        r"(?:[A-Z][A-Z0-9]*_)*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_KEY)=",
        r"[Aa]uthorization:[ \t]*Basic[ \t]+",
        r"(?<![\w-])token=(?=[A-Za-z._~+/-]*\d[^\s\d]*\d)(?=\S*[A-Za-z])(?=\S{8})",
    )
]
# Names of values in JSON: `db_password`, `dbPassword`, `spring_datasource_password`, `api_keys`.
_SECRET_NAME = re.compile(rf"(?:[a-z\d]++[_-])*[a-z]*?(?:{_CALLED}|secret)s?", re.IGNORECASE)
_BINARY = re.compile(
    r"data:(?:image|audio|video)/\S+|(?:data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,)?[A-Za-z0-9+/_=\r\n-]{64,}"
)


class Secret(NamedTuple):
    """The place of a secret, in characters, and its kind."""

    start: int
    stop: int
    kind: str

    @property
    def mark(self) -> str:
        return f"[masked {self.kind}]"


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets by marks; without detectors it returns texts as they are.

    Everything that is stored because somebody gave it passes through here: messages (`redact_message`), text
    (`redact`), JSON (`redact_json`), and names that ids follow from (`reject_secret_names`).
    """

    detectors: Mapping[str, Callable[[str], Spans]]

    def find(self, text: str) -> list[Secret]:
        """Return the secrets of a text in order; those that overlap are one."""
        secrets: list[Secret] = []
        spans = [Secret(start, stop, kind) for kind, detect in self.detectors.items() for start, stop in detect(text)]
        for secret in sorted(spans):
            if secrets and secret.start < secrets[-1].stop:
                secrets[-1] = secrets[-1]._replace(stop=max(secrets[-1].stop, secret.stop))
            else:
                secrets.append(secret)
        return secrets

    def redact(self, text: Text, counts: Counter[str] | None = None) -> Text:
        return text and _replace(text, self.find(text), counts)

    def redact_json(self, value: T, counts: Counter[str] | None = None) -> T:
        """Return JSON with secrets marked in its texts, numbers and names; a name may show that its value is one."""
        redacted: T = self._walk(value, Counter() if counts is None else counts, "") if self.detectors else value
        return redacted

    def reject_secret_names(self, **names: str | None) -> None:
        """Raise `InvalidInput` where a name holds a secret: ids follow from names, so they cannot be marked."""
        for what, name in names.items():
            if name is not None and (secrets := self.find(name)):
                raise InvalidInput(
                    f"The {what.replace('_', ' ')} seems to hold a secret ({secrets[0].kind}), and names are not "
                    "masked, since ids follow from them. Nothing was stored: give another name, or take the kind out "
                    "of mask_kinds."
                )

    def redact_message(self, message: Message) -> bool:
        """Mark the secrets of a message that is not stored yet; return whether there were any.

        Raises `InvalidInput` where its `external_id` is one.
        """
        if not self.detectors:
            return False
        self.reject_secret_names(external_id=message.external_id)
        counts: Counter[str] = Counter()
        parts = self._walk(message.parts, counts, "")
        redacted = {
            "text": self.redact(message.text, counts) if parts is None else text_of(parts),
            "parts": parts,
            "tool_calls": self._walk(message.tool_calls, counts, ""),
            "tool_call_id": self.redact(message.tool_call_id, counts),
            "name": self.redact(message.name, counts),
            "tags": [self.redact(tag, counts) for tag in message.tags],
            "meta": self._walk(message.meta, counts, ""),
        }
        if counts:
            redacted["meta"] |= {"masked": dict(sorted(counts.items()))}
            vars(message).update(redacted)
        return bool(counts)

    def _walk(self, value: Any, counts: Counter[str], key: str) -> Any:
        if isinstance(value, Mapping):
            redacted: dict[Any, Any] = {}
            for name, member in value.items():
                new = self.redact(name, counts) if isinstance(name, str) else name
                new = new if new not in redacted else f"{new} {len(redacted)}"  # two names may become one mark
                redacted[new] = self._walk(member, counts, str(name)[-200:])
            return redacted
        if isinstance(value, list | tuple):
            return [self._walk(member, counts, key) for member in value]
        if type(value) not in (str, int) or len(text := str(value)) < 4:
            return value
        if (key in ("data", "file_data", "signature") or text.startswith("data:")) and _BINARY.fullmatch(text):
            return value
        if key in ("arguments", "input") and text[0] in "[{":
            return self._redact_arguments(text, counts)
        if "password" in self.detectors and _is_secret_name(key, text):
            secrets = [Secret(0, len(text), "password")]
            return text if text == secrets[0].mark else _replace(text, secrets, counts)
        prefix = f"{key.replace('_', ' ')}: "  # a password is one where it is called so
        shift = len(prefix)
        secrets = [
            Secret(secret.start - shift, secret.stop - shift, secret.kind)
            for secret in self.find(prefix + text)
            if secret.start >= shift
        ]
        return _replace(text, secrets, counts) if secrets else value

    def _redact_arguments(self, text: str, counts: Counter[str]) -> str:
        """Return the arguments of a call, which stay JSON: a mark in the place of a bare number would be none."""
        own_counts: Counter[str] = Counter()
        try:
            redacted = self._walk(read_json(text), own_counts, "")
            written = json.dumps(redacted, ensure_ascii=False)
        except ValueError:
            return self.redact(text, counts)
        counts.update(own_counts)
        if not own_counts:
            return text
        return json.dumps(redacted) if INVALID_CHARS.search(written) else written


def redactor_for(settings: Settings) -> Redactor:
    return _load(frozenset(settings.mask_kinds)) if settings.mask_secrets else Redactor({})


@cache
def _load(kinds: frozenset[str]) -> Redactor:
    with require_extra("secrets", "detect_secrets", "stdnum"):
        luhn, iban = (import_module(f"stdnum.{name}") for name in ("luhn", "iban"))
        # The plugins that know keys by their form; each module has one class.
        plugins = word_set("""
        artifactory aws azure_storage_key discord github_token gitlab_token mailchimp pypi_token sendgrid slack
        square_oauth stripe telegram_token twilio
        """)
        modules = [import_module(f"detect_secrets.plugins.{name}") for name in sorted(plugins)]
    lists = [getattr(member, "denylist", None) for module in modules for member in vars(module).values()]
    patterns = [pattern for denylist in lists if isinstance(denylist, list | tuple) for pattern in denylist]

    def detect_keys(text: str) -> Spans:
        yield from (match.span() for match in _PRIVATE_KEY.finditer(text))
        for match in _URL_PASSWORD.finditer(text):
            value = match["value"]
            if len(value) >= MIN_KEY_CHARS or not (
                _is_code(value) or value.lower() in ("pass", "passwd", "password", "secret")
            ):
                yield match.span("value")
        if any(len(word) >= MIN_KEY_CHARS for word in text.split()):
            yield from (match.span() for match in _KEYS.finditer(text))
            for start, piece in _pieces(text):
                for match in chain.from_iterable(pattern.finditer(piece) for pattern in patterns):
                    begin, end = match.span(1 if match.re.groups and len(match[1]) >= MIN_KEY_CHARS else 0)
                    yield start + begin, start + end

    def detect_cards(text: str) -> Spans:
        for match in _CARD.finditer(text):
            digits = _without_signs(match[0])
            if _ISSUER.fullmatch(digits) and luhn.is_valid(digits):
                yield match.span()

    def detect_accounts(text: str) -> Spans:
        for match in _IBAN.finditer(text):
            # Other words stand next to a number.
            for stop in reversed([group.end() for group in SPOKEN_WORD.finditer(match["number"])]):
                if iban.is_valid(_without_signs(match["number"][:stop])):
                    yield match.start(), match.start() + stop
                    break

    detectors = {"account": detect_accounts, "card": detect_cards, "key": detect_keys, "password": _detect_passwords}
    return Redactor({kind: detect for kind, detect in detectors.items() if kind in kinds})


@cache
def load_detectors() -> Redactor:
    """Return a redactor of every kind; without the extra `secrets`, of passwords and of keys that are known by form."""
    try:
        return _load(frozenset(Settings.model_fields["mask_kinds"].default))
    except ProviderMissing:
        patterns = (_PRIVATE_KEY, _KEYS)
        keys = {"key": lambda text: (match.span() for pattern in patterns for match in pattern.finditer(text))}
        return Redactor({"password": _detect_passwords, **keys})


def _detect_passwords(text: str) -> Spans:
    for match in _PASSWORD.finditer(text):
        value = match["value"]
        is_word = not any(char.isdecimal() or char in "!@#$%^&*?~+" for char in value)
        if not is_word and not _is_code(value) and not set("()[]{}<>") & set(value):
            yield match.span("value")
    for match in _PHRASE.finditer(text):
        name = "quoted" if match["quoted"] else "words"
        if load_words("about_passwords").isdisjoint(WORD.findall(match[name].lower())):
            yield match.span(name)
    for command in _COMMANDS:
        for match in command.finditer(text):
            name = str(match.lastgroup)
            if not _is_code(match[name]) and not match[name].startswith("["):
                yield match.span(name)
    yield from (match.span("value") for match in _TOKEN.finditer(text) if _is_token(match["value"]))


def _is_token(value: str) -> bool:
    # Letters next to digits, as in no word and in no number.
    changes = sum(
        (first.isalpha() and second.isdecimal()) or (first.isdecimal() and second.isalpha())
        for first, second in pairwise(value)
    )
    return len(value) >= MIN_KEY_CHARS and changes > 1 and not _is_code(value) and " " not in value


def _is_code(value: str) -> bool:
    """Return whether a value stands for one, or is code that reads it from elsewhere."""
    starts = ("$", "<", "{", "%", "*", "your", "my", "xxx", "...", "os.", "env", "process.", "http:", "https:", "/")
    head, *names = value.split(".")
    is_path = bool(names) and value.isascii() and all(name.isidentifier() for name in (head, *names))
    return value.lower().startswith(starts) or (is_path and not any(map(str.isdigit, head)))


def _is_secret_name(key: str, value: str) -> bool:
    return _is_token(value) if key.lower() in ("token", "tokens") else _SECRET_NAME.fullmatch(key) is not None


def _replace(text: str, secrets: Iterable[Secret], counts: Counter[str] | None) -> str:
    kept, stop = [], 0
    for secret in secrets:
        kept += [text[stop : secret.start], secret.mark]
        stop = secret.stop
        if counts is not None:
            counts[secret.kind] += 1
    return "".join([*kept, text[stop:]])


def _without_signs(number: str) -> str:
    return "".join(filter(str.isalnum, number))


def _pieces(text: str, size: int = 2000, overlap: int = 250) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text for detect-secrets, long ones in pieces: some of its patterns take quadratic time."""
    begin = 0
    for line in text.splitlines(keepends=True):
        for start in range(0, max(1, len(line) - overlap), size - overlap):
            yield begin + start, line[start : start + size]
        begin += len(line)
