"""The quarantine of a run is counted by error from its files, whatever state they are in."""

import json
import re
from pathlib import Path

import pytest

from gristmill.runs.books import completed_text, read_errors
from gristmill.stages.io.line_blocks import numbers_from


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def record(number, **changes):
    fields = {
        "stage": "parse",
        "task": "a",
        "error": f"ValueError: bad {number}",
        "kind": "ValueError",
        "source": "a.jsonl",
        "line": number,
        "block_start": None,
        "row": number,
        "document_id": f"d{number}",
        "num_documents": 1,
        "lost_bytes": 0,
        "traceback": f"Traceback {number}",
        "document": f'{{"id": {number}}}',
    }
    return {**fields, **changes}


def test_files_are_counted_together_and_the_example_is_whole(tmp_path):
    files = [write(tmp_path / "b.jsonl", record(5), record(4)), write(tmp_path / "a.jsonl", record(9), record(3))]
    [error] = read_errors(files)

    assert (error.stage, error.kind, error.message, error.count) == ("parse", "ValueError", "bad 3", 4)
    assert (error.example.document_id, error.example.line) == ("d3", 3)
    assert (error.example.traceback, error.example.document) == ("Traceback 3", '{"id": 3}')


def test_a_record_of_several_documents_counts_as_many_and_one_of_none_as_a_lost_part(tmp_path):
    records = [record(1, num_documents=1200), record(2, kind="ReadError", error="cut", num_documents=0, lost_bytes=77)]
    errors = read_errors([write(tmp_path / "a.jsonl", *records)])

    assert [(e.kind, e.count, e.lost_parts, e.lost_bytes) for e in errors] == [
        ("ValueError", 1200, 0, 0),
        ("ReadError", 0, 1, 77),
    ]


def test_the_line_within_a_block_is_not_shown_as_one_of_the_file(tmp_path):
    [error] = read_errors([write(tmp_path / "a.jsonl", record(17, block_start=4096))])

    assert error.example.line is None


def test_a_damaged_line_and_a_missing_file_are_said_and_stop_nothing(tmp_path):
    damaged = tmp_path / "a.jsonl"
    damaged.write_bytes(json.dumps(record(1)).encode() + b'\n{"stage": "pa\n\xff\xfe\n5\n[]\n')
    errors = read_errors([str(damaged), str(tmp_path / "gone.jsonl")])

    assert [(e.stage, e.message) for e in errors] == [
        ("parse", "bad 1"),
        ("quarantine", "a file of the quarantine is gone"),
        ("quarantine", "a line of the quarantine is damaged"),
    ]


def test_a_line_whose_traceback_or_document_is_damaged_counts_as_that(tmp_path):
    """Those are decoded apart, and only if they are to be shown."""
    files = []
    for name in ("traceback", "document"):
        files.append(tmp_path / f"{name}.jsonl")
        line = json.dumps(record(1, **{name: "here"})).encode() + b"\n"
        files[-1].write_bytes(line.replace(b'"here"', b'"\xe7here"'))
    [error] = read_errors(map(str, files))

    assert (error.kind, error.message) == ("damaged_record", "a line of the quarantine is damaged")


def test_a_file_is_read_in_large_pieces(tmp_path):
    """Read byte by byte, a quarantine of some megabytes would take longer than the run."""
    path = write(tmp_path / "a.jsonl", *(record(number) for number in range(200)))
    calls = Path("/proc/self/io")
    if not calls.exists():
        pytest.skip("this system does not count reads")

    def num_reads():
        return int(re.search(r"syscr: (\d+)", calls.read_text())[1])

    before = num_reads()
    [error] = read_errors([path])

    assert error.count == 200
    assert num_reads() - before < 50


def test_stages_complete_records_and_what_is_complete_stays_as_it_is():
    def complete(entry):
        changes = entry.get("block_start") is not None
        entry.update(block_start=None, line=entry["line"] + 10 * changes)
        return changes

    text = "".join(json.dumps(record(number, block_start=5)) + "\n" for number in (1, 2))
    completed = completed_text(text, [complete])

    assert [json.loads(line)["line"] for line in completed.splitlines()] == [11, 12]
    assert completed_text(completed, [complete]) is None


def test_damaged_text_is_left_for_whoever_compares_it_with_its_checksum():
    complete = numbers_from([b'["f",0,10]'])

    for text in ('{"source": "f", "li\n', "5\n", '{"line": 3}\n', "[" * 100_000):
        assert completed_text(text, [complete]) is None
