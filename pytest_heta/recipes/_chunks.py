"""The chunks of a knowledge base and the documents they come from."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pytest_heta.models import QueryResult
from pytest_heta.recipes._mapping import mapped_array
from pytest_heta.recipes._splitting import Piece

__all__ = ["ChunkCollector", "ChunkStore", "TextStore", "folded"]

_LONE: Final = "surrogatepass"
"""Keys and ids come from elsewhere and must come back as they were."""


class TextStore:
    """Texts in one UTF-8 buffer, which a file can stand for.

    Args:
        data: Array of shape (bytes,), uint8.
        ends: Array of shape (texts,), int64: where each text ends.
    """

    def __init__(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._data = data
        self._ends = ends

    def __getitem__(self, number: int) -> str:
        start = int(self._ends[number - 1]) if number else 0
        return self._data[start : int(self._ends[number])].tobytes().decode("utf-8", _LONE)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save."""
        return {"data": self._data, "ends": self._ends}


class _TextCollector:
    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("q")

    def append(self, text: str) -> None:
        self._data += text.encode("utf-8", _LONE)
        self._ends.append(len(self._data))

    def __len__(self) -> int:
        return len(self._ends)

    def store(self) -> TextStore:
        return TextStore(np.frombuffer(bytes(self._data), np.uint8), _numbers(self._ends))


def _numbers(values: array[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ChunkStore:
    """Chunks in document order, with their provenance.

    Attributes:
        texts: Text of each chunk.
        document_ids: Id of each document.
        titles: Title of each document, may be empty.
        source_keys: Key of each source of the documents.
        documents: Array of shape (chunks,): document of each chunk.
        sources: Array of shape (chunks,): source of each chunk.
        indices: Array of shape (chunks,): number of the chunk in its document.
        starts: Array of shape (chunks,): its first character in the source.
        ends: Array of shape (chunks,): the character behind its last.
    """

    texts: TextStore
    document_ids: TextStore
    titles: TextStore
    source_keys: TextStore
    documents: NDArray[np.int64]
    sources: NDArray[np.int64]
    indices: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def document_of(self) -> Sequence[int]:
        """Document of each chunk, as plain integers."""
        view: Any = self.documents
        return memoryview(view)

    def search_text(self, chunk: int) -> str:
        """Return the text that a chunk is found by: it starts with the document's title."""
        text, title = self.texts[chunk], self.titles[int(self.documents[chunk])]
        if not title or folded(text[: 4 * len(title)]).startswith(folded(title)):
            return text
        return f"{title}\n{text}"

    def search_texts(self) -> Iterator[str]:
        """Yield the search text of each chunk."""
        return map(self.search_text, range(len(self)))

    def result(self, chunk: int, score: float, metadata: dict[str, Any]) -> QueryResult:
        """Return a chunk as a result."""
        document = int(self.documents[chunk])
        document_id, title = self.document_ids[document], self.titles[document]
        index = int(self.indices[chunk])
        source = {
            "document_id": document_id,
            "source_key": self.source_keys[int(self.sources[chunk])],
            "chunk_index": index,
            "char_start": int(self.starts[chunk]),
            "char_end": int(self.ends[chunk]),
        }
        if title:
            source["title"] = title
        return QueryResult(
            id=f"{document_id}#{index}",
            text=self.texts[chunk],
            score=score,
            kind="chunk",
            source=source,
            metadata=metadata,
        )

    def save(self, folder: Path) -> None:
        """Write the chunks into a new folder."""
        folder.mkdir()
        for part in fields(self):
            value = getattr(self, part.name)
            arrays = value.arrays() if isinstance(value, TextStore) else {"": value}
            for suffix, values in arrays.items():
                np.save(folder / _file(part.name, suffix), values, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the chunks that `save` wrote, memory-mapped."""
        parts: dict[str, Any] = {}
        for part in fields(cls):
            if part.type == "TextStore":
                parts[part.name] = TextStore(
                    mapped_array(folder / _file(part.name, "data")),
                    mapped_array(folder / _file(part.name, "ends")),
                )
            else:
                parts[part.name] = mapped_array(folder / _file(part.name, ""))
        return cls(**parts)


@dataclass(slots=True)
class ChunkCollector:
    """Collects documents and their chunks, in order, for a `ChunkStore`."""

    _texts: _TextCollector = field(default_factory=_TextCollector)
    _document_ids: _TextCollector = field(default_factory=_TextCollector)
    _titles: _TextCollector = field(default_factory=_TextCollector)
    _source_keys: _TextCollector = field(default_factory=_TextCollector)
    _rows: tuple[array[int], ...] = field(
        default_factory=lambda: tuple(array("q") for _ in range(5))
    )

    def add(self, document_id: str, title: str, pieces: dict[str, list[Piece]]) -> None:
        """Add a document with its chunks by source key."""
        document = len(self._document_ids)
        self._document_ids.append(document_id)
        self._titles.append(title)
        index = 0
        for key, chunks in pieces.items():
            source = len(self._source_keys)
            self._source_keys.append(key)
            for piece in chunks:
                self._texts.append(piece.text)
                row = (document, source, index, piece.start, piece.end)
                for values, value in zip(self._rows, row, strict=True):
                    values.append(value)
                index += 1

    def store(self) -> ChunkStore:
        """Return what was collected."""
        return ChunkStore(
            self._texts.store(),
            self._document_ids.store(),
            self._titles.store(),
            self._source_keys.store(),
            *map(_numbers, self._rows),
        )


def folded(text: str) -> str:
    """Return ``text`` without differences in case and white space."""
    return " ".join(text.split()).casefold()


def _file(name: str, suffix: str) -> str:
    return f"{name}-{suffix}.npy" if suffix else f"{name}.npy"
