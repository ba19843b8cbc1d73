"""``--heta-list``: recipes, modes, measures and benchmarks, and nothing is run."""

import pytest


def lines_of(result):
    start = next(i for i, line in enumerate(result.outlines) if "heta list" in line)
    return [line for line in result.outlines[start + 1 :] if not line.startswith("=")]


def test_everything_there_is_to_choose_from_is_listed(world, count_builds):
    world.suite("gates=['overlap.recall@1 >= 0.5']")
    result = world.run("--heta-list")
    assert result.ret == 0
    lines = lines_of(result)
    assert "  local  (pytest_heta.recipes.local:local)" in lines
    assert "  local-minilm  (pytest_heta.recipes.local:local_minilm)" in lines
    modes = lines.index("modes of toy (--heta-mode):")
    assert lines[modes + 1] == "  overlap, backwards"
    measures = lines.index("measures (in suites and gates):")
    for name in ("ndcg@k", "map@k", "recall@k", "precision@k", "mrr@k", "hit@k", "ndcg_exp@k"):
        assert name in lines[measures + 1]
    assert "answer_contains" in lines[measures + 1]
    benchmark = lines.index("  toys  (bench_toys.py)")
    assert lines[benchmark + 1] == "    gate overlap.recall@1 >= 0.5"
    assert count_builds() == 0
    assert not (world.path / "report.json").exists()


def test_no_recipe_is_needed(world):
    result = world.run("--heta-list", recipe=None)
    assert result.ret == 0
    assert "  toys  (bench_toys.py)" in lines_of(result)
    assert not any(line.startswith("modes of") for line in lines_of(result))


def test_a_dataset_folder_is_listed(world):
    result = world.run("--heta-list", "toys", recipe=None)
    assert any(line.startswith("  toys  (") for line in lines_of(result))


def test_a_recipe_that_does_not_say_its_modes_is_listed_as_such(world):
    world.extend_recipe("del Recipe.available_queries")
    assert "  known only once a knowledge base is built" in lines_of(world.run("--heta-list"))


def test_a_place_without_benchmarks_says_so(world):
    folder = world.path / "empty"
    folder.mkdir()
    result = world.run("--heta-list", "empty", recipe=None)
    assert result.ret == 0
    assert "  none in the given paths" in lines_of(result)


def test_ordinary_tests_are_not_run(world):
    world.pytester.makepyfile(test_plain="def test_plain(): raise SystemExit(3)")
    result = world.run("--heta-list")
    assert result.ret == 0
    assert "  toys  (bench_toys.py)" in lines_of(result)


def test_workers_are_not_started(world):
    result = world.run("--heta-list", "-n2")
    assert result.ret == 0
    assert lines_of(result).count("  toys  (bench_toys.py)") == 1


def test_the_ini_key_lists(world):
    world.ini("heta_list = true")
    assert "  toys  (bench_toys.py)" in lines_of(world.run())


def test_a_suite_that_cannot_be_imported_is_an_error(world):
    (world.path / "bench_broken.py").write_text("import pytest_heta\n1 / 0\n", encoding="utf-8")
    result = world.run("--heta-list")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ZeroDivisionError*"])


@pytest.mark.parametrize("arguments", [(), ("bench_toys.py",)])
def test_a_suite_that_is_declared_wrongly_is_said_once_in_one_line(world, arguments):
    world.suite("gates=['nonsense']")
    result = world.run("--heta-list", *arguments)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (line,) = [line for line in result.outlines if "nonsense" in line]
    assert line.startswith("[gate-invalid] bench_toys.py:")
    assert ": gate 'nonsense': " in line
