"""What a run had at most is known when nothing of it is left."""

from gristmill.metrics.pace import Peaks
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot


def snapshot(memory, data, **stage):
    stages = (StageSnapshot("a", 0, **stage),)
    return RunSnapshot(
        "r", "running", 1.0, 0, 1, 0, 0, 0, 0, 0, 0, 0, memory, 0, None, stages, data_in_flight_bytes=data
    )


def test_peaks_survive_the_end():
    peaks = Peaks()
    peaks.seen(snapshot(10, 5, workers=3, memory_bytes=30, largest_worker_bytes=12))
    peaks.seen(snapshot(7, 9, workers=1, memory_bytes=10, largest_worker_bytes=15))

    last = peaks.seen(snapshot(1, 0))

    assert (last.peak_memory_bytes, last.peak_data_bytes) == (10, 9)
    stage = last.stages[0]
    assert (stage.peak_workers, stage.peak_memory_bytes, stage.peak_worker_bytes) == (3, 30, 15)
    assert (stage.workers, stage.memory_bytes) == (0, 0)


def test_what_the_scheduler_saw_between_two_snapshots_counts():
    last = Peaks().seen(snapshot(1, 0, peak_workers=4, peak_worker_bytes=99))

    assert (last.stages[0].peak_workers, last.stages[0].peak_worker_bytes) == (4, 99)
