"""The file of a quantised fastText classifier (`.ftz`), read without fastText.

After the vocabulary it says which parts of words were kept, and the input matrix is codes for pieces of its rows. We
read the kind that identifies languages (lid.176.ftz): words and parts of words, a tree of labels. Scoring is not here
(`stages/text/html/language_model.py`).
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.models.fasttext_layout import COUNTS, SUPERVISED, FastTextReading, reading

_QUANTISED = struct.Struct("<??2qi")  # whether the matrix is, whether its norms are too, rows, columns, bytes of codes
_CODER = struct.Struct("<4i")  # columns, pieces of a row, columns of a piece and of the last one
_TREE = 1
_CODES = 256


@dataclass(frozen=True, eq=False)
class QuantisedFile:
    """What a file holds.

    words, labels  as they are in the file; labels with how often each was seen in training
    parts          [kept]  numbers of the parts of words that were kept, rising
    inputs         [words + kept, dim]  of the words, then of the parts in that order
    outputs        [labels, dim]
    """

    words: list[bytes]
    labels: list[str]
    label_counts: list[int]
    buckets: int
    shortest: int
    longest: int
    parts: NDArray[np.int64]
    inputs: NDArray[np.float32]
    outputs: NDArray[np.float32]


def read_quantised_file(path: Path) -> QuantisedFile:
    """Read a file, or say what is wrong with it."""
    with reading(path) as content:
        return _read(content)


def _read(content: FastTextReading) -> QuantisedFile:
    made = content.settings()
    if (made.loss, made.model, made.ngrams) != (_TREE, SUPERVISED, 1) or not 0 < made.shortest <= made.longest:
        parts = f"parts of words of {made.shortest} to {made.longest} characters"
        got = f"loss {made.loss}, model {made.model}, {made.ngrams} words, {parts}"
        raise content.unlike("a classifier of words and parts of words with a tree of labels", got)
    entries, num_words, num_labels, _, num_kept = content.take(COUNTS)
    if entries != num_words + num_labels or num_labels < 2 or num_kept < 1:
        raise content.unlike("words, labels and parts of words", f"{num_words}, {num_labels} and {num_kept}")
    words, _ = content.entries(num_words)
    labels, counts = content.entries(num_labels)
    kept = content.array("<i4", 2 * num_kept).reshape(num_kept, 2)
    by_number = kept[np.argsort(kept[:, 0], kind="stable")]
    inputs = _quantised_matrix(content, num_words + num_kept, made.dim)
    outputs = content.matrix(num_labels, made.dim)
    content.check_end()
    order = np.concatenate([np.arange(num_words), num_words + by_number[:, 1]])
    return QuantisedFile(
        words=words,
        labels=[label.decode() for label in labels],
        label_counts=counts,
        buckets=made.buckets,
        shortest=made.shortest,
        longest=made.longest,
        parts=by_number[:, 0].astype(np.int64),
        inputs=np.ascontiguousarray(inputs[order]),
        outputs=outputs,
    )


def _quantised_matrix(content: FastTextReading, rows: int, dim: int) -> NDArray[np.float32]:
    """A matrix whose rows are a norm times pieces, each of them one of 256."""
    is_quantised, has_norms, *shape, num_codes = content.take(_QUANTISED)
    if not is_quantised or shape != [rows, dim]:
        raise content.unlike(f"a quantised matrix of {rows} × {dim}", f"{shape}, quantised: {is_quantised}")
    codes = content.array("u1", num_codes).reshape(rows, -1)
    matrix = _decoded(content, codes, dim)
    if has_norms:
        norm_codes = content.array("u1", rows).reshape(rows, 1)
        matrix = _decoded(content, norm_codes, 1) * matrix
    return content.finite(matrix)


def _decoded(content: FastTextReading, codes: NDArray[np.generic], dim: int) -> NDArray[np.float32]:
    columns, pieces, width, last_width = content.take(_CODER)
    if columns != dim or pieces != codes.shape[1] or (pieces - 1) * width + last_width != dim:
        raise content.unlike(f"codes for {dim} columns", f"{pieces} of {width} columns for {columns}")
    centroids = content.array("<f4", columns * _CODES).astype(np.float32)
    made = np.empty((len(codes), dim), np.float32)
    for piece in range(pieces):
        wide = last_width if piece == pieces - 1 else width
        start = piece * _CODES * width
        table = centroids[start : start + _CODES * wide].reshape(_CODES, wide)
        made[:, piece * width : piece * width + wide] = table[codes[:, piece].astype(np.int64)]
    return made
