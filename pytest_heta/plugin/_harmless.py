"""Plugins whose hooks leave the cases of a benchmark as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pluggy

__all__ = ["foreign"]

_HARMLESS: Final = frozenset(
    {
        "_pytest",
        "pytest_heta",
        "xdist",
        "__channelexec__",
        "pytest_benchmark",
        "_hypothesis_pytestplugin",
        "anyio",
        "pytest_asyncio",
    }
)
"""Packages whose hooks do nothing to a case, when it is collected or when it runs.

* ``_pytest``: what pytest itself does is known, and done where it is needed.
* ``pytest_heta``: this plugin.
* ``xdist``, which is ``__channelexec__`` in a worker: chooses who runs an
  item, and sends its reports; changes neither.
* ``pytest_benchmark``: looks at items that ask for its fixture or have its mark.
* ``_hypothesis_pytestplugin``: looks at functions that ``@given`` made.
* ``anyio``, ``pytest_asyncio``: look at coroutine functions and fixtures; a
  case's test function is an ordinary one.
"""


def foreign(hook: pluggy.HookCaller) -> list[pluggy.HookImpl]:
    """Return what other plugins and conftest files have to say in a hook."""
    return [
        implementation
        for implementation in hook.get_hookimpls()
        if str(implementation.function.__module__).partition(".")[0] not in _HARMLESS
    ]
