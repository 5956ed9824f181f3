"""A worker that is silent for long leaves the document it is at beside its crumb."""

import threading

import pyarrow as pa
import pytest

from gristmill.engine.commands import Warn
from gristmill.engine.scheduler_config import WATCHDOG_S
from gristmill.pipeline.compile import compile_chain
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.modifiers import DocumentModifier, Modify
from gristmill.tasks import DocumentBatch
from gristmill.testing.virtual_run import Deed, VirtualRun, group
from gristmill.worker.crumbs import CRUMB, empty_block, place_of, read_crumb
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job
from gristmill.worker.silence import LOOK_AFTER_S, Silence, _name, line_of


class Hold:
    """Stops whoever comes to a text that says so, until it is let go."""

    def __init__(self):
        self.reached, self.may_go = threading.Event(), threading.Event()

    def __call__(self, text):
        if "stop here" in text:
            self.reached.set()
            self.may_go.wait(20)
        return text


class OwnLoop(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A stage of a user's: it goes through the texts itself."""

    name = "own_loop"

    def __init__(self, hold):
        self.hold = hold

    def process(self, task):
        for text in task.column("text").to_pylist():
            self.hold(text)
        return task


class Modifier(DocumentModifier):
    def __init__(self, hold):
        self.hold = hold

    def modify_document(self, text):
        return self.hold(text)


BATCH = pa.table({"id": ["a", "b", "c"], "text": ["one", "please stop here", "three"]})


@pytest.mark.parametrize("make", [OwnLoop, lambda hold: Modify(Modifier(hold), name="own_loop")])
def test_the_document_a_stage_is_at_is_named_after_a_while(make):
    hold, block = Hold(), bytearray(empty_block())
    task = DocumentBatch("texts", BATCH)
    plan = compile_chain("p", [make(hold)], [task])
    made = {}

    def work():
        crumb = lambda *rows, turn=0: CRUMB.pack_into(block, 0, 0, *rows, turn)  # noqa: E731
        runner = GroupRunner(plan.groups[0], last=True, leave_crumb=crumb)
        made["silence"] = Silence(memoryview(block), lambda: (bytes(block[: CRUMB.size]), 7))
        runner.run([Job("p0", task)], lambda *_: None)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    assert hold.reached.wait(20)
    silence = made["silence"]
    silence.look(100.0)
    silence.look(100.0 + LOOK_AFTER_S - 1)
    assert place_of(memoryview(block), plan.groups[0]) == "in stage own_loop, one of 3 documents"
    silence.look(100.0 + LOOK_AFTER_S)
    assert place_of(memoryview(block), plan.groups[0]).startswith("in stage own_loop, document b")
    assert read_crumb(memoryview(block)) == (0, 0, 3, 0)
    hold.may_go.set()
    worker.join(20)
    CRUMB.pack_into(block, 0, 0, 0, 0, 2, 0)
    silence.look(200.0)
    assert place_of(memoryview(block), plan.groups[0]) == "in stage own_loop, one of 2 documents"


@pytest.mark.parametrize(
    ("name", "content", "wanted", "line"),
    [
        ("a.jsonl", b'{"id": "x", "text": "b"}\n\n{"text": "b", "id": "b"}\n', "b", 3),
        ("a.jsonl", b'{"id": "ab", "text": "no"}\n{"id":7}', "7", 2),
        ("a.jsonl", '{"id": "\u00e9 \\"q\\""}\n'.encode(), 'é "q"', 1),
        ("a.jsonl", b'broken b\n{"id": "c"}\n', "b", 0),
        ("a.jsonl", b"", "b", 0),
        ("a.jsonl.gz", b'{"id": "b"}\n', "b", 0),
    ],
)
def test_the_line_of_a_document_is_found_by_its_id(tmp_path, name, content, wanted, line):
    (tmp_path / name).write_bytes(content)

    assert line_of(str(tmp_path / name), wanted) == line
    assert line_of(str(tmp_path / "gone.jsonl"), wanted) == 0


def test_a_silent_document_is_named_with_its_line(tmp_path):
    (tmp_path / "part-003.jsonl").write_text("".join(f'{{"id": "{name}", "text": "one"}}\n' for name in "abc"))
    batch = DocumentBatch("p", BATCH, _metadata={"source_files": [str(tmp_path / "part-003.jsonl")]})

    assert _name(batch, 1) == "document b of part-003.jsonl:2"


def test_a_stage_that_sleeps_is_named_within_45_seconds():
    run = VirtualRun((group(0),), [1] * 3, lambda _, job: Deed(service_s=500.0 if job.item_id == "p1" else 0.1))
    run.join()
    while not (warned := [command for command in run.commands if isinstance(command, Warn)]):
        run.next_step()

    assert warned[0].item_id == "p1"
    assert WATCHDOG_S <= warned[0].running_s <= 45
    assert LOOK_AFTER_S + 5 < WATCHDOG_S  # by then the document is known too
