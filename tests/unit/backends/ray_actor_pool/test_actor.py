"""A worker behind an actor's methods, called here without Ray: what is posted is done, said and handed over."""

import json
import logging
import sys
import threading
from mmap import mmap

import pyarrow as pa
import pytest

from gristmill.backends.ray_actor_pool.actor import Duty, WorkerActor
from gristmill.backends.ray_actor_pool.object_blocks import ObjectBlocks
from gristmill.engine.commands import Assignment, Care
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch
from gristmill.worker.crumbs import read_crumb
from gristmill.worker.job import RunSettings
from gristmill.worker.stage_pickle import pickled
from gristmill.worker.wire import Parcel, pack, to_wire, unpack

LARGE = 1 << 16


class Doubles(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "doubles"

    def process(self, task):
        return [task, task.with_column("again", task.column("text"))]


class PassesOn(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "passes"

    def process(self, task):
        return task


class NeverReady(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "never_ready"

    def setup(self, worker_metadata=None):
        raise OSError("no model here")

    def process(self, task):
        return task


def batch(size):
    return DocumentBatch("given", pa.table({"text": ["x" * size]}))


def begun(stage, tmp_path):
    plan = Pipeline("p", stages=[stage]).plan(initial_tasks=[batch(1)])
    actor = WorkerActor()
    begin(actor, plan, tmp_path)
    return actor


def begin(actor, plan, tmp_path, crumb="crumb"):
    actor.begin(Duty(3, 0, (), RunSettings()), pickled(plan.groups), str(tmp_path / crumb))


def call(task, number=0):
    blocks = ObjectBlocks()
    parcel = pack(task, blocks)
    assert parcel.body is not None
    return ("call", [to_wire(Assignment(number, "item", None, Care.NORMAL, 0, (), "", 0), parcel)])


def test_a_worker_says_that_it_is_ready_and_what_it_did(tmp_path):
    actor = begun(Doubles(), tmp_path)
    (ready,), none = actor.listen()
    assert (ready[0], none) == ("ready", 0)

    actor.post([call(batch(5))], [])
    (done,), none = actor.listen()
    assert (done[0], [made[1] for made in done[2]], none) == ("done", ["item.0000", "item.0001"], 0)


class Warns(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "warns"

    def process(self, task):
        logging.getLogger("of.a.user").warning("look at this")
        return task


@pytest.mark.parametrize("log_format", ["", "json"])
def test_what_a_stage_logs_names_stage_and_worker_and_logging_is_as_it_was_then(
    tmp_path, capfd, monkeypatch, log_format
):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setenv("GRISTMILL_LOG_FORMAT", "")
    plan = Pipeline("p", stages=[Warns()]).plan(initial_tasks=[batch(1)])
    actor, before = WorkerActor(), (sys.stdout, sys.stderr)
    others = set(threading.enumerate())
    duty = Duty(3, 0, (), RunSettings(log_format=log_format))
    actor.begin(duty, pickled(plan.groups), str(tmp_path / "crumb"))
    actor.listen()
    actor.post([call(batch(5)), ("drain", None)], [])
    while actor.listen()[0][-1][0] != "drained":
        pass
    for thread in set(threading.enumerate()) - others:
        if thread.name == "gristmill-worker":
            thread.join()
    said = capfd.readouterr().err.strip()

    if log_format:
        found = json.loads(said)
        assert (found["stage"], found["worker"], found["message"]) == ("warns", "3", "look at this")
    else:
        assert said == "[warns 3] warning: look at this"
    assert root.handlers == []
    assert (sys.stdout, sys.stderr) == before


def test_large_outputs_are_handed_over_in_order_when_they_are_asked_for(tmp_path):
    actor = begun(Doubles(), tmp_path)
    actor.listen()
    actor.post([call(batch(20_000))], [])
    (done,), count = actor.listen()
    sizes = [made[5] for made in done[2] if made[4] is None]
    out, *taken = actor.take(count)

    assert out is True
    assert [len(block) for block in taken] == sizes
    header, size = done[2][-1][3], done[2][-1][5]
    blocks = ObjectBlocks()
    assert unpack(Parcel(header, None, size, blocks.add(taken[-1])), blocks).get_columns() == ["text", "again"]


def test_a_drained_worker_says_so_last(tmp_path):
    actor = begun(Doubles(), tmp_path)
    actor.listen()
    actor.post([("drain", None)], [])

    assert actor.listen() == ([("drained",)], 0)


def test_an_actor_whose_worker_was_drained_begins_again_with_other_stages(tmp_path):
    actor = begun(Doubles(), tmp_path)
    actor.listen()
    actor.post([("drain", None), ("recall", (0,))], [])
    assert actor.listen() == ([("drained",)], 0)
    begin(actor, Pipeline("q", stages=[PassesOn()]).plan(initial_tasks=[batch(1)]), tmp_path, "another")
    (ready,), _ = actor.listen()
    actor.post([call(batch(5))], [])
    (done,), _ = actor.listen()

    assert (ready[0], done[0], [made[1] for made in done[2]]) == ("ready", "done", ["item"])


def test_a_drained_worker_leaves_no_crumb_and_nothing_that_looks_at_it(tmp_path):
    """The actor goes on as another run's worker: what still read the old crumb would end it with the file."""
    others = set(threading.enumerate())
    actor = begun(Doubles(), tmp_path)
    actor.listen()
    actor.post([call(batch(5))], [])
    actor.listen()
    mine = set(threading.enumerate()) - others
    actor.post([("drain", None)], [])
    actor.listen()
    for thread in mine:
        thread.join(60)

    assert {thread.name for thread in mine} == {"gristmill-worker", "gristmill-silence"}
    assert not any(thread.is_alive() for thread in mine)
    assert not (tmp_path / "crumb").exists()


def test_a_crumb_that_another_worker_has_left_is_not_written_over(tmp_path):
    (tmp_path / "crumb").write_bytes(b"of another")

    with pytest.raises(FileExistsError):
        begun(Doubles(), tmp_path)
    assert (tmp_path / "crumb").read_bytes() == b"of another"


def test_a_set_up_that_fails_is_told_with_its_traceback(tmp_path):
    ((kind, error),), _ = begun(NeverReady(), tmp_path).listen()

    assert kind == "setup_failed"
    assert "no model here" in error


def test_crumbs_are_where_a_keeper_finds_them(tmp_path):
    actor = begun(Doubles(), tmp_path)
    actor.listen()
    actor.post([call(batch(5))], [])
    actor.listen()
    with (tmp_path / "crumb").open("r+b") as file, mmap(file.fileno(), 0) as left:
        assert read_crumb(bytes(left)) == (0, 0, 1, 0)


@pytest.mark.parametrize("size", [1, LARGE])
def test_a_block_is_what_was_written_into_it(size):
    blocks = ObjectBlocks()
    number = blocks.create(size, lambda view: view.__setitem__(slice(None), b"a" * size))

    assert bytes(blocks.map_block(number, size)) == b"a" * size
