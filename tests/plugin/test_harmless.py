"""Whose hooks leave cases as they are: one list for collecting and for running."""

import pluggy
import pytest

from pytest_heta.plugin._harmless import foreign

OURS = [
    "_pytest.runner",
    "pytest_heta.plugin.results",
    "xdist.remote",
    "pytest_benchmark.plugin",
    "_hypothesis_pytestplugin",
    "anyio.pytest_plugin",
    "pytest_asyncio.plugin",
]
OTHERS = ["conftest", "pytest_randomly", "pytest_timeout", "anyio_extra.plugin", "_pytester", None]


def hook_of(*modules):
    """Return a hook that a plugin of each module implements."""
    manager = pluggy.PluginManager("toy")

    class Specification:
        @pluggy.HookspecMarker("toy")
        def looks(self): ...

    manager.add_hookspecs(Specification)
    for module in modules:

        def looks(): ...

        looks.__module__ = module
        plugin = type("Plugin", (), {"looks": staticmethod(pluggy.HookimplMarker("toy")(looks))})
        manager.register(plugin, str(module))
    return manager.hook.looks


@pytest.mark.parametrize("module", OURS)
def test_harmless(module):
    assert foreign(hook_of(module)) == []


@pytest.mark.parametrize("module", OTHERS)
def test_everybody_else(module):
    assert [implementation.plugin_name for implementation in foreign(hook_of(module))] == [
        str(module)
    ]


def test_others_are_found_among_the_harmless():
    found = foreign(hook_of("_pytest.runner", "conftest", "xdist.remote", "pytest_timeout"))
    assert {implementation.plugin_name for implementation in found} == {
        "conftest",
        "pytest_timeout",
    }
