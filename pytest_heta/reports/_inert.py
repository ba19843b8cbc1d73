"""Text of datasets and recipes, made harmless for terminals and for XML."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["plain_text"]

_LINE_END: Final = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")

# C0, DEL and C1 can move a terminal's cursor or are illegal in XML; the bidi
# characters reorder what is around them (embeddings, overrides, isolates);
# surrogates cannot be encoded; noncharacters end in FFFE or FFFF in every
# plane, and XML refuses those of the first.
_HARMFUL: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr((plane << 16) + 0xFFFE)}{chr((plane << 16) + 0xFFFF)}" for plane in range(17))
    + "]"
)


def plain_text(text: object, *, newlines: bool = False) -> str:
    r"""Return ``text`` so that a terminal and an XML 1.0 parser show it and do nothing else.

    Control characters (escape sequences among them), bidirectional overrides,
    lone surrogates and noncharacters become visible escapes such as ``\x1b``
    and ``\u202e``; a tab becomes a space. Everything else stays as it is. The
    result still has to be escaped as markup where it enters XML or HTML.

    Args:
        text: Any object; ``str(text)`` is taken.
        newlines: Whether line ends stay, as ``\n`` of whatever kind they were;
            otherwise each becomes a space.
    """
    lines = _LINE_END.sub("\n" if newlines else " ", str(text))
    return _HARMFUL.sub(_visible, lines)


def _visible(match: re.Match[str]) -> str:
    character = match[0]
    if character == "\t":
        return " "
    # The codec writes surrogates as \udxxx too; what is in Latin-1 as \xnn.
    return character.encode("unicode_escape").decode("ascii")
