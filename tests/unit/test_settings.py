"""Settings: what is given wins, what cannot be is named, and what is misspelt is not silently another store."""

from pathlib import Path

import pytest

import memstore
from memstore.errors import ConfigurationError, InvalidInput, ProviderMissing
from memstore.plugins import installed_entry_points
from memstore.settings import Settings, file_path, load, source_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("MEMSTORE_DATABASE_ULR", "Did you mean MEMSTORE_DATABASE_URL?"),
        ("memstore_embeder", "Did you mean MEMSTORE_EMBEDDER?"),
        ("MEMSTORE_XYZ", "There are MEMSTORE_DATABASE_URL, "),
    ],
)
def test_a_misspelt_variable_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str, advice: str) -> None:
    monkeypatch.setenv(name, "postgresql://elsewhere/memories")
    with pytest.raises(ConfigurationError) as told:
        load({})
    assert name in str(told.value)
    assert advice in str(told.value)
    assert "elsewhere" not in str(told.value)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ConfigurationError, match="pool_sise"):
        load({"pool_sise": 3})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("context_budget", "viele", "valid integer"),
        ("context_budget", 0, "greater than or equal to 1"),
        ("fact_roles", "user,neighbour", "'user', 'assistant' or 'tool'"),
        ("ollama_url", "nowhere", "give a URL, such as http://127.0.0.1:11434"),
        ("openai_url", "https://key@example.org", "without a key"),
        ("facts_price", "inf/1", "finite number"),
    ],
)
def test_an_impossible_value_is_told_with_what_to_give(name: str, value: object, told: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name}=.*{told}"):
        load({name: value})


def test_a_reserve_leaves_something_of_the_budget() -> None:
    for reserve in (100, 200):
        with pytest.raises(ConfigurationError, match=f"context_reserve={reserve} leaves nothing of context_budget=100"):
            memstore.open("postgresql://127.0.0.1:1/none", settings={"context_budget": 100, "context_reserve": reserve})


def test_every_option_is_documented_with_its_default() -> None:
    told = "".join((REFERENCE / page).read_text(encoding="utf-8") for page in ("settings.md", "endpoints.md"))
    for name, field in Settings.model_fields.items():
        line = next((line for line in told.splitlines() if line.startswith(f"| `MEMSTORE_{name.upper()}` |")), "")
        cell = line.split("|")[2].strip().strip("`") if line else None
        value = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        default = "" if value is None else str(value).removesuffix(".0")
        default = default.lower() if isinstance(value, bool) else default
        assert cell == default, name


def test_every_provider_is_documented_with_what_it_has() -> None:
    lines = (REFERENCE / "endpoints.md").read_text(encoding="utf-8").splitlines()
    [start] = [number for number, line in enumerate(lines) if line.startswith("| kind | chat models |")]
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[start : lines.index("", start)]]
    header, _, *rows = table
    documented = {
        (column, kind) for row in rows for kind in row[0].replace("`", "").split(", ")
        for column, cell in zip(header[1:-1], row[1:-1], strict=True) if "yes" in cell
    }  # fmt: skip
    groups = ("memstore.chat_models", "memstore.embedders", "memstore.rerankers", "memstore.counters")
    installed = [entry for group in groups for entry in installed_entry_points(group)]
    ours = {entry for entry in installed if entry.value.startswith("memstore.")}
    assert documented == {(entry.group.removeprefix("memstore.").replace("_", " "), entry.name) for entry in ours}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "folder" / "mine.toml"
    monkeypatch.setenv("MEMSTORE_CONFIG", str(path))
    return path


def test_given_over_environment_over_file_over_default(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir()
    lines = ["context_budget = 1000", "pool_size = '5'", "fact_roles = ['user', 'tool']", "llm_daily_tokens = 9"]
    file.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("MEMSTORE_CONTEXT_BUDGET", "2000")
    monkeypatch.setenv("MEMSTORE_POOL_SIZE", "6")
    assert load({"context_budget": 3000}).context_budget == 3000
    found = load({})
    assert (found.pool_size, found.fact_roles, found.segment_tokens) == (6, ("user", "tool"), 1200)
    assert found.llm_daily_tokens == 9
    assert source_of("pool_size", 6) == "MEMSTORE_POOL_SIZE=6"
    assert source_of("fact_roles", ("user", "tool")) == f"{file}: fact_roles=('user', 'tool')"
    assert source_of("segment_tokens", 1200) == "segment_tokens=1200"
    assert source_of("pool_size", 7) == "pool_size=7"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("context_bugdet = 5", "has 'context_bugdet', which is no option of memstore. Did you mean context_budget?"),
        ("pool_size = 'many'", "pool_size='many'"),
        ("[memstore]\npool_size = 5", "has 'memstore', which is no option of memstore. There are database_url"),
        ("pool_size = ", "is no TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_it(file: Path, text: str, told: str) -> None:
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8-sig")  # some editors put a mark of the byte order there
    with pytest.raises(ConfigurationError) as error:
        load({})
    assert str(file) in str(error.value)
    assert told in str(error.value)


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_path() is None  # MEMSTORE_CONFIG is set to nothing
    monkeypatch.delenv("MEMSTORE_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load({}).pool_size == 8  # there is none yet
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", f"/{'long' * 99}")  # the system refuses to look, as into a closed home
        assert load({}).pool_size == 8
    path = file_path()
    assert path is not None and tmp_path in path.parents
    path.parent.mkdir(parents=True)
    path.write_text("pool_size = 5", encoding="utf-8")
    assert load({}).pool_size == 5
    monkeypatch.setenv("MEMSTORE_CONFIG", str(tmp_path / "gone.toml"))
    with pytest.raises(ConfigurationError, match=r"gone\.toml cannot be read"):
        load({})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"facts_model": "foo:bar"}, r"facts_model='foo:bar'.*ollama:….*module:function"),
        ({"summary_model": "olama:x"}, r"summary_model='olama:x'.*ollama:…"),
        ({"embedder": "none2"}, r"embedder='none2'.*hashing:….*module:function"),
        ({"counter": "none"}, r"counter='none'.*tiktoken:…"),
        ({"reranker": "nobody:knows"}, r"reranker='nobody:knows': Nobody knows the provider"),
        ({"strategy": "slidingwindow"}, r"strategy=.*sliding_window"),
        ({"visibility": "adressed"}, r"visibility=.adressed.*addressed"),
    ],
)
def test_what_nobody_knows_is_refused_before_anything_is_opened(
    tmp_path: Path, given: dict[str, str], told: str
) -> None:
    with pytest.raises((ProviderMissing, InvalidInput, ConfigurationError), match=told):
        memstore.open(f"embedded:{tmp_path / 'store'}", settings=given)
    assert not (tmp_path / "store").exists()
