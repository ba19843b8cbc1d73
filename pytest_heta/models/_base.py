"""What every model has: immutability, one-line errors, ids."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from pytest_heta.errors import ModelInvalidError, shown


def normalise_id(value: object) -> str:
    """Return an id as the one string that stands for it everywhere.

    Datasets write the same id as ``7`` on one side and as ``"7"`` on the
    other. Integers become their decimal digits, and so do floats without a
    fraction (``7.0`` is ``"7"``), also those of numpy; a `UUID` becomes its
    text, and strings are kept as they are.

    Raises:
        ValueError: for an empty string, a boolean or any other type.
    """
    if isinstance(value, str):
        if not value:
            raise ValueError("an id must not be empty")
        return value
    if isinstance(value, UUID):
        return str(value)
    # Numpy's numbers, which vector indexes answer with, are no int or float.
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise ValueError(f"an id must be a string or an integer, not {kind}")  # noqa: TRY004 - pydantic's
    if isinstance(value, Integral):
        return str(int(value))
    if not float(value).is_integer():
        raise ValueError("an id must be a string or an integer, not a fraction")
    return str(int(float(value)))


Identifier = Annotated[str, BeforeValidator(normalise_id)]


def in_one_order(value: object) -> object:
    """Sort a set: its own order differs between processes."""
    return sorted(value, key=str) if isinstance(value, set | frozenset) else value


Identifiers = Annotated[tuple[Identifier, ...], BeforeValidator(in_one_order)]
Metadata = dict[str, Any]


def _describe(model: str, error: ValidationError) -> str:
    """Return the first problem of ``error`` (and how many more) as one line."""
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    line = f"{model}.{field}" if field else model
    if first["type"] == "missing":
        line += ": a value is required"
    elif field:
        line += f" = {shown(first['input'])}: {message}"
    else:
        line += f": {message}"
    if len(problems) > 1:
        line += f" (and {len(problems) - 1} more)"
    return line


class HetaModel(BaseModel):
    """The base of every model: frozen, without unknown fields, wrong in one line."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, from_attributes=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _one_line_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise ModelInvalidError(_describe(cls.__name__, error)) from None
