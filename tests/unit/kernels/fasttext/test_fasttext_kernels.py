"""Words, rows and steps of training are what their definitions in plain Python say."""

import re
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.kernels.fasttext import features, training
from gristmill.models.fasttext_file import END_OF_TEXT
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.quality import fasttext_classifier
from gristmill.stages.text.quality.fasttext_classifier import RowFinder, find_words

PARTS = ["a", "bb", "ünï", "日本", " ", "\n", "\t", "\0", "__label__", "__labe", "_", "</s>", "</s", "\u00a0", "\x85"]
texts = st.lists(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), min_size=1, max_size=5)


def column_of(strings):
    return TextColumn.of(pa.chunked_array([pa.array(strings, pa.string())]))


def words_by_definition(text):
    """Cut at ASCII white space, NUL and the mark of labels; a word "</s>" is left out."""
    parts = re.split(rb"(?:[ \t-\r\0]|__label__)+", text.encode())
    return [word for word in parts if word and word != END_OF_TEXT]


def hash_by_definition(word):
    """FNV-1a with 32 bits, of signed bytes."""
    value = 2166136261
    for (byte,) in struct.iter_unpack("b", word):
        value = ((value ^ (byte & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    return value


def rows_by_definition(text, vocabulary, buckets):
    """Rows of known words, then of pairs of neighbours, the end of the text included."""
    words = [*words_by_definition(text), END_OF_TEXT]
    signed = [value - 2**32 if value >= 2**31 else value for value in map(hash_by_definition, words)]
    pairs = [(a * 116049371 + b) % 2**64 % buckets for a, b in pairwise(signed)]
    known = [vocabulary.index(word) for word in words if word in vocabulary]
    return sorted([*known, *(len(vocabulary) + pair for pair in pairs)])


@settings(max_examples=60)
@given(texts)
def test_words_are_cut_as_defined(strings):
    column = column_of(strings)
    identities, places, lengths = find_words(column)
    found = [column.data[p : p + n].tobytes() for p, n in zip(places.tolist(), lengths.tolist(), strict=True)]

    assert found == [word for text in strings for word in words_by_definition(text)]
    assert len(set(identities.tolist())) == len(set(found))


@settings(max_examples=60)
@given(texts, st.integers(1, 1000))
def test_rows_are_as_defined(strings, buckets):
    vocabulary = [b"bb", END_OF_TEXT, "日本".encode(), b"a"]
    ((ids, lengths),) = RowFinder(vocabulary, buckets).rows(column_of(strings))
    ends = np.cumsum(lengths)

    assert [sorted(own.tolist()) for own in np.split(ids, ends[:-1])] == [
        rows_by_definition(text, vocabulary, buckets) for text in strings
    ]


def test_the_end_of_a_text_hashes_to_what_the_kernel_takes_for_it():
    assert int(features._END_OF_TEXT) == hash_by_definition(END_OF_TEXT)
    assert features.ROWS_MORE == fasttext_classifier._ROWS_MORE


def test_slices_leave_no_text_out(monkeypatch):
    monkeypatch.setattr(fasttext_classifier, "_SLICE_BYTES", 7)
    strings = ["a bb", "", "a" * 30, "bb", "a a a", ""]
    parts = list(RowFinder([b"a", b"bb", END_OF_TEXT], 10).rows(column_of(strings)))

    assert len(parts) > 2
    assert [n for _, lengths in parts for n in lengths.tolist()] == [
        len(rows_by_definition(text, [b"a", b"bb", END_OF_TEXT], 10)) for text in strings
    ]


@given(st.floats(-40, 40))
def test_the_sigmoid_is_exact_to_fifteen_digits(x):
    expected = 1 / (1 + np.exp(-np.clip(x, -30, 30)))

    assert training.sigmoid.py_func(x) == pytest.approx(expected, rel=2e-15)


def step_by_definition(inputs, outputs, rows, positive, step):
    """One document's step in float64: gradient of the log loss of softmax(outputs @ mean of rows)."""
    hidden = inputs[rows].mean(axis=0)
    exponents = np.exp(outputs @ hidden)
    wanted = np.array([not positive, positive], float)
    moves = step * (wanted - exponents / exponents.sum())
    gradient = moves @ outputs / len(rows)
    outputs += np.outer(moves, hidden)
    for row in rows:
        inputs[row] += gradient


@pytest.mark.parametrize("seed", range(3))
def test_training_is_stochastic_gradient_descent_on_the_log_loss(seed):
    rng = np.random.default_rng(seed)
    rows, dim, documents = 40, 6, 25
    inputs, outputs = rng.normal(size=(rows, dim)).astype(np.float32), rng.normal(size=(2, dim)).astype(np.float32)
    lengths = rng.integers(1, 9, documents)
    stops = np.cumsum(lengths)
    ids = rng.integers(0, rows, stops[-1]).astype(np.int32)
    positive, order = rng.integers(0, 2, documents).astype(np.uint8), rng.permutation(documents)
    exact_inputs, exact_outputs, done = inputs.astype(np.float64), outputs.astype(np.float64), 0
    for d in order:
        own = ids[stops[d] - lengths[d] : stops[d]]
        step_by_definition(exact_inputs, exact_outputs, own, positive[d], 0.5 * (1 - done / stops[-1]))
        done += lengths[d]
    CompiledKernel("fasttext.training", "train")(
        *(ids, stops - lengths, stops, positive, documents, order, 0, documents, inputs, rows, outputs, dim),
        *(np.empty(dim, np.float32), np.empty(dim, np.float32), np.array([0.5, 0, stops[-1]], float)),
    )

    assert outputs == pytest.approx(exact_outputs, abs=2e-4)
    assert inputs == pytest.approx(exact_inputs, abs=2e-4)
