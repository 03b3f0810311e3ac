"""All configuration; the only reader of memstore's variables, but for the one that says where the file is.

Every option is a keyword of `memstore.open(settings=Settings(…))`, a `MEMSTORE_…` variable and a key of `memstore.toml`
(`settings_file` says where that is), all of the same name. The first of these that has it wins, then the default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AnyHttpUrl, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from memstore import settings_file
from memstore.errors import ConfigurationError

ONNX_MINILM = "onnx:all-MiniLM-L6-v2"


def _http_url(value: str) -> str:
    try:
        TypeAdapter(AnyHttpUrl).validate_python(value)
    except ValidationError:
        raise ValueError("give a URL, such as http://127.0.0.1:11434") from None
    return value


def _listed(value: object) -> object:
    return tuple(filter(None, value.replace(" ", "").split(","))) if isinstance(value, str) else value


def _once(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value))


def _number(value: object) -> object:
    if isinstance(value, bool):  # Python's True is 1
        raise ValueError("give a number")
    return value


def _named(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("give a name that is not blank")
    return value


# Of a URL what stands before the place, which may be a password with any sign in it, and a password that is an option.
_WHERE = re.compile(r"(?<=://).*(?=@)|(?<=password=)[^&]*")
Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed), AfterValidator(_once)]
Speakers = Annotated[
    tuple[Literal["user", "assistant", "tool"], ...], NoDecode, BeforeValidator(_listed), AfterValidator(_once)
]
Trusted = Annotated[tuple[Literal["user", "assistant"], ...], NoDecode, BeforeValidator(_listed), AfterValidator(_once)]
Secrets = Annotated[
    tuple[Literal["card", "account", "document", "key", "password"], ...],
    NoDecode,
    BeforeValidator(_listed),
    AfterValidator(_once),
]
Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number)]


class Settings(BaseSettings):
    """What a store may be told. An option given here wins over the environment, that over the file and the default."""

    model_config = SettingsConfigDict(env_prefix="MEMSTORE_", frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Give what is printed of the settings: a URL without the part that may hold a password."""
        for name, value in super().__repr_args__():
            yield name, _WHERE.sub("…", value) if name == "database_url" else value

    database_url: str = Field(
        default="embedded",
        description="embedded, embedded:FOLDER, or postgresql://… (any Postgres ≥ 15 with pgvector ≥ 0.8)",
    )
    counter: str = Field(default="tiktoken:o200k_base", description="the token counter, as kind:model")
    embedder: str = Field(
        default=ONNX_MINILM,
        description='the embedder, as kind:model; "none" recalls by words alone',
    )
    pool_size: Whole = Field(default=8, ge=1, le=1000, description="connections that one store may hold")
    log_format: Literal["text", "json"] = Field(
        default="text", description="how servers and workers log: warnings as text, or every record as a line of JSON"
    )
    enqueue: bool = Field(
        default=False, description="adding messages queues a job for the workers; else they find what is pending"
    )
    worker_sweep_seconds: Whole = Field(
        default=10, ge=1, le=59, description="how often workers look for what is pending, and for jobs of dead ones"
    )
    worker_stalled_seconds: Real = Field(
        default=30.0, ge=1, le=86_400, description="a worker not heard of for so long is dead: others do its jobs"
    )
    worker_attempts: Whole = Field(
        default=8, ge=1, le=1000, description="a job that failed this often is left to be looked at"
    )
    max_message_bytes: Whole = Field(default=4_000_000, ge=1, description="the largest message, in bytes of UTF-8")
    unit_tokens: Whole = Field(
        default=200, ge=16, le=2000, description="the longest unit of recall, in the embedder's tokens"
    )
    units_in_memory: Whole = Field(
        default=150_000,
        ge=0,
        description="a user with more units of recall is searched in the database, all others in this process",
    )
    arrays_megabytes: Whole = Field(
        default=512, ge=1, le=10**6, description="what the units of users may take in a process; the oldest ones go"
    )
    stretch_tokens: Whole = Field(
        default=1200, ge=50, description="a stretch to be summarized has at most about this many tokens"
    )
    stretch_gap_hours: Real = Field(
        default=4.0, gt=0, le=100_000, description="a silence of this many hours ends a stretch"
    )
    outbox_days: Real = Field(
        default=30.0, ge=0, le=100_000, description="events are kept for this many days; 0 keeps none"
    )
    messages_days: Real = Field(
        default=0.0,
        ge=0,
        le=100_000,
        description="messages older than so many days are erased, with all that rests on them; 0 keeps them for ever",
    )
    receipts_days: Real = Field(
        default=30.0, ge=0, le=100_000, description="receipts of contexts are kept for this many days; 0 keeps none"
    )
    summary_tokens: Whole = Field(default=160, ge=10, description="a summary has at most this many tokens")
    summary_model: str = Field(
        default="none", description='the chat model that writes summaries, as kind:model; "none" chooses sentences'
    )
    facts_model: str = Field(
        default="none", description='the chat model that finds facts, as kind:model; "none" leaves them to the rules'
    )
    reranker: str = Field(
        default="none",
        description='what reads the best hits once more with the question, as kind:model; "none" is none',
    )
    llm_daily_tokens: Whole | None = Field(
        default=None, ge=1, description="tokens that chat models may take and give in a day (UTC), all users together"
    )
    ollama_url: Annotated[str, AfterValidator(_http_url)] = Field(
        default="http://127.0.0.1:11434", description="where Ollama answers; OLLAMA_HOST is not read"
    )
    ollama_num_ctx: Whole = Field(
        default=8192,
        ge=2048,
        le=2_000_000,
        description="the window that Ollama is asked for, in tokens, answer included",
    )
    ollama_timeout_seconds: Real = Field(
        default=300.0,
        gt=0,
        le=86_400,
        description="the longest wait for one answer of Ollama, retries included; in a chat its longest silence",
    )
    facts_from: Speakers = Field(
        default=("user",), description="whose messages facts are taken from: of user, assistant, tool, with commas"
    )
    facts_trusted: Trusted = Field(
        default=("user", "assistant"),
        description="whose facts hold at once, of user and assistant; those of others wait until they are confirmed",
    )
    mcp_memories: Literal["active", "quarantined"] = Field(
        default="active",
        description="what a model remembers over MCP: active holds at once, quarantined waits until it is confirmed",
    )
    mask_secrets: bool = Field(default=False, description="mask secrets and card numbers before anything is stored")
    mask_kinds: Secrets = Field(
        default=("card", "account", "document", "key", "password"),
        description="what is masked: of card, account, document, key, password, with commas",
    )
    context_budget: Whole | None = Field(
        default=None, ge=1, le=10**9, description="the tokens of a context where neither caller nor conversation says"
    )
    context_reserve: Whole = Field(default=0, ge=0, le=10**9, description="tokens of that budget to keep free")
    context_viewer: Annotated[str | None, BeforeValidator(_named)] = Field(
        default=None, description="who looks: contexts and recall show what this one sees; without a name, everything"
    )
    strategies: Listed = Field(
        default=(), description="what compresses conversations that have no strategies of their own, with commas"
    )
    visibility: str = Field(default="addressed", description="the rule by which a viewer sees messages")
    server_hosts: Listed = Field(
        default=(), description="allowed Host headers, with commas, in addition to this machine's own names"
    )
    server_body_bytes: Whole = Field(default=16_000_000, ge=1, description="the largest body that the server reads")
    server_timeout_seconds: Real = Field(
        default=60.0, gt=0, le=86_400, description="the longest that the server works on one answer"
    )
    server_stop_seconds: Real = Field(
        default=20.0, ge=0, le=86_400, description="how long requests under way may go on once the server is to stop"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read what is given, then the environment, then the file."""
        file = settings_file.path()
        found = [] if file is None or not file.is_file() else [InitSettingsSource(settings_cls, settings_file.read())]
        return init_settings, env_settings, *found


@dataclass(frozen=True, slots=True)
class Setting:
    """An option, what it is set to, and where that was said: "given", a variable, a file, or "default"."""

    name: str
    value: Any
    source: str


def load(given: Mapping[str, Any]) -> Settings:
    """Give the settings, with these options of them; raise `ConfigurationError` that names what cannot be, and where.

    A value that is wrong is named with the file or the variable that has it.
    """
    _check_environment()
    said = _check_file()
    for name in given:
        if name not in Settings.model_fields:
            raise ConfigurationError(f"{name!r} is no option of memstore. {_meant(str(name))}")
    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = [(str(one["loc"][0]), repr(one["input"])[:60], _wanted(one)) for one in error.errors()]
    raise ConfigurationError("; ".join(_complaint(given, said, *one) for one in wrong))


def listed(given: Mapping[str, Any] | None = None) -> list[Setting]:
    """Give every option with its value and where that comes from."""
    given = given or {}
    settings, said, file = load(given), settings_file.read(), settings_file.path()
    found = []
    for name in Settings.model_fields:
        variable = _variable(name)
        source = "given" if name in given else variable or (str(file) if name in said else "default")
        found.append(Setting(name, getattr(settings, name), source))
    return found


def place(name: str, value: Any) -> str:
    """Return an option with this value as messages name it: by the variable or the file that says so.

    By the name alone if it was given, or is the default.
    """
    found = next(one for one in listed() if one.name == name)
    if found.value != value or found.source == "default":
        return f"{name}={value!r:.60}"
    return f"{_told(name, found.source)}={value!r:.60}"


_BOUNDS = {"greater_than_equal": "at least", "greater_than": "more than", "less_than_equal": "at most"}


def _wanted(wrong: ErrorDetails) -> str:
    """Say what to give instead of what is wrong."""
    kind, told = wrong["type"], wrong.get("ctx", {})
    if kind in _BOUNDS:
        return f"give {_BOUNDS[kind]} {next(iter(told.values())):,.10g}"
    if kind.startswith("int_"):
        return "give a whole number"
    if kind.startswith(("float_", "finite_")):
        return "give a number"
    if kind == "literal_error":
        return f"give some of {told['expected']}"
    wanted = {"string_type": "give a text", "tuple_type": "give a list"}
    return wanted.get(kind) or wrong["msg"].removeprefix("Value error, ")


def _variable(name: str) -> str | None:
    wanted = f"MEMSTORE_{name.upper()}"
    return next((variable for variable in os.environ if variable.upper() == wanted), None)


def _complaint(given: Mapping[str, Any], said: Mapping[str, Any], name: str, value: str, why: str) -> str:
    """Say where a value stands that cannot be, and why."""
    source = "given" if name in given else _variable(name) or (str(settings_file.path()) if name in said else "default")
    return f"{_told(name, source)}={value}: {why}"


def _told(name: str, source: str) -> str:
    """Give an option as it is called where it stands."""
    if source in ("given", "default"):
        return name
    return source if source == _variable(name) else f"{source}: {name}"


def _meant(name: str, known: Mapping[str, str] | None = None) -> str:
    """Say which option a name is nearly, or which there are."""
    names = {one: one for one in Settings.model_fields} if known is None else known
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"Did you mean {names[near[0]]}?" if near else f"There are {', '.join(names.values())}."


def _check_environment() -> None:
    """Refuse a variable that is none of ours: a misspelt URL would silently open another database."""
    known = {one: f"MEMSTORE_{one.upper()}" for one in (*Settings.model_fields, "config")}
    for name in os.environ:
        prefix, _, option = name.partition("_")
        if prefix.upper() == "MEMSTORE" and option.lower() not in known:
            raise ConfigurationError(
                f"The environment has {name}, which is no option of memstore. {_meant(option, known)}"
            )


def _check_file() -> dict[str, Any]:
    """Give what the settings file says; refuse a key that is none of ours."""
    said = settings_file.read()
    for name in said:
        if name not in Settings.model_fields:
            raise ConfigurationError(
                f"{settings_file.path()} has {name!r}, which is no option of memstore. {_meant(name)}"
            )
    return said
