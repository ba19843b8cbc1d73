"""Disks that are full and folders that nobody may write: a clear error, and nothing is lost."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
from contextlib import suppress

import pytest
from fault_world import CASES, SAVING, comparable

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1


def obey_permissions():
    """Let the administrator's process obey the permissions of files, as others do."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0):
        raise OSError("CAP_DAC_OVERRIDE cannot be dropped")


@pytest.fixture
def obedient():
    """A function for a new process, after which read-only folders are read-only."""
    try:
        subprocess.run(["true"], preexec_fn=obey_permissions, check=True)
    except subprocess.SubprocessError:
        pytest.skip("the administrator's capabilities cannot be dropped here")
    return obey_permissions


@pytest.fixture
def read_only(fault_world):
    """A folder that nobody may write, in the world."""
    folder = fault_world.path / "read-only"
    folder.mkdir()
    folder.chmod(0o555)
    return folder


def small_files(most):
    """Return a function for a new process, after which files grow to so many bytes only."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def recorded(world):
    """Return the cases of which a whole record is on the disk."""
    found = set()
    for path in world.path.glob("runs/*/session-1/**/*.jsonl"):
        for line in path.read_bytes().splitlines():
            # The last of a file that is full is no record.
            with suppress(ValueError, TypeError, KeyError):
                found.add(json.loads(line[18:])["sample"][4])
    return found


def leftovers(world):
    return [path.name for path in world.path.rglob(".heta-report-*")]


class TestADiskThatIsFull:
    def test_while_results_are_written_down(self, fault_world, workers, check_resumed, undisturbed):
        ended = fault_world.run(*workers, fault={}, preexec_fn=small_files(12_000))
        assert ended.code == pytest.ExitCode.TESTS_FAILED
        assert ended.has_line("warning: ", "results are kept in memory, ", "File too large")
        assert ended.has_line("[report-invalid]", "report.json: ", "File too large; choose another")
        # All was asked and scored, and the gates were decided.
        assert fault_world.answered() == set(CASES)
        assert ended.says(r"^PASSED toys: overlap\.recall@1 = 1")
        assert (fault_world.has_report(), leftovers(fault_world)) == (False, [])
        finished = recorded(fault_world)
        assert 3 <= len(finished) < len(CASES)
        check_resumed(finished)

    def test_and_the_run_is_killed(self, fault_world, check_resumed):
        fault = {"place": "query", "number": 12, "code": "os._exit(9)"}
        fault_world.run(fault=fault, preexec_fn=small_files(12_000))
        finished = recorded(fault_world)
        assert finished < fault_world.answered()
        check_resumed(finished)

    def test_from_the_first_byte(self, fault_world, undisturbed):
        ended = fault_world.run("--heta-report=json:/dev/full", fault={})
        assert ended.code == pytest.ExitCode.USAGE_ERROR
        assert ended.has_line("ERROR: ", "--heta-report", "[report-invalid]", "/dev/full: ")
        assert fault_world.answered() == set()

    def test_that_keeps_the_report_of_before(self, fault_world):
        assert fault_world.run().code == 0
        before = (fault_world.path / "report.json").read_bytes()
        ended = fault_world.run(fault={}, preexec_fn=small_files(12_000))
        assert ended.code == pytest.ExitCode.TESTS_FAILED
        now = json.loads((fault_world.path / "report.json").read_bytes())
        assert json.loads(before)["run"]["complete"] is True
        assert (now["run"]["complete"], now["reports"]) == (False, [])

    @pytest.mark.parametrize("what", ["runs", "cache", "report"])
    def test_a_file_system_without_room(self, fault_world, undisturbed, check_resumed, what):
        small = fault_world.path / "small"
        small.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(small)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("file systems cannot be mounted here")
        fault_world.extend_recipe(SAVING)
        arguments = {
            "runs": ["--heta-runs-dir=small"],
            "cache": ["--heta-cache-dir=small"],
            "report": ["--heta-report=json:small/report.json"],
        }[what]
        try:
            ended = fault_world.run(*arguments, fault={})
        finally:
            subprocess.run(["umount", str(small)], check=True)
        assert fault_world.answered() == set(CASES)
        assert not ended.says("Traceback")
        if what == "report":
            assert ended.code == pytest.ExitCode.TESTS_FAILED
            assert ended.has_line("[report-invalid]", "small/report.json: ", "No space left")
            check_resumed(set(CASES))
            return
        assert ended.code == 0
        assert comparable(fault_world.report()) == undisturbed
        if what == "runs":
            assert ended.has_line("warning: ", "results are kept in memory, ", "No space left")


class TestAFolderThatNobodyMayWrite:
    @pytest.mark.parametrize("how", ["read-only", "below a file"])
    @pytest.mark.parametrize(
        ("option", "told"),
        [
            ("--heta-runs-dir=read-only", ("--heta-runs-dir", "[run-unusable]")),
            ("--heta-report=json:read-only/r.json", ("--heta-report", "[report-invalid]")),
        ],
        ids=["runs", "report"],
    )
    def test_is_refused_before_anything_is_asked(
        self, fault_world, obedient, read_only, option, told, how
    ):
        if how == "below a file":
            read_only.rmdir()
            read_only.write_text("")
        ended = fault_world.run(option, fault={}, preexec_fn=obedient)
        assert ended.code == pytest.ExitCode.USAGE_ERROR
        assert ended.has_line("ERROR: ", "/read-only/", *told)
        assert fault_world.log() == []

    def test_as_cache_costs_no_result(self, fault_world, obedient, read_only, undisturbed):
        fault_world.extend_recipe(SAVING)
        ended = fault_world.run("--heta-cache-dir=read-only", fault={}, preexec_fn=obedient)
        assert ended.code == 0
        assert ended.has_line(
            "warning: ", "run unit a: the cache cannot be used: ", "Permission denied"
        )
        assert comparable(fault_world.report()) == undisturbed

    def test_as_cache_with_what_was_saved_before(self, fault_world, obedient, undisturbed):
        fault_world.extend_recipe(SAVING)
        assert fault_world.run("--heta-cache-dir=cache").code == 0
        for path in sorted((fault_world.path / "cache").rglob("*")):
            path.chmod(0o555)
        ended = fault_world.run("--heta-cache-dir=cache", fault={}, preexec_fn=obedient)
        assert ended.code == 0
        assert comparable(fault_world.report()) == undisturbed

    def test_as_pytests_cache_costs_no_result(self, fault_world, obedient, undisturbed):
        (fault_world.path / ".pytest_cache").mkdir(mode=0o555)
        # pytest warns of it, too.
        ended = fault_world.run("-Wdefault", fault={}, runs=None, preexec_fn=obedient)
        assert ended.code == 0
        assert ended.has_line("heta: warning: [run-not-kept] run ", "Permission denied")
        assert comparable(fault_world.report()) == undisturbed

    def test_since_the_middle_of_the_run(self, fault_world, obedient, check_resumed):
        code = """
for path in [HERE, *HERE.glob("runs/**/")]:
    path.chmod(0o555)
"""
        fault = {"place": "query", "number": 6, "code": code}
        ended = fault_world.run(fault=fault, preexec_fn=obedient)
        for path in [fault_world.path, *fault_world.path.glob("runs/**/")]:
            path.chmod(0o755)
        assert ended.code == pytest.ExitCode.TESTS_FAILED
        assert ended.has_line("[report-invalid]", "report.json: ", "Permission denied")
        assert not fault_world.has_report()
        assert fault_world.answered() == set(CASES)
        check_resumed(set(CASES))
