"""Knowledge bases in a folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_heta.errors import BuildError
from pytest_heta.recipes._options import FULL_TEXT, HYBRID, MODES, VECTOR
from pytest_heta.recipes.local import LocalRecipe

DOCUMENTS = {
    "pie": ("apple pie. " * 30, {"title": "Pies 🥧"}),
    "bike": "山地车维修 mountain bike",
    "empty": "",
    "tea": "green tea",
}
QUERIES = ("apple pie", "维修", "mountain tea", "zzz", "the")


@pytest.fixture
def recipe(word_embedding):
    return LocalRecipe(embedding=word_embedding(), chunk_size=60)


@pytest.fixture
def saved(build, recipe, tmp_path):
    recipe.save(build(DOCUMENTS, recipe), tmp_path / "kb")
    return tmp_path / "kb"


def answers(base):
    return [
        base.query(text, mode=mode, top_k=20, trace=True)
        for text in QUERIES
        for mode in base.available_queries
    ]


def test_a_loaded_knowledge_base_answers_the_same(build, recipe, saved):
    built, loaded = build(DOCUMENTS, recipe), recipe.load(str(saved))
    assert answers(loaded) == answers(built)
    assert loaded.manifest() == built.manifest()
    assert (loaded.name, loaded.available_queries) == ("demo", MODES)


def test_arrays_are_mapped_not_read(recipe, saved):
    loaded = recipe.load(saved)
    chunks, matrix = loaded.chunks, loaded.legs[VECTOR]._index._matrix
    scores = loaded.legs[FULL_TEXT]._index._index.scores
    for array in (chunks.documents, matrix, *(scores[n] for n in ("data", "indices", "indptr"))):
        assert isinstance(array.base, np.memmap)
        assert type(array) is np.ndarray  # not of the class whose every access is slow
        assert not array.flags.writeable


def test_a_saved_knowledge_base_can_be_saved_again(recipe, saved, tmp_path):
    recipe.save(recipe.load(saved), tmp_path / "again")
    assert answers(recipe.load(tmp_path / "again")) == answers(recipe.load(saved))


@pytest.mark.parametrize("documents", [{}, {"a": ""}, {"a": "?!"}])
def test_a_knowledge_base_without_text_or_terms_is_saved_too(build, recipe, tmp_path, documents):
    base = build(documents, recipe)
    recipe.save(base, tmp_path / "kb")
    assert answers(recipe.load(tmp_path / "kb")) == answers(base)


def test_the_same_build_gives_the_same_files(build, recipe, saved, tmp_path):
    recipe.save(build(DOCUMENTS, recipe), tmp_path / "other")
    for file in saved.rglob("*.*"):
        assert file.read_bytes() == (tmp_path / "other" / file.relative_to(saved)).read_bytes()


def test_some_modes_of_a_saved_one_can_be_loaded(saved, word_embedding):
    fewer = LocalRecipe(embedding=word_embedding(), chunk_size=60, modes=[FULL_TEXT, HYBRID])
    assert fewer.load(saved).available_queries == (FULL_TEXT, HYBRID)
    lexical = LocalRecipe(chunk_size=60, modes=[FULL_TEXT]).load(saved)
    assert set(lexical.legs) == {FULL_TEXT}
    assert lexical.query("apple", mode=FULL_TEXT).results


def test_modes_that_were_not_saved_are_missed(build, word_embedding, tmp_path):
    lexical = LocalRecipe(chunk_size=60, modes=[FULL_TEXT])
    lexical.save(build(DOCUMENTS, lexical), tmp_path / "kb")
    assert lexical.load(tmp_path / "kb").query("apple", mode=FULL_TEXT).results
    with pytest.raises(BuildError, match="was saved without vector_search; build it again"):
        LocalRecipe(embedding=word_embedding(), chunk_size=60).load(tmp_path / "kb")


def test_a_folder_that_holds_something_is_left_alone(build, recipe, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BuildError, match="is not empty; name a new folder"):
        recipe.save(build(DOCUMENTS, recipe), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_made_is_a_clear_error(build, recipe, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(BuildError, match="cannot be saved"):
        recipe.save(build(DOCUMENTS, recipe), tmp_path / "file" / "kb")


def test_a_knowledge_base_is_saved_by_the_recipe_that_built_it(build, recipe, tmp_path):
    other = LocalRecipe(embedding=recipe.embedding, chunk_size=61)
    with pytest.raises(BuildError, match="'demo' was built by another recipe"):
        other.save(build(DOCUMENTS, recipe), tmp_path / "kb")


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"chunk_size": 61}, "splitter"),
        ({"language": "german"}, "analyzer"),
        ({"k1": 1.2}, "bm25"),
        ({"encoding_errors": "replace"}, "parser"),
        ({"embedding": "wordllama"}, "embedding"),
    ],
)
def test_a_knowledge_base_of_another_recipe_is_not_loaded(recipe, saved, changed, part):
    other = LocalRecipe(**{"embedding": recipe.embedding, "chunk_size": 60, **changed})
    with pytest.raises(
        BuildError, match=f"built by another recipe: {part} was .*, is .*build it again"
    ):
        other.load(saved)


@pytest.mark.parametrize("path", [".", "absent"])
def test_a_folder_without_a_knowledge_base_is_a_clear_error(recipe, tmp_path, path):
    with pytest.raises(BuildError, match="holds no saved knowledge base"):
        recipe.load(tmp_path / path)


def test_a_save_that_was_cut_off_is_no_knowledge_base(recipe, saved):
    (saved / "knowledge_base.json").unlink()
    with pytest.raises(BuildError, match="holds no saved knowledge base"):
        recipe.load(saved)


def edit(saved, **changes):
    file = saved / "knowledge_base.json"
    about = {**json.loads(file.read_text(encoding="utf-8")), **changes}
    file.write_text(json.dumps(about), encoding="utf-8")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_of_the_format_is_refused(recipe, saved, version):
    edit(saved, format_version=version)
    with pytest.raises(BuildError, match=f"has format version {version!r}, this release reads 1"):
        recipe.load(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "other"}', "\ufffd"])
def test_a_damaged_description_is_a_clear_error(recipe, saved, text):
    (saved / "knowledge_base.json").write_text(text, encoding="utf-8")
    with pytest.raises(BuildError, match=r"is damaged: .*; build it again"):
        recipe.load(saved)


@pytest.mark.parametrize("name", ["name", "recipe", "manifest", "legs", "files"])
def test_a_description_without_one_of_its_parts_is_damaged(recipe, saved, name):
    edit(saved, **{name: None})
    with pytest.raises(BuildError, match=rf"is damaged: knowledge_base\.json has no {name}"):
        recipe.load(saved)


def test_every_damaged_or_missing_file_is_noticed(recipe, saved):
    files = [file for file in saved.rglob("*.*") if file.name != "knowledge_base.json"]
    assert len(files) > 10
    for file in files:
        name = file.relative_to(saved).as_posix()
        content = file.read_bytes()
        flipped = content[:-1] + bytes([content[-1] ^ 1])
        for damaged in (flipped, content[:-1], content + b"x", b""):
            file.write_bytes(damaged)
            with pytest.raises(BuildError, match=f"is damaged: {name} has changed"):
                recipe.load(saved)
        file.unlink()
        with pytest.raises(BuildError, match=f"is damaged: {name} is missing"):
            recipe.load(saved)
        file.write_bytes(content)
    assert recipe.load(saved).query("apple", mode=VECTOR).results


def test_files_that_never_were_right_are_damage_too(recipe, saved):
    edit(saved, files={})
    (saved / VECTOR / "matrix.npy").write_bytes(b"no array")
    with pytest.raises(BuildError, match="is damaged: "):
        recipe.load(saved)


def test_an_unreadable_file_is_damage(recipe, saved, monkeypatch):
    from pytest_heta.recipes import _storage

    def fail(_path):
        raise PermissionError("not allowed")

    monkeypatch.setattr(_storage, "_files", fail)
    with pytest.raises(BuildError, match="is damaged: not allowed"):
        recipe.load(saved)


def test_a_missing_package_stays_a_missing_package(recipe, saved, monkeypatch):
    from pytest_heta.errors import ExtraMissingError

    monkeypatch.setitem(__import__("sys").modules, "bm25s", None)
    with pytest.raises(ExtraMissingError):
        recipe.load(saved)


def test_files_that_were_checked_already_are_not_read_again(recipe, saved, monkeypatch):
    from pytest_heta.recipes import _storage

    monkeypatch.setattr(_storage, "_files", lambda path: 1 / 0)
    assert recipe.load(saved, verified=True).name == "demo"


def test_loading_leaves_the_model_as_ready_as_building(recipe, saved, monkeypatch):
    warmed = []
    monkeypatch.setattr(recipe._model, "warm_up", lambda: warmed.append(1), raising=False)
    recipe.load(saved)
    assert warmed == [1]
