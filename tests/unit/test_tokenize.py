import threading
from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from memstore.store import tokenize as module
from memstore.store.tokenize import TEXT_TERMS, hash_term, hash_terms, terms
from tests.timing import assert_linear

ADA = UUID("11111111-1111-1111-1111-111111111111")
BOB = UUID("22222222-2222-2222-2222-222222222222")
GOLDEN = 921727470702426462  # a change makes every stored index useless


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm allergic to peanuts, and I don't fly.", {"allerg": 1, "peanut": 1, "fli": 1}),
        ("He'll see Ada's peanuts; the PEANUT!", {"see": 1, "ada": 1, "peanut": 2}),
        ("Wann fährt die Fähre? Die Hunde schliefen.", {"fahrt": 1, "fahr": 1, "hund": 1, "schlief": 1}),
        ("It costs 1,000 or 3.5 in 2023", {"cost": 1, "1000": 1, "3.5": 1, "2023": 1}),
        ("the ﬁne Straße and STRASSE", {"fine": 1, "strass": 2}),
        ("with the user_id", {"user_id": 1, "user": 1, "id": 1}),
        ("this v2.0.1", {"v2.0.1": 1, "v2": 1}),
        ("to bob@example.com.", {"bob@example.com": 1, "bob": 1, "exampl": 1, "com": 1}),
        ("at https://ex.com/a-b.", {"https://ex.com/a-b": 1, "ex": 1, "com": 1, "b": 1}),
        (
            "去伊斯 茶 abc中文",
            {"去伊": 1, "伊斯": 1, "去": 1, "伊": 1, "斯": 1, "茶": 1, "abc": 1, "中文": 1, "中": 1, "文": 1},
        ),
        ("हिन्दी में", {"हिन्दी": 1, "में": 1}),
        ("cafe\u0301 the", {"café": 1}),
        ("O’Brien and o'brien", {"obrien": 2}),
        ("\ud800 !? \n", {}),
        ("", {}),
    ],
)
def test_terms(text: str, expected: dict[str, int]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Je suis à l’hôpital.", "hôpital"),
        ("jusqu'août", "Août"),
        ("Chiedi all'ospedale dell'arte", "ospedale"),
        ("c'è un'amica", "amica"),
        ("L'Oréal", "loréal"),
        ("İstanbul'da yaşıyorum", "istanbul"),
        ("Ayşe’ninki 2024'te", "Ayşe"),
        ("Ayşe’ninki 2024'te", "2024"),
        ("İSTANBUL", "istanbul"),
        ("ISPARTA", "ısparta"),
        ("猫の名前はタマです。", "猫"),
        ("나는 차를 샀다", "차"),
        ("Donau\u00addampf", "Donaudampf"),
        ("pass\u200bport", "passport"),
        ("п'ять", "п\u02bcять"),
    ],
)
def test_a_word_is_found_however_it_is_joined_or_written(text: str, word: str) -> None:
    assert terms(word)
    assert terms(word).keys() <= terms(text).keys()


# What words are made of, and what stands between them: of all of Unicode, chance makes few.
WORDY = st.text(st.sampled_from("abtheund1,._:/'’@?!-–( \n\u3000\u200dé\u0301ﬁß中"))


@given(WORDY | st.text(), st.uuids())
def test_hashes_are_those_of_the_terms_in_order(text: str, user: UUID) -> None:
    hashes, frequencies = hash_terms(text, user)
    found = terms(text) + Counter(term for term, has_term in TEXT_TERMS.items() if has_term(text))
    assert hashes == sorted({hash_term(term, user) for term in found})
    assert frequencies == [next(n for term, n in found.items() if hash_term(term, user) == each) for each in hashes]
    assert all(-(2**63) <= each < 2**63 for each in hashes)


def test_hashes_are_of_one_user_and_stay_the_same() -> None:
    assert hash_term("peanut", ADA) != hash_term("peanut", BOB)
    assert hash_term("peanut", ADA) == GOLDEN
    assert hash_terms("peanut", ADA) == ([GOLDEN], [1])


def test_frequencies_are_capped() -> None:
    assert hash_terms("peanut " * 40_000, ADA)[1] == [32_767]


MONSTROUS = ["a", "a-", ".", "a.", "a@", "1,", "a@b.b", "中"]


@pytest.mark.parametrize("unit", MONSTROUS)
def test_monstrous_texts_have_few_or_capped_terms(unit: str) -> None:
    assert all(len(term) <= module.MAX_TERM_CHARS for term in terms(unit * 10_000))


@pytest.mark.slow
@pytest.mark.parametrize("unit", MONSTROUS)
def test_the_time_of_monstrous_texts_grows_with_their_length_only(unit: str) -> None:
    assert_linear(terms, unit)


def test_threads_get_the_same_terms() -> None:
    text = " ".join(
        f"{root}{ending}" for root in ("walk", "sing", "dröhn", "fahr") for ending in ("ing", "s", "ed", "en")
    )
    expected = terms(text)
    results: list[object] = []

    def work() -> None:
        for _ in range(200):
            module._stems.cache_clear()
            results.append(terms(text))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 800


def test_that_a_text_ends_with_a_question_is_a_term() -> None:
    asks = hash_term("?", ADA)
    for text, is_question in (("Why the river? ", True), ("为什么？", True), ("Why? The river.", False), ("", False)):
        assert (asks in hash_terms(text, ADA)[0]) == is_question
    assert "?" not in terms("? ?! Why?")
