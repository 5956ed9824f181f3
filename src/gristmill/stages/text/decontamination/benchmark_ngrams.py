"""`BenchmarkNgrams`: every n words in a row in a directory of benchmark files, as hashes that know where they are from.

A benchmark is a file, and has its name: `.jsonl` (every string in every object is looked at) or `.txt` (every line).
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, NoInputError
from gristmill.stages.text.decontamination.ngrams import hash_ngrams
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.storage.open_read import read_all
from gristmill.storage.paths import list_files

EXTENSIONS = [".jsonl", ".json", ".txt"]
MIN_WORDS = 2


@dataclass(frozen=True)
class BenchmarkNgrams:
    """The n-grams of the files below a path. Short questions, of fewer than n words, have none."""

    path: str
    n: int

    def __post_init__(self) -> None:
        if self.n < MIN_WORDS:
            raise ConfigError(f"decontaminate: expected ngram_words ≥ {MIN_WORDS}; got {self.n!r}")

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """(benchmark, text) of everything in the files."""
        files = list_files(self.path, extensions=EXTENSIONS, storage_options=None, who="decontaminate")
        found = [(Path(file.path).stem, text) for file in files for text in _texts(file.path)]
        if not found:
            raise NoInputError(f"decontaminate: expected texts in {self.path!r}; its files have none")
        return found

    @cached_property
    def _hashes(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Sorted hashes without repeats, and for each the text it is from: the first one."""
        encoded = [text.encode(errors="replace") for _, text in self.texts]
        stops = np.cumsum([len(text) for text in encoded])
        starts = stops - [len(text) for text in encoded]
        values, bounds = hash_ngrams(TextColumn(np.frombuffer(b"".join(encoded), np.uint8), starts, stops), self.n)
        distinct, places = np.unique(values, return_index=True)
        return distinct, np.searchsorted(bounds, places, side="right") - 1

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """All n-grams, sorted."""
        return self._hashes[0]

    def text_of(self, position: int) -> tuple[str, str]:
        """The benchmark and the text an n-gram is from."""
        return self.texts[int(self._hashes[1][position])]


def shared_words(one: str, other: str, n: int) -> str:
    """Return the first n words in a row that both texts have, folded; "" if there are none."""
    ours, theirs = _words(one), _words(other)
    known = {tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)}
    found = (ours[i : i + n] for i in range(len(ours) - n + 1) if tuple(ours[i : i + n]) in known)
    return " ".join(next(found, []))


def _words(text: str) -> list[str]:
    plain = (c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return "".join(c if c.isalnum() else " " for c in plain).split()


def _texts(path: str) -> Iterator[str]:
    content = read_all(path, storage_options=None)
    # Not `splitlines`: a JSON string may hold characters that end lines elsewhere.
    lines = bytes(content).decode(errors="replace").split("\n")
    if not path.removesuffix(".gz").removesuffix(".zst").endswith((".jsonl", ".json")):
        yield from filter(None, (line.strip() for line in lines))
        return
    for line in filter(None, (line.strip() for line in lines)):
        try:
            yield from _strings(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: expected one JSON object a line; got {error}") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
