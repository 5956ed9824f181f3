"""The stage a run waits for is named."""

from gristmill.metrics.pace import slowest
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot


def said(*stages):
    return slowest(RunSnapshot("r", "running", 1.0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, None, stages))


def test_of_busy_groups_it_is_the_one_with_most_work_waiting():
    read = StageSnapshot("read", 0, workers=2, busy_workers=2, process_s=50)
    model = StageSnapshot("model", 1, workers=4, busy_workers=4, queue_s=12.4, process_s=9)
    write = StageSnapshot("write", 2, workers=1, busy_workers=0, queue_s=99)

    assert said(read, model, write) == "slowest: model: 4 of 4 busy, 12 s of work waiting"


def test_of_its_stages_it_is_the_one_that_takes_longest():
    stages = [StageSnapshot(f"s{n}", 0, workers=2, busy_workers=2, process_s=s) for n, s in enumerate((1, 6, 3))]

    assert said(*stages) == "slowest: s1 takes 60% of the time of its workers, 2 of 2 busy"


def test_nothing_is_said_when_nobody_is_busy():
    assert said(StageSnapshot("read", 0, workers=4, busy_workers=1)) == ""
    assert said() == ""
