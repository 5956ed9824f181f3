"""`Shingling`: how a text becomes a set to compare: "word:5" or "char:24"."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import read_only
from gristmill.kernels.dedup.banding import Banding

Texts = tuple[NDArray[np.uint8], NDArray[np.int64]]  # bytes end to end, and where each text begins


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

    def sketch(
        self, texts: Texts, banding: Banding, seed: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        """Return keys [bands, N], token hashes [N, 2], numbers of shingles [N]: see `kernels.dedup.minhash.sketch`."""
        from gristmill.kernels.dedup.fold_table import fold_table
        from gristmill.kernels.dedup.minhash import draw_permutations, sketch

        permutations = draw_permutations(banding.num_bands * banding.rows, seed=seed)
        made: tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]] = sketch(
            read_only(texts[0]), texts[1], fold_table(), self.by_word, self.length, permutations, banding.num_bands
        )
        return made

    def sets(self, texts: Texts) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the sets end to end, each sorted, and where they begin."""
        from gristmill.kernels.dedup.fold_table import fold_table
        from gristmill.kernels.dedup.shingle_sets import shingle_sets

        made: tuple[NDArray[np.uint32], NDArray[np.int64]] = shingle_sets(
            read_only(texts[0]), texts[1], fold_table(), self.by_word, self.length
        )
        return made

    def compile(self, banding: Banding) -> None:
        """Compile the kernels once, so that workers find the machine code on disk."""
        nothing = np.zeros(0, np.uint8), np.zeros(1, np.int64)
        self.sketch(nothing, banding, 0)
        self.sets(nothing)
