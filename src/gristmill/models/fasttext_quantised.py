"""The file of a fastText classifier that was made small (`.ftz`), read without fastText.

The layout is that of fastText 0.9 (version 12 of its files): settings, vocabulary, which parts of words were kept, the
input matrix as codes for pieces of its rows, the output matrix, all little-endian. We read what models of languages are
(lid.176.ftz): words and parts of words, a tree of labels. Scoring is not here (`stages/text/html/language_model.py`).
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError

_MAGIC, _VERSION = 793712314, 12
_HEAD = struct.Struct("<14id")  # magic, version and twelve settings; then the share of rare words to leave out
_COUNTS = struct.Struct("<3i2q")
_ENTRY = struct.Struct("<qb")
_QUANTISED = struct.Struct("<??2qi")  # whether the matrix is, whether its norms are too, rows, columns, bytes of codes
_CODER = struct.Struct("<4i")  # columns, pieces of a row, columns of a piece and of the last one
_PLAIN = struct.Struct("<?2q")
_TREE, _SUPERVISED = 1, 3
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
    try:
        return _Reading(path.read_bytes(), path).file()
    except (struct.error, IndexError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: expected a whole fastText model; it ends too early or is damaged") from error


class _Reading:
    """The bytes of a file, and how far they have been read."""

    def __init__(self, content: bytes, path: Path) -> None:
        self._content, self._path, self._at = content, path, 0

    def file(self) -> QuantisedFile:
        magic, version, dim, _, _, _, _, ngrams, loss, model, buckets, shortest, longest, *_ = self._take(_HEAD)
        if (magic, version) != (_MAGIC, _VERSION):
            raise self._unlike("a fastText model, version 12", f"({magic}, {version}) at its start")
        if (loss, model, ngrams) != (_TREE, _SUPERVISED, 1) or not 0 < shortest <= longest:
            got = f"loss {loss}, model {model}, {ngrams} words, parts of words of {shortest} to {longest} characters"
            raise self._unlike("a classifier of words and parts of words with a tree of labels", got)
        entries, num_words, num_labels, _, num_kept = self._take(_COUNTS)
        if entries != num_words + num_labels or num_labels < 2 or num_kept < 1:
            raise self._unlike("words, labels and parts of words", f"{num_words}, {num_labels} and {num_kept}")
        words, _ = self._entries(num_words)
        labels, counts = self._entries(num_labels)
        kept = self._array("<i4", 2 * num_kept).reshape(num_kept, 2)
        by_number = kept[np.argsort(kept[:, 0], kind="stable")]
        inputs = self._quantised(num_words + num_kept, dim)
        outputs = self._plain(num_labels, dim)
        if self._at != len(self._content):
            raise self._unlike("nothing behind the matrices", f"{len(self._content) - self._at} bytes")
        order = np.concatenate([np.arange(num_words), num_words + by_number[:, 1]])
        return QuantisedFile(
            words=words,
            labels=[label.decode() for label in labels],
            label_counts=counts,
            buckets=buckets,
            shortest=shortest,
            longest=longest,
            parts=by_number[:, 0].astype(np.int64),
            inputs=np.ascontiguousarray(inputs[order]),
            outputs=outputs,
        )

    def _take(self, kind: struct.Struct) -> tuple[int, ...]:
        self._at += kind.size
        return kind.unpack_from(self._content, self._at - kind.size)

    def _array(self, kind: str, number: int) -> NDArray[np.generic]:
        found = np.frombuffer(self._content, kind, number, self._at)
        self._at += found.nbytes
        return found

    def _entries(self, number: int) -> tuple[list[bytes], list[int]]:
        words, counts = [], []
        for _ in range(number):
            end = self._content.index(b"\0", self._at)
            words.append(self._content[self._at : end])
            self._at = end + 1
            counts.append(self._take(_ENTRY)[0])
        return words, counts

    def _quantised(self, rows: int, dim: int) -> NDArray[np.float32]:
        """A matrix whose rows are a norm times pieces, each of them one of 256."""
        is_quantised, has_norms, *shape, num_codes = self._take(_QUANTISED)
        if not is_quantised or shape != [rows, dim]:
            raise self._unlike(f"a quantised matrix of {rows} × {dim}", f"{shape}, quantised: {is_quantised}")
        codes = self._array("u1", num_codes).reshape(rows, -1)
        matrix = self._decoded(codes, dim)
        if has_norms:
            norm_codes = self._array("u1", rows).reshape(rows, 1)
            matrix = self._decoded(norm_codes, 1) * matrix
        return self._finite(matrix)

    def _decoded(self, codes: NDArray[np.generic], dim: int) -> NDArray[np.float32]:
        columns, pieces, width, last_width = self._take(_CODER)
        if columns != dim or pieces != codes.shape[1] or (pieces - 1) * width + last_width != dim:
            raise self._unlike(f"codes for {dim} columns", f"{pieces} of {width} columns for {columns}")
        centroids = self._array("<f4", columns * _CODES).astype(np.float32)
        made = np.empty((len(codes), dim), np.float32)
        for piece in range(pieces):
            wide = last_width if piece == pieces - 1 else width
            start = piece * _CODES * width
            table = centroids[start : start + _CODES * wide].reshape(_CODES, wide)
            made[:, piece * width : piece * width + wide] = table[codes[:, piece].astype(np.int64)]
        return made

    def _plain(self, rows: int, dim: int) -> NDArray[np.float32]:
        shape = self._take(_PLAIN)
        if shape != (False, rows, dim):
            raise self._unlike(f"a plain matrix of {rows} × {dim}", f"{shape[1]} × {shape[2]}, quantised: {shape[0]}")
        return self._finite(self._array("<f4", rows * dim).astype(np.float32).reshape(rows, dim))

    def _finite(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
        if not np.isfinite(matrix).all():
            raise self._unlike("finite numbers", "others")
        return matrix

    def _unlike(self, expected: str, got: str) -> ConfigError:
        return ConfigError(f"{self._path}: expected {expected}; got {got}")
