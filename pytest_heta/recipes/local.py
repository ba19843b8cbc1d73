"""The recipes ``local`` and ``local-minilm``: retrieval offline, without a key or a service.

Importing this module imports none of the packages of the extra.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from pytest_heta.errors import ConfigurationError, QueryError, RecipeInvalidError, did_you_mean
from pytest_heta.protocols import EmbeddingProtocol, ObjectStore, RerankerProtocol
from pytest_heta.recipes._analysis import Analyzer
from pytest_heta.recipes._embedding import WordLlamaEmbedding
from pytest_heta.recipes._extras import package_version, require_packages
from pytest_heta.recipes._minilm import MiniLMEmbedding
from pytest_heta.recipes._options import (
    FULL_TEXT,
    LEG_DEPTH,
    MODES,
    VECTOR,
    QueryOptions,
    legs_of,
    parse_options,
)
from pytest_heta.recipes._parsing import PARSER_VERSION, DecodingErrors
from pytest_heta.recipes._splitting import SPLITTER_VERSION, Splitter

if TYPE_CHECKING:
    from pytest_heta.recipes._chunks import ChunkStore
    from pytest_heta.recipes._knowledge_base import LocalKnowledgeBase, QuerySettings
    from pytest_heta.recipes._legs import Leg

__all__ = ["LocalRecipe", "MiniLMEmbedding", "WordLlamaEmbedding", "local", "local_minilm"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_EMBEDDINGS: Final[dict[str, Callable[[], EmbeddingProtocol]]] = {
    "wordllama": WordLlamaEmbedding,
    "minilm": MiniLMEmbedding,
}


@dataclass(kw_only=True, eq=False)
class LocalRecipe:
    """Splits text and Markdown, and searches it by BM25, by vectors, or by both.

    Nothing is downloaded and nothing is written. The knowledge base is in
    memory and may be asked by several threads.

    Attributes:
        name: Name of the recipe.
        embedding: Model of the vectors: ``wordllama``, ``minilm`` or one of
            your own.
        reranker: Orders the results anew, if there is one.
        modes: Query modes to build for; without ``vector_search`` and
            ``hybrid_search`` nothing is embedded.
        chunk_size: Largest length of a chunk, in characters.
        chunk_overlap: Characters that neighbouring chunks may share.
        language: Stemming algorithm of PyStemmer, None for no stemming.
        stop_words: Words the lexical index leaves out; None means those of
            the language.
        k1: BM25's saturation of the term frequency, 0 or more.
        b: BM25's weight of the chunk's length, 0 to 1.
        encoding_errors: ``strict`` makes a document that is not text an error
            that names it; ``replace`` reads it with U+FFFD in place of what is
            wrong, and the knowledge base's manifest names it.
        default_options: Query options where a query gives none.

    Raises:
        ConfigurationError: if a value is not allowed.
        ExtraMissingError: if a package is not installed.
    """

    name: str = "local"
    embedding: EmbeddingProtocol | Literal["wordllama", "minilm"] = "wordllama"
    reranker: RerankerProtocol | None = None
    modes: Sequence[str] = MODES
    chunk_size: int = 2000
    chunk_overlap: int = 0
    language: str | None = "english"
    stop_words: Iterable[str] | None = None
    k1: float = 1.5
    b: float = 0.75
    encoding_errors: DecodingErrors = "strict"
    default_options: Mapping[str, Any] = field(default_factory=dict)
    _analyzer: Analyzer = field(init=False, repr=False)
    _model: EmbeddingProtocol = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self)
        self.modes = tuple(dict.fromkeys(self.modes))
        self._model = _model(self.embedding)
        require_packages(self._packages())
        self._analyzer = Analyzer(self.language, self.stop_words)
        _check_options(self)

    @property
    def available_queries(self) -> tuple[str, ...]:
        """The query modes."""
        return tuple(self.modes)

    def manifest(self) -> dict[str, Any]:
        """Return everything that decides what is built and what is found."""
        return {
            "name": self.name,
            **self._build_manifest(),
            "modes": list(self.modes),
            "hybrid": {"method": "reciprocal rank fusion", "least_depth_of_legs": LEG_DEPTH},
            "reranker": None if self.reranker is None else str(self.reranker.name),
            "options": self._effective_options(),
        }

    def create(
        self,
        *,
        name: str,
        objects: ObjectStore,
        source_keys: Sequence[str],
        workspace: Path,  # noqa: ARG002 - nothing is written
    ) -> LocalKnowledgeBase:
        """Build a knowledge base of the documents behind ``source_keys``.

        Documents are read one by one. The store's ``metadata(key)``, if it has
        such a method, may give ``media_type`` and ``title``.

        Args:
            name: Name of the knowledge base.
            objects: The documents.
            source_keys: Their keys; results of equal score keep this order.
            workspace: Not used.

        Raises:
            BuildError: naming the document, if one is missing or not text; or
                if the embedding model returns nonsense.
        """
        from pytest_heta.recipes._build import read_corpus  # noqa: PLC0415 - numpy, lazily
        from pytest_heta.recipes._knowledge_base import LocalKnowledgeBase  # noqa: PLC0415

        splitter = Splitter(self.chunk_size, self.chunk_overlap)
        corpus = read_corpus(objects, source_keys, splitter, self.encoding_errors)
        legs = {leg: self._build_leg(leg, corpus.chunks) for leg in self._legs()}
        manifest = {**self.manifest(), **corpus.manifest()}
        for leg in legs.values():
            manifest.update(leg.manifest())
        return LocalKnowledgeBase(name, corpus.chunks, legs, self._query_settings(), manifest)

    def save(self, knowledge_base: LocalKnowledgeBase, path: Path | str) -> None:
        """Write a knowledge base into a folder that is new or empty.

        Raises:
            BuildError: if the folder holds something or cannot be written, or
                another recipe built the knowledge base.
        """
        from pytest_heta.recipes._storage import save_knowledge_base  # noqa: PLC0415 - numpy

        save_knowledge_base(knowledge_base, Path(path), self._build_manifest())

    def load(self, path: Path | str, *, verified: bool = False) -> LocalKnowledgeBase:
        """Return the knowledge base that `save` wrote, its arrays memory-mapped.

        Args:
            path: The folder.
            verified: Whether the files have been checked to be as they were written.

        Raises:
            BuildError: if the folder holds no knowledge base, a damaged one, one
                of another version, or one that another recipe built.
        """
        from pytest_heta.recipes._legs import LexicalLeg, VectorLeg  # noqa: PLC0415 - numpy
        from pytest_heta.recipes._storage import load_knowledge_base  # noqa: PLC0415

        loaders: dict[str, Callable[[Path], Leg]] = {
            FULL_TEXT: lambda folder: LexicalLeg.load(self._analyzer, folder),
            VECTOR: lambda folder: VectorLeg.load(self._model, folder),
        }
        return load_knowledge_base(
            Path(path),
            recipe=self._build_manifest(),
            legs={leg: loaders[leg] for leg in self._legs()},
            settings=self._query_settings(),
            verified=verified,
        )

    def _build_leg(self, leg: str, chunks: ChunkStore) -> Leg:
        from pytest_heta.recipes._legs import LexicalLeg, VectorLeg  # noqa: PLC0415 - numpy

        if leg == FULL_TEXT:
            return LexicalLeg.build(self._analyzer, chunks.search_texts(), k1=self.k1, b=self.b)
        return VectorLeg.build(self._model, chunks.search_texts(), len(chunks))

    def _effective_options(self) -> dict[str, Any]:
        standard = QueryOptions()
        return {
            "rrf_k": standard.rrf_k,
            "score_threshold": None,
            "rerank": self.reranker is not None,
            "rerank_candidates": standard.rerank_candidates,
            "chunks_per_document": standard.chunks_per_document,
            **{name: value for name, value in self.default_options.items() if value is not None},
        }

    def _query_settings(self) -> QuerySettings:
        from pytest_heta.recipes._knowledge_base import QuerySettings  # noqa: PLC0415 - numpy

        return QuerySettings(tuple(self.modes), dict(self.default_options), self.reranker)

    def _legs(self) -> tuple[str, ...]:
        needed = {leg for mode in self.modes for leg in legs_of(mode)}
        return tuple(leg for leg in (FULL_TEXT, VECTOR) if leg in needed)

    def _packages(self) -> tuple[str, ...]:
        packages = ("numpy", "bm25s", "Stemmer", "semantic_text_splitter")
        if VECTOR in self._legs():
            packages += tuple(getattr(self._model, "required_packages", ()))
        return packages

    def _build_manifest(self) -> dict[str, Any]:
        """Return what decides what is built, and so what a saved one must be built by."""
        splitter = f"semantic-text-splitter {package_version('semantic-text-splitter')}"
        manifest: dict[str, Any] = {
            "parser": {"version": PARSER_VERSION, "encoding_errors": self.encoding_errors},
            "splitter": {
                "version": SPLITTER_VERSION,
                "library": splitter,
                "chunk_size": self.chunk_size,
                "chunk_overlap": self.chunk_overlap,
                "unit": "characters",
            },
        }
        if FULL_TEXT in self._legs():
            manifest["analyzer"] = self._analyzer.manifest()
            manifest["bm25"] = {
                "library": f"bm25s {package_version('bm25s')}",
                "method": "lucene",
                "k1": float(self.k1),
                "b": float(self.b),
            }
        if VECTOR in self._legs():
            version = getattr(self._model, "version", None)
            manifest["embedding"] = {
                "model": str(self._model.name),
                "version": None if version is None else str(version),
                "dimension": int(self._model.dimension),
            }
            manifest["similarity"] = "cosine"
        return manifest


def local() -> LocalRecipe:
    """Return the recipe ``local``: BM25 and the fast vectors of WordLlama."""
    return LocalRecipe()


def local_minilm() -> LocalRecipe:
    """Return the recipe ``local-minilm``: BM25 and the better vectors of MiniLM."""
    return LocalRecipe(name="local-minilm", embedding="minilm")


def _model(embedding: Any) -> EmbeddingProtocol:
    if isinstance(embedding, str):
        if embedding not in _EMBEDDINGS:
            raise ConfigurationError(
                f"embedding = {embedding!r} is not known",
                hint=did_you_mean(embedding, _EMBEDDINGS),
            )
        return _EMBEDDINGS[embedding]()
    if isinstance(embedding, type) or not isinstance(embedding, EmbeddingProtocol):
        raise RecipeInvalidError(
            f"embedding = {embedding!r:.60} is no embedding model",
            hint="it needs name, dimension, embed_documents(texts) and embed_queries(texts)",
        )
    return embedding


def _check(recipe: LocalRecipe) -> None:
    """Check the values of a recipe that can be checked alone."""
    known = get_args(DecodingErrors)
    size, overlap = recipe.chunk_size, recipe.chunk_overlap
    checks = (
        ("name", _is_name(recipe.name), "made of A-Z, a-z, 0-9, _ and -"),
        ("chunk_size", _is_integer(size) and size >= 1, "an integer of 1 or more"),
        (
            "chunk_overlap",
            _is_integer(overlap) and _is_integer(size) and 0 <= overlap < size,
            "an integer of 0 or more, and less than chunk_size",
        ),
        ("k1", _is_number(recipe.k1) and 0 <= recipe.k1 < float("inf"), "a number of 0 or more"),
        ("b", _is_number(recipe.b) and 0 <= recipe.b <= 1, "a number of 0 to 1"),
        ("encoding_errors", recipe.encoding_errors in known, f"one of {', '.join(known)}"),
        ("modes", _are_modes(recipe.modes), f"a sequence of some of {', '.join(MODES)}"),
        (
            "reranker",
            recipe.reranker is None
            or (
                isinstance(recipe.reranker, RerankerProtocol)
                and not isinstance(recipe.reranker, type)
            ),
            "an object with name and rerank(query, texts)",
        ),
    )
    for name, is_right, allowed in checks:
        if not is_right:
            value = getattr(recipe, name)
            raise ConfigurationError(
                f"LocalRecipe: {name} = {value!r:.60} is not allowed", hint=f"it is {allowed}"
            )


def _check_options(recipe: LocalRecipe) -> None:
    for mode in recipe.modes:
        try:
            parse_options(
                recipe.default_options, mode=mode, has_reranker=recipe.reranker is not None
            )
        except QueryError as error:
            raise ConfigurationError(
                error.message, where="LocalRecipe: default_options", hint=error.hint
            ) from None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_modes(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        return False
    return all(mode in MODES for mode in value)
