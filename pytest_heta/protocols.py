"""The shapes that users' own benchmarks, evaluators and recipes have.

All are structural: an object is accepted for its methods, not for its class.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkManifest,
    BenchmarkResource,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    EvaluationScore,
    PreparedBenchmark,
    QueryResponse,
)

__all__ = [
    "BenchmarkEvaluatorProtocol",
    "BenchmarkProtocol",
    "EmbeddingProtocol",
    "KnowledgeBaseProtocol",
    "KnowledgeRecipeProtocol",
    "ObjectStore",
    "RerankerProtocol",
]


@runtime_checkable
class BenchmarkProtocol(Protocol):
    """A benchmark adapter: it reads data and nothing else.

    An adapter builds no knowledge base, calls no query and aggregates
    nothing. Iterating twice gives the same records in the same order.
    """

    @property
    def manifest(self) -> BenchmarkManifest:
        """What the benchmark is."""
        ...

    def resources(self) -> Sequence[BenchmarkResource]:
        """Return what the benchmark is read from."""
        ...

    async def prepare(self, workspace: BenchmarkWorkspace) -> PreparedBenchmark:
        """Bring the resources to this machine, or check that they are here."""
        ...

    def documents(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkDocument]:
        """Yield the documents one by one; they are never held all at once."""
        ...

    def cases(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkCase]:
        """Yield the cases in the dataset's order."""
        ...

    def run_units(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkRunUnit]:
        """Yield the run units: the knowledge bases to build, with their cases."""
        ...

    def evaluators(self) -> Sequence[BenchmarkEvaluatorProtocol | str]:
        """Return the evaluators that suit the benchmark, or how they are written."""
        ...


@runtime_checkable
class BenchmarkEvaluatorProtocol(Protocol):
    """Scores one response. One evaluator gives one score.

    More attributes are optional:

    * ``direction``: whether ``"higher"`` (if absent) or ``"lower"`` is better.
    * ``worst``: what a lost score counts as; if absent, 0.0 where higher is
      better and nothing where lower is. Without one, the metric has no mean
      once a score is lost, and cannot be gated.
    * ``applies(case) -> bool``: whether the case can be scored at all; True
      if absent. It is asked before the query.
    * ``requires_judgment``: if true, a case that it does not apply to counts
      as unjudged rather than skipped.
    * ``k``: how many results it looks at. The default depth of a query is the
      largest k; deeper than what was asked, the score is skipped.
    * ``bounded``: if true, values lie in 0..1, and a gate with a threshold
      outside is refused.
    """

    @property
    def name(self) -> str:
        """Name of the evaluator, and of its score."""
        ...

    async def evaluate(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return the score of ``response`` for ``case``."""
        ...


@runtime_checkable
class ObjectStore(Protocol):
    """The documents that a recipe may read, by raw key.

    The store of a run also has ``metadata(key)``: ``document_id``, ``name``,
    ``media_type`` and the document's own metadata. A store of one's own may
    do without.
    """

    def get(self, key: str) -> bytes:
        """Return the content; raises `KeyError` for a key that is not there."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Open the content for reading; raises `KeyError` as `get` does."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        ...

    def list(self, prefix: str = "") -> Iterable[str]:
        """Yield the keys that start with ``prefix``, in the benchmark's order."""
        ...


@runtime_checkable
class KnowledgeBaseProtocol(Protocol):
    """Something that answers queries.

    ``query`` may be a coroutine function or an ordinary one, takes the keyword
    arguments that it needs, and returns a `QueryResponse`, or a mapping or
    object of its shape. Optional are ``available_queries`` where the recipe
    has it, ``manifest() -> Mapping``, and ``aclose()`` or ``close()``, of
    either kind.
    """

    @property
    def available_queries(self) -> Sequence[str]:
        """The query modes."""
        ...

    def query(
        self,
        text: str,
        *,
        mode: str,
        top_k: int,
        options: Mapping[str, Any],
        trace: bool,
    ) -> Any:
        """Answer ``text``, at most ``top_k`` results deep, best first."""
        ...


@runtime_checkable
class KnowledgeRecipeProtocol(Protocol):
    """How a knowledge base is built.

    ``create`` may be a coroutine function or an ordinary one. Optional are
    ``available_queries`` (the modes, known before the build),
    ``default_options`` (query options), ``max_concurrency``, and the pair
    ``save(knowledge_base, path)`` and ``load(path)``, of either kind: ``path``
    is a folder, empty before ``save``. With both, a knowledge base is built
    once and loaded by later runs for as long as nothing of what it was built
    from changes. ``load`` also gets those of ``name``, ``objects``,
    ``source_keys``, ``workspace`` and ``verified`` (True: the files have been
    compared with what ``save`` wrote) that it takes.
    """

    @property
    def name(self) -> str:
        """Name of the recipe: ``A-Z a-z 0-9 _ -``."""
        ...

    def manifest(self) -> Mapping[str, Any]:
        """Return everything that decides what the recipe builds."""
        ...

    def create(
        self, *, name: str, objects: ObjectStore, source_keys: Sequence[str], workspace: Path
    ) -> KnowledgeBaseProtocol | Awaitable[KnowledgeBaseProtocol]:
        """Build a knowledge base of the documents behind ``source_keys``."""
        ...


@runtime_checkable
class EmbeddingProtocol(Protocol):
    """Turns texts into vectors, for the ``local`` recipes.

    Vectors come as an array of shape ``(len(texts), dimension)`` of float32;
    rows need not be normalised. Optional is ``warm_up()``, called when a saved
    knowledge base is loaded: what it loads is not in the first query's latency.
    """

    @property
    def name(self) -> str:
        """Name of the model, with its version."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return one vector for each document text."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Any:
        """Return one vector for each query text."""
        ...


@runtime_checkable
class RerankerProtocol(Protocol):
    """Scores query and text together, for the ``local`` recipes."""

    @property
    def name(self) -> str:
        """Name of the model, with its version."""
        ...

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text; higher is better."""
        ...
