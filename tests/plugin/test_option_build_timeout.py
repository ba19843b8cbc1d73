"""``--heta-build-timeout``: a knowledge base that takes too long to build fails its cases."""

import pytest

BLOCKS = """
import threading

class Recipe(Recipe):
    def create(self, **arguments):
        with pathlib.Path(__file__).with_name("builds").open("a") as file:
            file.write("x")
        threading.Event().wait()

recipe = Recipe()
"""
SLEEPS = (
    BLOCKS.replace("    def create", "    async def create")
    .replace("threading.Event().wait()", "await asyncio.Event().wait()")
    .replace("import threading", "import asyncio")
)


@pytest.mark.parametrize("source", [SLEEPS, BLOCKS], ids=["asynchronous", "blocking"])
def test_all_cases_of_the_unit_fail_and_it_is_not_built_again(world, source):
    world.extend_recipe(source)
    world.run("--heta-build-timeout=0.3", "--heta-mode=overlap")
    results = world.report()["case_results"]
    assert [result["error"]["error_type"] for result in results] == ["timeout"] * 3
    assert "[build-timeout]" in results[0]["error"]["message"]
    assert (world.path / "builds").read_text(encoding="utf-8") == "x"


def test_it_is_a_positive_number(world):
    result = world.run("--heta-build-timeout=never")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
