"""The ledger as a file: where each line is stays in memory, what it says is read when somebody asks.

A record is a kilobyte as an object and its place eight bytes, and a run over a crawl is continued with a million of
them. Lines are never changed, only added, so a place stays good for as long as the file is open.
"""

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from gristmill.engine import ledger
from gristmill.engine.ledger import CommitRecord
from gristmill.engine.plan import Plan

BLOCK_BYTES = 1 << 16  # read at a time, backwards


class _Lines:
    """The file of a ledger, open for as long as somebody has records of it."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")

    def __del__(self) -> None:
        if hasattr(self, "file"):  # not if it is not there
            self.file.close()

    def at(self, place: int) -> str:
        self.file.seek(place)
        return self.file.readline().decode("utf-8", "replace")


class LedgerRecords(Mapping[int, CommitRecord]):
    """Committed partitions by number, in order, read from their lines."""

    def __init__(self, lines: _Lines, roots: "array[int]", places: "array[int]") -> None:
        """`roots` are in order, each once; `places` are where their lines begin."""
        self._lines = lines
        self._roots = roots
        self._places = places

    def only(self, roots: Iterable[int]) -> "LedgerRecords":
        """Return those of some partitions, which are given in order."""
        chosen = array("q", roots)
        return LedgerRecords(self._lines, chosen, array("q", (self._places[self._at(root)] for root in chosen)))

    def _at(self, root: int) -> int:
        at = bisect_left(self._roots, root)
        if at == len(self._roots) or self._roots[at] != root:
            raise KeyError(root)
        return at

    def __contains__(self, root: object) -> bool:
        if not isinstance(root, int):
            return False
        at = bisect_left(self._roots, root)
        return at < len(self._roots) and self._roots[at] == root

    def __len__(self) -> int:
        return len(self._roots)

    def __iter__(self) -> Iterator[int]:
        return iter(self._roots)

    def __getitem__(self, root: int) -> CommitRecord:
        return ledger.decode(self._lines.at(self._places[self._at(root)]))


class Found(NamedTuple):
    """What a ledger says: the last word on each partition, and how many lines could not be used."""

    records: Mapping[int, CommitRecord]
    damaged: int


def read_ledger(path: Path, plan: Plan | None = None) -> Found:
    """Return what a ledger says, nothing if it is not there. With `plan`, lines that are not of it count as damaged."""
    try:
        lines = _Lines(path)
    except FileNotFoundError:
        return Found({}, 0)
    roots, places, damaged, place = array("q"), array("q"), 0, 0
    is_of_plan = ledger.fits(plan)
    for line in lines.file:
        record = ledger.decode_if_whole(line.decode("utf-8", "replace"))
        if record is not None and is_of_plan(record):
            roots.append(record.root)
            places.append(place)
        else:
            damaged += line.endswith(b"\n")  # else torn by a crash, which is nothing to speak of
        place += len(line)
    order = sorted(range(len(roots)), key=roots.__getitem__)
    last = [at for at, then in zip_longest(order, order[1:], fillvalue=-1) if then < 0 or roots[at] != roots[then]]
    records = LedgerRecords(lines, array("q", (roots[at] for at in last)), array("q", (places[at] for at in last)))
    return Found(records, damaged)


def whole_lines_end(path: Path) -> int:
    """Return where the last whole line of a file ends: what is behind was torn by a crash."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
