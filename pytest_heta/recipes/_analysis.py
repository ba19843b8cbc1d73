"""From text to the terms of the lexical index."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from typing import Any, Final

from pytest_heta.errors import ConfigurationError
from pytest_heta.recipes._extras import import_extra, package_version

__all__ = ["ANALYZER_VERSION", "Analyzer", "normalise"]

ANALYZER_VERSION: Final = 1
"""Raised by every change of what terms are made of the same text."""

_STOP_WORD_LISTS: Final = {
    "danish": "STOPWORDS_DANISH",
    "dutch": "STOPWORDS_DUTCH",
    "english": "STOPWORDS_EN_PLUS",
    "french": "STOPWORDS_FRENCH",
    "german": "STOPWORDS_GERMAN",
    "italian": "STOPWORDS_ITALIAN",
    "norwegian": "STOPWORDS_NORWEGIAN",
    "portuguese": "STOPWORDS_PORTUGUESE",
    "russian": "STOPWORDS_RUSSIAN",
    "spanish": "STOPWORDS_SPANISH",
    "swedish": "STOPWORDS_SWEDISH",
    "turkish": "STOPWORDS_TURKISH",
}
"""The list of bm25s for each language that has one."""

_UNSEGMENTED: Final = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b"  # ideographic marks and numerals
    "\u3040-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"  # Hiragana, Katakana
    "\u3100-\u318f\u31a0-\u31bf"  # Bopomofo, Hangul letters
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]+"
)
"""Runs of scripts that are written without spaces, or (Hangul) with few of them."""

_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")

_IGNORABLE: Final = dict.fromkeys(
    (
        *(0x00AD, 0x034F, 0x061C, 0x2060, 0xFEFF),
        *range(0x200C, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)
"""Invisible characters that do not part a word: soft hyphen, joiners, directions, variants."""


def normalise(text: str) -> str:
    """Return ``text`` as it is compared: NFKC, case folded, without invisible characters."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_IGNORABLE)
    return unicodedata.normalize("NFKC", folded)  # folding may leave decomposed letters


class Analyzer:
    """Makes terms of text: words, stemmed, and the bigrams of unsegmented scripts.

    A word is a run of letters, digits and their combining marks. Stop words
    are dropped, the others stemmed. A run in Han, Hiragana, Katakana, Hangul,
    Bopomofo, Thai, Lao, Khmer or Myanmar becomes its character bigrams. In
    documents it also becomes its single characters, so that a query of one
    character finds them; in queries only a run of one character is a term of
    its own.

    It may be used by several threads.

    Args:
        language: A stemming algorithm of PyStemmer, such as ``english``; None
            stems nothing.
        stop_words: Words to drop; None means those of the language (there are
            lists for 12), an empty sequence none.

    Raises:
        ConfigurationError: if there is no such language.
        ExtraMissingError: if a package is not installed.
    """

    def __init__(
        self, language: str | None = "english", stop_words: Iterable[str] | None = None
    ) -> None:
        known = import_extra("Stemmer").algorithms()
        if language is not None and language not in known:
            raise ConfigurationError(
                f"language = {language!r} is not known", hint=f"one of {', '.join(known)}, or None"
            )
        if isinstance(stop_words, str):
            raise ConfigurationError(
                f"stop_words = {stop_words!r} is one string", hint="give a sequence of words"
            )
        self._language = language
        self._own_stop_words = None if stop_words is None else tuple(stop_words)
        self._stop_words: frozenset[str] | None = None
        self._stemmers = threading.local()

    def manifest(self) -> dict[str, Any]:
        """Return everything that decides which terms are made."""
        return {
            "version": ANALYZER_VERSION,
            "normalisation": f"NFKC, casefold (Unicode {unicodedata.unidata_version})",
            "language": self._language,
            "stemmer": f"PyStemmer {package_version('PyStemmer')}" if self._language else None,
            "stop_words": self._described_stop_words(),
            "unsegmented_scripts": "character bigrams",
        }

    def document_terms(self, text: str) -> list[str]:
        """Return the terms of a text to index."""
        return self._terms(text, single_characters=True)

    def query_terms(self, text: str) -> list[str]:
        """Return the terms of a query; a word that stands twice is there twice."""
        return self._terms(text, single_characters=False)

    def _terms(self, text: str, *, single_characters: bool) -> list[str]:
        stop_words = self._loaded_stop_words()
        terms: list[str] = []
        words: list[str] = []
        for token in _tokens(normalise(text)):
            position = 0
            for run in () if token.isascii() else _UNSEGMENTED.finditer(token):
                words.append(token[position : run.start()])
                terms += _grams(run[0], single_characters=single_characters)
                position = run.end()
            words.append(token[position:])
        kept = [word for word in words if word and word not in stop_words]
        return terms + self._stems(kept)

    def _stems(self, words: list[str]) -> list[str]:
        if self._language is None:
            return words
        # A stemmer has a state of its own that threads must not share.
        stemmer = getattr(self._stemmers, "stemmer", None)
        if stemmer is None:
            stemmer = self._stemmers.stemmer = import_extra("Stemmer").Stemmer(self._language)
        stems: list[str] = stemmer.stemWords(words)
        return stems

    def _loaded_stop_words(self) -> frozenset[str]:
        if self._stop_words is None:
            words: Iterable[str] = self._own_stop_words or ()
            if self._own_stop_words is None and self._language in _STOP_WORD_LISTS:
                lists = import_extra("bm25s").stopwords
                words = getattr(lists, _STOP_WORD_LISTS[self._language])
            self._stop_words = frozenset(normalise(word) for word in words)
        return self._stop_words

    def _described_stop_words(self) -> str:
        if self._own_stop_words is None:
            if self._language in _STOP_WORD_LISTS:
                return f"{self._language} of bm25s {package_version('bm25s')}"
            return "none"
        words = sorted(normalise(word) for word in self._own_stop_words)
        digest = sha256("\n".join(words).encode()).hexdigest()[:16]
        return f"{len(words)} given, sha256 {digest}"


def _tokens(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _word_pattern().findall(text.replace("_", " "))


def _grams(run: str, *, single_characters: bool) -> list[str]:
    bigrams = [run[i : i + 2] for i in range(len(run) - 1)]
    return [*run, *bigrams] if single_characters or len(run) == 1 else bigrams


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of words, which hold combining marks.

    The class ``w`` of `re` leaves them out, and without them the words of
    Hindi, Tamil and others fall apart at each vowel.
    """
    ranges: list[list[int]] = []
    for code in (*range(0x0300, 0x11FFF), *range(0x16A00, 0x1F000)):
        if unicodedata.category(chr(code)).startswith("M"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(rf"\w[\w{marks}]*")
