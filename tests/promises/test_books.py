"""Every document is accounted for, and one bad document never kills a run."""

import json

import pyarrow as pa
import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import EngineBug, TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.runs.ledger import CHECKSUM, sealed
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch


class LeavesRowsOut(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Filters as users do who have never heard of the books."""

    name = "leaves_rows_out"

    def process(self, task):
        frame = task.to_pandas()
        return DocumentBatch(task.dataset_name, frame[frame["n"] % 3 != 0])


class SplitsEveryTenth(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "splits_every_tenth"

    def process(self, task):
        extra = task.filter(pa.array([n % 10 == 0 for n in task.column("n").to_pylist()]))
        return [task, extra]


class FailsOnSomeNumbers(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Divides by zero for n = 7, 77 and 177."""

    name = "fails_on_some_numbers"

    def process(self, task):
        for n in task.column("n").to_pylist():
            _ = 1 / (0 if n in (7, 77, 177) else 1)
        return task


@pytest.fixture(scope="module")
def curated(tmp_path_factory):
    """One run of everything that can happen to a document."""
    work = tmp_path_factory.mktemp("books")
    for part in range(4):
        path = work / "in" / f"part-{part}.jsonl"
        numbers = range(50 * part, 50 * part + 50)
        write_documents(path, [{"n": n, "id": f"doc-{n}", "text": "word " * (n % 7)} for n in numbers])
        path.write_text(path.read_text() + "\n{broken\n[1, 2]\n")
    stages = [
        JsonlReader(str(work / "in")),
        FailsOnSomeNumbers(),
        LeavesRowsOut(),
        SplitsEveryTenth(),
        ScoreFilter(WordCountFilter(min_words=2)),
        JsonlWriter(str(work / "out")),
    ]
    result = Pipeline("books", stages=stages).run(LocalExecutor(num_workers=2), rejects_path=work / "rejects")
    return work, result


pytestmark = pytest.mark.slow


def test_read_equals_written_plus_dropped_plus_quarantined(curated):
    """read = written + dropped (by stage and reason) + quarantined, checked at the end of every run."""
    work, result = curated
    alive = [n for n in range(200) if n not in (7, 77, 177) and n % 3 != 0]
    alive += [n for n in alive if n % 10 == 0]
    kept = [n for n in alive if n % 7 >= 2]

    assert result.read == 208
    assert result.created == sum(n % 10 == 0 for n in range(200) if n % 3)
    assert result.quarantined == 8 + 3
    assert result.dropped == {
        "leaves_rows_out": {"leaves_rows_out": sum(n % 3 == 0 and n != 177 for n in range(200))},
        "word_count": {"word_count": len(alive) - len(kept)},
    }
    assert result.written == len(kept)
    assert result.read + result.created == result.written + result.dropped_total + result.quarantined
    assert sorted(d["n"] for d in read_documents(work / "out")) == sorted(kept)


def test_a_bad_document_is_in_quarantine_with_its_id_source_stage_error_and_traceback(curated):
    """One bad document never kills a run: it goes to `quarantine/` with its id, source, stage, error and traceback."""
    work, result = curated
    entries = [e for e in quarantined(result) if e["stage"] == "fails_on_some_numbers"]

    assert sorted(entry["document_id"] for entry in entries) == ["doc-177", "doc-7", "doc-77"]
    seven = next(entry for entry in entries if entry["document_id"] == "doc-7")
    assert seven["source"] == str(work / "in" / "part-0.jsonl")
    assert seven["error"] == "ZeroDivisionError: division by zero"
    assert "in process" in seven["traceback"]
    assert json.loads(seven["document"])["n"] == 7


def test_a_malformed_line_is_in_quarantine_with_file_and_line(curated):
    """One bad record never loses the rest of its file."""
    _, result = curated
    entries = [e for e in quarantined(result) if e["stage"] == "jsonl_reader"]

    assert [(entry["line"], entry["document"]) for entry in entries] == [(52, "{broken"), (53, "[1, 2]")] * 4


def quarantined(result):
    files = sorted(result.quarantine_files)
    return [json.loads(line) for name in files for line in open_lines(name)]


def open_lines(name):
    with open(name) as file:  # noqa: PTH123  # a path from the result, as a user has it
        return file.readlines()


def test_rejects_carry_stage_reason_value_and_threshold(curated):
    """Rejected documents can be kept with the reason, the measured value and the threshold."""
    work, result = curated
    rejects = read_documents(work / "rejects")

    assert len(rejects) == result.dropped["word_count"]["word_count"]
    assert {r["reject_stage"] for r in rejects} == {r["reject_reason"] for r in rejects} == {"word_count"}
    assert {r["reject_threshold"] for r in rejects} == {"2 ≤ words ≤ 100000"}
    assert all(r["reject_value"] == r["n"] % 7 for r in rejects)
    assert all(r["text"] == "word " * (r["n"] % 7) for r in rejects)


@pytest.mark.parametrize("limit", [10, 0.05])
def test_more_failures_than_allowed_stop_the_run_after_committing_what_is_good(curated, tmp_path, limit):
    """`max_quarantined` (count or share) stops the run cleanly, after committing what is good."""
    work, _ = curated
    stages = [JsonlReader(str(work / "in")), FailsOnSomeNumbers(), JsonlWriter(str(tmp_path / "out"))]

    with pytest.raises(TooManyQuarantined, match="got 11 of 208 read") as stopped:
        Pipeline("limit", stages=stages).run(LocalExecutor(num_workers=0), max_quarantined=limit)
    assert stopped.value.result.written == len(read_documents(tmp_path / "out")) == 197


def test_as_many_failures_as_allowed_are_no_error(curated, tmp_path):
    work, _ = curated
    stages = [JsonlReader(str(work / "in")), FailsOnSomeNumbers(), JsonlWriter(str(tmp_path / "out"))]

    assert Pipeline("limit", stages=stages).run(LocalExecutor(num_workers=0), max_quarantined=11).quarantined == 11


def copy_documents(work):
    stages = [JsonlReader(str(work / "in")), JsonlWriter(str(work / "out"))]
    return Pipeline("copy", stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=work / "run")


@pytest.mark.parametrize("committed", [1, 2], ids=["in the middle", "after the last commit"])
def test_a_run_whose_books_do_not_balance_has_failed(tmp_path, committed):
    """The ledger says that one document more was read than is accounted for."""
    for part in range(2):
        write_documents(tmp_path / "in" / f"{part}.jsonl", [{"text": "a"}] * 3)
    assert copy_documents(tmp_path).balanced
    ledger = tmp_path / "run" / "ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)[:committed]
    wrong = lines[0].partition(CHECKSUM)[0].replace('"read":3', '"read":4')
    ledger.write_text("".join([sealed(wrong + "}"), *lines[1:]]))
    (tmp_path / "run" / "report.json").unlink()

    with pytest.raises(EngineBug, match=r"^copy: the books do not balance: "):
        copy_documents(tmp_path)
    assert not (tmp_path / "run" / "report.json").exists()
