"""``--heta-offline``: nothing is downloaded, and what is missing is named before any build."""

import pytest

DOWNLOADING = """
from pytest_heta import BenchmarkResource
from pytest_heta.benchmarks import download

class Downloading(JsonlBenchmark):
    async def prepare(self, workspace):
        download(
            BenchmarkResource(name="cases", uri="http://127.0.0.1:9/cases.zip", kind="file"),
            workspace.cache_dir,
        )
        return await super().prepare(workspace)

JsonlBenchmark = Downloading
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_a_file_that_is_not_there_is_named(world, builds, workers):
    world.suite(before=DOWNLOADING)
    result = world.run("--heta-offline", *workers)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["[[]offline[]] */cases from http://127.0.0.1:9/cases.zip: it is not there*"]
    )
    assert builds() == {}


def test_what_was_downloaded_before_is_there(world):
    served = world.path / "served.zip"
    served.write_bytes(b"any")
    world.suite(before=DOWNLOADING.replace("http://127.0.0.1:9/cases.zip", served.as_uri()))
    world.run(cache=True).assert_outcomes(passed=6)
    served.unlink()
    world.run("--heta-offline", cache=True).assert_outcomes(passed=6)


def test_a_dataset_on_disk_needs_no_network(world):
    world.run("--heta-offline").assert_outcomes(passed=6)
