"""`Recorded`: the examples this worker has recorded that count for certain, so that others need not be kept.

For every partition the documents nearest to each threshold would have to be kept, because any may be the nearest of the
run, though hardly any is. One further away than eight documents of committed partitions cannot be. So a worker
remembers what it has written, and once a file has its final name, which it gets after its line of the ledger, the
examples in it bound those to come. An attempt that fails or is lost bounds nothing: what is recorded adds up to the
same bytes whatever happens. On a store nothing is looked up, and every partition records its own.
"""

import os
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_layout import ELSEWHERE, NEAREST, NOBODY, SAMPLED
from gristmill.stages.measured import About
from gristmill.storage.file_system import is_url, plain
from gristmill.worker.job import Observed
from gristmill.worker.measuring import Doubles, Keys, Longs, Windows

MOST_WAITING = 32  # files that are written and not yet committed; of older ones nothing is learnt
MOST_SAMPLES = 4_096  # reasons that are remembered: a stage may make up new ones for every batch


class Recorded:
    """Examples in files that are committed."""

    def __init__(self) -> None:
        self.version = 0  # of what is known
        self.forget()

    def forget(self) -> None:
        """Start again, with no places and no examples."""
        self._waiting: deque[tuple[str, list[tuple[Windows, int]]]] = deque(maxlen=MOST_WAITING)
        self._rules: dict[tuple[int, About], int] = {}
        self._reasons: dict[tuple[int, str], int] = {}
        self._known = Windows.empty(0, 0)
        self.version += 1
        self._first = self.version  # what is older has other places

    def expect(self, final: str, observed: list[Observed]) -> None:
        """Remember what was written, until it is committed."""
        some = [(one.windows, one.version) for one in observed if one.windows is not None]
        if some and not is_url(final):
            self._waiting.append((plain(final), some))

    def look(self) -> None:
        """Learn from files that have been committed meanwhile."""
        for _ in range(len(self._waiting)):
            final, some = self._waiting.popleft()
            if os.path.exists(final):  # noqa: PTH110  # Path would take longer than asking
                for windows, version in some:
                    self._learn(windows, version)
            else:
                self._waiting.append((final, some))

    def rule_places(self, rules: Sequence[tuple[int, About]]) -> Longs:
        """Return which windows are those of rules."""
        return np.array([self._rules.setdefault(rule, len(self._rules)) for rule in rules], np.int64)

    def sample_places(self, reasons: Sequence[tuple[int, str]]) -> Longs:
        """Return which samples are those of reasons."""
        if len(self._reasons) > MOST_SAMPLES:
            self._reasons, self._known = {}, self._known.without_samples()
            self.version += 1
            self._first = self.version
        return np.array([self._reasons.setdefault(reason, len(self._reasons)) for reason in reasons], np.int64)

    def windows(self) -> Windows:
        """Return what is known of all rules and reasons that have a place, in memory to write in."""
        self._known = self._room_for_all(self._known)
        return self._known.copied()

    def _learn(self, windows: Windows, version: int) -> None:
        if version < self._first:
            return
        if version == self.version:
            self._known = windows  # which was made from all that is known now, and has it
        else:
            self._known = _merged(self._room_for_all(self._known), self._room_for_all(windows))
        self.version += 1

    def _room_for_all(self, windows: Windows) -> Windows:
        """The same, with room for the rules and reasons that have been met since."""
        if windows.has_room(len(self._rules), len(self._reasons)):
            return windows
        wanted = Windows.empty(len(self._rules), len(self._reasons))
        joined = [np.concatenate([own, more[len(own) :]]) for own, more in zip(windows, wanted, strict=True)]
        return Windows(*joined)


def _merged(one: Windows, other: Windows) -> Windows:
    """The least of both in every window and sample."""
    distances, found, nearest = _least(NEAREST, (one.distances, other.distances), (one.found, other.found))
    there = [np.where(windows.sampled == NOBODY, np.inf, 0.0) for windows in (one, other)]
    _, keys, sampled = _least(SAMPLED, there, (one.least, other.least))
    return Windows(distances, found, nearest, keys, sampled)


def _least(room: int, distances: Sequence[Doubles], keys: Sequence[Keys]) -> tuple[Doubles, Keys, NDArray[np.int64]]:
    """The first of every window of `room`, in order of distance and key, each key once."""
    away = np.concatenate([part.reshape(-1, room) for part in distances], axis=1)
    known = np.concatenate([part.reshape(-1, room) for part in keys], axis=1)
    for _ in range(2):  # in order; then without keys that come again, which go to the end
        order = np.lexsort((known, away))
        away, known = np.take_along_axis(away, order, 1), np.take_along_axis(known, order, 1)
        same = np.tril(known[:, :, None] == known[:, None, :], -1) & np.isfinite(away)[:, None, :]
        away = np.where(same.any(axis=2), np.inf, away)
    nearest = np.where(np.isfinite(away), ELSEWHERE, NOBODY)
    return away[:, :room].ravel(), known[:, :room].ravel(), nearest[:, :room].ravel()
