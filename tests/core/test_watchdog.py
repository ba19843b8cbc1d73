"""A process whose interpreter does not come back ends; every other one goes on."""

import subprocess
import sys

import pytest

LONGEST_S = 60
SCRIPT = """
import ctypes, faulthandler, threading
from time import monotonic
from pytest_heta.core._watchdog import Watchdog

wind_off = faulthandler.cancel_dump_traceback_later
hold, wait = ctypes.PyDLL(None).sleep, threading.Event().wait
watch = Watchdog(2).watch
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sleep of C's library")


def run(source):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + source + "\nprint('the end')"],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


@pytest.mark.parametrize(
    "source",
    [
        "with watch(0.1): hold(600)",
        "with watch(0.1):\n    wait(3)\n    hold(600)",
        # pytest's own plugin may do this.
        "with watch(0.1):\n    wind_off()\n    wait(3)\n    hold(600)",
        "with watch(0.1):\n    with watch(100): pass\n    hold(600)",
        "with watch(0.1):\n    pass\nwith watch(0.1): hold(600)",
    ],
    ids=["at once", "later", "after another wound it off", "after a longer one", "again"],
)
def test_what_holds_the_interpreter_ends_the_process(source):
    done = run(source)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Timeout (0:00:0")
    assert 'File "<string>"' in done.stderr


@pytest.mark.parametrize(
    "source",
    [
        "with watch(0.1): wait(4)",
        "with watch(2): hold(3)",
        "with watch(0.1): pass\nhold(3)",
        "with watch(0.1):\n    with watch(4): hold(4)",
        "with watch(0.1):\n    end = monotonic() + 4\n    while monotonic() < end: pass",
    ],
    ids=["waiting", "holding a little longer", "not watched", "a longer limit", "computing"],
)
def test_a_process_that_runs_python_goes_on(source):
    done = run(source)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")
