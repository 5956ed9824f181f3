"""A model of ours is a file fastText reads, and a damaged one is refused in words."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.models.fasttext_file import END_OF_TEXT, POSITIVE, FastTextFile, FastTextSettings, read_fasttext_file
from gristmill.models.fasttext_model import load
from gristmill.stages.text.filters.fasttext import FastTextQualityFilter
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.modifiers.fasttext import one_line
from gristmill.stages.text.quality.fasttext_classifier import MODEL_FILE, FastTextClassifier

TEXTS = ["alpha beta gamma", "gamma", "unknown words", "älpha\tbeta \n alpha beta", "", "__label__x beta", "日本 alpha"]


@pytest.fixture
def classifier():
    rng = np.random.default_rng(0)
    words = [END_OF_TEXT, b"alpha", b"beta", "älpha".encode(), b"gamma"]
    settings = FastTextSettings(dim=5, buckets=50)
    inputs = rng.normal(size=(55, 5)).astype(np.float32)
    outputs = rng.normal(size=(2, 5)).astype(np.float32)
    return FastTextClassifier(FastTextFile(words, np.arange(5, 0, -1), (3, 4), inputs, outputs, settings))


def test_what_is_written_is_read_again(classifier, tmp_path):
    classifier.save(tmp_path)
    found = read_fasttext_file(tmp_path / MODEL_FILE)

    assert (found.words, found.documents) == (classifier.file.words, (3, 4))
    assert (found.inputs == classifier.file.inputs).all()
    assert (found.outputs == classifier.file.outputs).all()
    assert found.counts.tolist() == [5, 4, 3, 2, 1]


def test_fasttext_itself_gives_the_same_scores(classifier, tmp_path):
    classifier.save(tmp_path)
    theirs = load(str(tmp_path / MODEL_FILE))
    column = TextColumn.of(pa.chunked_array([TEXTS]))
    ours = 1 / (1 + np.exp(-classifier.margins(column)))
    for text, score in zip(TEXTS, ours.tolist(), strict=True):
        told = {label: value for value, label in theirs.predict(f"{one_line(text)}\n", 2, 0.0, "strict")}
        if text:  # of an empty text we say nothing
            assert told[POSITIVE] == pytest.approx(score, abs=2e-5)  # fastText adds 1e-5 before its logarithm
    assert np.isnan(ours).tolist() == [not text for text in TEXTS]


def test_the_quality_filter_takes_it(classifier, tmp_path):
    classifier.save(tmp_path)
    judge = FastTextQualityFilter(str(tmp_path / MODEL_FILE))
    expected = 1 / (1 + np.exp(-classifier.margins(TextColumn.of(pa.chunked_array([TEXTS[:1]])))))

    assert judge.score_document(TEXTS[0])["score"] == pytest.approx(expected[0], abs=2e-5)


def damaged(content, kind):
    at = content.index(POSITIVE.encode()) + len(POSITIVE) + 1 + 9  # where the first matrix begins
    return {
        "cut": content[:-10],
        "longer": content + b"x",
        "other-magic": b"\0" + content[1:],
        "nothing": b"",
        "other-loss": content[:32] + struct.pack("<i", 1) + content[36:],
        "not-a-number": content[:-4] + struct.pack("<f", float("nan")),
        "quantised": content[:at] + b"\1" + content[at + 1 :],
        "other-label": content.replace(POSITIVE.encode(), b"__label__zz"),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cut", "ends too early or is damaged"),
        ("longer", "nothing after the matrices; got 1 bytes"),
        ("other-magic", "expected a fastText model, version 12"),
        ("nothing", "ends too early or is damaged"),
        ("other-loss", "softmax classifier of words and pairs of words; got loss 1"),
        ("not-a-number", "expected finite numbers"),
        ("quantised", "expected a plain matrix of 55 × 5"),
        ("other-label", "expected the classes __label__lq and __label__hq"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_in_words(classifier, tmp_path, kind, said):
    path = tmp_path / "model.bin"
    path.write_bytes(damaged(b"".join(bytes(chunk) for chunk in classifier.file.chunks()), kind))

    with pytest.raises(ConfigError, match=said):
        read_fasttext_file(path)
