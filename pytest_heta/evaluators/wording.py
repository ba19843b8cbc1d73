"""Comparing texts as a reader would: case, width and white space do not matter."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Final

__all__ = ["contains_phrase", "folded", "same_answer"]

_INSIDE_NUMBER: Final = re.compile(r"(?<=\d)(?=[.,]\d)|(?<=\d[.,])(?=\d)")
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")


def folded(text: str) -> str:
    """Return ``text`` in NFKC, case-folded, each run of white space one space."""
    # Case folding can undo the normal form, which is why it is made twice.
    lowered = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", lowered).split())


def contains_phrase(text: str, phrase: str) -> bool:
    """Whether ``phrase`` stands in ``text`` as whole words; both are folded.

    "no" is not in "unknown", and "5" is neither in "15" nor in "5.2". In
    scripts without spaces between words, words may begin and end anywhere. An
    empty phrase is in no text.
    """
    if not phrase:
        return False
    start = text.find(phrase)
    while start >= 0:
        if not _cuts_word(text, start) and not _cuts_word(text, start + len(phrase)):
            return True
        start = text.find(phrase, start + 1)
    return False


def _cuts_word(text: str, position: int) -> bool:
    """Whether a word or a number goes on across ``position``."""
    neighbours = text[max(0, position - 1) : position + 1]
    if len(neighbours) == 2 and all(map(_belongs_to_spaced_word, neighbours)):  # noqa: PLR2004
        return True
    return _INSIDE_NUMBER.match(text, position) is not None


def _belongs_to_spaced_word(character: str) -> bool:
    # Letters, numbers and the marks that combine with them.
    return unicodedata.category(character)[0] in "LNM" and not _unspaced().match(character)


@cache
def _unspaced() -> re.Pattern[str]:
    """Return a pattern of scripts written without spaces, made when it is first needed."""
    # And Hangul, which joins particles to words: Thai, Lao, Myanmar, Hangul,
    # Khmer, Kana, Han.
    return re.compile(
        "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
        "\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
        "\U00020000-\U0003ffff]"
    )


def same_answer(answer: str, expected: str) -> bool:
    """Whether two answers are the same after SQuAD's normalisation.

    Both are folded, then punctuation is deleted and the words a, an and the
    are dropped (Rajpurkar et al. 2016, here with all Unicode punctuation).
    What would leave nothing of the expected answer is not done: the answer
    "A" to a choice stays "a". Nothing equals an empty expected answer.
    """
    normalisations: tuple[Callable[[str], str], ...] = (
        lambda text: " ".join(_ARTICLES.sub(" ", _without_punctuation(text)).split()),
        lambda text: " ".join(_without_punctuation(text).split()),
        str,
    )
    answer, expected = folded(answer), folded(expected)
    for normalise in normalisations:
        wanted = normalise(expected)
        if wanted:
            return normalise(answer) == wanted
    return False


def _without_punctuation(text: str) -> str:
    return "".join(
        character
        for character in text
        if character not in string.punctuation and unicodedata.category(character)[0] != "P"
    )
