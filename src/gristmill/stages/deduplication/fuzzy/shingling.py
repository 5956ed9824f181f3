"""`Shingling`: how a text becomes a set to compare: "word:5" or "char:24"."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import Number
from gristmill.kernels.dedup.banding import Banding
from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.kernels.dedup.permutations import draw_permutations
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.text_column import TextColumn

_sketch = CompiledKernel("dedup.minhash", "sketch")
_shingle_sets = CompiledKernel("dedup.shingle_sets", "shingle_sets")


class Sketch(NamedTuple):
    """What is left of D texts."""

    keys: NDArray[np.uint64]  # [bands, D]: texts that agree in a band have the same key there
    hashes: NDArray[np.uint64]  # [D, 2]: equal for texts equal up to case, accents and punctuation
    sizes: NDArray[np.int32]  # [D]: how many shingles, repeats included; 0 for a text with nothing to compare


@dataclass(frozen=True)
class Shingling:
    """Runs of `length` words or characters, after case, accents and punctuation are folded away."""

    by_word: bool = True
    length: int = 5

    @classmethod
    def parse(cls, text: str, *, who: str) -> "Shingling":
        """Return what "word:5" or "char:24" stands for."""
        unit, _, digits = text.partition(":")
        if unit not in ("word", "char") or not digits.isdecimal() or not 1 <= int(digits) <= 1000:
            raise ConfigError(f"{who}: expected shingle to read 'word:5' or 'char:24'; got {text!r}")
        return cls(unit == "word", int(digits))

    def __str__(self) -> str:
        return f"{'word' if self.by_word else 'char'}:{self.length}"

    def sketch(self, texts: TextColumn, banding: Banding, seed: int) -> Sketch:
        """Return what fuzzy deduplication keeps of D texts."""
        permutations = draw_permutations(banding.num_bands * banding.rows, seed=seed)
        made = Sketch(
            np.empty((banding.num_bands, len(texts)), np.uint64),
            np.empty((len(texts), 2), np.uint64),
            np.empty(len(texts), np.int32),
        )
        rooms = _room(texts, np.uint64), _room(texts, np.uint64), np.empty(permutations.shape[1], np.uint32)
        _sketch(*self._arguments(texts), permutations, *banding, *rooms, *made)
        return made

    def sets(self, texts: TextColumn) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the sets of D texts end to end, each sorted and without repeats, and int64[D + 1] where they begin."""
        values = np.empty(texts.num_bytes + len(texts), np.uint32)
        bounds = np.empty(len(texts) + 1, np.int64)
        rooms = [_room(texts, kind) for kind in (np.uint64, np.uint64, np.uint32, np.uint32)]
        _shingle_sets(*self._arguments(texts), *rooms, np.empty(257, np.int64), values, bounds)
        return values[: bounds[-1]].copy(), bounds

    def _arguments(self, texts: TextColumn) -> tuple[NDArray[np.generic] | int, ...]:
        """What every kernel that makes shingles begins with."""
        return texts.data, texts.starts, texts.stops, len(texts), fold_table(), int(self.by_word), self.length


def _room(texts: TextColumn, kind: type[Number]) -> NDArray[Number]:
    """Room for the tokens or shingles of the longest text."""
    return np.empty(texts.longest + 1, kind)
