"""What went wrong is told by stage and error, in the result and the report, also where no run directory is left."""

import json
from pathlib import Path

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import StageBroken, TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.slow


class NoSevens(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "no_sevens"

    def process(self, task):
        for text in task.column("text").to_pylist():
            if "7" in text:
                raise ValueError(f"cannot take {text!r}")
        return task


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    for part in range(3):
        lines = [json.dumps({"id": f"{part}-{n}", "text": f"text {n}"}) for n in range(20)]
        (folder / f"{part}.jsonl").write_text("\n".join([*lines, "broken"]) + "\n")
    return folder


def told(result):
    return [
        (e.stage, e.kind, e.count, Path(e.example.source).name, e.example.document_id, e.example.line)
        for e in result.errors
    ]


EXPECTED = [
    ("jsonl_reader", "broken_json", 3, "0.jsonl", "", 21),
    ("no_sevens", "ValueError", 6, "0.jsonl", "0-7", None),
]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_errors_outlive_a_temporary_run_whatever_the_workers(raw, workers):
    result = Pipeline("told", stages=[JsonlReader(str(raw)), NoSevens()]).run(LocalExecutor(num_workers=workers))

    assert told(result) == EXPECTED
    assert result.errors[1].message == "cannot take 'text 7'"
    assert "in process\n" in result.errors[1].example.traceback
    assert json.loads(result.errors[1].example.document) == {"id": "0-7", "text": "text 7"}
    assert result.quarantine_files == []
    assert "6 in no_sevens: ValueError: cannot take 'text 7'" in str(result)


@pytest.mark.parametrize("workers", [0, 2])
def test_whoever_watches_is_told_the_commonest_error_of_every_stage(raw, workers):
    last = []
    stages = [JsonlReader(str(raw)), NoSevens().with_(batch_size=2)]  # a group of its own
    Pipeline("told", stages=stages).run(LocalExecutor(num_workers=workers), observer=last.append)

    assert [stage.error for stage in last[-1].stages][-2:] == [
        "broken_json: expected JSON; got JSON is malformed: invalid character (byte …)",
        "ValueError: cannot take …",
    ]


class FailsOnEverything(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "fails_always"

    def process(self, task):
        raise KeyError("missing piece")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("writer", [True, False], ids=["writer", "temporary"])
def test_a_broken_stage_shows_error_document_and_traceback_wherever_it_ran(raw, tmp_path, workers, writer):
    stages = [JsonlReader(str(raw)), FailsOnEverything(), *([JsonlWriter(str(tmp_path / "out"))] if writer else [])]
    with pytest.raises(StageBroken) as broken:
        Pipeline("told", stages=stages).run(LocalExecutor(num_workers=workers))

    said = str(broken.value)
    assert "fails_always: no document has passed it" in said
    assert "KeyError: 'missing piece'" in said
    assert 'raise KeyError("missing piece")' in said
    assert '{"id": "' in said


def test_the_line_of_an_example_is_the_files_and_not_the_blocks(raw):
    reader = JsonlReader(str(raw), blocksize=300)
    result = Pipeline("told", stages=[reader]).run(LocalExecutor(num_workers=0))

    assert told(result) == EXPECTED[:1]


def test_a_report_has_them_and_so_has_the_same_call_again(raw, tmp_path):
    stages = [JsonlReader(str(raw)), NoSevens(), JsonlWriter(str(tmp_path / "out"))]
    run = tmp_path / "run"
    first = Pipeline("told", stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=run)
    again = Pipeline("told", stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=run)
    report = json.loads((run / "report.json").read_text())

    assert told(first) == told(again) == EXPECTED
    assert [(e["stage"], e["kind"], e["count"]) for e in report["errors"]] == [e[:3] for e in EXPECTED]
    assert "text 7'" in report["errors"][1]["message"]
    assert "document" not in report["errors"][1]["example"], "documents stay in quarantine"


def test_too_many_says_in_what_stage_and_why(raw):
    pipeline = Pipeline("told", stages=[JsonlReader(str(raw)), NoSevens()])
    with pytest.raises(TooManyQuarantined) as stopped:
        pipeline.run(LocalExecutor(num_workers=0), max_quarantined=0.01)

    assert "expected at most 1 % of the documents read" in str(stopped.value)
    assert "in stage no_sevens: ValueError: cannot take 'text 7' (for example document 0-7 in " in str(stopped.value)
    assert stopped.value.result.errors
