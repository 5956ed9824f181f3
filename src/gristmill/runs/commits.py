"""`Commits`: what is done is on record, then visible. The same on every executor.

A ledger line is forced to disk before the files it names get their final names (`directory.py` says why). Lines
that wait are forced together, because a disk takes as long for one as for a hundred.
"""

import time

from gristmill.engine.ledger import CommitRecord
from gristmill.runs.books import Books
from gristmill.runs.directory import COMMIT_S, RunDirectory
from gristmill.runs.publication import OptionsOf, environment_only, publish_all

__all__ = ["COMMIT_S", "Commits"]


class Commits:
    """The way of a finished source partition into the ledger, the books and the output directory."""

    def __init__(self, books: Books, directory: RunDirectory | None, options_of: OptionsOf = environment_only) -> None:
        self.books = books
        self.directory = directory  # None: a run nobody can continue keeps no ledger
        self._options_of = directory.options_of if directory is not None else options_of
        self._waiting: list[CommitRecord] = []
        self._last = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, record: CommitRecord) -> None:
        """Take a partition of which everything has been written under temporary names."""
        self._waiting.append(record)

    def force(self, *, at_once: bool = True) -> list[int]:
        """Commit and publish what waits, or nothing if there is time to wait for company. Return the partitions."""
        if not self._waiting:
            return []
        now = time.monotonic()
        if self.directory is not None:
            if not at_once and now - self._last < self.directory.commit_s:
                return []
            self.directory.check_not_in_the_way(self._waiting)
            self.directory.remove_superseded(self._waiting)
            self.directory.append(self._waiting)
        self._last = now
        files = [file for record in self._waiting for file in (*record.files, *record.side_files)]
        publish_all(files, self._options_of)
        if self.directory is not None:
            self.directory.keep_private(files)
        for record in self._waiting:
            self.books.add(record)
        committed = [record.root for record in self._waiting]
        self._waiting.clear()
        return committed
