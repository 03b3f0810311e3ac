"""Settings: what is given wins, what cannot be is named, and what is misspelt is not silently another store."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstore.errors import ConfigurationError
from memstore.settings import Settings, load

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_what_is_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_POOL_SIZE", "3")
    assert load({}).pool_size == 3
    assert load({"pool_size": 4}).pool_size == 4


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


def test_an_unknown_option_and_an_impossible_value_are_named() -> None:
    with pytest.raises(ConfigurationError, match="pool_sise"):
        load({"pool_sise": 3})
    with pytest.raises(ConfigurationError, match="summary_tokens='many'"):
        load({"summary_tokens": "many"})


def test_every_option_is_documented_with_its_default() -> None:
    told = DOCUMENT.read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        line = next((line for line in told.splitlines() if line.startswith(f"| `MEMSTORE_{name.upper()}` |")), "")
        cell = line.split("|")[2].strip().strip("`") if line else None
        value = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        default = "" if value is None else str(value).removesuffix(".0")
        assert cell == default, name
