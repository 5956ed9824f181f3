"""The layout that all files of fastText 0.9 share (version 12): settings, vocabulary, matrices, all little-endian.

What kind of classifier a file must hold is for its reader to say: `fasttext_file.py`, `fasttext_quantised.py`.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError

MAGIC, VERSION = 793712314, 12
HEAD = struct.Struct("<14id")  # magic, version and twelve settings; then the share of rare words to leave out
COUNTS = struct.Struct("<3i2q")
ENTRY = struct.Struct("<qb")
SHAPE = struct.Struct("<?2q")  # whether the matrix is quantised, rows, columns
SUPERVISED = 3


class Settings(msgspec.Struct, frozen=True):
    """How the model was made, in fastText's order."""

    dim: int
    window: int
    epochs: int
    min_count: int
    negatives: int
    ngrams: int
    loss: int
    model: int
    buckets: int
    shortest: int  # part of a word
    longest: int
    steps: int  # rows between two changes of the learning rate


class FastTextReading:
    """The bytes of a file, and how far they have been read."""

    def __init__(self, path: Path) -> None:
        self._content, self._path, self._at = path.read_bytes(), path, 0

    def settings(self) -> Settings:
        magic, version, *settings, _ = self.take(HEAD)
        if (magic, version) != (MAGIC, VERSION):
            raise self.unlike("a fastText model, version 12", f"({magic}, {version}) at its start")
        return Settings(*settings)

    def take(self, kind: struct.Struct) -> tuple[int, ...]:
        self._at += kind.size
        return kind.unpack_from(self._content, self._at - kind.size)

    def entries(self, number: int) -> tuple[list[bytes], list[int]]:
        """Words or labels, and how often each was seen in training."""
        words, counts = [], []
        for _ in range(number):
            end = self._content.index(b"\0", self._at)
            words.append(self._content[self._at : end])
            self._at = end + 1
            counts.append(self.take(ENTRY)[0])
        return words, counts

    def array(self, kind: str, number: int) -> NDArray[np.generic]:
        found = np.frombuffer(self._content, kind, number, self._at)
        self._at += found.nbytes
        return found

    def matrix(self, rows: int, columns: int) -> NDArray[np.float32]:
        """A matrix that is not quantised."""
        shape = self.take(SHAPE)
        if shape != (False, rows, columns):
            got = f"{shape[1]} × {shape[2]}, quantised: {shape[0]}"
            raise self.unlike(f"a plain matrix of {rows} × {columns}", got)
        return self.finite(self.array("<f4", rows * columns).astype(np.float32).reshape(rows, columns))

    def finite(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
        if not np.isfinite(matrix).all():
            raise self.unlike("finite numbers", "others")
        return matrix

    def check_end(self) -> None:
        if self._at != len(self._content):
            raise self.unlike("nothing after the matrices", f"{len(self._content) - self._at} bytes")

    def unlike(self, expected: str, got: str) -> ConfigError:
        return ConfigError(f"{self._path}: expected {expected}; got {got}")


@contextmanager
def reading(path: Path) -> Iterator[FastTextReading]:
    """Yield the bytes of a file; one that ends too early is reported as damaged."""
    try:
        yield FastTextReading(path)
    except (struct.error, IndexError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: expected a whole fastText model; it ends too early or is damaged") from error
