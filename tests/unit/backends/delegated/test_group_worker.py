"""A worker of another engine handles tasks as every worker does. The registrar is the real one, in this process."""

import os

import cloudpickle
import pyarrow as pa
import pytest
from tests.fault.test_hangs import hang

from gristmill.backends.delegated.envelope import pack, unpack
from gristmill.backends.delegated.group_worker import GroupWork, GroupWorker
from gristmill.backends.delegated.registrar import Registrar
from gristmill.errors import RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import STAGING_DIR
from gristmill.tasks import DocumentBatch
from gristmill.worker.job import RunSettings


class _FailsOnThree(ProcessingStage):
    name = "fails_on_three"
    fusible = False

    def setup_on_node(self, node_info=None, worker_metadata=None):
        self.node = node_info.node_id

    def process(self, task):
        if 3 in task.column("n").to_pylist():
            raise ValueError("three")
        return task


class _HasNoModel(ProcessingStage):
    def setup(self, worker_metadata=None):
        raise FileNotFoundError("model.bin")

    def process(self, task):
        return task


class Desk(Registrar):
    def keep(self, envelope):
        return envelope


def batch(*numbers):
    return DocumentBatch("d", pa.table({"n": list(numbers)}))


def start(*stages, desk, directory, keeps_final_tasks=True, patience_s=60.0):
    plan = Pipeline("p", stages=list(stages)).plan(initial_tasks=[batch(0)])
    (directory / STAGING_DIR / "session").mkdir(parents=True)
    settings = RunSettings("session", None, str(directory))
    name = plan.groups[0].name
    work = GroupWork(cloudpickle.dumps(plan.groups), 0, name, settings, keeps_final_tasks, patience_s)
    return GroupWorker(work, desk, node="n")


class _WaitsToBeNamed(ProcessingStage):
    """Goes on when its watchdog has spoken."""

    name = "waits_to_be_named"

    def __init__(self, gate):
        self.gate = gate

    def process(self, task):
        hang(self.gate)
        return task


def envelopes(*numbers):
    return [pack(root, f"item-{root}", batch(*rows)) for root, rows in enumerate(numbers)]


def test_what_a_group_makes_goes_on_to_the_next(tmp_path):
    desk = Desk()
    worker = start(_FailsOnThree(), _FailsOnThree().with_(name="next"), desk=desk, directory=tmp_path)
    made = list(worker.run(envelopes([1, 2])))

    assert [unpack(each).column("n").to_pylist() for each in made] == [[1, 2]]
    assert [(each.item_id, each.outputs) for each in desk.take().receipts] == [("item-0", 1)]


def test_a_worker_says_what_it_is_at_when_that_takes_long(tmp_path):
    gate = tmp_path / "gate"

    class Listening(Desk):
        def say(self, message):
            super().say(message)
            gate.touch()

    desk = Listening()
    worker = start(_WaitsToBeNamed(str(gate)), desk=desk, directory=tmp_path, patience_s=0.05)
    list(worker.run(envelopes([1, 2], [3])))

    said = desk.take().messages[0]
    words = f"a worker of waits_to_be_named (process {os.getpid()}) on node n has been busy with item-0 and 1 more for"
    assert said.startswith(words)
    assert "in process of stage waits_to_be_named, at " in said


def test_what_the_last_group_makes_goes_nowhere_and_is_kept(tmp_path):
    desk = Desk()
    worker = start(_FailsOnThree(), desk=desk, directory=tmp_path)

    assert list(worker.run(envelopes([1], [2]))) == []
    kept = [unpack(reference).column("n").to_pylist() for each in desk.take().receipts for _, reference in each.final]
    assert kept == [[1], [2]]


def test_a_document_that_breaks_a_stage_is_quarantined_and_the_others_go_on(tmp_path):
    desk = Desk()
    worker = start(_FailsOnThree(), _FailsOnThree().with_(name="next"), desk=desk, directory=tmp_path)
    made = list(worker.run(envelopes([1, 3, 5])))
    done = desk.take().receipts[0]

    assert [unpack(each).column("n").to_pylist() for each in made] == [[1, 5]]
    assert done.counts[0].quarantined == 1
    assert len(done.side_files) == 1


def test_a_repeated_task_gives_its_results_again_and_is_not_counted(tmp_path):
    desk = Desk()
    worker = start(_FailsOnThree(), _FailsOnThree().with_(name="next"), desk=desk, directory=tmp_path)
    first = list(worker.run(envelopes([1, 3])))
    desk.take()
    again = list(worker.run(envelopes([1, 3])))

    assert [unpack(each).column("n").to_pylist() for each in again] == [[1]]
    assert [each.item_id for each in again] == [each.item_id for each in first]
    assert desk.take().receipts == []


def test_nothing_is_done_after_a_stop(tmp_path):
    desk = Desk()
    worker = start(_FailsOnThree(), desk=desk, directory=tmp_path)
    desk.stop()

    assert list(worker.run(envelopes([1]))) == []
    assert desk.take().receipts == []


def test_a_failed_set_up_is_reported_with_its_reason(tmp_path):
    desk = Desk()

    with pytest.raises(RunFailed, match=r"model\.bin"):
        start(_HasNoModel(), desk=desk, directory=tmp_path)
    assert "model.bin" in desk.take().failure
