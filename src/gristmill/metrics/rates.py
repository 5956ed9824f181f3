"""`Rates`: how fast a run is going now, from two of its snapshots."""

from collections import deque

from gristmill.metrics.snapshot import RunSnapshot

WINDOW_S = 10.0  # long enough that a slow batch does not make the numbers jump


class Rates:
    """Remembers the snapshots of the last seconds. Reads the snapshots' own clock."""

    def __init__(self) -> None:
        self._history: deque[RunSnapshot] = deque()
        self._first: RunSnapshot | None = None

    def add(self, snapshot: RunSnapshot) -> None:
        """Take in the newest snapshot; a run that has ended is averaged over all its time."""
        if snapshot.state in ("finished", "stopped", "failed") and self._first is not None:
            self._history = deque([self._first])  # not zero: a resumed run begins with what was done before
        self._first = self._first or snapshot
        self._history.append(snapshot)
        while len(self._history) > 2 and self._history[1].elapsed_s <= snapshot.elapsed_s - WINDOW_S:
            self._history.popleft()

    def documents_per_s(self, stage: int) -> float:
        """Documents a second into stage number `stage`."""
        old, new = self._ends()
        before = old.stages[stage].documents_in if old and stage < len(old.stages) else 0
        return self._per_second(new.stages[stage].documents_in - before)

    def bytes_per_s(self, stage: int | None = None) -> float:
        """Bytes a second into a stage, or read from the input if none is given."""
        old, new = self._ends()
        if stage is None:
            return self._per_second(new.input_bytes_done - (old.input_bytes_done if old else 0))
        before = old.stages[stage].bytes_in if old and stage < len(old.stages) else 0
        return self._per_second(new.stages[stage].bytes_in - before)

    def _ends(self) -> tuple[RunSnapshot | None, RunSnapshot]:
        return (self._history[0] if len(self._history) > 1 else None), self._history[-1]

    def _per_second(self, amount: float) -> float:
        old, new = self._ends()
        seconds = new.elapsed_s - (old.elapsed_s if old else 0.0)
        return max(0.0, amount / seconds) if seconds > 0 else 0.0
