"""The tests on every supported Python and pytest, and beside other plugins.

``nox`` runs them all; ``nox --list`` shows what there is. A Python that is not
installed is skipped. Nothing is pinned here: constraints.txt pins what CI
installs, and these sessions tell whether the newest releases still fit.
"""

import nox

PYTHONS = ["3.11", "3.12", "3.13"]
PYTESTS = ["8.4", "9"]
OTHER_PLUGINS = [
    "anyio",
    "pytest-asyncio",
    "pytest-randomly",
    "pytest-repeat",
    "pytest-rerunfailures",
    "pytest-timeout",
]

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True


@nox.session(python=PYTHONS)
@nox.parametrize("pytest", PYTESTS)
def tests(session: nox.Session, pytest: str) -> None:
    """Run the test suite, or what is given after ``--``."""
    session.install("-e", ".[dev]", f"pytest=={pytest}.*")
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS)
def compatibility(session: nox.Session) -> None:
    """Run the plugin's tests with other plugins installed beside it."""
    session.install("-e", ".", "hypothesis", *OTHER_PLUGINS)
    session.run("pytest", "tests/plugin", *session.posargs)
