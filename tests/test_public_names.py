"""The package's own names: all there, none paid for before it is used."""

import subprocess
import sys

import pytest

import pytest_heta


def test_every_public_name_is_what_its_home_says():
    for name in pytest_heta.__all__:
        value = getattr(pytest_heta, name)
        assert value.__name__ == name
        assert value.__module__.startswith("pytest_heta.")
    assert set(pytest_heta.__all__) <= set(dir(pytest_heta))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'pytest_heta' has no attribute 'sweet'"):
        _ = pytest_heta.sweet
    # A home has more names than are the package's.
    assert not hasattr(pytest_heta, "did_you_mean")


def loaded_after(statement):
    program = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {name for name in done.stdout.split() if name.startswith(("pytest", "pydantic"))}


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("import pytest_heta", {"pytest_heta"}),
        ("from pytest_heta import HetaError", {"pytest_heta", "pytest_heta.errors"}),
    ],
)
def test_nothing_is_imported_before_it_is_used(statement, modules):
    assert loaded_after(statement) == modules


def test_a_model_does_not_bring_the_runner_in():
    loaded = loaded_after("from pytest_heta import BenchmarkCase")
    assert "pytest_heta.models" in loaded
    assert not loaded & {"pytest_heta.core", "pytest_heta.api", "pytest_heta.plugin", "pytest"}
