"""What every model has: immutability, one-line errors, ids."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

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


def _invalid(model: type[BaseModel], error: ValidationError) -> ModelInvalidError:
    return ModelInvalidError(_described(model.__name__, error))


def _described(model: str, error: ValidationError) -> str:
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


# A frozen model refuses to be set otherwise.
_set = object.__setattr__


class HetaModel(BaseModel):
    """The base of every model: frozen, without unknown fields, wrong in one line."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, from_attributes=True
    )

    # Errors are turned into one line here, at the doors of a model, and not by a
    # validator of it: that would cost a call into Python for each nested model.

    def __init__(self, /, **data: Any) -> None:
        __tracebackhide__ = True
        try:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
        except ValidationError as error:
            raise _invalid(type(self), error) from None

    # Says to pydantic that nested models need no call of `__init__`.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def trusted(cls, **values: Any) -> Self:
        """Return a model made of valid values, without looking at them again.

        It is what ``model_construct`` does, in a third of the time, for the
        few records that every sample has.

        Args:
            values: A value for every field, in the fields' order.
        """
        made = cls.__new__(cls)
        _set(made, "__dict__", values)
        _set(made, "__pydantic_fields_set__", set(values))
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made

    def replaced(self, **values: Any) -> Self:
        """Return a copy with some fields replaced by valid values.

        It is what ``model_copy(update=…)`` does, in half the time: responses
        have many results, and a run has many responses.
        """
        copy = type(self).__new__(type(self))
        given = self.__pydantic_fields_set__
        if not given.issuperset(values):
            given = given.union(values)
        _set(copy, "__dict__", {**self.__dict__, **values})
        _set(copy, "__pydantic_fields_set__", given)
        _set(copy, "__pydantic_extra__", self.__pydantic_extra__)
        _set(copy, "__pydantic_private__", self.__pydantic_private__)
        return copy

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Return a model made of a mapping, or of an object with the same attributes.

        Args:
            obj: The mapping or the object.
            options: As for pydantic's method of this name.

        Raises:
            ModelInvalidError: if it does not fit.
        """
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise _invalid(cls, error) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Return a model made of its JSON text.

        Args:
            json_data: The text.
            options: As for pydantic's method of this name.

        Raises:
            ModelInvalidError: if it does not fit, or is no JSON.
        """
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise _invalid(cls, error) from None
