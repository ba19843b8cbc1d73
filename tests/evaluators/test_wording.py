"""Texts compared as a reader would."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.evaluators.wording import contains_phrase, folded, same_answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Tin\t\nRoof\u00a0 ", "tin roof"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("Ｔｉｎ　１２", "tin 12"),
        ("cafe\u0301", "caf\u00e9"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_folding(text, expected):
    assert folded(text) == expected


@settings(deadline=None)
@given(text=st.text())
def test_folding_twice_changes_nothing_more(text):
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("text", "phrase", "contained"),
    [
        ("no", "no", True),
        ("no, thanks", "no", True),
        ("unknown", "no", False),
        ("know no more", "no", True),
        ("nobody", "no", False),
        ("in 2015", "5", False),
        ("it is 5.", "5", True),
        ("it is 5, or 6", "5", True),
        ("it is 5.2", "5", False),
        ("it is 3.5", "5", False),
        ("it is 1,500", "500", False),
        ("it is $500", "$500", True),
        ("it is -5", "-5", True),
        ("c++ code", "c++", True),
        ("word_part", "word", True),
        ("答案是42度", "42", True),
        ("山地车维修", "维修", True),
        ("서울은 수도", "서울", True),
        ("ภาษาไทย", "ไทย", True),
        ("कि", "क", False),
        ("anything", "", False),
        ("", "no", False),
        ("", "", False),
    ],
)
def test_phrases_are_whole_words(text, phrase, contained):
    assert contains_phrase(text, phrase) is contained


@settings(deadline=None)
@given(text=st.text(), phrase=st.text())
def test_a_phrase_between_spaces_is_contained(text, phrase):
    phrase = folded(phrase)
    assert contains_phrase(f"{text} {phrase} {text}", phrase) is bool(phrase)


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("The Beatles", "beatles", True),
        ("an  apple, a day", "apple day", True),
        ("“Paris”", "Paris", True),
        ("北京。", "北京", True),
        ("theory", "ory", False),
        ("Ｐａｒｉｓ", "paris", True),
        ("A", "a", True),
        ("A.", "A", True),
        ("B", "A", False),
        ("the", "A", False),
        ("", "A", False),
        ("?!", "?!", True),
        ("?", "!", False),
        ("", "", False),
        (" ", " ", False),
    ],
)
def test_answers_are_compared_as_squad_does(answer, expected, same):
    assert same_answer(answer, expected) is same


@settings(deadline=None)
@given(text=st.text().filter(folded))
def test_an_answer_is_the_same_as_itself(text):
    assert same_answer(text, text)
