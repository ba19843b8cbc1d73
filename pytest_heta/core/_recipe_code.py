"""What code a recipe consists of, as one hash: a change of it may change what is built.

It is the source of the modules that the recipe's classes and functions come
from, of the packages these modules are in, and of what they import of the
user's own code, however deep. Of installed packages the versions count.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

from pytest_heta.core._plain import canonical_json

__all__ = [
    "FILE_MODULE_PREFIX",
    "RecipeModules",
    "code_digest",
    "is_ours",
    "is_users",
    "recipe_modules",
    "stable_module_name",
]

FILE_MODULE_PREFIX: Final = "heta_recipe_"
"""Begins the module's name of a recipe that is named by its file; a hash of the path follows."""

_OURS: Final = "pytest_heta"
_MAX_DEPTH: Final = 4
_MAX_ITEMS: Final = 100
_SITE_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})
_PLAIN: Final = (str, bytes, bytearray, int, float, complex, bool, type(None))


class RecipeModules(NamedTuple):
    """Names of modules: of the recipe's own class, and of what its attributes are."""

    own: frozenset[str]
    parts: frozenset[str]


def recipe_modules(recipe: object) -> RecipeModules:
    """Return the modules that a recipe's code is in.

    Besides the recipe's own class, the classes and functions among its
    attributes count: an embedding model, say.
    """
    own = {str(base.__module__) for base in type(recipe).__mro__}
    if isinstance(recipe, ModuleType):
        own.add(recipe.__name__)
    return RecipeModules(
        frozenset(own), frozenset(_modules_of_attributes(recipe, _MAX_DEPTH, set()))
    )


def code_digest(modules: RecipeModules) -> str | None:
    """Return the hash of a recipe's code as its files are now, None when no file is known."""
    # Modules of other packages among the parts are left out: a model that is
    # loaded at first use must not make the recipe another one.
    parts = (name for name in modules.parts if not _is_standard(name) and not _is_installed(name))
    found = _Sources()
    for name in sorted({*modules.own, *parts}):
        if not _is_standard(name):
            found.add_root(name)
    if not found.files:
        return None
    sources = sorted((stable_module_name(name), source) for name, source in found.files.items())
    return sha256(canonical_json([sources, found.versions()])).hexdigest()


def stable_module_name(name: str) -> str:
    """Return what to call a module wherever its project lies: no name made from a whole path."""
    file = _file_of(name, None) if name.startswith(FILE_MODULE_PREFIX) else None
    return name if file is None else f"file {file.name}"


def is_ours(module: str) -> bool:
    """Whether a module is one of this package."""
    return _top(module) == _OURS


def is_users(module: str) -> bool:
    """Whether a module is neither Python's, nor this package's, nor an installed one."""
    return not _is_standard(module) and not is_ours(module) and not _is_installed(module)


def _modules_of_attributes(value: object, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield the modules that the values in an object come from."""
    if depth < 0 or id(value) in seen or isinstance(value, (*_PLAIN, ModuleType)):
        return
    seen.add(id(value))
    if isinstance(value, FunctionType):
        yield value.__module__
    elif isinstance(value, type):
        yield from (base.__module__ for base in value.__mro__)
    else:
        yield from (base.__module__ for base in type(value).__mro__)
        for inner in _inner_values(value):
            yield from _modules_of_attributes(inner, depth - 1, seen)


def _inner_values(value: Any) -> list[Any]:
    inner: Iterable[Any]
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif isinstance(value, MethodType):
        inner = (value.__func__, value.__self__)
    elif isinstance(value, partial):
        inner = (value.func, *value.args, *value.keywords.values())
    else:
        inner = getattr(value, "__dict__", {}).values()
    return list(islice(inner, _MAX_ITEMS))


class _Sources:
    """Source files by the name of their module, and the packages they import."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._packages: set[str] = set()

    def versions(self) -> list[tuple[str, str]]:
        """Return the version of each installed package."""
        return [(name, _version(name)) for name in sorted(self._packages)]

    def add_root(self, name: str) -> None:
        """Add a module of the recipe, with its neighbours in the same package."""
        path = _file_of(name, None)
        if path is None:
            return
        if _is_installed(name):
            self._packages.add(_top(name))
        package = getattr(sys.modules.get(name), "__package__", None)
        if package:
            for neighbour in sorted(path.parent.glob("*.py")):
                self._add(f"{package}.{neighbour.stem}", neighbour)
        self._add(name, path)

    def _add(self, name: str, path: Path) -> None:
        if name in self.files:
            return
        try:
            source = path.read_bytes()
        except OSError:
            return
        self.files[name] = sha256(source).hexdigest()
        if _top(name) == _OURS or _is_installed(name):
            return  # their versions stand for what is around them
        for imported in _imports(source, name, path):
            if _is_standard(imported) or _top(imported) == _OURS:
                continue
            found = _file_of(imported, path.parent)
            if found is not None and _is_in_site_packages(found):
                self._packages.add(_top(imported))
            elif found is not None:
                self._add(imported, found)


def _imports(source: bytes, name: str, path: Path) -> list[str]:
    """Return the names of what a module may import, also inside functions, in order."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names |= dict.fromkeys(_with_parents(alias.name))
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names |= dict.fromkeys(_with_parents(base))
            # What is imported may be a module itself.
            names |= {f"{base}.{alias.name}" if base else alias.name: None for alias in node.names}
    names.pop("", None)
    return list(names)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _file_of(name: str, folder: Path | None) -> Path | None:
    """Return the source file of a module without importing it.

    Args:
        name: Full name of the module.
        folder: Folder of the file that imports it: a recipe that is named by
            its path imports what lies beside it.
    """
    file = getattr(sys.modules.get(name), "__file__", None)
    if isinstance(file, str):
        return Path(file)
    parent, _, last = name.rpartition(".")
    if parent:
        return next(filter(None, (_source(place, last) for place in _places(parent, folder))), None)
    beside = None if folder is None else _source(folder, name)
    if beside is not None:
        return beside
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    return Path(spec.origin)


def _places(package: str, folder: Path | None) -> list[Path]:
    """Return the folders of a package."""
    paths = getattr(sys.modules.get(package), "__path__", None)
    if paths is not None:
        return [Path(path) for path in paths]
    file = _file_of(package, folder)
    return [file.parent] if file is not None and file.name == "__init__.py" else []


def _source(folder: Path, name: str) -> Path | None:
    candidates = (folder / f"{name}.py", folder / name / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_standard(name: str) -> bool:
    return _top(name) in sys.stdlib_module_names


def _is_installed(name: str) -> bool:
    path = _file_of(name, None)
    return _top(name) != _OURS and path is not None and _is_in_site_packages(path)


def _is_in_site_packages(path: Path) -> bool:
    return not _SITE_PACKAGES.isdisjoint(path.parts)


@cache
def _version(package: str) -> str:
    """Return the version of the distribution that a package is imported from."""
    try:
        return version(package)
    except PackageNotFoundError:
        names = packages_distributions().get(package, ())
        return " ".join(f"{name} {version(name)}" for name in sorted(set(names))) or "unknown"
