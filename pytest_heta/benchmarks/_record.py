"""A JSON object of a dataset file, its fields checked as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from pytest_heta.benchmarks._places import location
from pytest_heta.errors import DatasetInvalidError, DuplicateIdError, ModelInvalidError, shown
from pytest_heta.models import LARGEST_GRADE, normalise_id

__all__ = ["IdLines", "Record", "check_gold", "kind_of"]

T = TypeVar("T")

_SIMILAR: Final = 0.85
_LISTED_NAMES: Final = 10


_KINDS: Final = {
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def kind_of(value: Any) -> str:
    """Return what JSON calls the type of ``value``."""
    return _KINDS.get(type(value), "null")


@lru_cache(maxsize=1024)
def _similar(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that ``name`` is probably meant to be."""
    return next(iter(get_close_matches(name.lower(), known, n=1, cutoff=_SIMILAR)), None)


class Record(NamedTuple):
    """A JSON object of a dataset file, which knows where it stands.

    Attributes:
        path: The file.
        line: The line in it, from 1.
        fields: The object.
        within: Where the object is within the line's object, such as
            ``evidence[2].``; empty for the line's object itself.
    """

    path: Path
    line: int
    fields: dict[str, Any]
    within: str = ""

    @property
    def where(self) -> str:
        """The place as ``file:line``."""
        return location(self.path, self.line)

    def error(self, message: str, hint: str | None = None) -> DatasetInvalidError:
        """Return the error that this record is wrong."""
        return DatasetInvalidError(message, where=self.where, hint=hint)

    def named(self, field: str) -> str:
        """Return a field's full name as it stands in messages."""
        return f'"{self.within}{field}"'

    def child(self, field: str, value: Any) -> Record:
        """Return the object ``value`` below ``field`` as a record."""
        if not isinstance(value, dict):
            raise self.error(f"{self.named(field)} = {shown(value)} must be an object")
        return Record(self.path, self.line, value, f"{self.within}{field}.")

    def pick(self, names: Collection[str], convert: Callable[[str, Any], T]) -> T | None:
        """Return the value that stands under one of ``names``, None if there is none.

        Null counts as absent. Two names with different values are an error:
        which of them is meant is not ours to guess.
        """
        found: list[tuple[str, T]] = [
            (name, convert(name, self.fields[name]))
            for name in names
            if self.fields.get(name) is not None
        ]
        if not found:
            return None
        name, value = found[0]
        for other_name, other in found[1:]:
            if other != value:
                raise self.error(
                    f"{self.named(name)} and {self.named(other_name)} differ:"
                    f" {shown(value)} and {shown(other)}",
                    hint="keep one of them",
                )
        return value

    def as_identifier(self, name: str, value: Any) -> str:
        """Return an id as a string, without white space around it."""
        try:
            identifier = normalise_id(value.strip() if isinstance(value, str) else value)
        except ValueError as error:
            raise self.error(f"{self.named(name)} = {shown(value)}: {error}") from None
        if "\0" in identifier:
            raise self.error(f"{self.named(name)} = {shown(value)}: an id must not hold NUL")
        return identifier

    def as_string(self, name: str, value: Any) -> str:
        """Return ``value`` if it is a string."""
        if not isinstance(value, str):
            raise self.error(
                f"{self.named(name)} = {shown(value)} must be a string, not {kind_of(value)}"
            )
        return value

    def as_grade(self, name: str, value: Any) -> float:
        """Return ``value`` if it is a number that a grade can be, its type kept."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(
                f"{self.named(name)} = {shown(value)} must be a number, not {kind_of(value)}"
            )
        if abs(value) > LARGEST_GRADE:
            raise self.error(f"{self.named(name)} = {shown(value)} is too large")
        return value

    def identifier(self, *names: str) -> str:
        """Return the id that stands under one of ``names``; it is required."""
        return self._required(names, self.pick(names, self.as_identifier))

    def optional_identifier(self, *names: str) -> str | None:
        """Return the id that stands under one of ``names``, if there is one."""
        return self.pick(names, self.as_identifier)

    def identifiers(self, name: str) -> tuple[str, ...]:
        """Return the ids of a list, or the one id, that stands under ``name``."""
        value = self.fields.get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        return tuple(self.as_identifier(name, item) for item in values)

    def string(self, *names: str) -> str:
        """Return the string that stands under one of ``names``; it is required."""
        return self._required(names, self.pick(names, self.as_string))

    def optional_string(self, *names: str) -> str | None:
        """Return the string that stands under one of ``names``, if there is one."""
        return self.pick(names, self.as_string)

    def items(self, name: str) -> list[Any]:
        """Return the list that stands under ``name``, an empty one if absent."""
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(
                f"{self.named(name)} = {shown(value)} must be a list, not {kind_of(value)}"
            )
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """Return the object that stands under ``name``, an empty one if absent."""
        value = self.fields.get(name)
        return {} if value is None else self.child(name, value).fields

    def extras(self, known: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields beside the ``known`` ones.

        Raises:
            DatasetInvalidError: if one looks like a misspelt known field: a
                case that loses its ``evidence`` so would not be judged.
        """
        others = {name: value for name, value in self.fields.items() if name not in known}
        for name in others:
            if meant := _similar(name, known):
                raise self.error(
                    f"unknown field {shown(self.within + name)}",
                    hint=f'did you mean "{meant}"? Fields of your own may stand in "metadata"',
                )
        return others

    def build(self, model: Callable[..., T], **fields: Any) -> T:
        """Return ``model(**fields)``; what the model refuses is this record's error."""
        try:
            return model(**fields)
        except ModelInvalidError as error:
            prefix = f"{self.within.rstrip('.')}: " if self.within else ""
            raise self.error(prefix + error.message, error.hint) from None

    def missing(self, *names: str) -> DatasetInvalidError:
        """Return the error that none of the fields ``names`` is there."""
        wanted = " or ".join(self.named(name) for name in names)
        there = ", ".join(shown(name) for name in list(self.fields)[:_LISTED_NAMES])
        return self.error(f"{wanted} is missing", hint=f"fields that are there: {there or 'none'}")

    def _required(self, names: tuple[str, ...], value: T | None) -> T:
        if value is None:
            raise self.missing(*names)
        return value


class IdLines:
    """The ids of a dataset and the lines they stand on; nothing else is held.

    Args:
        kind: What the ids are of, such as ``document``.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lines: dict[Path, dict[str, int]] = {}

    def add(self, identifier: str, record: Record) -> None:
        """Note an id.

        Raises:
            DuplicateIdError: if it was there before; it names both lines.
        """
        for path, lines in self._lines.items():
            if identifier in lines:
                raise DuplicateIdError(
                    f"{self._kind} id {shown(identifier)} stands twice,"
                    f" first at {location(path, lines[identifier])}",
                    where=record.where,
                    hint=f"{self._kind} ids are unique",
                )
        self._lines.setdefault(record.path, {})[identifier] = record.line

    def __contains__(self, identifier: object) -> bool:
        return any(identifier in lines for lines in self._lines.values())


def check_gold(documents: Container[str], gold: Iterable[tuple[str, str]]) -> None:
    """Refuse gold documents that do not exist.

    Args:
        documents: The documents' ids.
        gold: Id of each gold document, and where it is said to be one.

    Raises:
        DatasetInvalidError: at the place of the first that is missing.
    """
    missing: dict[str, str] = {}
    for document_id, where in gold:
        if document_id not in documents:
            missing.setdefault(document_id, where)
    if missing:
        listed = ", ".join(shown(document_id) for document_id in list(missing)[:_LISTED_NAMES])
        more = ", …" if len(missing) > _LISTED_NAMES else ""
        are = "gold document is" if len(missing) == 1 else "gold documents are"
        raise DatasetInvalidError(
            f"{len(missing)} {are} not in the corpus: {listed}{more}",
            where=next(iter(missing.values())),
            hint="add what is missing, or do without strict=True: it then counts as never found",
        )
