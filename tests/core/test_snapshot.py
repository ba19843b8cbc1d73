"""The configuration of a run."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_heta.core import snapshot
from pytest_heta.core.plan import PlanSettings
from pytest_heta.core.snapshot import config_snapshot, fingerprint, git_commit, package_versions


def git(folder, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


class TestSnapshot:
    def test_it_holds_what_a_comparison_needs(self, fakes, tmp_path):
        embedding = {"model": "mini", "version": "1.0", "dimension": 384}
        recipe = fakes.Recipe(manifest={"embedding": embedding, "path": Path("a")})
        plan = fakes.plan(
            tmp_path, "q1", recipe=recipe, settings=PlanSettings(options={"rrf_k": 60})
        )
        made = config_snapshot(plan, "abc", warmup=2, concurrency=8, extra={"label": "x"})
        assert made["benchmark"] == {
            "name": "tiny",
            "version": "1",
            "split": "test",
            "dataset_sha256": "abc",
        }
        assert made["recipe"] == {
            "name": "fake",
            "manifest": {"embedding": embedding, "path": "a"},
            "fingerprint": fingerprint({"embedding": embedding, "path": Path("a")}),
        }
        assert made["embedding"] == embedding
        assert made["modes"] == ["exact"]
        assert made["top_k"] == 10
        assert made["options"] == {"rrf_k": 60}
        assert made["metrics"] == ["ndcg@10"]
        assert (made["warmup"], made["concurrency"], made["repeat"]) == (2, 8, 1)
        assert made["python"] == ".".join(map(str, sys.version_info[:3]))
        assert made["platform"]
        assert made["git_commit"] is None
        assert made["label"] == "x"
        json.dumps(made, allow_nan=False)

    @pytest.mark.parametrize("manifest", [{}, {"embedding": None}, {"embedding": "mini"}])
    def test_a_recipe_without_embedding_has_none(self, fakes, tmp_path, manifest):
        plan = fakes.plan(tmp_path, "q1", recipe=fakes.Recipe(manifest={"a": 1, **manifest}))
        assert config_snapshot(plan, None)["embedding"] is None

    def test_the_fingerprint_does_not_depend_on_the_order(self):
        assert fingerprint({"a": 1, "b": {"x", "y"}}) == fingerprint({"b": {"y", "x"}, "a": 1})
        assert fingerprint({"a": 1}) != fingerprint({"a": 2})
        assert len(fingerprint({})) == 64

    def test_versions_are_those_installed(self, monkeypatch):
        monkeypatch.setattr(snapshot, "PACKAGES", ("pytest", "no-such-package"))
        assert package_versions() == {"pytest": version("pytest")}

    def test_versions_are_those_that_packages_state(self, tmp_path, monkeypatch):
        texts = {
            "stated-1.dist-info/METADATA": "Name: stated\nVersion: 2.0\n\nVersion: 3.0\n",
            "old-1.egg-info/PKG-INFO": "Name: old\nVersion: 4.0\n",
        }
        for name, text in texts.items():
            (tmp_path / name).parent.mkdir()
            (tmp_path / name).write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(snapshot, "PACKAGES", ("stated", "old"))
        assert package_versions() == {"stated": "2.0", "old": "4.0"}


class TestCommit:
    def test_it_is_that_of_the_folder(self, tmp_path):
        git(tmp_path, "init")
        assert git_commit(tmp_path) is None  # nothing was committed yet
        (tmp_path / "a").write_text("x")
        git(tmp_path, "add", "a")
        git(tmp_path, "commit", "-m", "one")
        commit = git_commit(tmp_path)
        assert len(commit) == 40
        (tmp_path / "a").write_text("y")
        assert git_commit(tmp_path) == f"{commit}-dirty"
        below = tmp_path / "below"
        below.mkdir()
        assert git_commit(below) == f"{commit}-dirty"

    def test_outside_a_repository_there_is_none(self, tmp_path, monkeypatch):
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        assert git_commit(tmp_path) is None
        assert git_commit(tmp_path / "nowhere") is None

    @pytest.mark.parametrize(
        "error", [FileNotFoundError(), subprocess.TimeoutExpired("git", 1), PermissionError()]
    )
    def test_without_git_there_is_none(self, tmp_path, monkeypatch, error):
        def run(*_, **__):
            raise error

        monkeypatch.setattr(subprocess, "run", run)
        assert git_commit(tmp_path) is None

    def test_git_is_not_asked_again_for_each_plan(self, fakes, tmp_path, monkeypatch):
        monkeypatch.setattr(snapshot, "git_commit", None)
        plan = fakes.plan(tmp_path, "q1")
        made = config_snapshot(plan, None, commit="commit of here")
        assert made["git_commit"] == "commit of here"
