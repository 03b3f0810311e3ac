"""All configuration, and the only reader of memstore's variables.

Every option is a keyword of `memstore.open(settings=Settings(…))`, a `MEMSTORE_…` variable and a key of the settings
file, all of the same name. The first of these that has it wins, then the default. The file is where `MEMSTORE_CONFIG`
says, else `memstore.toml` in the user's folder for configuration; with `MEMSTORE_CONFIG` set to nothing there is none.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from platformdirs import user_config_path
from pydantic import AfterValidator, AnyHttpUrl, BeforeValidator, Field, SecretStr, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from memstore.errors import ConfigurationError

T = TypeVar("T")
ONNX_MINILM = "onnx:all-MiniLM-L6-v2"
OPENAI = "https://api.openai.com/v1"
CONFIG = "MEMSTORE_CONFIG"
NO_OPTION = "which is no option of memstore."


def _http_url(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        TypeAdapter(AnyHttpUrl).validate_python(value)
    except ValidationError:
        raise ValueError("give a URL, such as http://127.0.0.1:11434") from None
    return value.rstrip("/")


def _base_url(value: str | None) -> str | None:
    url = _http_url(value)
    parts = urlsplit(url or "")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("give a URL without a key: that has a setting of its own")
    return url


def _split(value: object) -> object:
    return tuple(filter(None, value.replace(" ", "").split(","))) if isinstance(value, str) else value


def _unique(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value))


def _not_bool(value: object) -> object:
    if isinstance(value, bool):  # Python's True is 1
        raise ValueError("give a number")
    return value


def _not_blank(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("give a name that is not blank")
    return value


# Of a URL what stands before the place, which may be a password with any sign in it, and a password that is an option.
_SECRET = re.compile(r"(?<=://).*(?=@)|(?<=password=)[^&]*")
Many = Annotated[tuple[T, ...], NoDecode, BeforeValidator(_split), AfterValidator(_unique)]  # also "one,other"
Whole = Annotated[int, BeforeValidator(_not_bool)]
Real = Annotated[float, BeforeValidator(_not_bool)]


class Settings(BaseSettings):
    """What a store may be told. An option given here wins over the environment, that over the file and the default."""

    model_config = SettingsConfigDict(env_prefix="MEMSTORE_", frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Yield what is printed of the settings: a URL without the part that may hold a password."""
        for name, value in super().__repr_args__():
            yield name, _SECRET.sub("…", value) if name == "database_url" else value

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
    queue_on_add: bool = Field(
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
    chunk_tokens: Whole = Field(
        default=200, ge=16, le=2000, description="the longest chunk of a message, in the embedder's tokens"
    )
    max_chunks_in_memory: Whole = Field(
        default=150_000,
        ge=0,
        description="a user with more chunks is searched in the database, all others in this process",
    )
    index_cache_mb: Whole = Field(
        default=512, ge=1, le=10**6, description="megabytes of users' chunks that a process holds; the oldest ones go"
    )
    segment_tokens: Whole = Field(
        default=1200, ge=50, description="a segment to be summarized has at most about this many tokens"
    )
    session_gap_hours: Real = Field(
        default=4.0, gt=0, le=100_000, description="a silence of this many hours ends a segment"
    )
    event_retention_days: Real = Field(
        default=30.0, ge=0, le=100_000, description="events are kept for this many days; 0 keeps none"
    )
    message_retention_days: Real = Field(
        default=0.0,
        ge=0,
        le=100_000,
        description="messages older than so many days are erased, with all that rests on them; 0 keeps them for ever",
    )
    receipt_retention_days: Real = Field(
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
    openai_url: Annotated[str, AfterValidator(_base_url)] = Field(
        default=OPENAI, description="where openai: models chat: the base URL of any OpenAI-compatible server"
    )
    openai_api_key: SecretStr | None = Field(
        default=None, description="the key for that URL; without it OPENAI_API_KEY, where the URL is OpenAI's own"
    )
    openai_context_tokens: Whole | None = Field(
        default=None,
        ge=1024,
        le=10_000_000,
        description="the window of openai: models; by default what the server tells, or 16,384",
    )
    openai_timeout_seconds: Real = Field(
        default=300.0, gt=0, le=86_400, description="the longest wait for an answer of openai: models, retries included"
    )
    embedding_url: Annotated[str | None, AfterValidator(_base_url)] = Field(
        default=None, description="where openai: embedders answer; by default at openai_url"
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="the key for embedding_url")
    embedding_timeout_seconds: Real = Field(
        default=60.0, gt=0, le=86_400, description="the longest wait for the vectors of a batch, retries included"
    )
    embedding_dimensions: Whole | None = Field(
        default=None, ge=1, le=2000, description="the dimensions to ask openai: embedders for that can shorten vectors"
    )
    embedding_max_tokens: Whole = Field(
        default=8191, ge=64, le=10**6, description="the window of openai: and ollama: embedders, in tokens"
    )
    embedding_query_prefix: str = Field(
        default="", description='what openai: and ollama: embedders get before a question, such as "query: "'
    )
    embedding_document_prefix: str = Field(
        default="", description='what they get before a text to be found, such as "passage: "'
    )
    rerank_url: Annotated[str | None, AfterValidator(_base_url)] = Field(
        default=None, description="where openai: rerankers answer at /rerank, in Cohere's shape; else at openai_url"
    )
    rerank_api_key: SecretStr | None = Field(default=None, description="the key for rerank_url")
    rerank_timeout_seconds: Real = Field(
        default=10.0, gt=0, le=86_400, description="the longest wait for a reranker's scores, retries included"
    )
    fact_roles: Many[Literal["user", "assistant", "tool"]] = Field(
        default=("user",), description="whose messages facts are taken from: of user, assistant, tool, with commas"
    )
    trusted_roles: Many[Literal["user", "assistant"]] = Field(
        default=("user", "assistant"),
        description="whose facts hold at once, of user and assistant; those of others wait until they are confirmed",
    )
    mcp_memories: Literal["active", "quarantined"] = Field(
        default="active",
        description="what a model remembers over MCP: active holds at once, quarantined waits until it is confirmed",
    )
    mask_secrets: bool = Field(default=False, description="mask secrets and card numbers before anything is stored")
    mask_kinds: Many[Literal["card", "account", "document", "key", "password"]] = Field(
        default=("card", "account", "document", "key", "password"),
        description="what is masked: of card, account, document, key, password, with commas",
    )
    context_budget: Whole | None = Field(
        default=None, ge=1, le=10**9, description="the tokens of a context where neither caller nor conversation says"
    )
    context_reserve: Whole = Field(default=0, ge=0, le=10**9, description="tokens of that budget to keep free")
    context_viewer: Annotated[str | None, BeforeValidator(_not_blank)] = Field(
        default=None, description="who looks: contexts and recall show what this one sees; without a name, everything"
    )
    strategies: Many[str] = Field(
        default=(), description="what compresses conversations that have no strategies of their own, with commas"
    )
    visibility: str = Field(default="addressed", description="the rule by which a viewer sees messages")
    server_hosts: Many[str] = Field(
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
        return init_settings, env_settings, InitSettingsSource(settings_cls, read_file())


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """An option, what it is set to, and where that was said: "given", a variable, a file, or "default"."""

    name: str
    value: Any
    source: str


def load(given: Mapping[str, Any]) -> Settings:
    """Return the settings, with these options of them.

    Raises `ConfigurationError` for a name that is no option and for a wrong value, with the file or variable of it: a
    misspelt URL would silently open another database.
    """
    _check_names(given, "{!r} is no option of memstore.")
    variables = [name for name in os.environ if name.upper().startswith("MEMSTORE_") and name.upper() != CONFIG]
    for variable in variables:
        known = {name: f"MEMSTORE_{name.upper()}" for name in Settings.model_fields}
        _check_names([variable.partition("_")[2].lower()], f"The environment has {variable}, {NO_OPTION}", known)
    file = read_file()
    _check_names(file, f"{file_path()} has {{!r}}, {NO_OPTION}")
    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = [(str(each["loc"][0]), _input(each), _wanted(each)) for each in error.errors()]
    raise ConfigurationError("; ".join(f"{_named_at(n, _source(n, given, file))}={v}: {w}" for n, v, w in wrong))


def describe(given: Mapping[str, Any] | None = None) -> list[SettingInfo]:
    """Return every option with its value and where that comes from."""
    given = given or {}
    settings, file = load(given), read_file()
    return [
        SettingInfo(name, _shown(getattr(settings, name)), _source(name, given, file)) for name in Settings.model_fields
    ]


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, SecretStr) else value


def source_of(name: str, value: Any) -> str:
    """Return an option with this value as messages name it: with the variable or the file that says so, if any."""
    option = next(info for info in describe() if info.name == name)
    return f"{name if option.value != value else _named_at(name, option.source)}={value!r:.60}"


def _source(name: str, given: Mapping[str, Any], file: Mapping[str, Any]) -> str:
    if name in given:
        return "given"
    variable = f"MEMSTORE_{name.upper()}"
    known = next((known for known in os.environ if known.upper() == variable), None)
    return known or (str(file_path()) if name in file else "default")


def _named_at(name: str, source: str) -> str:
    if source in ("given", "default"):
        return name
    return source if source.upper() == f"MEMSTORE_{name.upper()}" else f"{source}: {name}"


def _check_names(names: Iterable[str], complaint: str, known: Mapping[str, str] | None = None) -> None:
    """Refuse a name that is none of ours, and say which one it is nearly, or which there are."""
    known = known or {name: name for name in Settings.model_fields}
    for name in names:
        if name not in known:
            near = get_close_matches(str(name).lower(), known, n=1, cutoff=0.7)
            hint = f"Did you mean {known[near[0]]}?" if near else f"There are {', '.join(known.values())}."
            raise ConfigurationError(f"{complaint.format(name)} {hint}")


def _input(wrong: ErrorDetails) -> str:
    """Return what was given, as far as it can hold no key."""
    name = str(wrong["loc"][0])
    return "…" if name.endswith(("_key", "_url")) else repr(wrong["input"])[:60]


_BOUNDS = {"greater_than_equal": "at least", "greater_than": "more than", "less_than_equal": "at most"}


def _wanted(wrong: ErrorDetails) -> str:
    """Say what to give instead of what is wrong."""
    kind, context = wrong["type"], wrong.get("ctx", {})
    if kind in _BOUNDS:
        return f"give {_BOUNDS[kind]} {next(iter(context.values())):,.10g}"
    if kind.startswith("int_"):
        return "give a whole number"
    if kind.startswith(("float_", "finite_")):
        return "give a number"
    if kind == "literal_error":
        return f"give some of {context['expected']}"
    wanted = {"string_type": "give a text", "tuple_type": "give a list"}
    return wanted.get(kind) or wrong["msg"].removeprefix("Value error, ")


def file_path() -> Path | None:
    """Return where the settings file is, or would be; None where `MEMSTORE_CONFIG` is set to nothing."""
    config = next((value for name, value in os.environ.items() if name.upper() == CONFIG), None)
    if config is None:
        return user_config_path("memstore", appauthor=False) / "memstore.toml"
    try:
        return Path(config).expanduser() if config.strip() else None
    except RuntimeError:  # "~nobody" of a user that there is not
        raise ConfigurationError(f"{CONFIG}={config!r:.60}: there is no such user; give a whole path.") from None


def read_file() -> dict[str, Any]:
    """Return what the settings file says; nothing where there is none. Raises `ConfigurationError` for no TOML.

    A file that `MEMSTORE_CONFIG` names must be there: the default would silently be another database.
    """
    file = file_path()
    if file is None:
        return {}
    if file.exists() and not file.is_file():  # reading a pipe may block
        raise ConfigurationError(f"{file} is no regular file. Correct it, or move it away.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        if CONFIG not in map(str.upper, os.environ):
            return {}
        raise ConfigurationError(f"{CONFIG} names {file}, which is not there.") from None
    except RecursionError:
        raise ConfigurationError(f"{file} is nested too deeply. Correct it, or move it away.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is no TOML: {error}. Correct it, or move it away.") from None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None
