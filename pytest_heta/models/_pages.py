"""Results that stay on disk until somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from pytest_heta.models._result import EvaluationCaseResult
from pytest_heta.models._tally import SampleTally


class PagedResults(Sequence[EvaluationCaseResult]):
    """A sequence of results of which only their tallies are in memory.

    Each access reads and validates one result, so go through the sequence
    once, and keep what you need of a result. It can be read for as long as
    the run's session lasts; a copy or a pickle of it is a tuple of them all.

    Args:
        tallies: Tally of each result.
        read: Returns the JSON text of a result, by its index.
    """

    __slots__ = ("_read", "tallies")

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tallies: Sequence[SampleTally], read: Callable[[int], bytes]) -> None:
        self.tallies = tallies
        self._read = read

    def __repr__(self) -> str:
        """Return how many results there are; they may be too many to show."""
        return f"<PagedResults of {len(self)} samples>"

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.tallies)

    @overload
    def __getitem__(self, index: int) -> EvaluationCaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EvaluationCaseResult, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> EvaluationCaseResult | tuple[EvaluationCaseResult, ...]:
        """Return a result, or several as a tuple."""
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return tuple(map(self._result, numbers))
        return self._result(numbers)

    def __iter__(self) -> Iterator[EvaluationCaseResult]:
        """Yield each result; none of them is kept."""
        return map(self._result, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is a sequence of the same results."""
        if not isinstance(other, PagedResults | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(map(EvaluationCaseResult.__eq__, self, other))

    def __reduce__(self) -> tuple[object, ...]:
        """Leave the disk when the sequence leaves the process."""
        return tuple, (list(self),)

    def texts(self) -> Iterator[bytes]:
        """Yield the JSON text of each result, as it stands in a report file."""
        return map(self._read, range(len(self)))

    def _result(self, number: int) -> EvaluationCaseResult:
        return EvaluationCaseResult.model_validate_json(self._read(number))


class KeptAsPages:
    """Annotation of a field: a tuple of results, or `PagedResults` as they are."""

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a tuple that lets pages through."""
        results = handler.generate_schema(tuple[EvaluationCaseResult, ...])
        return core_schema.no_info_wrap_validator_function(
            _unless_paged,
            results,
            serialization=core_schema.plain_serializer_function_ser_schema(
                tuple, return_schema=results
            ),
        )


def _unless_paged(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, PagedResults) else validate(value)
