from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from memstore import language
from memstore.language.detection import UNKNOWN, language_of


def test_phrases_are_found_as_whole_words_in_any_case() -> None:
    found = language.compile_phrases("no longer, *n't just, stopp*, * it is").search
    assert found("He STOPPED") and found("She didn’t just") and found("It is no longer so") and found("So it is")
    assert not any(map(found, ("unstoppable", "no  longer", "no longerish", "it is")))


def test_phrases_that_open_a_text_may_stand_behind_signs() -> None:
    opens = language.compile_phrases("yes, of course", opens=True).match
    assert opens("“Yes!") and opens("  Of course.") and not opens("Oh yes")


def test_case_counts_where_it_is_not_ignored() -> None:
    assert not language.compile_phrases("us", ignore_case=False).search("the US")


def test_words_are_numbered_by_their_places_and_their_groups() -> None:
    assert language.number_words("weekdays", "de", start=0)["sonnabend"] == 5
    assert language.number_words("months")["août"] == 8 and language.number_words("short_months")["sept"] == 9
    numbers = language.load_numbers()
    assert [numbers[word] for word in ("twelve", "siebzehn", "quinze", "cien")] == [12, 17, 15, 100]


def test_lists_of_languages_that_have_none_are_left_out_and_an_unknown_name_is_an_error() -> None:
    assert language.load_words("before_names") == language.load_words("before_names", "de")
    with pytest.raises(KeyError, match="no list of this name in en"):
        language.load_words("before_names", "en")


def test_each_list_of_a_language_is_read_by_a_module() -> None:
    sources = Path(language.__file__).parents[1].rglob("*.py")
    read = {name for path in sources for name in re.findall(r"""\(["'](\w+)["']""", path.read_text(encoding="utf-8"))}
    for code in language.LANGUAGES:
        assert tomllib.loads((files("memstore.language") / f"{code}.toml").read_text("utf-8")).keys() <= read


def test_a_name_is_found_where_it_is_no_part_of_another() -> None:
    assert language.has_word("Ann's cat", "ann") and not language.has_word("Anna", "Ann")
    assert not language.has_word("Ann", "ann", ignore_case=False)


@pytest.mark.parametrize("text", ["Why?", "Really?!", "(Why?)", "“なぜ？”", "**لماذا؟** "])
def test_a_question_ends_with_its_mark_behind_which_others_may_close(text: str) -> None:
    assert language.is_question(text) and not language.is_question(f"{text} No.")


def test_the_language_of_a_text_is_told_by_its_commonest_words() -> None:
    texts = ("I have two cats", "Ich habe zwei Katzen", "J’ai deux chats", "Yo tengo dos gatos", "Hmm")
    assert [*map(language_of, texts)] == ["en", "de", "fr", "es", UNKNOWN]
