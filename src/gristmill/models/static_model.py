"""A static embedding: each token has a vector, a text has the mean of its tokens' vectors. No network is run.

A fiftieth of the cost of a small transformer, and judgement to match: for a first look, and for texts that are nearly
the same. Two forms are read: the files of sentence-transformers (`StaticEmbedding` in modules.json) and those inside
the package wordllama, which is not imported.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, MissingDependency
from gristmill.models.runtime import ModelSource
from gristmill.models.safetensors_file import read_tensors
from gristmill.models.sentence_files import MODULES, Layer, apply_layers, read_sentence_files
from gristmill.models.tokenizer import Tokenizer, Tokens, read_tokenizer
from gristmill.models.weights import PACKAGE, locate

WORDLLAMA = f"{PACKAGE}wordllama"
_TABLE_NAMES = ("embedding.weight", "embeddings")
_ROWS_AT_ONCE = 1024  # of the table: a text of a million tokens takes no more memory than one of a few thousand
_TEXTS_AT_ONCE, _CHARS_AT_ONCE = 256, 1 << 18


@dataclass(frozen=True)
class StaticFiles:
    """Where table and tokenizer are, and what is done with the mean: see `SentenceFiles.layers`."""

    table: Path
    tokenizer: Path
    layers: tuple[Layer, ...]


def static_files(source: ModelSource) -> StaticFiles | None:
    """Return the files of a static model that is on this machine, None if the model there is another kind.

    Raises ConfigError if there is no model.
    """
    if source.model_identifier == WORDLLAMA:
        return _wordllama(source.who)
    directory = locate(source)
    if not (directory / MODULES).is_file():
        return None
    found = read_sentence_files(directory, who=source.who)
    if not found.is_static:
        return None
    return StaticFiles(found.body / "model.safetensors", found.body / "tokenizer.json", found.layers)


def _wordllama(who: str) -> StaticFiles:
    package = importlib.util.find_spec("wordllama")  # not imported: it sets up logging for the whole process
    if package is None or package.origin is None:
        raise MissingDependency(f"{who}: expected the package wordllama, for its table; it is not installed. "
                                "Install: pip install wordllama")  # fmt: skip
    directory = Path(package.origin).parent
    tables = sorted(directory.glob("weights/*_256.safetensors"))
    tokenizers = sorted(directory.glob("tokenizer*/*_tokenizer_config.json"))  # the folder has had two names
    if len(tables) != 1 or len(tokenizers) != 1:
        raise ConfigError(
            f"{who}: expected one table of 256 dimensions and one tokenizer in {directory}; "
            f"got {len(tables)} and {len(tokenizers)}. Version 0.4.0 has them"
        )
    return StaticFiles(tables[0], tokenizers[0], (None,))


class StaticModel:
    """A table and its tokenizer, loaded."""

    def __init__(self, files: StaticFiles, *, who: str) -> None:
        tensors = read_tensors(files.table)
        tables = [tensors[name] for name in _TABLE_NAMES if name in tensors]
        if len(tensors) != 1 or not tables or tables[0].ndim != 2:
            names = ", ".join(f"{name}{list(tensor.shape)}" for name, tensor in tensors.items())
            raise ConfigError(f"{who}: expected one table, {_TABLE_NAMES[0]}, in {files.table}; got {names}")
        # In float32: numpy takes five times as long to add up float16.
        self._table: NDArray[np.float32] = np.ascontiguousarray(tables[0], np.float32)
        self._layers = files.layers
        self._tokenizer: Tokenizer = read_tokenizer(files.tokenizer, who=who)
        self.dimensions = self._after_layers(np.zeros((1, self._table.shape[1]), np.float32)).shape[1]

    def embed(
        self, texts: Sequence[str], *, max_length: int | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return float32[M, dim] of the texts that have tokens, and bool[N], which of them do."""
        sums = np.zeros((len(texts), self._table.shape[1]))
        counts = np.zeros(len(texts), np.int64)
        for rows, pieces in _calls(texts):
            some = self._tokenizer.encode(pieces, special=False)
            self._add_up(some, rows, sums, counts, most=max_length)
        has_tokens = counts > 0
        sums /= np.maximum(counts, 1)[:, None]
        return self._after_layers(sums[has_tokens].astype(np.float32)), has_tokens

    def _add_up(
        self,
        tokens: Tokens,
        rows: Sequence[int],
        sums: NDArray[np.float64],
        counts: NDArray[np.int64],
        *,
        most: int | None,
    ) -> None:
        """Add up each text by itself, in the order of its tokens, so that the sum does not depend on its neighbours."""
        ids = np.minimum(tokens.ids, len(self._table) - 1)
        for row, first, end in zip(rows, tokens.offsets[:-1].tolist(), tokens.offsets[1:].tolist(), strict=True):
            last = end if most is None else min(end, first + most - int(counts[row]))
            for start in range(first, last, _ROWS_AT_ONCE):
                sums[row] += self._table[ids[start : min(last, start + _ROWS_AT_ONCE)]].sum(axis=0)
            counts[row] += max(last - first, 0)

    def _after_layers(self, means: NDArray[np.float32]) -> NDArray[np.float32]:
        return apply_layers(means, self._layers)


def _calls(texts: Sequence[str]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield what is given to the tokenizer at a time: rows, and a text or a piece of a long one for each.

    The library keeps a few hundred bytes for every token until a call returns: a text of 100 MB in one piece would take
    gigabytes. Cut at a space, its words are the same.
    """
    rows: list[int] = []
    pieces: list[str] = []
    chars = 0
    for row, text in enumerate(texts):
        for piece in _pieces(text):
            rows.append(row)
            pieces.append(piece)
            chars += len(piece)
            if chars >= _CHARS_AT_ONCE or len(pieces) == _TEXTS_AT_ONCE:
                yield rows, pieces
                rows, pieces, chars = [], [], 0
    if pieces:
        yield rows, pieces


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _CHARS_AT_ONCE:
        space = text.rfind(" ", start + 1, start + _CHARS_AT_ONCE)
        end = space if space > 0 else start + _CHARS_AT_ONCE
        yield text[start:end]
        start = end + (space > 0)
    yield text[start:]
