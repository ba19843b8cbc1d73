"""What a person reads at the end of a run."""

import pytest

HARMFUL_TEXT = "\x1b[31m"


def sections(result):
    return [line.strip("= ") for line in result.outlines if line.startswith("===")]


def test_the_header_names_the_recipes(world):
    world.run("--heta-limit=1").stdout.fnmatch_lines(["heta recipes: toy"])


def test_the_table_has_a_row_for_each_mode_with_denominators_and_latencies(world):
    result = world.run()
    result.stdout.re_match_lines(
        [
            r"toys: 3 cases, 2 modes, 1 knowledge base built in .+",
            r"mode +recall@1 +ndcg@10 +scored \| +failed +samples \| +p50 ms +p95 ms +timed",
            r"overlap +1\.0000 +1\.0000 +3 \| +0 +3 \| .* 3",
            r"backwards +0\.0000 +0\.4307 +3 \| +0 +3 \| .* 3",
        ],
        consecutive=False,
    )


def test_lines_fit_the_terminal(world, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    result = world.run("--heta-gate=overlap.recall@1 >= 0.5")
    start = result.outlines.index(next(line for line in result.outlines if "heta results" in line))
    end = next(i for i, line in enumerate(result.outlines) if "heta gates" in line)
    assert max(map(len, result.outlines[start:end])) <= 60


def test_the_worst_cases_stand_below_with_node_ids_to_copy(world):
    result = world.run()
    result.stdout.fnmatch_lines(
        [
            "*heta worst cases: toys*",
            "backwards by recall@1",
            "  0.0000  bench_toys.py::toys::corpus::backwards?pie?",
            "          apple pie",
        ]
    )
    again = world.run("bench_toys.py::toys::corpus::backwards[pie]")
    again.assert_outcomes(passed=1)


def test_at_most_five_worst_cases_of_a_mode_are_shown(world):
    world.dataset([{"case_id": f"c{n}", "query": "x", "evidence": ["bike"]} for n in range(8)])
    result = world.run("--heta-mode=overlap")
    shown = [line for line in result.outlines if line.startswith("  0.0000  bench_toys.py::")]
    assert len(shown) == 5


def test_nothing_is_worst_when_everything_is_right(world):
    assert "heta worst cases: toys" not in sections(world.run("--heta-mode=overlap"))


def test_a_quiet_run_leaves_the_worst_cases_out(world):
    result = world.run("-q")
    assert "heta worst cases: toys" not in sections(result)
    assert "heta results" in sections(result)


def test_failed_samples_and_lost_scores_are_counted_and_explained(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if text == "apple pie":
                raise RuntimeError("down")
            return super().query(text, mode=mode, top_k=top_k)
    """)
    result = world.run("--heta-mode=overlap")
    result.stdout.re_match_lines(
        [
            r"mode +recall@1 +ndcg@10 +scored +errored \| +failed +samples",
            r"overlap +0\.6667 +0\.6667 +2 +1 \| +1 +3",
            r"without a value: recall@1, ndcg@10: execution_error \(1\)",
            r" +ERROR +bench_toys\.py::toys::corpus::overlap\[pie\]",
        ]
    )


def test_unjudged_cases_are_counted(world):
    world.dataset(
        [
            {"case_id": "pie", "query": "apple pie", "evidence": ["apple"]},
            {"case_id": "open", "query": "rain"},
        ]
    )
    result = world.run("--heta-mode=overlap")
    result.stdout.re_match_lines(
        [r"mode +recall@1 +ndcg@10 +scored +unjudged \|.*", r"overlap +1\.0000 +1\.0000 +1 +1 \|.*"]
    )


def test_a_subset_says_so(world):
    result = world.run("-k", "pie")
    result.stdout.fnmatch_lines(["toys: 1 of 3 cases, 2 modes,*INCOMPLETE"])
    result.stdout.re_match_lines([r"overlap .*\| +0 +1 of 3 \|.*"])


def test_several_benchmarks_have_a_table_each(world):
    world.dataset(name="more")
    world.suite(
        extra="""
        more = suite(
            JsonlBenchmark(Path(__file__).parent / "more", name="more"), evaluators=["hit@1"]
        )
        """
    )
    result = world.run("--heta-mode=overlap")
    result.stdout.fnmatch_lines(
        ["toys: 3 cases,*", "mode*recall@1*", "more: 3 cases,*", "mode*hit@1*"]
    )


def test_an_ordinary_session_has_no_section_of_ours(world):
    world.pytester.makepyfile(test_plain="def test_plain(): pass")
    result = world.run("test_plain.py")
    result.assert_outcomes(passed=1)
    assert not any("heta" in title for title in sections(result))
    assert not (world.path / "report.json").exists()


def test_a_failure_is_one_line_and_no_traceback(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            raise RuntimeError("down")
    """)
    result = world.run("--heta-limit=1", "--heta-mode=overlap")
    start = result.outlines.index(
        "___________________________ toys.corpus.overlap[pie] ___________________________"
    )
    assert result.outlines[start + 1].startswith("[query-failed] recipe.py:")
    assert result.outlines[start + 2].startswith("===")


def test_a_failure_has_a_traceback_when_the_run_is_verbose(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            raise RuntimeError("down")
    """)
    result = world.run("--heta-limit=1", "--heta-mode=overlap", "-vv")
    result.stdout.fnmatch_lines(
        ["*heta traceback*", "Traceback*", "*in query", '*raise RuntimeError("down")']
    )


def test_a_recipe_that_loses_document_ids_is_warned_about(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            return {"results": [{"id": "chunk-1"}, {"id": "chunk-2"}]}
    """)
    result = world.run("--heta-mode=overlap")
    (warning,) = world.report()["metadata"]["warnings"]
    assert warning.startswith(
        "[foreign-results] 3 of 3 responses name no document of the benchmark; "
    )
    assert f"warning: {warning}" in result.outlines


def test_a_failed_build_is_one_line_and_with_more_verbosity_a_traceback(world):
    world.extend_recipe("""
    class Recipe(Recipe):
        def create(self, **given):
            raise OSError("disk full")

    recipe = Recipe()
    """)
    short = world.run("--heta-limit=1", "--heta-mode=overlap")
    short.stdout.fnmatch_lines(["*build-failed* run unit corpus: OSError: disk full"])
    short.stdout.no_fnmatch_line("*Traceback*")
    short.stdout.no_fnmatch_line("*def create*")
    long = world.run("--heta-limit=1", "--heta-mode=overlap", "-vv")
    long.stdout.fnmatch_lines(["*def create*"])


@pytest.mark.parametrize("options", [[], ["--heta-show=all"], ["--heta-fail-on=gate", "-rA"]])
def test_text_of_datasets_and_recipes_does_nothing_to_the_terminal(world, harmful_cases, options):
    world.suite(
        before=harmful_cases,
        evaluators="['recall@1', Odd()]",
    )
    source = (world.path / "bench_toys.py").read_text(encoding="utf-8")
    odd = """
class Odd:
    name = "odd" + harmful

    async def evaluate(self, *, case, response):
        raise ValueError(harmful)


toys ="""
    (world.path / "bench_toys.py").write_text(source.replace("toys =", odd), encoding="utf-8")
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if mode == "backwards":
                raise RuntimeError(text)
            return super().query(text, mode=mode, top_k=top_k)

        def close(self):
            raise OSError("\\x1b[31m")
    """)
    result = world.run("--color=no", *options)
    assert result.ret == 1
    text = result.stdout.str()
    assert "\\x1b[31m" in text
    assert "\x1b" not in text
    assert "\x00" not in text


def test_gates_count_in_the_progress(world):
    result = world.run("--heta-mode=overlap", "--heta-gate=overlap.recall@1 >= 0.9")
    (line,) = [line for line in result.outlines if "[100%]" in line]
    assert line.split() == ["bench_toys.py", "....", "[100%]"]
    assert sum("%]" in line for line in result.outlines) == 1
