"""One bad document never ends a run, and never takes another document with it."""

import json
import sys
from pathlib import Path

import pytest
from tests.fault.poison import Break, BreakInTime, BreakSlowly, Compare, Flaky, Halve, Numbers, run
from tests.fault.processes import finish
from tests.fault.traces import contents, temporary_files

from gristmill.backends.local import LocalExecutor
from gristmill.errors import TooManyQuarantined
from gristmill.pipeline import Pipeline

pytestmark = [pytest.mark.fault, pytest.mark.slow]

COMMAND = Path(sys.executable).parent / "gristmill"
FILES = 4
ROWS = 40


def write_corpus(directory, poison):
    """Four files of forty documents; `poison` is (file, row) -> what the document does to its stage."""
    directory.mkdir(parents=True)
    for file in range(FILES):
        documents = [{"id": f"{file}-{row}", "do": poison.get((file, row), "pass")} for row in range(ROWS)]
        (directory / f"part-{file}.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    return directory


def written(work):
    return [
        json.loads(line)["id"]
        for file in sorted((work / "out").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def quarantined(work):
    files = sorted((work / "run" / "quarantine").rglob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def everybody_but(*ids):
    return [name for f in range(FILES) for r in range(ROWS) if (name := f"{f}-{r}") not in ids]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_document_that_raises_is_quarantined_with_all_that_is_known_of_it(tmp_path, workers):
    source = write_corpus(tmp_path / "raw", {(1, 17): "raise"})
    result = run(source, tmp_path, workers=workers)
    [record] = quarantined(tmp_path)

    assert written(tmp_path) == everybody_but("1-17")
    assert (result.read, result.written, result.quarantined) == (160, 159, 1)
    assert (record["document_id"], record["stage"], record["row"]) == ("1-17", "break", 17)
    assert record["error"] == "ValueError: this document is bad"
    assert record["source"].endswith("part-1.jsonl")
    assert "in _raise" in record["traceback"]
    assert json.loads(record["document"]) == {"id": "1-17", "do": "raise"}


def test_every_bad_document_of_a_batch_is_found(tmp_path):
    bad = {(2, row): "raise" for row in (0, 1, 19, 20, 39)}
    run(write_corpus(tmp_path / "raw", bad), tmp_path)

    assert [record["row"] for record in quarantined(tmp_path)] == [0, 1, 19, 20, 39]
    assert written(tmp_path) == everybody_but(*(f"2-{row}" for _, row in bad))


def test_endless_recursion_is_an_error_like_any_other(tmp_path):
    run(write_corpus(tmp_path / "raw", {(0, 3): "recurse"}), tmp_path)
    [record] = quarantined(tmp_path)

    assert record["kind"] == "RecursionError"
    assert written(tmp_path) == everybody_but("0-3")


@pytest.mark.parametrize(
    ("way", "words"),
    [("exit", "exit code 7"), ("kill", "SIGKILL"), ("segfault", "SIGSEGV")],
)
def test_a_document_that_kills_its_worker_is_quarantined_alone(tmp_path, way, words):
    result = run(write_corpus(tmp_path / "raw", {(1, 17): way}), tmp_path)
    [record] = quarantined(tmp_path)

    assert (record["document_id"], record["kind"], record["row"]) == ("1-17", "WorkerLost", 17)
    assert words in record["error"]
    assert written(tmp_path) == everybody_but("1-17")
    assert result.quarantined == 1
    assert any("a worker of" in message and words in message for message in result.messages)
    assert temporary_files(tmp_path) == []


def test_the_output_is_as_if_the_deadly_document_had_never_been_there(tmp_path):
    run(write_corpus(tmp_path / "raw", {(1, 17): "exit"}), tmp_path)
    clean = tmp_path / "clean"
    source = write_corpus(clean / "raw", {})
    spared = source / "part-1.jsonl"
    spared.write_text("".join(line for line in spared.read_text().splitlines(keepends=True) if '"1-17"' not in line))
    run(source, clean)

    published = {name: data for name, data in contents(tmp_path).items() if name.startswith("out/")}
    assert published == {name: data for name, data in contents(clean).items() if name.startswith("out/")}


def test_several_deadly_documents_in_one_batch_are_all_found(tmp_path):
    bad = {(1, 5): "exit", (1, 6): "raise", (1, 30): "kill"}
    run(write_corpus(tmp_path / "raw", bad), tmp_path)

    assert sorted(record["document_id"] for record in quarantined(tmp_path)) == ["1-30", "1-5", "1-6"]
    assert written(tmp_path) == everybody_but("1-5", "1-6", "1-30")


def test_a_record_is_the_same_however_its_document_was_found(tmp_path):
    """Halving finds it after an exception, stepping after deaths; which of them happens may be chance."""
    records = []
    for name, others in (("halved", {}), ("stepped", {(1, 30): "exit"})):
        run(write_corpus(tmp_path / name / "raw", {(1, 17): "raise", **others}), tmp_path / name)
        records += [r for r in quarantined(tmp_path / name) if r["document_id"] == "1-17"]
    halved, stepped = records

    assert halved["traceback"] == stepped["traceback"]
    assert "isolation" not in halved["traceback"]


def test_a_document_that_hangs_is_ended_by_the_deadline_and_quarantined(tmp_path):
    run(write_corpus(tmp_path / "raw", {(3, 2): "hang"}), tmp_path, BreakInTime())
    [record] = quarantined(tmp_path)

    assert record["document_id"] == "3-2"
    assert "no result within the deadline of 1.5 s" in record["error"]
    assert written(tmp_path) == everybody_but("3-2")


def test_a_deadline_is_for_one_call_not_for_finding_out_which_document_is_bad(tmp_path):
    run(write_corpus(tmp_path / "raw", {(0, 39): "exit", (1, 20): "raise"}), tmp_path, BreakSlowly())

    assert sorted(record["document_id"] for record in quarantined(tmp_path)) == ["0-39", "1-20"]
    assert written(tmp_path) == everybody_but("0-39", "1-20")


def test_a_transient_error_is_tried_again_and_is_nobodys_fault(tmp_path):
    (tmp_path / "asked").mkdir()
    result = run(write_corpus(tmp_path / "raw", {}), tmp_path, Flaky(tmp_path / "asked"))

    assert len(list((tmp_path / "asked").iterdir())) == FILES
    assert written(tmp_path) == everybody_but()
    assert result.quarantined == 0


def test_a_batch_no_document_of_which_is_to_blame_is_quarantined_whole(tmp_path):
    result = run(write_corpus(tmp_path / "raw", {(1, 17): "raise"}), tmp_path, Compare())
    [record] = quarantined(tmp_path)

    assert record["num_documents"] == ROWS
    assert result.quarantined == ROWS
    assert written(tmp_path) == [name for name in everybody_but() if not name.startswith("1-")]


def test_a_task_of_a_users_own_kind_is_quarantined_whole(tmp_path):
    tasks = [Numbers("numbers", [n, n + 1]) for n in (0, 12, 99, 4)]
    result = Pipeline("own", stages=[Halve()]).run(LocalExecutor(num_workers=2), initial_tasks=tasks)

    assert [task.data for task in result] == [[0, 0.5], [2, 2.5]]
    assert (result.read, result.written, result.quarantined) == (8, 4, 4)


@pytest.mark.parametrize("limit", [2, 0.01])
def test_too_many_bad_documents_stop_the_run_with_what_is_good_committed(tmp_path, limit):
    bad = {(file, row): "raise" for file in range(FILES) for row in (3, 4)}
    with pytest.raises(TooManyQuarantined, match=r"in quarantine; got \d+ of \d+ read") as stopped:
        run(write_corpus(tmp_path / "raw", bad), tmp_path, max_quarantined=limit)
    result = stopped.value.result

    assert result.balanced
    assert result.written == len(written(tmp_path)) > 0
    assert len(quarantined(tmp_path)) == result.quarantined > 2
    assert temporary_files(tmp_path) == []


def test_as_many_bad_documents_as_allowed_are_no_reason_to_stop(tmp_path):
    result = run(write_corpus(tmp_path / "raw", {(0, 1): "raise", (1, 1): "raise"}), tmp_path, max_quarantined=2)

    assert result.quarantined == 2


def test_the_same_command_says_again_that_there_were_too_many(tmp_path):
    source = write_corpus(tmp_path / "raw", {(0, 1): "raise"})
    for _ in range(2):
        with pytest.raises(TooManyQuarantined):
            run(source, tmp_path, max_quarantined=0)

    assert written(tmp_path) == everybody_but("0-1")


def test_the_command_exits_with_3_and_leaves_what_is_good(tmp_path, scene):
    source = write_corpus(tmp_path / "raw", {(0, 1): "kill"})
    (tmp_path / "recipe.yaml").write_text(
        'name: poison\nstages:\n- JsonlReader: {file_paths: "${input}"}\n'
        f'- {Break.__module__}.Break\n- JsonlWriter: {{path: "${{output}}"}}\n'
    )
    paths = ("--input", source, "--output", tmp_path / "out", "--run-dir", tmp_path / "run")
    trusted = ("--allow-module", Break.__module__)
    arguments = ("run", tmp_path / "recipe.yaml", *paths, *trusted, "--max-quarantined", 0, "--json")
    out, errors = finish(scene.start(str(COMMAND), *arguments), expected=3)

    assert json.loads(out.splitlines()[-1])["quarantined"] == 1
    assert "expected at most 0 documents in quarantine; got 1 of 160 read" in errors
    assert written(tmp_path) == everybody_but("0-1")
