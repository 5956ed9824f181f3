"""`Recorded`: which examples this worker has recorded that count for certain, so that others need not be.

Of every partition the documents nearest to each threshold would have to be kept, because any may be the nearest of the
run; and nearly none is. What lies further away than eight documents of committed partitions cannot be. So a worker
remembers what it has written, and once a file has its final name, which it gets after its line of the ledger, the
examples in it bound those to come. An attempt that fails or is lost bounds nothing: what is recorded adds up to the
same bytes whatever happens. On a store nobody is asked, and every partition records its own.
"""

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.metrics.observation_files import Part, PartExamples, PartTally
from gristmill.metrics.observations import NEAREST, SAMPLED
from gristmill.stages.measured import About
from gristmill.storage.file_system import is_url, plain

if TYPE_CHECKING:
    from gristmill.worker.measuring import Windows

MOST_WAITING = 32  # files that are written and not yet committed; of older ones nothing is learnt

_Rule = tuple[int, int, str, float | None, float | None]  # stage, position, name, low, high
_Window = list[tuple[float, int]]  # distance and key, the nearest first


class Recorded:
    """Examples in files that are committed."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Path, list[Part]]] = deque(maxlen=MOST_WAITING)
        self._windows: dict[_Rule, list[_Window]] = {}
        self._arrays: dict[tuple[tuple[int, About], ...], Windows] = {}
        self._samples: dict[tuple[int, str], list[int]] = {}  # keys by stage and reason, in order

    def expect(self, final: str, parts: list[Part]) -> None:
        """Remember what was written, until it is committed."""
        if not is_url(final):
            self._waiting.append((Path(plain(final)), parts))

    def look(self) -> None:
        """Learn from files that have been committed meanwhile."""
        for _ in range(len(self._waiting)):
            final, parts = self._waiting.popleft()
            if final.exists():
                for part in parts:
                    self._learn(part)
            else:
                self._waiting.append((final, parts))

    def windows(self, rules: list[tuple[int, About]]) -> "Windows":
        """Return the nearest known of these rules, in an array to write in."""
        import numpy as np

        from gristmill.worker.measuring import Windows

        key = tuple(rules)
        if key not in self._arrays:
            distances = np.full((4 * len(rules), NEAREST), np.inf)
            keys = np.zeros((4 * len(rules), NEAREST), np.uint64)
            for number, (stage, about) in enumerate(rules):
                rule = (stage, about.position, about.name, about.low, about.high)
                for place, window in enumerate(self._windows.get(rule, ()), 4 * number):
                    distances[place, : len(window)] = [distance for distance, _ in window]
                    keys[place, : len(window)] = [known for _, known in window]
            self._arrays[key] = Windows(distances, keys)
        known = self._arrays[key]
        return Windows(known.distances.copy(), known.keys.copy())

    def greatest_key(self, stage: int, reason: str) -> int | None:
        """The key beyond which no document is a sample of this reason; None if any may be."""
        known = self._samples.get((stage, reason), [])
        return known[-1] if len(known) == SAMPLED else None

    def _learn(self, part: Part) -> None:
        for tally in part.tallies:
            if any(examples.documents for examples in tally.nearest):
                self._arrays.clear()
                self._learn_windows(part, tally)
        for _, stage, reason, examples in part.samples:
            known = {*self._samples.get((stage, reason), ()), *(part.documents[n][0] for n in examples.documents)}
            self._samples[stage, reason] = sorted(known)[:SAMPLED]

    def _learn_windows(self, part: Part, tally: PartTally) -> None:
        rule = (tally.stage_number, tally.position, tally.name, tally.low, tally.high)
        windows = self._windows.setdefault(rule, [[] for _ in range(4)])
        for place, examples in enumerate(tally.nearest):
            bound = tally.low if place < 2 else tally.high
            if examples.documents and bound is not None:
                windows[place] = _joined(windows[place], _distances(part, examples, bound))


def _distances(part: Part, examples: PartExamples, bound: float) -> _Window:
    pairs = zip(examples.values, examples.documents, strict=True)
    return [(abs((value or 0.0) - bound), part.documents[number][0]) for value, number in pairs]


def _joined(one: _Window, other: _Window) -> _Window:
    nearest: dict[int, float] = {}
    for distance, key in sorted([*one, *other]):
        nearest.setdefault(key, distance)
    return [(distance, key) for key, distance in nearest.items()][:NEAREST]
