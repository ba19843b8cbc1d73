"""The fast model, and the check of what models return."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pytest_heta.errors import BuildError, QueryError
from pytest_heta.recipes import _embedding
from pytest_heta.recipes._embedding import WordLlamaEmbedding, unit_vectors

TEXTS = ["a cat sits on the mat", "kittens like rugs", "the stock market fell", "x", ""]


@pytest.fixture(scope="module")
def model():
    return WordLlamaEmbedding()


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_the_model_is_loaded_without_the_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    vectors = WordLlamaEmbedding().embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), WordLlamaEmbedding().dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


def test_like_texts_have_like_vectors(model):
    cat, kitten, market, *_ = model.embed_documents(TEXTS)
    assert cosine(cat, kitten) > cosine(cat, market) + 0.1
    [query] = model.embed_queries(["cat on a rug"])
    assert cosine(query, kitten) > cosine(query, market)


def test_a_vector_does_not_depend_on_other_texts(model):
    texts = [f"{'word ' * (i % 37)} number {i}" for i in range(100)]
    together = model.embed_documents(texts)
    alone = np.concatenate([model.embed_documents([text]) for text in texts])
    np.testing.assert_array_equal(together, alone)


def test_no_texts_have_no_vectors(model):
    assert model.embed_documents([]).shape == (0, 256)


def test_threads_share_the_model():
    fresh = WordLlamaEmbedding()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fresh.embed_queries(TEXTS), range(8)))
    assert all((vectors == found[0]).all() for vectors in found)


def test_name_and_version_say_which_model_it_is(model):
    assert model.name == "wordllama-l2-supercat-256"
    assert model.version.startswith("wordllama 0.4.")


def test_a_package_without_its_model_is_a_clear_error(monkeypatch):
    wordllama = pytest.importorskip("wordllama")

    def fail(**_kwargs):
        raise FileNotFoundError("Weights file 'x' not found")

    monkeypatch.setattr(wordllama.WordLlama, "load", fail)
    with pytest.raises(
        BuildError, match="cannot be loaded: Weights file 'x' not found; pip install"
    ):
        WordLlamaEmbedding().embed_documents(["a"])


def test_rows_get_length_1_and_zeros_stay():
    returned = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    np.testing.assert_allclose(
        unit_vectors(returned, 2, 2, model="m"), [[0.6, 0.8], [0, 0]], atol=1e-7
    )
    assert returned[0, 0] == 3.0  # what the model holds is not changed


@pytest.mark.parametrize("scale", [1e-38, 1e-25, 1e30, 3e38])
def test_tiny_and_huge_numbers_have_a_direction_too(scale):
    [row] = unit_vectors([[scale, 0.0]], 1, 2, model="m")
    assert row.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\) for 2 texts, not \(2, 2\)"),
        ([[1.0], [2.0]], r"shape \(2, 1\) for 2 texts, not \(2, 2\)"),
        ([1.0, 2.0], r"shape \(2,\)"),
        (None, "array"),
        ([[1.0, "x"], [1.0, 2.0]], "no array of numbers"),
        ([[1.0], [1.0, 2.0]], "no array of numbers"),
        ([[1.0, float("nan")], [1.0, 2.0]], "not finite"),
        ([[1.0, float("inf")], [1.0, 2.0]], "not finite"),
    ],
)
@pytest.mark.parametrize("error", [BuildError, QueryError])
def test_what_is_no_array_of_vectors_is_an_error_that_names_the_model(returned, problem, error):
    with pytest.raises(error, match=f"embedding 'm' returned .*{problem}"):
        unit_vectors(returned, 2, 2, model="m", error=error)


def test_numbers_too_large_for_float32_are_not_finite():
    with pytest.raises(BuildError, match="not finite"):
        unit_vectors([[1e300, 1.0]], 1, 2, model="m")


def test_the_module_is_imported_without_numpy():
    assert not hasattr(_embedding, "np")
