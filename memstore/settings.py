"""All configuration, and the only reader of memstore's variables.

Every option is a keyword of `memstore.open(settings=Settings(…))`, a `MEMSTORE_…` variable and a key of the settings
file, all of the same name. The first of these that has it wins, then the default. The file is `MEMSTORE_CONFIG`, else
`memstore.toml` in the user's folder for configuration; with an empty `MEMSTORE_CONFIG` there is none.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from platformdirs import user_config_path
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
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
ANTHROPIC = "https://api.anthropic.com"
CONFIG = "MEMSTORE_CONFIG"
NO_OPTION = "which is no option of memstore."


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("give a URL without a key: that has a setting or variable of its own")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("give a URL, such as http://127.0.0.1:11434")
    return value.rstrip("/")


def _read_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('give JSON, such as {"deadline": "a day by which something must be ready"}') from None


def _split(value: object) -> object:
    return tuple(filter(None, value.replace(" ", "").split(","))) if isinstance(value, str) else value


def _price(value: object) -> object:
    return tuple(value.split("/")) if isinstance(value, str) else value


# Of a URL what stands before the place, which may be a password with any sign in it, and a password that is an option.
_SECRET = re.compile(r"(?<=://).*(?=@)|(?<=password=)[^&]*")
Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Price = Annotated[tuple[Money, Money] | None, NoDecode, BeforeValidator(_price)]
Many = Annotated[tuple[T, ...], NoDecode, BeforeValidator(_split)]  # also "one,other"
BaseUrl = Annotated[str, AfterValidator(_base_url)]
LONG = 100_000  # days or hours
DAY = 86_400  # seconds


class Settings(BaseSettings):
    """The settings of a store. An option given here wins over the environment, that over the file and the default."""

    model_config = SettingsConfigDict(env_prefix="MEMSTORE_", frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Yield the settings for printing: a URL without the part that may hold a password."""
        for name, value in super().__repr_args__():
            yield name, _SECRET.sub("…", value) if name == "database_url" else value

    # embedded, embedded:FOLDER, or postgresql://… (any Postgres ≥ 15 with pgvector ≥ 0.8)
    database_url: str = "embedded"
    pool_size: int = Field(8, ge=1, le=1000)  # connections that one store may hold
    log_format: Literal["text", "json"] = "text"  # of servers and workers: warnings, or every record as a line of JSON

    # Providers, each as kind:model
    counter: str = "tiktoken:o200k_base"
    embedder: str = ONNX_MINILM  # "none" recalls by words alone
    reranker: str = "none"  # reads the best hits once more with the question
    summary_model: str = "none"  # writes summaries; "none" chooses sentences
    facts_model: str = "none"  # finds facts; "none" leaves them to the reader
    facts_price: Price = None  # of a million tokens of prompts and of answers, such as "0.25/2"; shows costs in money
    summary_price: Price = None
    llm_daily_tokens: int | None = Field(None, ge=1)  # that chat models may take and give in a day (UTC), of all users

    max_message_bytes: int = Field(4_000_000, ge=1)  # of UTF-8
    chunk_tokens: int = Field(200, ge=16, le=2000)  # the longest chunk of a message, in the embedder's tokens
    segment_tokens: int = Field(1200, ge=50)  # tokens that are summarized at once, about
    max_chunks_in_memory: int = Field(150_000, ge=0)  # a user with more is searched in the database, others here
    index_cache_mb: int = Field(512, ge=1, le=10**6)  # of users' chunks that a process holds; the oldest ones go
    event_retention_days: float = Field(30.0, ge=0, le=LONG)  # 0 keeps none
    receipt_retention_days: float = Field(30.0, ge=0, le=LONG)  # of contexts; 0 keeps none
    message_retention_days: float = Field(0.0, ge=0, le=LONG)  # older messages are erased; 0 keeps them for ever

    worker_attempts: int = Field(8, ge=1, le=1000)  # a job that failed this often is left to be looked at

    # Timeouts are the longest wait for one answer, retries included; in a chat the longest silence.
    ollama_url: BaseUrl = "http://127.0.0.1:11434"  # OLLAMA_HOST is not read; a key is OLLAMA_API_KEY
    ollama_num_ctx: int = Field(8192, ge=2048, le=2_000_000)  # the window that Ollama is asked for, answer included
    ollama_timeout_seconds: float = Field(300.0, gt=0, le=DAY)
    openai_url: BaseUrl = OPENAI  # of any OpenAI-compatible server
    openai_api_key: SecretStr | None = None  # without it OPENAI_API_KEY, where the URL is OpenAI's own
    openai_context_tokens: int | None = Field(None, ge=1024, le=10_000_000)  # else what the server tells, or 16,384
    openai_timeout_seconds: float = Field(300.0, gt=0, le=DAY)
    anthropic_url: BaseUrl = ANTHROPIC  # where anthropic: counters ask
    anthropic_api_key: SecretStr | None = None  # without it ANTHROPIC_API_KEY, where the URL is Anthropic's own
    embedding_url: BaseUrl | None = None  # of openai: embedders; else openai_url
    embedding_api_key: SecretStr | None = None
    embedding_timeout_seconds: float = Field(60.0, gt=0, le=DAY)  # for a batch
    embedding_dimensions: int | None = Field(None, ge=1, le=2000)  # asked of models that can shorten their vectors
    embedding_query_prefix: str = ""  # what these get before a question, such as "query: "
    embedding_document_prefix: str = ""  # and before a text to be found, such as "passage: "
    rerank_url: BaseUrl | None = None  # where openai: rerankers answer at /rerank, in Cohere's shape; else openai_url
    rerank_api_key: SecretStr | None = None

    fact_roles: Many[Literal["user", "assistant", "tool"]] = ("user",)  # whose messages facts are taken from
    trusted_roles: Many[Literal["user", "assistant"]] = ("user", "assistant")  # other facts wait to be confirmed
    # Whether derived facts wait until a person accepts them
    review_facts: bool = False
    fact_instructions: str = ""  # instructions for a chat model: which facts to write down, in your own words
    fact_types: Annotated[dict[str, Any], NoDecode, BeforeValidator(_read_json)] = {}  # in addition to memstore's own
    mcp_memories: Literal["active", "quarantined"] = "active"  # the state of what a model remembers over MCP
    mask_secrets: bool = False  # before anything is stored
    mask_kinds: Many[Literal["card", "account", "key", "password"]] = ("card", "account", "key", "password")

    # Of contexts, where neither caller nor conversation says
    context_budget: int | None = Field(None, ge=1, le=10**9)  # tokens
    context_reserve: int = Field(0, ge=0, le=10**9)  # tokens of the budget to keep free
    context_viewer: str | None = Field(
        None, min_length=1
    )  # who looks, at recall too; without a name, everything is shown
    strategy: Many[str] = ()  # what compresses conversations
    visibility: str = "addressed"  # the rule by which a viewer sees messages

    server_hosts: Many[str] = ()  # allowed Host headers, in addition to this machine's own names
    server_body_bytes: int = Field(16_000_000, ge=1)  # the largest body that the server reads
    server_oidc_issuer: str | None = None  # the OpenID Connect issuer whose tokens the server takes, too
    server_oidc_audience: str | None = None  # the URL of this server, for which these tokens are
    server_oidc_user_claim: str = Field("sub", min_length=1)  # the claim of a token that is the user's name

    def price_of(self, deriver: str) -> tuple[float, float] | None:
        """Return the prices of a million tokens of a deriver's prompts and answers; None if not set."""
        return self.facts_price if deriver == "facts" else self.summary_price

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read given options, then the environment, then the file."""
        return init_settings, env_settings, InitSettingsSource(settings_cls, read_file())


def load(options: Mapping[str, Any]) -> Settings:
    """Return the settings, with these options of them.

    Raises `ConfigurationError` for a name that is no option and for a wrong value, with the file or variable of it: a
    misspelt URL would silently open another database.
    """
    _check_names(options, "{!r} is no option of memstore.")
    variables = {name: f"MEMSTORE_{name.upper()}" for name in Settings.model_fields}
    for variable in os.environ:
        if variable.upper().startswith("MEMSTORE_") and variable.upper() != CONFIG:
            _check_names([variable[9:].lower()], f"The environment has {variable}, {NO_OPTION}", variables)
    file = read_file()
    _check_names(file, f"{file_path()} has {{!r}}, {NO_OPTION}")
    try:
        return Settings(**options)
    except ValidationError as error:
        wrong = [(str(each["loc"][0]), each) for each in error.errors()]
    reasons = []
    for name, each in wrong:
        shown = "…" if name.endswith(("_key", "_url")) else repr(each["input"])[:60]  # it may hold a key
        place = name if name in options else _with_source(name, file)
        reasons.append(f"{place}={shown}: {each['msg'].removeprefix('Value error, ')}")
    raise ConfigurationError("; ".join(reasons))


def source_of(name: str, value: Any) -> str:
    """Return an option with this value for messages: with the variable or the file that sets it, if any."""
    is_given = getattr(load({}), name) != value
    return f"{name if is_given else _with_source(name, read_file())}={value!r:.60}"


def _with_source(name: str, file: Mapping[str, Any]) -> str:
    variable = next((key for key in os.environ if key.upper() == f"MEMSTORE_{name.upper()}"), None)
    return variable or (f"{file_path()}: {name}" if name in file else name)


def _check_names(names: Iterable[str], complaint: str, labels: Mapping[str, str] | None = None) -> None:
    """Refuse an unknown name, and suggest a similar one, or list all."""
    labels = labels or {name: name for name in Settings.model_fields}
    for name in names:
        if name not in labels:
            near = get_close_matches(str(name).lower(), labels, n=1, cutoff=0.7)
            hint = f"Did you mean {labels[near[0]]}?" if near else f"There are {', '.join(labels.values())}."
            raise ConfigurationError(f"{complaint.format(name)} {hint}")


def file_path() -> Path | None:
    """Return the path of the settings file, existing or not; None if `MEMSTORE_CONFIG` is empty, or without a home."""
    config = os.environ.get(CONFIG)
    if config is None:
        try:
            return user_config_path("memstore", appauthor=False) / "memstore.toml"
        except RuntimeError:  # neither HOME nor an entry in passwd
            return None
    return Path(config).expanduser() if config.strip() else None


def read_file() -> dict[str, Any]:
    """Return the values of the settings file; {} without one. Raises `ConfigurationError` for no TOML.

    A file that `MEMSTORE_CONFIG` names must be there: the default would silently be another database.
    """
    file = file_path()
    # Path.exists raises where the home is closed to this account, as root's is to a service that inherited HOME.
    if file is None or (CONFIG not in os.environ and not os.path.exists(file)):  # noqa: PTH110
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ConfigurationError(f"{file} is no TOML: {error}. Correct it, or move it away.") from None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None
