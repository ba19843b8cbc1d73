"""The embedding models of the local recipes, and the check of what models return."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_heta.errors import BuildError, ExecutionError
from pytest_heta.recipes._extras import import_extra, package_version

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WordLlamaEmbedding", "unit_vectors"]

_BATCH: Final = 32


class WordLlamaEmbedding:
    """The static token vectors of WordLlama that ship in its wheel.

    A text's vector is the mean of its tokens' vectors: 600 to 2,500 documents
    of a thousand characters a second and core, and no limit of length. Made
    for English. The model is loaded at first use; threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return "wordllama-l2-supercat-256"

    @property
    def version(self) -> str:
        """Version of the package that ships the model."""
        return f"wordllama {package_version('wordllama')}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return 256

    @property
    def required_packages(self) -> tuple[str, ...]:
        """Modules that must be installed."""
        return ("wordllama",)

    def warm_up(self) -> None:
        """Load the model now, so that no query has to wait for it."""
        self._loaded()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array of shape (len(texts), 256), rows not normalised."""
        import numpy as np  # noqa: PLC0415 - the recipe is imported without it

        model = self._loaded()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        # Texts of one batch are padded to one length.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            vectors[batch] = model.embed([texts[i] for i in batch], batch_size=_BATCH)
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same as `embed_documents`: the model knows no difference."""
        return self.embed_documents(texts)

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                wordllama = import_extra("wordllama")
                try:
                    self._model = wordllama.WordLlama.load(
                        # Without these it looks for a cache and then downloads.
                        cache_dir=Path(wordllama.__file__).parent,
                        disable_download=True,
                    )
                except (OSError, ValueError, AttributeError) as error:
                    raise BuildError(
                        f"the model of {self.version} cannot be loaded: {error}",
                        hint="pip install --force-reinstall 'wordllama>=0.4.0.post1,<0.5'",
                    ) from error
            return self._model


def unit_vectors(
    vectors: Any,
    count: int,
    dimension: int,
    *,
    model: str,
    error: type[ExecutionError] = BuildError,
) -> NDArray[np.float32]:
    """Return what a model returned, checked, in float32 and with rows of length 1.

    A row of zeros stays one.

    Args:
        vectors: What the model returned.
        count: Number of texts it was given.
        dimension: Length of a vector, as the model says it.
        model: Name of the model.
        error: Class of the error to raise.

    Raises:
        ExecutionError: of class ``error``, if it is not an array of shape
            (count, dimension) of finite numbers.
    """
    import numpy as np  # noqa: PLC0415 - the recipe is imported without it

    try:
        # A copy: what a model returned is the model's.
        with np.errstate(over="ignore"):
            array = np.array(vectors, dtype=np.float32)
    except (TypeError, ValueError) as problem:
        raise error(f"embedding {model!r} returned no array of numbers: {problem}") from problem
    if array.shape != (count, dimension):
        raise error(
            f"embedding {model!r} returned an array of shape {array.shape} for {count} texts,"
            f" not {(count, dimension)}"
        )
    if not np.isfinite(array).all():
        raise error(f"embedding {model!r} returned numbers that are not finite")
    # Scaled first, so that no square overflows or vanishes.
    largest = np.abs(array).max(axis=1, keepdims=True, initial=0.0)
    array /= np.where(largest > 0, largest, 1)
    lengths = np.sqrt(np.einsum("ij,ij->i", array, array))[:, np.newaxis]
    array /= np.where(lengths > 0, lengths, 1)
    return array
