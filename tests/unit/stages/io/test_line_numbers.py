"""Line numbers in quarantine count from the beginning of a file, however it was split."""

import json

import pytest

from gristmill.stages.context import Quarantined, StageContext
from gristmill.stages.io.line_blocks import note_lines, numbers_from
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.io.reader.jsonl import JsonlReaderStage
from gristmill.stages.text.io.reader.text import TextReaderStage


def completer(*lines_read):
    context = StageContext()
    note_lines(context, {(path, start): count for path, start, count in lines_read})
    return numbers_from(context.facts)


def entry_of(quarantined: Quarantined):
    return {"source": quarantined.source, "line": quarantined.line, "block_start": quarantined.block_start}


def test_line_numbers_become_those_of_the_file():
    entries = [
        {"source": "f", "line": 3, "block_start": 0},
        {"source": "f", "line": 2, "block_start": 200},
        {"source": "g", "line": 1, "block_start": 100},
        {"source": "h", "line": 1, "block_start": 100},
    ]
    complete = completer(("f", 0, 10), ("f", 200, 4), ("f", 100, 5), ("g", 100, 9))

    assert [complete(entry) for entry in entries] == [True, True, True, False]
    assert [entry["line"] for entry in entries] == [3, 17, 1, 1]


def test_numbering_again_changes_nothing():
    complete = completer(("f", 0, 10), ("f", 100, 5))
    entry = {"source": "f", "line": 2, "block_start": 100}

    assert complete(entry)
    assert not complete(entry)
    assert entry["line"] == 12


def test_what_has_no_line_keeps_none():
    assert not completer(("f", 0, 10))({"source": "f", "line": None, "block_start": 0})


@pytest.mark.parametrize(
    ("path", "source"), [("s3://me:pw@host/a", "s3://***@host/a"), ("a\udcff.jsonl", "a\\udcff.jsonl")]
)
def test_facts_name_a_file_as_its_records_do(path, source):
    """No secret gets into the ledger, and a name that is not UTF-8 does not keep a partition from being committed."""
    context = StageContext()
    note_lines(context, {(path, 0): 3})

    assert json.loads(context.facts[0]) == [source, 0, 3]


@pytest.mark.parametrize("blocksize", [10, 33, 64, 1000])
@pytest.mark.parametrize("format_", ["jsonl", "text"])
def test_a_split_files_bad_lines_are_found_where_an_editor_shows_them(tmp_path, blocksize, format_):
    """Reader, partitions and numbers together: cut a file anywhere, and the numbers are those of the whole file."""
    source = tmp_path / f"a.{format_}"
    bad = {4, 11, 12, 29}
    source.write_bytes(b"".join(b"{\xff\n" if n in bad else b'{"n": %d}\n' % n for n in range(1, 31)))
    stage = JsonlReaderStage() if format_ == "jsonl" else TextReaderStage(document_per="line")
    stage.context = StageContext()
    tasks = FilePartitioningStage(str(source), blocksize=blocksize, split="lines").partitions()
    for task in tasks:
        stage.process(task)
    entries = [entry_of(record) for record in stage.context.quarantined]
    complete = stage.completer(stage.context.facts)
    for entry in entries:
        complete(entry)

    assert {entry["line"] for entry in entries} == bad
    assert len(tasks) > 1 or blocksize == 1000


def test_a_file_read_in_one_piece_needs_no_facts(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text('{"n": 1}\n' + '{"t": "' + "x" * 99 + '"}\n{"n": 3}\nbroken\n')
    stage = JsonlReaderStage(max_document_bytes=50)
    (task,) = FilePartitioningStage(str(source), split="lines").partitions()
    stage.process(task)

    assert stage.context.facts == []
    assert [(r.kind, r.line, r.block_start) for r in stage.context.quarantined] == [
        ("too_large", 2, None),
        ("broken_json", 4, None),
    ]
