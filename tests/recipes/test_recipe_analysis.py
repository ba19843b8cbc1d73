"""Terms of text."""

from __future__ import annotations

import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.errors import ConfigurationError
from pytest_heta.recipes._analysis import Analyzer, normalise

ENGLISH = Analyzer()
PLAIN = Analyzer(language=None)

ANY_TEXT = st.text(max_size=60) | st.text(
    st.sampled_from("aB é咖啡ไทย한글カナ_-'.,1２ﬁß"), max_size=30
)


def test_english_words_are_stemmed_and_stop_words_dropped():
    assert ENGLISH.document_terms("The wings of Flying machines") == ["wing", "fli", "machin"]


def test_words_end_at_punctuation_and_underscores():
    assert PLAIN.query_terms("snake_case, kebab-case; a.b/c") == [
        "snake", "case", "kebab", "case", "a", "b", "c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("ｗｉｄｅ", "wide"),
        ("ﬁsh", "fish"),
        ("cafe\u0301", "café"),
        ("ΟΔΟΣ", "οδος"),
        ("co\u00adoperate", "cooperate"),
        ("zero\ufeffwidth", "zerowidth"),
        ("ﾃﾞｰﾀ", "データ"),
    ],
)
def test_forms_of_the_same_word_are_one_term(one, other):
    assert PLAIN.document_terms(one) == PLAIN.document_terms(other)
    assert PLAIN.document_terms(one)


@pytest.mark.parametrize(
    "run",
    [
        "维修",
        "苹果派",
        "デザイン",
        "ひらがな",
        "한국어",
        "ภาษาไทย",
        "ພາສາ",
        "ភាសា",
        "မြန်မာ",
        "ㄅㄆㄇ",
        "𠀀𠀁",
    ],
)
def test_unsegmented_scripts_become_bigrams(run):
    bigrams = [run[i : i + 2] for i in range(len(run) - 1)]
    assert PLAIN.query_terms(run) == bigrams
    assert Counter(PLAIN.document_terms(run)) == Counter([*run, *bigrams])


def test_a_run_of_one_character_is_its_own_term():
    assert PLAIN.query_terms("茶") == ["茶"]
    assert "茶" in PLAIN.document_terms("绿茶的泡法")


def test_runs_end_where_the_script_changes():
    assert Counter(PLAIN.query_terms("iPhone手机4屏幕")) == Counter(["iphone", "手机", "4", "屏幕"])


def test_words_keep_their_combining_marks():
    assert PLAIN.document_terms("हिन्दी தமிழ்") == ["हिन्दी", "தமிழ்"]


@pytest.mark.parametrize("text", ["", " \n", "?!… — 🚲", "_", "\ufe0f", "\u0301", "the of and"])
def test_text_without_words_has_no_terms(text):
    assert ENGLISH.query_terms(text) == []
    assert ENGLISH.document_terms(text) == []


@given(ANY_TEXT)
def test_a_text_has_the_terms_of_its_query(text):
    terms = Counter(ENGLISH.document_terms(text))
    asked = Counter(ENGLISH.query_terms(text))
    assert asked <= terms
    assert all(terms)


@given(ANY_TEXT)
def test_a_letter_or_digit_is_never_lost(text):
    joined = "".join(PLAIN.document_terms(text))
    for character in normalise(text):
        if unicodedata.category(character)[0] == "L" or unicodedata.category(character) == "Nd":
            assert character in joined


@given(ANY_TEXT)
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)
    assert PLAIN.document_terms(normalise(text)) == PLAIN.document_terms(text)


def test_other_languages_have_their_own_stems_and_stop_words():
    german = Analyzer("german")
    assert german.document_terms("die Häuser und das Haus") == ["haus", "haus"]
    assert german.manifest()["stop_words"].startswith("german of bm25s")


def test_a_language_without_a_list_drops_no_word():
    assert Analyzer("finnish").document_terms("ja talossa") == ["ja", "talo"]
    assert Analyzer("finnish").manifest()["stop_words"] == "none"


def test_stop_words_of_ones_own_replace_the_list():
    own = Analyzer(stop_words=["ＷＩＮＧ"])
    assert own.document_terms("the wing") == ["the"]
    assert Analyzer(stop_words=[]).document_terms("the of") == ["the", "of"]
    described = own.manifest()["stop_words"]
    assert described.startswith("1 given, sha256 ")
    assert described != Analyzer(stop_words=["other"]).manifest()["stop_words"]


def test_a_language_that_does_not_exist_is_refused():
    with pytest.raises(
        ConfigurationError, match=r"language = 'klingon' is not known; one of .*english"
    ):
        Analyzer("klingon")


def test_one_string_of_stop_words_is_refused():
    with pytest.raises(ConfigurationError, match="stop_words = 'the' is one string"):
        Analyzer(stop_words="the")


def test_threads_share_an_analyzer():
    texts = [f"running jumps nationally {i} relational conditional" for i in range(200)]
    expected = [ENGLISH.document_terms(text) for text in texts]
    fresh = Analyzer()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fresh.document_terms, texts)) == expected
