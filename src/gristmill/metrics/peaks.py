"""`Peaks`: the most of everything that goes up and down in a run, so that it is still known when all is gone."""

import msgspec

from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot


class Peaks:
    """Remembers the greatest of what it has seen. A worker that came and went between two snapshots it has not seen:
    what the scheduler has kept of such, in the snapshot's own peaks, counts too.
    """

    def __init__(self) -> None:
        self.memory_bytes = 0
        self.data_bytes = 0
        self._stages: dict[str, tuple[int, int, int]] = {}

    def seen(self, snapshot: RunSnapshot) -> RunSnapshot:
        """Take in a snapshot and return it with the peaks up to now."""
        self.memory_bytes = max(self.memory_bytes, snapshot.memory_bytes, snapshot.peak_memory_bytes)
        self.data_bytes = max(self.data_bytes, snapshot.data_in_flight_bytes, snapshot.peak_data_bytes)
        return msgspec.structs.replace(
            snapshot,
            peak_memory_bytes=self.memory_bytes,
            peak_data_bytes=self.data_bytes,
            stages=tuple(self._stage(stage) for stage in snapshot.stages),
        )

    def _stage(self, stage: StageSnapshot) -> StageSnapshot:
        now = (
            max(stage.workers, stage.peak_workers),
            max(stage.memory_bytes, stage.peak_memory_bytes),
            max(stage.largest_worker_bytes, stage.peak_worker_bytes),
        )
        most = self._stages[stage.name] = _greatest(self._stages.get(stage.name, (0, 0, 0)), now)
        workers, memory, largest = most
        return msgspec.structs.replace(stage, peak_workers=workers, peak_memory_bytes=memory, peak_worker_bytes=largest)


def _greatest(before: tuple[int, int, int], now: tuple[int, int, int]) -> tuple[int, int, int]:
    return max(before[0], now[0]), max(before[1], now[1]), max(before[2], now[2])
